"""Stores of policies: places that commit batches, and what witnesses know of them."""

from .files import FilePlace, FolderStore
from .store import WHY, Batch, Held, Mark, Place, Row, Store, User

__all__ = [
    "WHY",
    "Batch",
    "FilePlace",
    "FolderStore",
    "Held",
    "Mark",
    "Place",
    "Row",
    "Store",
    "User",
]
