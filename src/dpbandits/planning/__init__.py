"""Planning: which policy to take in a setting, and what it will cost."""

from .planner import plan
from .plans import Plan
from .setting import Setting
from .targets import Affordable

__all__ = ["Affordable", "Plan", "Setting", "plan"]
