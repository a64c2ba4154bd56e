"""One file per family of algorithms; each registers its policies."""

from .doubling import AdaCUCB

__all__ = ["AdaCUCB"]
