"""Linear bandits whose features are private, too."""

from .device import Device, ShuffledDevice
from .joint import HiddenLinear
from .local import HiddenLinearLocal
from .presets import (
    AdaCOFULJDP,
    LinearIMEDJDP,
    LinearIMEDLDP,
    LinearIMEDSDP,
    LinearThompsonJDP,
    LinearThompsonLDP,
    LinearThompsonSDP,
    LinUCBJDP,
    LinUCBLDP,
    LinUCBSDP,
)
from .shuffled import HiddenLinearShuffled

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
