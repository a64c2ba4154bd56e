"""Pack parts, numbers and arrays of a saved session as bytes; unpack and check them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

NUMBER = struct.Struct("<q")
_COUNT, _LENGTH = struct.Struct(">Q"), struct.Struct("<Q")


def joined(*parts: bytes) -> bytes:
    """Parts of any length as one."""
    return b"".join([piece for part in parts for piece in (_LENGTH.pack(len(part)), part)])


def parted(whole: bytes) -> list[bytes]:
    """The parts that ``joined`` has joined; a ``ValueError`` for other bytes."""
    parts, at = [], 0
    while at < len(whole):
        if len(whole) - at < _LENGTH.size:
            raise ValueError("the bytes end in the middle of a length field")
        (length,) = _LENGTH.unpack_from(whole, at)
        at += _LENGTH.size
        if length > len(whole) - at:
            raise ValueError("the bytes end in the middle of a part")
        parts.append(whole[at : at + length])
        at += length
    return parts


def key_of(number: int) -> bytes:
    """A number from 0 as a key, in the order of numbers."""
    return _COUNT.pack(number)


def number_of(key: bytes) -> int:
    """The number of a key."""
    return int(_COUNT.unpack(key)[0])


def floats(values: Any) -> bytes:
    """Numbers of any shape, one after another."""
    return np.asarray(values, "<f8").tobytes()


def array(content: bytes, shape: Sequence[int] = (-1,)) -> np.ndarray:
    """The numbers that ``floats`` has packed."""
    return np.frombuffer(content, "<f8").astype(float).reshape(shape)


def checked_arm(arm: int, count: int, least: int = 0) -> int:
    """A saved arm, of which there are so many; a ``ValueError`` for other values."""
    if not (isinstance(arm, int) and least <= arm < count):
        raise ValueError("an arm is out of range")
    return arm
