"""Audits: attacks that measure, from below, how much privacy a policy loses."""

from .adversary import ANYBODY, Adversary, canaries
from .attacking import audit
from .loss_bounds import best_possible
from .planting import Plant
from .result import Audit

__all__ = ["ANYBODY", "Adversary", "Audit", "Plant", "audit", "best_possible", "canaries"]
