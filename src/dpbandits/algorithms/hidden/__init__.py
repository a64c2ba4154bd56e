"""Linear bandits whose features are private, too."""

from .device import Device, ShuffledDevice
from .joint import AdaCOFULJDP, HiddenLinear, LinearIMEDJDP, LinearThompsonJDP, LinUCBJDP
from .local import HiddenLinearLocal, LinearIMEDLDP, LinearThompsonLDP, LinUCBLDP
from .shuffled import HiddenLinearShuffled, LinearIMEDSDP, LinearThompsonSDP, LinUCBSDP

__all__ = [
    "AdaCOFULJDP",
    "Device",
    "HiddenLinear",
    "HiddenLinearLocal",
    "HiddenLinearShuffled",
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
