"""Tokens: short signed strings that stand for decisions, for clients that need not be trusted.

A token names a life, a pull and a time, and whether its person is held out.  It does not name the
arm, which may be private; the policy remembers it.  The key is made with the policy, is stored in
its file, and is never shown.  A reader of that file could answer for others, but sees raw data
anyway.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import math
import secrets
import struct
import time
from dataclasses import dataclass, field

from ..errors import UpdateError

DAYS = 24 * 3600.0
LIFETIME = 30 * DAYS  # after the deadline of a pull
LONGEST = 1e9  # seconds, for pulls whose deadline is no time

_FIELDS = struct.Struct(">16sQQ")  # life, number and two marks, expiry
_HELD_OUT = 2**63  # a mark; the other one is whether it is recorded
_SIGNATURE = 16  # bytes: forging one takes 2**128 tries


@dataclass(frozen=True)
class Seal:
    """The key of one policy, which recognises its own tokens."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def token(
        self, life: str, number: int, recorded: bool, lifetime: float, held_out: bool = False
    ) -> str:
        """The token of a pull, good for so many seconds."""
        expiry = math.ceil(time.time() + lifetime)
        marked = 2 * number + recorded + _HELD_OUT * held_out
        body = _FIELDS.pack(bytes.fromhex(life), marked, expiry)
        return _written(body + self._sign(body))

    def read(self, token: str) -> tuple[str, int, bool, bool]:
        """Life, number, whether it is recorded, and whether it is held out, of a token that was
        made with this key, and has not expired; an ``UpdateError`` for others.
        """
        try:
            whole = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            if _written(whole) != token:  # letters that decoding skips
                raise _foreign()
            body, signature = whole[: _FIELDS.size], whole[_FIELDS.size :]
            life, marked, expiry = _FIELDS.unpack(body)
        except (binascii.Error, ValueError, struct.error):
            raise _foreign() from None
        if not hmac.compare_digest(signature, self._sign(body)):
            raise _foreign()
        if time.time() > expiry:
            raise UpdateError("decision must be a token that has not expired")
        number = marked % _HELD_OUT
        return life.hex(), number // 2, bool(number % 2), marked >= _HELD_OUT

    def alias(self, user: str | int) -> bytes:
        """A keyed hash in the place of a user, from which nobody without the key can tell them."""
        return hmac.digest(self.key, b"user:" + named(user), "sha256")[:_SIGNATURE]

    def _sign(self, body: bytes) -> bytes:
        return hmac.digest(self.key, body, "sha256")[:_SIGNATURE]


def named(user: str | int) -> bytes:
    """The bytes that stand for a user, of no other text or number."""
    if isinstance(user, str):
        return b"text:" + user.encode("utf-8", "surrogatepass")
    return b"number:%x" % user  # of any length, which ``str`` refuses


def _written(whole: bytes) -> str:
    return base64.urlsafe_b64encode(whole).decode().rstrip("=")


def _foreign() -> UpdateError:
    return UpdateError(
        "decision must come from this policy's pull(), or be the token of such a decision"
    )
