"""What families of algorithms share: bases of policies, and kernels of statistics and schedules."""

from .contextual import AdvicePolicy, ContextualPolicy

__all__ = ["AdvicePolicy", "ContextualPolicy"]
