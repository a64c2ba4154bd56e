"""Private estimates of generalised linear models where one party is trusted with the data."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from ..constraints import Choice, Constraints, Integer, Real
from ..errors import ArgumentError, DPBanditsError
from ..privacy import Budget, Guarantee
from ..privacy.channels import Calibration
from ..tables import TableLike
from ..validation import real
from .estimator import MOST, TYPES_ARE_PUBLIC, Estimator
from .objective import ObjectivePerturbation
from .spending import Spending
from .steps import People, Release, coefficient_intervals, gradient_descent, newton

METHODS = ("newton", "gradient", "objective")
_STEPS = {"newton": 3, "gradient": 60}
_STEPS_WITHOUT_NOISE = {"newton": 30, "gradient": 2000}
_MOST_STEPS = 100_000
_GROWTH = 3.0  # of the share of the budget, from one Newton step to the next
_HESSIAN_WEIGHT = 0.5  # adds 3 per cent to the sensitivity
_PAGE = "(docs/glm-estimation.md)"
_PROOF = f"sensitivity in dpbandits.glm.scores, composition in dpbandits.glm.spending {_PAGE}"
_OBJECTIVE_PROOF = f"dpbandits.glm.objective {_PAGE}"


class PrivateGLM(Estimator):
    """A generalised linear model E[y | x] = nu(<x, theta>), fitted with differential privacy.

    Features and outcomes of every person are private, the number of people is public: neighbours
    differ in one row.  All steps use all people, and their costs add up exactly.  Features are
    scaled down to ``context_bound``; entries that are no finite number count as 0, and a person
    without an outcome adds nothing.  There is no intercept: let a column of ``X`` be constant.

    Args:
        link: "logistic", "identity", "probit", or one of ``register_link``.
        budget: of any notion but ``PureDP``; None for the ordinary estimate, without noise.
            ``method="objective"`` takes ``ApproxDP`` alone.
        method: "newton", noisy Newton steps; "gradient", noisy gradient steps, which need no d^2
            numbers; "objective", the exact minimiser of a perturbed loss.
        steps: how many; 3 Newton steps, whose shares of the budget grow threefold, or 60 gradient
            steps with equal shares.  Without noise 30, or 2000.
        outcome_range: (lo, hi); outcomes outside are clipped to it.
        context_bound: l, to which feature vectors are scaled if they are longer.
        parameter_bound: S; the estimate is the best one with |theta| <= S.
        ridge: added to the curvature of the sum over people; it adds ridge |theta|^2 / 2 to the
            loss.  Default: a value that fits the noise, and 0 without noise.
        hessian_weight: of Newton steps: sensitivity of the released curvatures, relative to that of
            the gradients.
        step_size: of gradient steps on the sum; default 1 / (n W l^2), W a bound on the weights of
            curvatures, times 0.1 d up to 4 where there is noise.
        calibration: "exact", or "paper": the published noise, for an ``ApproxDP`` budget divided
            equally; ``guarantee`` returns its proved privacy.
        noise: "simulation" (seeded, protects no person) or "secure" (needs the extra ``secure``).
        grid: of secure noise: a power of two; contributions of a person are rounded to its
            multiples.  By default 2**-20 for a ``context_bound`` of 1, and in proportion to others.
        seed: of simulated noise.
        outcome_variance: a public bound on the variance of an outcome given features, for shorter
            intervals; by default the bound from ``outcome_range``.

    Attributes:
        coef_: (d,) the estimate.
        n_features_in_, feature_names_in_: d, and (d,) names of the columns of a table with names.
        ledger: one line for each release of the last ``fit``.

    Raises:
        ArgumentError: an argument is out of range, or two do not fit together.

    Example:
        >>> from dpbandits import ZCDP
        >>> from dpbandits.glm import PrivateGLM
        >>> rng = np.random.default_rng(1)
        >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
        >>> y = rng.random(20_000) < 1 / (1 + np.exp(-X @ [0.8, -0.4, 0.0]))
        >>> model = PrivateGLM(budget=ZCDP(0.5), seed=1).fit(X, y)
        >>> model.coef_.round(1).tolist()
        [0.8, -0.3, 0.1]
        >>> model.ledger.spent()
        ZCDP(rho=0.5)
    """

    constraints: ClassVar[Constraints] = {
        "method": Choice(*METHODS),
        "steps": Integer(1, _MOST_STEPS) | None,
        "step_size": Real(0.0, MOST) | None,
    }

    def __init__(
        self,
        link: str = "logistic",
        *,
        budget: Budget | None,
        method: str = "newton",
        steps: int | None = None,
        outcome_range: tuple[float, float] = (0.0, 1.0),
        context_bound: float = 1.0,
        parameter_bound: float = 1.0,
        ridge: float | None = None,
        hessian_weight: float = _HESSIAN_WEIGHT,
        step_size: float | None = None,
        calibration: Calibration = "exact",
        noise: str = "simulation",
        grid: float | None = None,
        seed: int | None = None,
        outcome_variance: float | None = None,
    ) -> None:
        self.link, self.budget, self.method, self.steps = link, budget, method, steps
        self.outcome_range = outcome_range
        self.context_bound, self.parameter_bound = context_bound, parameter_bound
        self.ridge, self.hessian_weight, self.step_size = ridge, hessian_weight, step_size
        self.calibration, self.noise, self.grid, self.seed = calibration, noise, grid, seed
        self.outcome_variance = outcome_variance
        self._check()

    def _check(self) -> None:
        super()._check()
        self._score()
        self._source()
        if self._is_objective:
            self._perturbation()
        else:
            self._spending()

    @property
    def _is_objective(self) -> bool:
        return self.method == "objective" and self.budget is not None

    def _perturbation(self) -> ObjectivePerturbation:
        if self.noise == "secure":
            what = "'simulation' for method='objective', whose proof needs continuous noise"
            raise ArgumentError(f"noise must be {what}", "noise")
        return ObjectivePerturbation.calibrated(self.budget, self._score(), ridge=self.ridge)

    def _spending(self) -> Spending:
        kind = "gradient" if self.method == "gradient" else "newton"
        defaults = _STEPS_WITHOUT_NOISE if self.budget is None else _STEPS
        count = self.steps or defaults[kind]
        grows = _GROWTH if kind == "newton" else 1.0
        # Powers of at most 1, relative to the last step: others would overflow for many steps.
        weights = [grows ** (j - count + 1) for j in range(count)]
        shares = [weight / sum(weights) for weight in weights]
        return Spending.of(self.budget, shares, calibration=self.calibration)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee for the people of one ``fit``; for people of several fits the losses add
        up.
        """
        assumed = [
            "a person is one row, and their data enter one fit",
            "the number of rows is public",
            f"features have a length of at most {self.context_bound:g}, which scaling enforces",
            TYPES_ARE_PUBLIC,
        ]
        if self._is_objective:
            return self._perturbation().guarantee(self._source(), assumed, _OBJECTIVE_PROOF)
        return self._spending().guarantee(self._source(), assumed, _PROOF)

    def fit(self, X: TableLike, y: TableLike) -> Self:  # noqa: N803
        """Estimate from features of shape (n, d) and outcomes of shape (n,).

        Raises:
            ArgumentError: the shapes are others, or, with secure noise, there are too many people
                for exact sums on so fine a grid.
        """
        features, outcomes = self._read(X, y)
        self._note_columns(X, features.shape[1])
        self._releases: list[Release] = []
        if self._is_objective:
            perturbation = self._perturbation()
            self.coef_, self.ledger = perturbation.fit(features, outcomes, self._source())
            return self
        source, spending = self._source_for(len(features)), self._spending()
        score = self._score(bounded=source is not None)
        people = People(features, outcomes, score, source, self._rounded)
        if self.method == "gradient":
            self.coef_ = self._descend(people, spending)
        else:
            self.coef_, self._releases = newton(
                people,
                spending.channels,
                radius=self.parameter_bound,
                ridge=self.ridge,
                hessian_weight=self.hessian_weight,
            )
        self.ledger = spending.ledger(people.releases)
        return self

    def _descend(self, people: People, spending: Spending) -> np.ndarray:
        score, (n, d) = people.score, people.features.shape
        steepest = n * score.largest_weight * score.context_bound**2
        # Curvature is spread over directions, and noise forbids to wait for the flattest.
        longer = min(4.0, max(1.0, 0.1 * d)) if self.budget is not None else 1.0
        return gradient_descent(
            people,
            spending.channels,
            radius=self.parameter_bound,
            ridge=self.ridge or 0.0,
            step_size=longer / steepest if self.step_size is None else self.step_size,
        )

    def confidence_intervals(self, level: float = 0.95) -> np.ndarray:
        """Intervals for each coefficient, which account for all noise; see ``dpbandits.glm.steps``.

        Returns:
            Shape (d, 2): lower and upper ends, of asymptotic coverage at least ``level``.

        Raises:
            ArgumentError: the level is outside of (0, 1).
            DPBanditsError: there is no estimate yet, or the method is not "newton": others release
                no curvature.
        """
        level = real("level", level, 0.0, 1.0, strict=True)
        self._learnt()
        if not self._releases:
            raise DPBanditsError("confidence intervals need method='newton'")
        score = self._score(bounded=self.budget is not None)
        dispersion = score.dispersion(self.outcome_variance)
        return coefficient_intervals(self._releases, dispersion, self.parameter_bound, level)
