"""Planning: choose a policy for a setting, and estimate its regret."""

from .holdouts import HoldoutPlan
from .planner import plan
from .plans import Plan
from .setting import Setting
from .targets import Affordable, Paying
from .yardsticks import Exploring, Yardsticks

__all__ = [
    "Affordable",
    "Exploring",
    "HoldoutPlan",
    "Paying",
    "Plan",
    "Setting",
    "Yardsticks",
    "plan",
]
