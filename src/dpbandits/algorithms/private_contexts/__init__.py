"""Linear bandits whose features are private, too."""

from .device import Device
from .joint import AdaCOFULJDP, LinearThompsonJDP, LinUCBJDP
from .local import LinUCBLDP

__all__ = ["AdaCOFULJDP", "Device", "LinUCBJDP", "LinUCBLDP", "LinearThompsonJDP"]
