"""Where policies are kept: snapshots, announcements, and who may go on with them."""

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
