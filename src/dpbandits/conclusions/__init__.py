"""The end of a trial: a report of what its releases say of the arms, and of what they do not."""

from .checklist import Item
from .conclusion import Conclusion, conclude

__all__ = ["Conclusion", "Item", "conclude"]
