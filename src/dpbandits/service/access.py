"""Who may do what: keys with roles, in a file that only the operator may read.

A key has 256 random bits, is shown once, and is kept as a SHA-256 digest: nobody can guess it, so a
slow hash would add nothing.  A file that changes is read again, so keys are exchanged without a
restart: add the new one, let clients change over, revoke the old one.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import secrets
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

from starlette.requests import Request

from ..errors import ArgumentError, StateFileError
from ..stores.files import write_anew
from ..stores.locks import Lock
from ..validation import choice, real
from .declaration import LONGEST_TENANT, name_of
from .problems import Problem

ROLES = ("decide", "reward", "report", "shuffle", "read", "admin")
OWN_TENANT = "default"
_EVERY_SECOND = 1.0  # the file is looked at no more often


@dataclass(frozen=True)
class Key:
    """A key, without its secret.

    Attributes:
        id: by which logs and trails name it.
        digest: SHA-256 of the secret, in hexadecimal.
        tenant: whose experiments it is for; it sees no others.
        roles: of ``ROLES``; an admin may do everything.
        experiments: names, or patterns such as "shop-*".
        per_second: requests, or items of batches, on average; None without a limit.
    """

    id: str
    digest: str
    tenant: str = OWN_TENANT
    roles: tuple[str, ...] = ("admin",)
    experiments: tuple[str, ...] = ("*",)
    per_second: float | None = None

    def refuse_unless(self, role: str, experiment: str | None) -> None:
        """Refuse a request that the key does not allow.

        Raises:
            Problem: 404 for an experiment that it does not cover, 403 for a role that it lacks.
        """
        if experiment is not None and not any(
            fnmatchcase(experiment, pattern) for pattern in self.experiments
        ):
            raise Problem(404, "unknown-experiment", "There is no such experiment.")
        if role not in self.roles and "admin" not in self.roles:
            raise Problem(
                403,
                "forbidden",
                f"This key does not have the role {role}. An operator makes such a key: dpbandits"
                f" keys add --role {role}.",
            )


EVERYONE = Key("insecure", "")  # where the service asks for no keys


def is_local(host: str | None) -> bool:
    """Whether a host is this machine, by its name or address."""
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"


def refuse_other_sites(request: Request, allowed: Collection[str] = ()) -> None:
    """Refuse what a page of another site lets a browser send to a service without keys, unless its
    origin is ``allowed``.

    Raises:
        Problem: 403.
    """
    origin, own = request.headers.get("origin"), f"{request.url.scheme}://{request.url.netloc}"
    if not is_local(request.url.hostname) or origin not in (None, own, *allowed):
        told = "This service has no keys, and so it refuses requests from pages of other sites."
        raise Problem(403, "forbidden", told)


@dataclass
class Keys:
    """The keys of a file.

    Args:
        path: the file; it need not exist yet.
    """

    path: Path
    _by_digest: dict[str, Key] = field(default_factory=dict, repr=False)
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    _seen: tuple[int, int] | None = None
    _looked: float = -1.0

    def of(self, secret: str) -> Key:
        """The key with this secret.

        Raises:
            Problem: 401 if there is none; 429 if it was used too often.
        """
        self._read_again()
        # The digest of a guess tells nothing about those in the table.
        key = self._by_digest.get(_digest(secret))
        if key is None:
            raise Problem(401, "unauthorized", "Send a valid key: Authorization: Bearer KEY.")
        self._count(key)
        return key

    def add(
        self,
        *,
        tenant: str = OWN_TENANT,
        roles: Iterable[str] = ("admin",),
        experiments: Iterable[str] = ("*",),
        per_second: float | None = None,
    ) -> tuple[Key, str]:
        """Make a key, and return it with its secret, which is kept nowhere.

        Raises:
            ArgumentError: a role or a name is wrong.
            StateFileError: the file cannot be read or written.
        """
        roles, experiments = tuple(roles), tuple(experiments)
        for role in roles:
            choice("roles", role, ROLES)
        if not roles or not experiments:
            raise ArgumentError("roles and experiments must not be empty", "roles")
        if per_second is not None:
            per_second = real("per_second", per_second, 0.01, 1e6)
        secret = f"dpb_{secrets.token_urlsafe(32)}"
        id_ = secrets.token_hex(4)
        own = name_of("tenant", tenant, LONGEST_TENANT)
        key = Key(id_, _digest(secret), own, roles, experiments, per_second)
        with self._alone():
            self._write([*self.all(), key])
        return key, secret

    def revoke(self, id_: str) -> None:
        """Take a key away.

        Raises:
            ArgumentError: there is none of that id.
        """
        with self._alone():
            known = self.all()
            kept = [one for one in known if one.id != id_]
            if len(kept) == len(known):
                raise ArgumentError(f"id must name a key of {self.path}, got {id_!r}", "id")
            self._write(kept)

    def all(self) -> list[Key]:
        """All keys, in the order in which they were made."""
        try:
            listed = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise StateFileError(f"{self.path} cannot be read: {type(error).__name__}") from None
        try:
            return [_key(one) for one in listed]
        except (TypeError, KeyError):
            raise StateFileError(f"{self.path} is no file of keys") from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let no other process change the file meanwhile."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = Lock(self.path.with_name(f".{self.path.name}.lock"))
        except OSError as error:
            raise StateFileError(f"{self.path} cannot be written: {error.strerror}") from None
        try:
            yield
        finally:
            lock.release()

    def _write(self, keys: list[Key]) -> None:
        content = json.dumps([asdict(one) for one in keys], indent=1).encode()
        try:
            owner = os.stat(self.path) if self.path.exists() else None
            write_anew(self.path, lambda file: _write(file, content))
            if owner is not None and os.stat(self.path).st_uid != owner.st_uid:
                os.chown(self.path, owner.st_uid, owner.st_gid)  # as root may
        except OSError as error:
            raise StateFileError(f"{self.path} cannot be written: {error.strerror}") from None

    def _read_again(self) -> None:
        now = time.monotonic()
        if now < self._looked + _EVERY_SECOND:
            return
        self._looked = now
        try:
            seen = os.stat(self.path)
            changed = (seen.st_mtime_ns, seen.st_ino)
        except FileNotFoundError:
            changed = (0, 0)
        if changed != self._seen:
            self._by_digest = {one.digest: one for one in self.all()}
            self._seen = changed

    def charge(self, key: Key, items: int) -> None:
        """Count further items of a request that was admitted; later requests wait for them."""
        if key.per_second is not None:
            left, since = self._buckets[key.id]
            self._buckets[key.id] = left - items, since

    def _count(self, key: Key) -> None:
        """A bucket that holds the requests of one second, and fills at the allowed rate."""
        if key.per_second is None:
            return
        now, most = time.monotonic(), max(1.0, key.per_second)
        left, since = self._buckets.get(key.id, (most, now))
        left = min(most, left + (now - since) * key.per_second)
        if left < 1.0:
            wait = (1.0 - left) / key.per_second
            raise Problem(429, "too-many", "This key sends too many requests.", retry_after=wait)
        self._buckets[key.id] = left - 1.0, now


def _write(file: IO[bytes], content: bytes) -> None:
    file.write(content)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _key(given: dict[str, Any]) -> Key:
    listed = {name: tuple(given[name]) for name in ("roles", "experiments")}
    return Key(**{**given, **listed})
