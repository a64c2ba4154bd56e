"""Linear bandits whose features are private, too."""

from .joint import HiddenLinear
from .local import Device, HiddenLinearLocal
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
from .shuffled import HiddenLinearShuffled, ShuffledDevice

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
