"""Where policies are kept: snapshots, announcements, and who may go on with them."""

from .base import WHY, Life, Store
from .files import FileStore, store_at
from .snapshots import decode, encode

__all__ = ["WHY", "FileStore", "Life", "Store", "decode", "encode", "store_at"]
