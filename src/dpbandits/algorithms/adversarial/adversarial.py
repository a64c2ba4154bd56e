"""Adversarial bandits: any learner of unbounded losses, behind a wall that opens once per batch.

The only assumption on losses is that they do not react to the arms played.  ``conversion``
describes the released sums and proves their privacy; ``learners`` holds the learners.
"""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from ...constraints import Constraints
from ...policies import Card, Composition, Options, composed, given, like, preset
from ...policies.parts import PartOf
from ...privacy.budgets import Budget
from ..bases.errata import ADVERSARIAL, ADVERSARIAL_THEOREMS
from . import learners
from .conversion import conversion
from .learning import Learner, LearningPolicy

PAPER = "Faster Rates for Private Adversarial Bandits"
PRIVATE = Card(
    title="any bandit learner, on the noisy mean loss of each batch",
    source=f"{PAPER}, Theorem 1",
    noise=("Laplace", "Gaussian"),
    randomised=True,
    errata=(ADVERSARIAL,),
)
OPEN = Card(
    title="any bandit learner, not private",
    source="that of its learner",
    noise=(),
    trust_model="none",
    randomised=True,
)


@composed(n_arms=3)
class Adversarial(LearningPolicy):
    """Adversarial bandits: rewards that follow no law, and a learner from the noisy losses of
    batches (Algorithm 1).

    The policy plays one arm for a batch of rounds.  Then the learner receives the batch's mean loss
    plus noise.

    Args:
        n_arms: number of arms.
        budget: ``PureDP`` (Laplace noise, as published) or another notion (Gaussian noise); None
            for the learner without privacy.
        learner: ``HTINF()``, ``EXP3()``, ``FTPL()``, or one of your own, see ``Learner``;
            ``TsallisINF()`` and ``EXP3IX()`` without a budget.
        horizon: rounds to tune for; the policy may run longer.  With None the policy doubles this
            horizon whenever it is reached.  ``HTINF`` needs no horizon, but its ``regret_bound``
            does.
        batch: rounds of one arm.  By default the noise multiplier rounded up: ceil(1 / epsilon) for
            ``PureDP``.
        **options: see ``Options``.

    When to choose: rewards that follow no law, or react to the time of day more than to the arm.

    Example:
        >>> from dpbandits import PureDP, parts
        >>> policy = Adversarial(3, budget=PureDP(0.1), learner=parts.EXP3(mixing=0.3), seed=1)
        >>> policy.batch_size, round(policy.pull().propensity, 3)
        (10, 0.333)
    """

    card = PRIVATE
    constraints: ClassVar[Constraints] = {"learner": PartOf(Learner)}

    @classmethod
    def composition(cls, *, learner: Learner, **_: object) -> Composition:
        """The kernels and the card of a learner."""
        kind: Any = learner.kind  # which mypy does not take for a key
        return Composition(conversion(kind), PRIVATE if kind.private else OPEN)

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        learner: Learner = learners.HTINF(),  # noqa: B008
        horizon: int | None = None,
        batch: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            {"n_arms": n_arms, "learner": learner, "horizon": horizon, "batch": batch},
            budget=budget,
            composition=self.composition(learner=learner),
            **options,
        )


def _about(title: str, source: str, corollary: int) -> dict[str, Any]:
    return {"title": title, "source": f"{source}; {PAPER}, Theorem 1 and Corollary {corollary}"}


EXP3 = preset(
    "EXP3",
    Adversarial,
    "n_arms horizon batch rate mixing",
    """Exponential weights, mixed with uniform play, on the noisy mean loss of each batch.""",
    about=_about("EXP3 on the noisy mean loss of each batch", "Auer et al. (2002), EXP3", 1),
    learner=like(learners.EXP3, "rate", "mixing"),
)
HTINF = preset(
    "HTINF",
    Adversarial,
    "n_arms horizon batch sigma alpha",
    """Follow the regularised leader, on the noisy mean loss of each batch: the default.""",
    about=_about(
        "HTINF (follow the regularised leader) on the noisy mean loss of each batch",
        "Huang, Dai & Huang (2022), HTINF",
        2,
    ),
    # Both are newer arguments, so None leaves them out of the keys of random streams.
    learner=like(learners.HTINF, "sigma", alpha=given("alpha", None, quiet=True)),
    horizon=given("horizon", None, quiet=True),
)
FTPL = preset(
    "FTPL",
    Adversarial,
    "n_arms horizon batch rate tries",
    """Follow the perturbed leader, on the noisy mean loss of each batch.""",
    about={
        **_about(
            "follow the perturbed leader, on the noisy mean loss of each batch",
            "Neu & Bartók (2016), FTPL",
            3,
        ),
        "errata": (ADVERSARIAL, ADVERSARIAL_THEOREMS),
    },
    learner=like(learners.FTPL, "rate", "tries"),
)
BY_NAME = like(
    learners.Registered,
    *("rate", "mixing", "tries", "sigma"),
    learner=given("learner", "htinf"),
    alpha=given("alpha", None, quiet=True),
)
BatchConversion = preset(
    "BatchConversion",
    Adversarial,
    "n_arms learner horizon batch rate mixing tries sigma alpha",
    """A learner by its name, on the noisy mean loss of each batch.""",
    learner=BY_NAME,
)
