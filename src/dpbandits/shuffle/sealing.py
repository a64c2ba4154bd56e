"""Sealed records: how messages pass a shuffler that cannot read them.

Guarantee:

* Protected: a record, from the shuffler, and from everybody who sees what the shuffler sees.  The
  server sees what ``Shuffler`` of the protocol outputs, and nothing else of a record.
* Assumed: the server and the shuffler do not collude, and HPKE (RFC 9180) hides contents.

**Shares.**  A record of a protocol of ``Shares`` is a vector m in Z_M^D.  The device draws r
uniformly from Z_M^D, independently of m, without bias (``randomness``).  The shuffler gets m - r
mod M in the clear, and r sealed to the server.  It hands on the sum S of all m_i - r_i mod M, and
the sealed r_i in random order.  The server opens these, and adds their sum to S.

*The shuffler's view* of a person is m - r and the sealed r.  Contents of equal length cannot be
told apart under HPKE, up to a negligible advantage.  So this view is as that of m - r and sealed
zeros, and m - r is uniform for every m: the view has nothing of m.

*The server's view* is r_1, ..., r_B, the randomness of their sealing, and S.  Let T be the sum of
the m_i mod M, the output of the protocol's shuffler.  Then S = T - (r_1 + ... + r_B) mod M.  The
r_i and the randomness of sealing are independent of T.  So the server's view is T, processed with
independent randomness: whatever guarantee T has, the view has, too.  That holds without the random
order and for every behaviour of the server.  A sealed r that the server does not open leaves a
uniform vector in the sum.

*The order* hides who a ciphertext came from.  The shuffler's own records of noise are sealed as
those of devices and are as long.  So the server learns only that enough people came.

*Padding counts as dropout towards the shuffler.*  It has drawn that noise, and sees what the server
releases.  So towards it a sum has only the noise of the people who came.

**Reports.**  A record of ``GaussianReports`` is sealed whole.  The shuffler gets no clear part, and
hands on the ciphertexts in random order: the server opens the protocol's output.

**What a ciphertext is for.**  The experiment and the label of the batch enter the key (``info`` of
HPKE).  A ciphertext of another batch does not open.  The label has a digest of the round as the
server described it: its chooser, or its arm, and its protocol.  People to whom the server described
different rounds have different labels, and a batch has one.

**What does not open** counts as a record of zeros.  An error for the whole batch would tell the
senders of bad ciphertexts something of others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, MissingExtra, SubmissionError
from .protocols import Protocol, Shares
from .randomness import Source
from .reports import GaussianReports

_MOST = 2**53  # a number that JavaScript has exactly
_PUBLIC, _SECRET, _TAG = 65, 32, 16  # bytes
_WHOLE = 8  # bytes of an entry of a report


class Sealed(NamedTuple):
    """What a device sends to the shuffler.

    Attributes:
        masked: for the shuffler, of shape (D,); None if the record is sealed whole.
        sealed: for the server.
    """

    masked: np.ndarray | None
    sealed: bytes


class ServerKey:
    """The server's key of one experiment, which opens what devices sealed.

    Args:
        secret: what ``to_bytes`` gave.

    Raises:
        ArgumentError: the secret is something else.
        MissingExtra: ``cryptography`` is not installed.

    Example:
        >>> key = ServerKey.make()
        >>> sealed = seal(key.public, "0:ab", "shop", b"two")
        >>> key.open("0:ab", "shop", sealed)
        b'two'
    """

    def __init__(self, secret: bytes) -> None:
        ec = _curves()
        try:
            if len(secret) != _SECRET:
                raise ValueError
            number = int.from_bytes(secret, "big")
            self._key = ec.derive_private_key(number, ec.SECP256R1())
        except ValueError:
            raise ArgumentError(
                "secret must be the private half of a server's key", "secret"
            ) from None

    @classmethod
    def make(cls) -> ServerKey:
        """A new key."""
        ec = _curves()
        number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
        return cls(number.to_bytes(_SECRET, "big"))

    def __repr__(self) -> str:
        return "<ServerKey, secret not shown>"

    def to_bytes(self) -> bytes:
        """The secret, to be kept."""
        number: int = self._key.private_numbers().private_value
        return number.to_bytes(_SECRET, "big")

    @property
    def public(self) -> bytes:
        """The public key, which devices seal with: a point of P-256, uncompressed."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        form = Encoding.X962, PublicFormat.UncompressedPoint
        public: bytes = self._key.public_key().public_bytes(*form)
        return public

    def open(self, label: str, experiment: str, sealed: bytes) -> bytes:
        """What was sealed for a batch of an experiment.

        Raises:
            SubmissionError: it was changed, or sealed for something else.
        """
        from cryptography.exceptions import InvalidTag

        try:
            opened: bytes = _suite().decrypt(sealed, self._key, _about(label, experiment))
        except (InvalidTag, ValueError):
            raise SubmissionError(
                "the ciphertext was made for another key, batch or experiment"
            ) from None
        return opened


def seal(public: bytes, label: str, experiment: str, content: bytes) -> bytes:
    """Seal a content to a server, for one batch of one experiment.

    Raises:
        ArgumentError: ``public`` is no public key.
        MissingExtra: ``cryptography`` is not installed.
    """
    ec = _curves()
    try:
        if len(public) != _PUBLIC:
            raise ValueError
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public)
    except ValueError:
        raise ArgumentError("public must be the public key of a server", "public") from None
    sealed: bytes = _suite().encrypt(content, key, _about(label, experiment))
    return sealed


def label_of(release: int, text: str) -> str:
    """The label of the batch of a release, for which the server has sent this text."""
    return f"{release}:{hashlib.sha256(text.encode()).hexdigest()}"


def _about(label: str, experiment: str) -> bytes:
    about = {"experiment": experiment, "label": label}
    return b"dpbandits 1 " + json.dumps(about, separators=(",", ":")).encode()


# Records --------------------------------------------------------------------------------------


def refuse_unsealable(protocol: Protocol) -> None:
    """Refuse a protocol whose records cannot be sealed.

    Raises:
        ArgumentError: it is one of bits, or its modulus is too large.
    """
    if isinstance(protocol, GaussianReports):
        return
    if not isinstance(protocol, Shares):
        raise ArgumentError(
            "protocol must be 'modular' or 'reports' over HTTP: each bit of 'bits' would need a"
            " ciphertext of its own, and 'modular' releases the same sums with less noise",
            "protocol",
        )
    if protocol.modulus > _MOST or protocol.modulus * protocol.batch >= 2**63:
        raise ArgumentError(
            "batch, levels or noise must be smaller: JSON cannot hold sums modulo"
            f" {protocol.modulus} exactly"
        )


def sealed_size(protocol: Protocol) -> int:
    """The length of a sealed record, in bytes."""
    return _PUBLIC + _width(protocol) * protocol.dimension + _TAG


def seal_record(
    protocol: Protocol,
    record: np.ndarray,
    public: bytes,
    label: str,
    experiment: str,
) -> Sealed:
    """What a device sends of its record, which has shape (D,)."""
    masked = None
    if isinstance(protocol, Shares):
        masked, record = split(record, protocol.modulus, Source("secure", None))
    return Sealed(masked, seal(public, label, experiment, packed(protocol, record)))


def open_batch(
    protocol: Protocol,
    key: ServerKey,
    label: str,
    experiment: str,
    total: np.ndarray | None,
    sealed: Sequence[bytes],
) -> np.ndarray:
    """The output of the protocol's shuffler, as ``Analyzer`` takes it.

    Args:
        total: the sum of the masked parts; None if there are none.
        sealed: of all people of the batch, in any order.
    """
    opened = np.array([_opened(protocol, key, label, experiment, one) for one in sealed])
    if isinstance(protocol, Shares):
        return (opened.sum(axis=0) + total) % protocol.modulus
    return opened


def _opened(
    protocol: Protocol, key: ServerKey, label: str, experiment: str, sealed: bytes
) -> np.ndarray:
    try:
        return unpacked(protocol, key.open(label, experiment, sealed))
    except SubmissionError:
        return np.zeros(protocol.dimension, np.int64)


def split(values: np.ndarray, modulus: int, source: Source) -> tuple[np.ndarray, np.ndarray]:
    """Two vectors, each uniform by itself, whose sum modulo ``modulus`` is a vector of residues."""
    share = source.below(np.full(values.shape, modulus))
    return (values - share) % modulus, share


def packed(protocol: Protocol, values: np.ndarray) -> bytes:
    """Integers as bytes of a fixed length; each is little-endian, and signed in reports."""
    whole = np.ascontiguousarray(values, "<i8").view(np.uint8).reshape(-1, _WHOLE)
    return whole[:, : _width(protocol)].tobytes()


def unpacked(protocol: Protocol, content: bytes) -> np.ndarray:
    """The integers that ``packed`` made bytes of.

    Raises:
        SubmissionError: the length is wrong, or no record has these values.
    """
    size, width = protocol.dimension, _width(protocol)
    if len(content) != size * width:
        raise SubmissionError(f"a sealed record must have {size * width} bytes")
    whole = np.zeros((size, _WHOLE), np.uint8)
    whole[:, :width] = np.frombuffer(content, np.uint8).reshape(size, width)
    values, (_, low, high) = whole.view("<i8")[:, 0].astype(np.int64), protocol.record
    if values.min() < low or values.max() > high:
        raise SubmissionError(f"the values of a record must be between {low} and {high}")
    return values


def _width(protocol: Protocol) -> int:
    """Bytes of an entry."""
    if isinstance(protocol, Shares):
        return -(-protocol.modulus.bit_length() // 8)
    return _WHOLE


# Cryptography, which is optional --------------------------------------------------------------


def _curves() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise _missing() from error
    return ec


def _suite() -> Any:
    try:
        from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
    except ImportError as error:
        raise _missing() from error
    return Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_128_GCM)


def _missing() -> MissingExtra:
    return MissingExtra("sealed records need cryptography 47: pip install 'dpbandits[serve]'")
