"""Planning: which policy to take in a setting, and what it will cost."""

from .paying import Paying
from .planner import plan
from .plans import Plan
from .setting import Setting
from .targets import Affordable
from .yardsticks import Exploring, Yardsticks

__all__ = ["Affordable", "Exploring", "Paying", "Plan", "Setting", "Yardsticks", "plan"]
