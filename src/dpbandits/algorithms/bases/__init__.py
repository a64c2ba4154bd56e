"""What families of algorithms share: bases of policies, and kernels of statistics and schedules."""

from .advice import AdvicePolicy
from .contextual import ContextualPolicy

__all__ = ["AdvicePolicy", "ContextualPolicy"]
