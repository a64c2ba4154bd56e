"""Linear bandits whose features are private, too."""

from .joint import AdaCOFULJDP, LinearThompsonJDP, LinUCBJDP

__all__ = ["AdaCOFULJDP", "LinUCBJDP", "LinearThompsonJDP"]
