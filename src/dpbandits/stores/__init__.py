"""Where policies are kept: snapshots, announcements, and who may go on with them."""

from .files import FileStore, store_at
from .snapshots import decode, encode
from .store import WHY, Life, Store

__all__ = ["WHY", "FileStore", "Life", "Store", "decode", "encode", "store_at"]
