"""Bandits with expert advice: a learner behind a central wall, or EXP4 behind one at every person.

What crosses the wall stands with the learners: in ``values`` for exponential weights on experts, in
``adversarial.conversion`` for bandit learners whose arms are the experts.
"""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from ...constraints import Constraints, Integer
from ...policies import Card, Composition, Options, composed, given, like, part, preset
from ...privacy.budgets import Budget
from ...rooms import papers
from ..adversarial.adversarial import BY_NAME, OPEN, PAPER, PRIVATE
from ..adversarial.conversion import over_experts
from ..adversarial.learners import HTINF
from ..adversarial.learning import LEARNER_CONSTRAINTS, Learner, LearningPolicy
from ..bases.contextual import AdvicePolicy
from ..bases.errata import EXPERTS
from ..bases.local import LocalPolicy
from . import values
from .values import Mixture
from .weighing import PER_ROUND

_PLANNED = Integer(1, 10**12)
_FOLLOWING = Card(
    title="a bandit learner over experts, on the noisy mean loss of each batch",
    source=f"{PAPER}, Theorem 4, for rewards (not for advice, see the errata)",
    noise=PRIVATE.noise,
    randomised=True,
    errata=(EXPERTS,),
)


@composed(n_arms=3, n_experts=4, horizon=2000, batch=16)
class Experts(AdvicePolicy, LearningPolicy):
    """Bandit with expert advice: in the long run as good as the best expert.

    ``pull`` takes the advice of every expert, shape (N, K): a probability for each arm.

    Args:
        n_arms: number of arms, K.
        n_experts: number of experts, N.
        budget: of any notion but ``PureDP`` for ``EXP4``; ``ZCDP`` or ``ApproxDP`` for
            ``BatchedEXP4``; of any notion for other learners; None for no privacy.
        learner: a learner of ``Adversarial``, such as ``HTINF()``, which follows one expert for
            each batch (Theorem 4).  Or ``EXP4()``, ``FrozenEXP4()`` or ``BatchedEXP4()``, which
            weigh all experts.
        horizon: rounds to tune for; the policy may run longer.  Learners that weigh all experts
            need it; for the others see ``Adversarial``.
        batch: rounds of a batch, tau.  By default that of the least regret bound; with a learner of
            ``Adversarial`` as there.
        **options: see ``Options``.

    When to choose: you have expert advice.  With up to some dozens of experts, the default had the
    least measured regret.  With more, use ``FrozenEXP4`` or ``EXP4``: the bound on their regret
    grows with the logarithm of the number of experts, not with its square root.

    Example:
        >>> from dpbandits import ZCDP
        >>> policy = Experts(2, 3, budget=ZCDP(0.5), seed=1)
        >>> policy.pull([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]).propensity
        1.0
    """

    card = _FOLLOWING

    @classmethod
    def composition(cls, *, learner: Learner | Mixture, **_: object) -> Composition:
        """The kernels and the card of a learner."""
        if isinstance(learner, Learner):
            kind: Any = learner.kind  # which mypy does not take for a key
            return Composition(over_experts(kind), _FOLLOWING if kind.private else OPEN)
        return Composition(learner.kernels, learner.card)

    def __init__(
        self,
        n_arms: int,
        n_experts: int,
        *,
        budget: Budget | None,
        learner: Learner | Mixture = HTINF(),  # noqa: B008
        horizon: int | None = None,
        batch: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        mixtures: tuple[type[Mixture], ...] = (values.EXP4, values.FrozenEXP4)
        if not isinstance(learner, Learner) and type(learner) not in mixtures:  # a name, perhaps
            mixtures += (papers("adversarial.exp4").BatchedEXP4,)  # no walls but theirs
        own = isinstance(learner, Mixture)
        chosen: Any = part(
            "learner", learner, mixtures if own else (*mixtures, Learner), exactly=own
        )
        if isinstance(chosen, Mixture):  # which is tuned to a horizon
            _PLANNED("horizon", horizon)
            (_PLANNED | None)("batch", batch)
        sizes = {"n_arms": n_arms, "n_experts": n_experts}
        super().__init__(
            {**sizes, "learner": chosen, "horizon": horizon, "batch": batch},
            budget=budget,
            composition=self.composition(learner=chosen),
            **options,
        )

    @property
    def _secure_needs(self) -> tuple[str, str]:
        learner = self._learner
        return learner.secure_needs if isinstance(learner, Mixture) else super()._secure_needs


@composed(n_arms=3, n_experts=4, horizon=2000)
class ExpertsLocal(AdvicePolicy, LearningPolicy, LocalPolicy):
    """Bandit with expert advice under local privacy: EXP4 on rewards that were randomised one by
    one (Theorem 5, Algorithm 6).

    ``pull`` takes the advice of every expert, shape (N, K): a probability for each arm.

    Args:
        n_arms, n_experts, **options: as of ``Experts``.
        budget: ``PureDP`` (Laplace noise, as published) or another notion (Gaussian noise); None
            for EXP4 without privacy.
        horizon: rounds to tune for; the policy may run longer.
        rate: eta; by default tuned to horizon and noise, with ``calibration="paper"`` as published.
        mixing: gamma in [0, 1]; likewise.
        reports: whether ``update`` is given reports, which ``randomiser()`` makes on the person's
            device, instead of rewards.

    When to choose: no party may be trusted with raw rewards; or epsilon is near one and experts are
    many.

    Example:
        >>> from dpbandits import PureDP
        >>> policy = ExpertsLocal(2, 2, budget=PureDP(1.0), horizon=10_000, reports=True, seed=1)
        >>> decision = policy.pull([[1.0, 0.0], [0.0, 1.0]])
        >>> policy.update(policy.randomiser()(1.0))
        True
    """

    card = Card(
        title="EXP4 on rewards that are randomised one by one",
        source=f"{PAPER}, Theorem 5",
        noise=PRIVATE.noise,
        trust_model="local",
        randomised=True,
        errata=(EXPERTS,),
    )

    constraints: ClassVar[Constraints] = {
        "horizon": _PLANNED,
        "rate": LEARNER_CONSTRAINTS["rate"],
        "mixing": LEARNER_CONSTRAINTS["mixing"],
    }

    @classmethod
    def composition(cls) -> Composition:
        """Its kernels and its card."""
        return Composition(PER_ROUND, cls.card)

    def __init__(
        self,
        n_arms: int,
        n_experts: int,
        *,
        budget: Budget | None,
        horizon: int,
        rate: float | None = None,
        mixing: float | None = None,
        reports: bool = False,
        **options: Unpack[Options],
    ) -> None:
        own = {
            "n_arms": n_arms,
            "n_experts": n_experts,
            "horizon": horizon,
            "rate": rate,
            "mixing": mixing,
            "reports": reports,
        }
        super().__init__(own, budget=budget, composition=self.composition(), **options)

    @property
    def _learner(self) -> values.LocalEXP4:
        return values.LocalEXP4(self.config["rate"], self.config["mixing"])


_ORDER = "n_arms n_experts horizon batch rate mixing"
EXP4 = preset(
    "EXP4",
    Experts,
    _ORDER,
    """Exponential weights on experts, with noise scaled to each batch.""",
    learner=like(values.EXP4, "rate", "mixing"),
    horizon=given("horizon"),
)
FrozenEXP4 = preset(
    "FrozenEXP4",
    Experts,
    _ORDER,
    """Exponential weights on experts whose advice stands for a batch.""",
    learner=like(values.FrozenEXP4, "rate", "mixing"),
    horizon=given("horizon"),
)
LocalEXP4 = preset(
    "LocalEXP4",
    ExpertsLocal,
    "n_arms n_experts horizon rate mixing reports",
    """Exponential weights on experts, from randomised rewards.""",
)
ExpertConversion = preset(
    "ExpertConversion",
    Experts,
    "n_arms n_experts learner horizon batch rate mixing tries sigma alpha",
    """A learner by its name, whose arms are the experts.""",
    example={"n_arms": 3, "n_experts": 4},
    learner=BY_NAME,
)
