"""The parts of policies, and every policy by name.

``Arms``, ``Linear`` and the other classes take parts as arguments: ``index=KLUCB(alpha=1.2)``.
"""

from .algorithms.adversarial.learners import EXP3, FTPL, HTINF, Registered
from .algorithms.arms.batches import Batches, Fixed, Growing
from .algorithms.arms.indices import IMED, KLUCB, UCB, Index, Thompson
from .algorithms.arms.memories import Discount, Forget, Memory, Merge
from .algorithms.exp4.values import EXP4, FrozenEXP4
from .algorithms.exploration import Divergence, Optimism, Sampling
from .algorithms.linear.policy import EveryAnswer, Switching
from .algorithms.search.halving import Halving
from .algorithms.search.top_two import TopTwo
from .policies import Part, find
from .rooms import PAPERS, lazily

__all__ = [
    "EXP3",
    "EXP3IX",  # noqa: F822
    "EXP4",
    "FTPL",
    "HTINF",
    "IMED",
    "KLUCB",
    "UCB",
    "BatchedEXP4",  # noqa: F822
    "Batches",
    "Discount",
    "Divergence",
    "EveryAnswer",
    "Fixed",
    "Forget",
    "FrozenEXP4",
    "Growing",
    "Halving",
    "Index",
    "Memory",
    "Merge",
    "Optimism",
    "Part",
    "Registered",
    "Sampling",
    "Switching",
    "Thompson",
    "TopTwo",
    "TsallisINF",  # noqa: F822
    "find",
]
_OF_PAPERS = {
    "BatchedEXP4": "adversarial.exp4",
    **dict.fromkeys(("EXP3IX", "TsallisINF"), "adversarial.without_privacy"),
}
__getattr__ = lazily(__name__, _OF_PAPERS, within=PAPERS)
