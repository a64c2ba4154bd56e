"""Linear bandits whose features are private, too."""

from .device import Device, ShuffledDevice
from .imed import LinearIMEDJDP, LinearIMEDLDP, LinearIMEDSDP
from .joint import AdaCOFULJDP, LinUCBJDP
from .local import LinUCBLDP
from .shuffled import LinUCBSDP
from .thompson import LinearThompsonJDP, LinearThompsonLDP, LinearThompsonSDP

__all__ = [
    "AdaCOFULJDP",
    "Device",
    "LinUCBJDP",
    "LinUCBLDP",
    "LinUCBSDP",
    "LinearIMEDJDP",
    "LinearIMEDLDP",
    "LinearIMEDSDP",
    "LinearThompsonJDP",
    "LinearThompsonLDP",
    "LinearThompsonSDP",
    "ShuffledDevice",
]
