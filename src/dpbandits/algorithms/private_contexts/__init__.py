"""Linear bandits whose features are private, too."""

from .device import Device, ShuffledDevice
from .joint import AdaCOFULJDP, LinearThompsonJDP, LinUCBJDP
from .local import LinUCBLDP
from .shuffled import LinUCBSDP

__all__ = [
    "AdaCOFULJDP",
    "Device",
    "LinUCBJDP",
    "LinUCBLDP",
    "LinUCBSDP",
    "LinearThompsonJDP",
    "ShuffledDevice",
]
