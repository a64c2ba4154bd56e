"""Stores of policies: snapshots, announcements, and claims."""

from .files import FileStore, store_at
from .snapshots import decode, encode
from .store import WHY, Announcement, Counted, Life, Store, User

__all__ = [
    "WHY",
    "Announcement",
    "Counted",
    "FileStore",
    "Life",
    "Store",
    "User",
    "decode",
    "encode",
    "store_at",
]
