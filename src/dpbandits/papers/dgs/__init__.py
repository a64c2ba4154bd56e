"""LinUCB with dynamic global sensitivity, and what it really loses."""

from .dgs import LinUCBDGS
from .exact_loss import ExactLoss

__all__ = ["ExactLoss", "LinUCBDGS"]
