"""Linear bandits with public contexts: the schedule of updates and the exploration are values.

The sums that cross the wall, and the privacy proof, depend on the updates alone: see
``every_answer`` and ``switching``.  All use of the sums is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Unpack

from ...constraints import Constraints, Real
from ...errors import ArgumentError
from ...policies import Card, Composition, Statistic, composed, given, like, preset
from ...policies.parts import Part, PartOf
from ...privacy.budgets import Budget, PureDP
from ...validation import choice
from ..bases.counter_choice import Plan, counter_for, running_sum
from ..bases.errata import ADAC_OFUL, LINPRIV
from ..bases.linear import MODEL, RIDGE, LinearPolicy, ModelOptions
from ..exploration import EXPLORATIONS, Divergence, Optimism, Sampling, resolved
from . import every_answer, switching
from .every_answer import LinearParams

_COUNTERS = ("tree", "honaker", "toeplitz", "buffered", "independent")  # of which the number ends


@dataclass(frozen=True, repr=False)
class EveryAnswer(Part):
    """Releases the running sum after every answer.

    When to choose: there is one model per arm, or no bound on the number of rounds.

    >>> EveryAnswer()
    EveryAnswer()
    """

    what: ClassVar[str] = "updates"
    title: ClassVar[str] = "a running sum of features times reward"


@dataclass(frozen=True, repr=False)
class Switching(Part):
    """Releases the running sum when det V has grown by the factor 1 + C, some d ln T times
    (Abbasi-Yadkori, Pál & Szepesvári 2011, Section 5.1; Azize & Basu 2024).

    Args:
        growth: C.  The smaller, the more releases share the budget, but fewer runs fail because an
            arm's rewards are released late.  None: 0.4 with ``Divergence``, else 1.

    When to choose: in most cases; it has the least noise.

    >>> Switching(growth=1.0)
    Switching(growth=1.0)
    """

    what: ClassVar[str] = "updates"
    title: ClassVar[str] = "rarely released sums of features times reward"

    growth: float | None = None

    constraints: ClassVar[Constraints] = {"growth": Real(0.0, 1e6, strict=True) | None}


_RADIUS = {"parameter_bound": 1.0, "radius": "safe"}
_CONSTANTS: dict[tuple[type[Part], type[Part]], dict[str, Any]] = {
    (EveryAnswer, Optimism): _RADIUS,
    (EveryAnswer, Sampling): {},
    (EveryAnswer, Divergence): {"alpha": 1.5, "margin": 2.0},
    (Switching, Optimism): {**_RADIUS, "smallest_eigenvalue": None},
    (Switching, Sampling): {},
    (Switching, Divergence): {"alpha": 1.8, "margin": 2.5, "share": 1.0},
}


def _composed(updates: type[Any], explore: type[Any], models: str) -> Composition:
    at_once = updates is EveryAnswer
    table = every_answer.OF_MODELS if models == "disjoint" else every_answer.KERNELS
    card = Card(
        title=f"{explore.title} on {updates.title}",
        source=f"{explore.__name__} and {updates.__name__} as in dpbandits.algorithms.linear; no"
        " theorem on the regret of both together is known",
        proof=f"module dpbandits.algorithms.linear.{'every_answer' if at_once else 'switching'}",
        noise=("Laplace", "Gaussian"),
        learns_at_once=at_once,
        randomised=explore is Sampling,
    )
    return Composition((table if at_once else switching.KERNELS)[explore], card)


@composed(n_arms=3, dimension=2, horizon=30_000)
class Linear(LinearPolicy):
    """Linear bandit with public features and private rewards.

    The mean reward of an arm with the features x is <x, theta>.  The estimate is ``V^-1 (sum x r +
    noise)`` with ``V = ridge I + sum x x^T`` over played arms, which is public.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion; None for the non-private counterpart.
        explore: how arms are chosen: ``Divergence()``, ``Optimism()`` or ``Sampling()``.
        updates: when estimates change: ``Switching()`` or ``EveryAnswer()``.
        models: "shared", one parameter for all arms, or, with ``EveryAnswer()``, "disjoint", one
            for each: then ``pull`` may take one vector of features, shape (d,), for all of them.
        horizon: an upper bound on the number of rounds.  A generous one is fine, but ``Divergence``
            explores longer with a longer one.  After it the policy stops learning; with
            ``Switching()`` it stops after the last planned release, maybe some rounds later.  None
            with the hybrid counter, or without a budget.
        counter: "tree", "honaker", "toeplitz", "buffered", "independent" or, with
            ``EveryAnswer()``, "hybrid" (any number of rounds); see ``dpbandits.privacy.continual``.
            By default the one with the least noise that fits budget, horizon and noise source.
        **options: see ``ModelOptions``.  ``ridge`` is None by default: with ``Divergence()`` and
            ``Switching()`` it follows noise, dimension and rewards (``linear.switching``).  With
            others it is 1.

    Raises:
        ArgumentError: an argument is outside its range, or has no effect beside another.

    When to choose: contexts are public, rewards private.  The default has little regret, without a
    theorem; with ``Optimism`` the radius is proved to hold.

    Example:
        >>> from dpbandits import ZCDP
        >>> policy = Linear(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> policy.update(1.0, policy.pull([[1, 0, 0], [0, 1, 0]]))
        True
    """

    card = _composed(Switching, Divergence, "shared").card
    constraints: ClassVar[Constraints] = {
        "updates": PartOf(EveryAnswer, Switching, exactly=True),
        "explore": PartOf(*EXPLORATIONS, exactly=True),
        "ridge": RIDGE | None,
    }
    _options: ClassVar[dict[str, Any]] = {**MODEL, "ridge": None}
    _covers = True

    @classmethod
    def composition(
        cls,
        *,
        explore: Optimism | Sampling | Divergence,
        updates: EveryAnswer | Switching,
        models: str = "shared",
        **_: object,
    ) -> Composition:
        """Kernels and card of parts.

        Raises:
            ArgumentError: the parts mean nothing together.
        """
        if models == "disjoint" and isinstance(updates, Switching):
            raise ArgumentError(
                "models must be 'shared' with updates=Switching(), got 'disjoint'. With"
                " updates=EveryAnswer() each arm may have its own model",
                "models",
            )
        return _composed(type(updates), type(explore), models)

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        explore: Optimism | Sampling | Divergence = Divergence(),  # noqa: B008  (a value)
        updates: EveryAnswer | Switching = Switching(),
        models: str = "shared",
        horizon: int | None = None,
        counter: str | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        when: Any = updates
        how: Any = explore
        pair = f"{type(how).__name__} with {type(when).__name__}()"
        how = resolved(how, pair, **_CONSTANTS[type(when), type(how)])
        if isinstance(when, Switching):
            if when.growth is None:
                when = Switching(0.4 if isinstance(how, Divergence) else 1.0)
            _refuse_unplanned(horizon, counter, budget)
        if isinstance(how, Optimism) and how.radius == "published":
            _refuse_unpublished(when, counter, budget)
        if not (isinstance(how, Divergence) and isinstance(when, Switching)):
            options["ridge"] = MODEL["ridge"] if options.get("ridge") is None else options["ridge"]
        parts: dict[str, Any] = {"explore": how, "updates": when, "models": models}
        own = {"n_arms": n_arms, "dimension": dimension, **parts, **running_sum(horizon, counter)}
        super().__init__(own, budget=budget, composition=self.composition(**parts), **options)

    @property
    def _growth(self) -> float | None:
        return getattr(self.config["updates"], "growth", None)

    @property
    def _radius(self) -> str | None:
        return getattr(self.config["explore"], "radius", None)

    @property
    def _holds(self) -> bool:
        return super()._holds and self._radius == "safe"

    @property
    def _searches(self) -> bool:
        return self._has_radius and self.models == "shared"

    @property
    def most_changes(self) -> int:
        """Maximal number of times that det V can grow by 1 + C in the horizon (determinant-trace
        inequality).

        With ``clip=False`` four times the bound on features is planned for.
        """
        return self._changes(self._ridge)

    def _changes(self, ridge: float) -> int:
        length = self.context_bound * (1.0 if self.clip else 4.0)
        rounds, growth = self._horizon or 1, self._growth
        if growth is None:
            return rounds
        volume = math.log1p(rounds * length**2 / (ridge * self.dimension))
        return min(rounds, math.floor(self.dimension * volume / math.log1p(growth)) + 1)

    @cached_property
    def _ridge(self) -> float:
        given = self.config["ridge"]
        return self._ridge_of_noise() if given is None else float(given)

    def _ridge_of_noise(self) -> float:
        """The ridge by the prior variance of the parameter, see ``switching``."""
        (lo, hi), bound = self.reward_range, self.context_bound
        longest, least = max(abs(lo), abs(hi)) / bound, bound**2  # S, L^2
        rewards = self.dimension * (self._scatter / longest) ** 2
        releases, secure = self._changes(max(rewards, least)), self.grid > 0.0
        size = self.n_models * self._size
        counter = counter_for(self._counting, releases, self.channel, secure=secure, size=size)
        noise = Plan(counter, releases).noise_std(
            self.channel, self._max_sensitivity(hi - lo, bound)
        )
        shrunk = max(0.5, 1.0 - 1.0 / self.dimension) * math.sqrt(self.dimension)
        return max(0.5 * rewards + shrunk * noise / longest, least)

    @property
    def _releases(self) -> int | None:
        return None if self._horizon is None else self.most_changes

    @property
    def _counting(self) -> str | None:
        return "independent" if self._radius == "published" else super()._counting

    def _statistic(self) -> Statistic:
        memo = 0 if self._growth is None else self.dimension**2 + 2
        return replace(super()._statistic(), memo=memo)

    def _params(self) -> LinearParams:
        explore = self.config["explore"]
        if isinstance(explore, Optimism):
            terms = self._optimistic(explore)
        elif isinstance(explore, Divergence):
            terms = self._divergent(explore)
        else:
            terms = {"spread": self._noise_std, "radius_scale": explore.inflation}
        model: dict[str, Any] = {
            **self._model(),
            "n_models": self.n_models,
            "movement": self.statistic.max_sensitivity,
            "growth": 1.0 + (self._growth or 0.0),
        }
        return LinearParams(**(model | terms))

    def _optimistic(self, explore: Optimism) -> dict[str, Any]:
        published = self._radius == "published"
        # Split over sampling and noise; the published theorem fails with three times this.
        each = self._each_failure / (1 if published or self.budget is None else 2)
        eigenvalue = explore.smallest_eigenvalue
        heuristic = self._radius == "heuristic"
        return {
            "log_odds": 2.0 * math.log(1.0 / each),
            "widens": 1.0,
            "bias": self._bias,
            "noise_norm": 0.0 if heuristic else self._noise_norm(each),
            "spread": self._spread(each) if heuristic else 0.0,
            "radius_scale": self._radius_scale,
            "adds_up": published,
            "eigenvalue": math.nan if eigenvalue is None else eigenvalue,
            "log_rounds": math.log(self.dimension / each),
        }

    def _divergent(self, explore: Divergence) -> dict[str, Any]:
        assert explore.margin is not None
        margin = math.log(explore.margin)
        own = {**self._for_imed(), "log_odds": explore.alpha, "margin": margin}
        if self._growth is None:  # noise changes with every round
            return {**own, "spread": self._noise_std}
        noise = (self._noise_std / self._least_scatter) ** 2
        return {**own, "noise": noise, "share": explore.share}

    def _noise_norm(self, probability: float) -> float:
        if self._radius != "published" or self.budget is None or self._horizon is None:
            return super()._noise_norm(probability)
        # f(d, delta / T) of Appendix F; the printed radius mixes ln(1 / delta) and ln(T / delta).
        log = math.log(self._horizon / probability)
        return self.noise_scale * math.sqrt(
            self.dimension + 2.0 * math.sqrt(self.dimension * log) + 2.0 * log
        )


def _refuse_unplanned(horizon: int | None, counter: str | None, budget: Budget | None) -> None:
    """How often a sum is released rarely, has to be known."""
    if counter is not None:
        choice("counter", counter, _COUNTERS)
    if horizon is None and budget is not None:
        raise ArgumentError(
            "horizon, the largest number of rounds, must be given if updates=Switching() and there"
            " is a budget",
            "horizon",
        )


def _refuse_unpublished(updates: Part, counter: str | None, budget: Budget | None) -> None:
    """The published radius is that of one schedule, noise and counter."""
    if isinstance(updates, EveryAnswer):
        choice("radius", "published", ("safe", "heuristic"))
    if isinstance(budget, PureDP):
        raise ArgumentError(
            "radius must not be 'published' for a PureDP budget: the paper has Gaussian noise only",
            "radius",
        )
    if counter is not None:
        raise ArgumentError(
            f"counter must be None with radius='published', got {counter!r}: this radius was"
            " derived for the paper's own noise",
            "counter",
        )


# By the names of those who published them ---------------------------------------------------------

_OF_MODEL = "ridge subgaussian context_bound"
_OF_RADIUS = "parameter_bound failure_probability radius_scale"
_MODELS = given("models", "shared", quiet=True)
_RIDGE = given("ridge", MODEL["ridge"])
_OPEN = given("budget", None, values={None: None})
_NOT_PRIVATE = {"noise": (), "proof": "", "trust_model": "none"}
_ON_COUNTERS = "; running sums: module dpbandits.privacy.continual"


def _optimism(**radius: Any) -> Any:
    bound = given("parameter_bound", 1.0)
    return like(Optimism, "failure_probability", "radius_scale", parameter_bound=bound, **radius)


def _divergence(alpha: float, margin: float, **more: Any) -> Any:
    return like(Divergence, alpha=given("alpha", alpha), margin=given("margin", margin), **more)


LinUCB = preset(
    "LinUCB",
    Linear,
    f"n_arms dimension models {_OF_MODEL} {_OF_RADIUS} budget",
    """LinUCB, or OFUL, not private (Abbasi-Yadkori et al. 2011); see ``PrivateLinUCB``.""",
    about={
        "source": f"{Optimism.source}, Theorem 2",
        "title": "LinUCB, not private",
        **_NOT_PRIVATE,
    },
    example={"n_arms": 3, "dimension": 2},
    ridge=_RIDGE,
    explore=_optimism(radius="safe"),
    updates=EveryAnswer(),
    models=_MODELS,
    horizon=None,
    counter=None,
    budget=_OPEN,
)

PrivateLinUCB = preset(
    "PrivateLinUCB",
    Linear,
    f"n_arms dimension horizon counter radius models {_OF_MODEL} {_OF_RADIUS}",
    """LinUCB on a running sum that is released after every answer.  Under pure DP, with the binary
    tree and ``models="disjoint"``, this is the mechanism of LinPriv (Neel & Roth 2018).
    """,
    about={
        "source": "Neel & Roth (2018), Mitigating Bias in Adaptive Data Gathering via"
        f" Differential Privacy{_ON_COUNTERS}",
        "errata": (LINPRIV,),
    },
    ridge=_RIDGE,
    explore=_optimism(
        radius=given("radius", "safe", values={"safe": "safe", "heuristic": "heuristic"})
    ),
    updates=EveryAnswer(),
    models=_MODELS,
)

LinearThompson = preset(
    "LinearThompson",
    Linear,
    f"n_arms dimension horizon counter inflation models {_OF_MODEL}",
    """Linear Thompson sampling on a running sum, with the law of its noise in the posterior.""",
    about={
        "source": f"{Sampling.source}{_ON_COUNTERS}",
        "title": "linear Thompson sampling on a running sum of features times reward",
    },
    ridge=_RIDGE,
    explore=like(Sampling, "inflation"),
    updates=EveryAnswer(),
    models=_MODELS,
)

LinearIMED = preset(
    "LinearIMED",
    Linear,
    f"n_arms dimension horizon counter alpha margin models {_OF_MODEL}",
    """Indexed minimum empirical divergence on a running sum, released after every answer.""",
    about={"source": f"{Divergence.source}{_ON_COUNTERS}"},
    ridge=_RIDGE,
    explore=_divergence(1.5, 2.0),
    updates=EveryAnswer(),
    models=_MODELS,
)

RSOFUL = preset(
    "RSOFUL",
    Linear,
    f"n_arms dimension growth {_OF_MODEL} {_OF_RADIUS} budget",
    """Rarely switching OFUL, not private (Abbasi-Yadkori et al. 2011, 5.1); see ``AdaCOFUL``.""",
    about={
        "source": f"{Optimism.source}, Section 5.1",
        "title": "Rarely switching OFUL, not private",
        **_NOT_PRIVATE,
    },
    example={"n_arms": 3, "dimension": 2},
    ridge=_RIDGE,
    explore=_optimism(radius="safe"),
    updates=like(Switching, growth=given("growth", 1.0)),
    models="shared",
    horizon=None,
    counter=None,
    budget=_OPEN,
)

AdaCOFUL = preset(
    "AdaCOFUL",
    Linear,
    f"n_arms dimension horizon variant counter smallest_eigenvalue growth {_OF_MODEL} {_OF_RADIUS}",
    """Rarely switching OFUL on noisy sums (Azize & Basu 2024, Algorithm 3): ``variant="tight"`` has
    correlated noise and a radius that is proved to hold, "heuristic" one that claims no coverage,
    and "published" that of Appendix F, with independent noise in every episode.
    """,
    about={
        "source": "Azize & Basu (2024), Concentrated Differential Privacy for Bandits, Theorem 3;"
        " running sums: module dpbandits.privacy.continual",
        "title": "Rarely switching OFUL on noisy sums",
        "errata": (ADAC_OFUL,),
    },
    ridge=_RIDGE,
    explore=_optimism(
        radius=given(
            "variant",
            "tight",
            values={"tight": "safe", "heuristic": "heuristic", "published": "published"},
        ),
        smallest_eigenvalue=given("smallest_eigenvalue", None),
    ),
    updates=like(Switching, growth=given("growth", 1.0)),
    models="shared",
    horizon=given("horizon"),
)

RSLinearIMED = preset(
    "RSLinearIMED",
    Linear,
    f"n_arms dimension horizon counter growth alpha margin share {_OF_MODEL}",
    """Linear IMED on rarely released sums: the default with public contexts.""",
    about={
        "source": f"{Divergence.source}; releases: Azize & Basu (2024), Concentrated Differential"
        " Privacy for Bandits, Theorem 3; running sums: module dpbandits.privacy.continual"
    },
    explore=_divergence(1.8, 2.5, share=given("share", 1.0)),
    updates=like(Switching, growth=given("growth", 0.4)),
    models="shared",
    horizon=given("horizon"),
)
