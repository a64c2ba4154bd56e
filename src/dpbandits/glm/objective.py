"""Objective perturbation for logistic regression: the exact minimiser of a loss with a random
linear term (Chaudhuri, Monteleoni & Sarwate 2011; Kifer, Smith & Thakurta 2012; Redberg, Koskela &
Wang 2023, Theorem 3.2, whose neighbours have one person more or less).

    theta* = argmin  sum_i (log(1 + e^t_i) - y_i t_i) + lambda |theta|^2 / 2 + <b, theta> ,

t_i = <x_i, theta>, b normal with standard deviation s in every coordinate.

**Guarantee.**  If one person is replaced by another, with |r| <= R, h <= W and |x| <= l, Delta = 2
R l, the Renyi divergence of every order a > 1 is at most

    ln(1 + W l^2 / lambda) + a Delta^2 / (2 s^2) + ln(2 Phi((a - 1) Delta / s)) / (a - 1) .

*Proof.*  The gradient is zero at theta*, hence b = -(sum r_i x_i + lambda theta*).  By strong
convexity this is a smooth bijection between b and theta*, with the derivative -(H + lambda I).  So
theta* has the density p = phi_s(b) det(H + lambda I).  Under the neighbour it has p' = phi_s(b')
det(H' + lambda I), where b' = b + v and v = r x - r' x' at this theta*.  First, with A = H + lambda
I without the person: det(A + h x x^T) / det(A + h' x' x'^T) <= 1 + h x^T A^-1 x <= 1 + W l^2 /
lambda.  Second, with |v| <= Delta,

    ln(phi_s(b) / phi_s(b')) = (2 <b, v> + |v|^2) / (2 s^2)
                            <= R (|<b, x>| + |<b, x'>|) / s^2 + Delta^2 / (2 s^2) ,

although v depends on b.  Under p, b is normal, and by Cauchy and Schwarz, with X standard normal,

    E exp((a - 1) R (|<b, x>| + |<b, x'>|) / s^2)
        <=  E exp((a - 1) Delta |X| / s)  =  2 exp(u^2 / 2) Phi(u) ,   u = (a - 1) Delta / s .

The logarithm over a - 1, and the two other terms, make the sum above.  QED

**The solver.**  The computed theta~ has a gradient of length at most tau, hence |theta~ - theta*|
<= tau / lambda by strong convexity.  Given theta*, which determines b, theta~ is a function of the
data alone.  Any two data sets move it by at most 2 tau / lambda.  Normal noise of standard
deviation q makes it another (2 tau / (lambda q))-GDP release, composed adaptively.  The number of
Newton steps is fixed; those that do not halve the gradient are taken back, and damped as Sun &
Tran-Dinh (2019) do for nu = 2.  If the gradient is longer than tau all the same, the answer is zero
plus noise.  The bound is not proved for this event; the guarantee names this assumption.

**Conditions.**  The loss must be convex with bounded residuals and curvatures *everywhere*, because
theta* is not confined to a ball.  Of the links here only the logistic one is.  Least squares and
the probit loss have unbounded residuals.  zCDP does not hold with a useful rho: at orders near 1
the third term is Delta sqrt(2 / pi) / s.  Discrete noise has no density.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from ..errors import ArgumentError
from ..privacy import Guarantee, Ledger
from ..privacy.accounting import solve_up
from ..privacy.budgets import ApproxDP, Budget
from ..privacy.channels import Certified, Gaussian
from ..privacy.continual import smat
from ..privacy.noise import NoiseSource
from .scores import Score
from .spending import Spending

_ITERATIONS = 300
_TOLERANCE = 1e-6  # of the gradient of a million people, in units of one
_DETERMINANT = 0.03  # share of epsilon, by default
_OUTPUT = 0.02  # of the mu of the budget
_ORDERS = 1.0 + np.logspace(-3.0, 5.0, 400)


def renyi_divergence(order: np.ndarray, ratio: float, determinant: float) -> np.ndarray:
    """The bound above; ``ratio`` is Delta / s, ``determinant`` the first term."""
    above = order - 1.0
    tilt = (math.log(2.0) + log_ndtr(above * ratio)) / above
    return np.asarray(determinant + 0.5 * order * ratio**2 + tilt)


@dataclass(frozen=True)
class ObjectivePerturbation:
    """Objective perturbation with its noise for a budget."""

    budget: ApproxDP  # what both releases spend together
    score: Score  # with efficient weights; its sums are the derivatives of the loss
    ridge: float  # lambda
    std: float  # s, of the linear term
    output_mu: float  # of the noise on the answer

    @classmethod
    def calibrated(
        cls, budget: Budget | None, score: Score, *, ridge: float | None
    ) -> ObjectivePerturbation:
        """The least noise proved to keep the budget; an error if the conditions do not hold."""
        if not isinstance(budget, ApproxDP):
            raise ArgumentError(
                f"budget must be ApproxDP for method='objective', got {budget!r}", "budget"
            )
        if score.link != "logistic":
            raise ArgumentError(
                f"link must be 'logistic' for method='objective', got {score.link!r}. The proof"
                " needs a convex loss, and residuals that are bounded everywhere",
                "link",
            )
        steepest = 0.25 * score.context_bound**2
        if ridge is None:
            ridge = steepest / math.expm1(min(_DETERMINANT * budget.epsilon, 1.0))
        determinant = math.log1p(steepest / ridge) if ridge > 0.0 else math.inf
        output_mu = _OUTPUT * budget.mu

        def excess(inverse_ratio: float) -> float:
            divergence = renyi_divergence(_ORDERS, 1.0 / inverse_ratio, determinant)
            divergence = divergence + 0.5 * _ORDERS * output_mu**2
            # Canonne, Kamath & Steinke (2020), Proposition 12
            epsilons = divergence + np.log1p(-1.0 / _ORDERS)
            epsilons = epsilons - np.log(budget.delta * _ORDERS) / (_ORDERS - 1.0)
            return budget.epsilon - float(epsilons.min())

        if determinant >= budget.epsilon or not excess(1e9) > 0.0:
            raise ArgumentError(
                f"ridge must be larger for this budget, or the budget larger, got ridge={ridge:g}"
                f" and budget={budget!r}",
                "ridge",
            )
        lo, hi = score.outcome_range
        delta = 2.0 * max(hi, 1.0 - lo) * score.context_bound
        std = delta * solve_up(excess, 1e-3, 1.0) * (1.0 + 1e-9)
        return cls(budget, replace(score, bounded=False), ridge, std, output_mu)

    def guarantee(self, source: NoiseSource, assumptions: list[str], proof: str) -> Guarantee:
        """The guarantee for the answer."""
        solved = (
            f"the solver reaches its tolerance within {_ITERATIONS} steps; where it does not, the"
            " answer is noise, and that may show"
        )
        spending = Spending(self.budget, (), self.budget, None)
        return spending.guarantee(source, [*assumptions, solved], proof)

    def fit(
        self, features: np.ndarray, outcomes: np.ndarray, source: NoiseSource
    ) -> tuple[np.ndarray, Ledger]:
        """The estimate, shape (d,), and the ledger, with one line for both releases."""
        d, rng, channel = features.shape[1], source.generator("privacy"), Gaussian(1.0)
        tilt, output = np.empty(d), np.empty(d)
        source.add_noise(channel, self.std, np.zeros(d), tilt, rng)
        tolerance = _TOLERANCE * max(1.0, 1e-6 * len(outcomes)) * self.score.context_bound
        found = self._minimise(features, outcomes, tilt, tolerance)
        std = 2.0 * tolerance / (self.ridge * self.output_mu)
        source.add_noise(channel, std, found, output, rng)
        bound = self.score.parameter_bound
        estimate = output * min(1.0, bound / max(float(np.linalg.norm(output)), bound))
        certified, everybody = Certified.calibrated(self.budget), (0, len(outcomes) - 1)
        line = everybody, certified, 2.0 * self.score.context_bound, 2 * d
        return estimate, Spending.of(self.budget, [1.0]).ledger([line])

    def _minimise(
        self, features: np.ndarray, outcomes: np.ndarray, tilt: np.ndarray, tolerance: float
    ) -> np.ndarray:
        """theta~, or zeros where the gradient is longer than the tolerance."""
        d, reach = tilt.size, self.score.context_bound
        theta = origin = step = np.zeros(d)
        before = math.inf
        # No early end: the number of steps would depend on the data.
        for _ in range(_ITERATIONS):
            sums = self.score.add_up(features, outcomes, theta, weight=1.0, confined=False)
            gradient = sums[:d] + self.ridge * theta + tilt
            length = float(np.linalg.norm(gradient))
            if length > 0.5 * before:  # the whole step was too long, or all digits are right
                size = reach * float(np.linalg.norm(step))
                theta = origin - step * (math.log1p(size) / size if size > 1e-9 else 1.0)
                before = math.inf
                continue
            step = np.linalg.solve(smat(sums[d:]) + self.ridge * np.eye(d), gradient)
            theta, origin, before = theta - step, theta, length
        sums = self.score.add_up(features, outcomes, theta, confined=False)
        gradient = sums + self.ridge * theta + tilt
        return theta if float(np.linalg.norm(gradient)) <= tolerance else np.zeros(d)
