"""Linear bandits under local differential privacy: a record stays on its device.

Guarantee:

* Protected: features, arm and reward of one person.  The wall stands around each person.
* Adjacency: any two records of a person, who sends one report.
* Sensitivity: [x r ; svec(x x^T)] crosses the wall in the block of its model, all with normal noise
  of its own.  ``model`` bounds the difference of two records.
* Assumed: the arm stays on the device.  A server that delivered it would learn it.

The server sums the reports, and uses the sum once in a batch.  The device chooses with the server's
published chooser.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ...constraints import Constraints, Flag
from ...errors import ArgumentError
from ...policies import Chooser, Composition, composed
from ...privacy.budgets import ApproxDP, Budget
from ...privacy.channels import PublishedGaussian
from ...privacy.randomiser import VectorRandomiser
from ...session.options import WILDEST
from ...tables import as_numbers
from ...validation import number_or_nan
from ..bases.contextual import bounded_features, influence_through, within_bound
from ..bases.counter_choice import MOST_ROUNDS
from ..exploration import Divergence, Optimism, Sampling
from .kernels import (
    add_record,
    choose_divergent,
    choose_optimistic,
    choose_sampled,
    of_reports,
    on_arrival,
)
from .model import Params, joint_sensitivity, statistic_size
from .policy import (
    HiddenOptions,
    HiddenPolicy,
    asks_for_published,
    composed_for,
    refuse_unpublished,
)

# Parameters that a device in JavaScript is told.
_TOLD = ("dimension", "n_arms", "n_models", "context_bound", "weight", "diagonal", "grid")
# The exploration of a kernel, and its parameters.
_EXPLORATIONS: dict[Any, tuple[str, tuple[str, ...]]] = {
    choose_optimistic: ("Optimism", ()),
    choose_sampled: ("Sampling", ("radius_scale", "subgaussian")),
    choose_divergent: (
        "Divergence",
        ("subgaussian", "share", "margin", "middle", "half", "horizon"),
    ),
}
# Files that the script is made of.
_PARTS = (
    "noise",
    "messages",
    "exploration",
    "gradients",
    "device",
    "rewards",
    "sealing",
    "connecting",
)


class Device:
    """Program for a person's device: chooses with the server's chooser, and reports with noise.

    Features, arm and reward stay here, and are forgotten with the report.

    ``HiddenLinearLocal.device()`` makes it.  A device always sends, at a time that does not depend
    on the reward.  If no reward came it sends ``report()``: silence would reveal that.

    Args:
        chooser: the public half of the policy.
        params: of its algorithm.
        randomise: the wall.
        reward_range: rewards outside are clipped to it.
        default_reward: reported if no reward came, or one that is not a number.
        reports: maximal number of reports of its person, over its whole life.  ``left`` counts them
            down; a copy has a counter of its own, so never use an older copy again.
    """

    def __init__(
        self,
        chooser: Chooser,
        params: Params,
        randomise: Callable[[np.ndarray], Any],
        reward_range: tuple[float, float],
        default_reward: float,
        reports: int,
    ) -> None:
        self.chooser, self._params, self._randomise = chooser, params, randomise
        self._reward_range, self._default_reward = reward_range, default_reward
        self.left = reports  # of these
        self._arm = 0
        self._features: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"<Device with release {self.chooser.release}, contents not shown>"

    def use(self, chooser: Chooser | str) -> None:
        """Choose with this chooser, or its JSON, from now on.

        Raises:
            ArgumentError: it is that of another policy, or no chooser.
        """
        if isinstance(chooser, str):
            chooser = Chooser.from_json(chooser, like=self.chooser)
        if chooser.arguments != self.chooser.arguments:
            raise ArgumentError("chooser must come from the policy that made the device", "chooser")
        self.chooser = chooser

    @staticmethod
    def javascript() -> str:
        """These devices as a script for browsers, Node and workers, which defines
        ``dpbandits.Device``.  From the same random bytes it makes the same arms, reports and
        messages.
        """
        folder = resources.files(__package__).joinpath("javascript")
        whole, *parts = (
            folder.joinpath(f"{name}.js").read_text("utf-8") for name in ("whole", *_PARTS)
        )
        return whole.replace("// PARTS\n", "\n".join(parts))

    def to_json(self) -> str:
        """All data for a device in JavaScript, including the chooser; none of a person.

        Raises:
            ArgumentError: the noise is simulated.
        """
        return json.dumps(
            {
                **self._model(),
                "reports": self.left,
                "reward_range": self._reward_range,
                "default_reward": self._default_reward,
                "chooser": json.loads(self.chooser.to_json()),
                **self._wall(),
            }
        )

    def _model(self) -> dict[str, Any]:
        """How a device in JavaScript chooses, and what it makes of a record."""
        kind, parameters = _EXPLORATIONS[self.chooser.kernels.choose]
        return {**self._told(_TOLD), "explore": {"class": kind, **self._told(parameters)}}

    def _told(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: getattr(self._params, name) for name in names}

    def choose(self, contexts: ArrayLike) -> int:
        """The arm for features of every arm, shape (K, d), or as ``pull`` takes them.

        Raises:
            ArgumentError: the contexts have another shape.
        """
        # First: if the choice fails, the next report is not that of the person before.
        self._features = None
        arm, x = self.chooser.decide(contexts)
        # Scaled to the device's own bound, to which its noise is calibrated.
        self._arm, self._features = arm, np.empty((1, x.size))
        within_bound(self._params, x[np.newaxis], self._features, None)
        return arm

    def report(self, reward: float | None = None) -> Any:
        """Report the last choice and its reward, with noise.

        The report holds only noise if there was no choice since the last report, or no report is
        left.  Hence there always is a report to send.  An entry that is no number counts as no
        reward: an error would reveal it.

        Returns:
            The report that the policy's side takes.  Of ``HiddenLinearLocal`` it is an array, of
            the length in ``receive``.  Of ``HiddenLinearShuffled`` it is ``Messages`` for its
            shuffler.
        """
        value, (lo, hi) = number_or_nan(reward), self._reward_range
        value = self._default_reward if math.isnan(value) else min(max(value, lo), hi)
        arm, features = self._arm, self._features
        # Forgotten before anything may fail, so that no record is reported twice.
        self._arm, self._features = 0, None
        if features is not None and self.left <= 0:
            arm, features, value = 0, None, self._default_reward
        elif features is not None:
            self.left -= 1
        x = np.zeros(self._params.dimension) if features is None else features[0]
        return self._sent(self._record(arm, x, value))

    def _record(self, arm: int, x: np.ndarray, reward: float) -> np.ndarray:
        """The record before randomisation, shape (M (d + d (d + 1) / 2),)."""
        record = np.zeros(self._params.n_models * statistic_size(self._params.dimension))
        add_record(self._params, record, arm, x, reward)
        return record

    def _sent(self, record: np.ndarray) -> Any:
        return self._randomise(record)

    def _wall(self) -> dict[str, Any]:
        """What makes the noise of a device in JavaScript."""
        assert isinstance(self._randomise, VectorRandomiser)
        return self._randomise.to_dict(self._params.dimension)


class LocalPolicy(HiddenPolicy):
    """Base class of servers for devices that choose, and randomise their reports."""

    constraints: ClassVar[Constraints] = {"reports": Flag()}
    _device: ClassVar[type[Device]] = Device
    _devices = 0

    def __init__(self, config: dict[str, Any], *, budget: Budget | None, **options: Any) -> None:
        super().__init__(config, budget=budget, **options)
        if self.takes_reports and budget is not None:
            self._randomiser(0)  # which may refuse the grid

    @property
    def _counting(self) -> str | None:
        return "independent"

    def device(self) -> Device:
        """Program for a person's device, with the present chooser.

        A device that does not trust the server makes it from a policy of its own, with the same
        arguments.  It then calls ``use`` on the choosers that the server sends as JSON.

        Raises:
            ArgumentError: the policy has no budget.
        """
        if self.budget is None:
            raise ArgumentError("budget must not be None for a device", "budget")
        self._devices += 1
        return self._device(
            self.chooser(),
            self.params,
            self._randomiser(self._devices),
            self.reward_range,
            self.default_reward,
            self.max_rounds or 1,
        )

    def _randomiser(self, number: int) -> VectorRandomiser:
        """With simulated noise that no other device of this policy has."""
        return VectorRandomiser(
            self.channel,
            self.statistic.max_sensitivity,
            self.statistic.max_abs_contribution,
            noise=self.config["noise"],
            grid=self.config["grid"],
            seed=self.config["seed"],
            number=number,
        )

    def _round(self) -> tuple[int, dict[str, Any]]:
        return self.ledger.releases, {"chooser": json.loads(self.chooser().to_json())}

    def receive(self, report: ArrayLike) -> bool:
        """Take in a report of this policy's devices.  With a linear model it has shape (d + d (d +
        1) / 2,); with one model per arm it is K times as long.

        Returns:
            Whether the policy learns from it: False once ``horizon`` reports were taken.

        Raises:
            ArgumentError: this policy takes no reports, or the report is not one of its devices'.
            BudgetExhausted: the planned number of reports has been taken.
            ClaimError: as in ``update`` of other policies.
        """
        return self._received(self._checked_report(report))

    def _checked_report(self, report: ArrayLike) -> np.ndarray:
        if not self.takes_reports:
            raise ArgumentError(
                "reports must be True for a policy that receives reports, got False", "reports"
            )
        taken, size, most = as_numbers(report), self.statistic.size, self._most_reported
        if taken.shape != (size,) or not (np.abs(taken) <= most).all():
            raise ArgumentError(
                f"report must hold {size} numbers between {-most:.6g} and {most:.6g}, like the"
                " reports that devices send",
                "report",
            )
        return taken.astype(np.float64)

    @property
    def _most_reported(self) -> float:
        return self.statistic.max_abs_contribution + WILDEST * self.noise_scale

    def _assumed(self) -> list[str]:
        if not self.takes_reports:
            return super()._assumed()
        sent = "one report" if self.max_rounds in (None, 1) else f"{self.max_rounds} reports"
        return [
            bounded_features(self.context_bound, "the device"),
            "the arm is carried out on the person's device, and nobody else sees it",
            influence_through("reports"),
            "the time of a report does not depend on its content",
            f"a person has one device, which sends {sent} in all",
            "no older copy of a device is used again",
        ]


@PublishedGaussian
def _as_published(budget: ApproxDP) -> float:
    """6 sqrt(2 ln(2.5 / delta)) / epsilon on x r and the upper x x^T, which move by sqrt(4.5)."""
    std = 6.0 * math.sqrt(2.0 * math.log(2.5 / budget.delta)) / budget.epsilon
    return std / joint_sensitivity(1.0, 1.0)


@composed(n_arms=3, dimension=2, horizon=30_000)
class HiddenLinearLocal(LocalPolicy):
    """A linear bandit on reports that every person's device has randomised.

    With ``reports=True`` this is the server, which has no ``pull``.  ``device()`` makes the program
    for a person's device, which chooses and reports; ``receive`` takes the reports.  With
    ``reports=False`` the caller of ``pull`` and ``update`` sees features and rewards, and is
    trusted with them.

    Args:
        n_arms, dimension, horizon, explore, models: as in ``HiddenLinear``.
        budget: of any notion but ``PureDP``, for each report; None for the non-private
            counterpart.
        batch: reports between two estimates.  Batches of up to horizon^(3/4) keep the order of
            regret bounds (Chowdhury & Zhou 2022, Remark F.2).
        reports: whether this is the server of devices.
        bounds: as in ``HiddenLinear``, for ``Optimism``.
        **options: see ``HiddenOptions``.  With ``calibration="paper"``, an ``ApproxDP`` budget and
            ``Optimism`` noise, shift and radius are those of Zheng et al. (2020).  They are for
            features and rewards of length 1; noise is proportional to the effect of a record on a
            report.

    When to choose: no party may be trusted with features.  Regret is far above that of the central
    model.

    Unlike the published mechanism it has one noise for vector and matrix, at the exact joint
    sensitivity and budget.

    Example:
        >>> from dpbandits import ZCDP
        >>> server = HiddenLinearLocal(2, 3, budget=ZCDP(0.5), horizon=1000, reports=True, seed=1)
        >>> device = server.device()
        >>> device.choose([[1, 0, 0], [0, 1, 0]]) in (0, 1)
        True
        >>> server.receive(device.report(1.0))
        True
    """

    _covers = True
    # Exact bounds take published noise on a square for twice the variance that it has, so they
    # hold: norms of normal noise are the smaller the less covariance it has (Anderson 1955).
    _triangular = True

    @classmethod
    def composition(
        cls, *, explore: Optimism | Sampling | Divergence, reports: bool = False, **_: object
    ) -> Composition:
        """Kernels and card of an exploration, for records or reports."""
        return composed_for(
            type(explore),
            "local DP",
            of_reports if reports else on_arrival,
            proof="sensitivity: module dpbandits.algorithms.hidden.model",
            noise=(_as_published if isinstance(explore, Optimism) else "Gaussian",),
            trust_model="local",
            view="joint",
            learns_at_once=True,
        )

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        explore: Optimism | Sampling | Divergence = Divergence(),  # noqa: B008  (a value)
        batch: int = 1,
        reports: bool = False,
        models: str = "shared",
        bounds: str = "published",
        **options: Unpack[HiddenOptions],
    ) -> None:
        explore = self._explored(explore)
        if isinstance(explore, Optimism) and asks_for_published(options, budget):
            refuse_unpublished(options)
        else:
            bounds = "published"  # nothing else is known of
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "explore": explore,
            "horizon": horizon,
            "batch": batch,
            "reports": reports,
            "models": models,
            "bounds": bounds,
        }
        composition = self.composition(explore=explore, reports=reports)
        super().__init__(own, budget=budget, composition=composition, **options)

    def _with_published_bounds(self, params: Params) -> Params:
        """With the constants of Zheng et al. (2020), for the first report."""
        d, rounds = self.dimension, self._releases or MOST_ROUNDS
        std = self.noise_scale / math.sqrt(2.0)
        bound = std * (4.0 * math.sqrt(d) + 2.0 * math.log(2.0 * rounds / self._each_failure))
        return params._replace(
            matrix_norm=bound,
            vector_norm=std * math.sqrt(d / bound),
            log_odds=2.0 * math.log(rounds),
        )
