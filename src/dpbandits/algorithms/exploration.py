"""Explorations, as values: rules that choose an arm from a released regression.

They use released values, an estimate and V, and the features x at hand.  Hence privacy is that of
the class, with any exploration.  For arguments that are None the class uses its own best constants.

**Divergence** is IMED (Honda & Takemura 2015; for linear models Bian & Tan 2024): the arm of least
D^2 / (2 w^2) - ln(w^2 / s_x^2) + ln margin, w^2 = alpha s_x^2 |x|^2_{V^-1}.  s_x is the standard
deviation of rewards, and D the gap of <x, estimate> to the leader's; the leader has no margin.  An
arm that looks worse is explored until that is about as certain as the leader's value.  It is
explored only if its variance exceeds ``margin`` times the leader's.  w is the error of rewards in
one direction, and no bound for all directions at once.  Exploration ends by itself if contexts are
diverse enough, and goes on logarithmically otherwise.  Bian & Tan have a confidence radius, of
order sqrt(d ln T), in place of s_x.  There is no regret theorem: alpha = 1 is the law of normal
rewards, and the constants were chosen by measurement.  Classes
describe the effect of noise on D and w.  *Rounds that pay.*  s_x^2 / w^2 is the number of rounds
that an arm's estimate is worth.  It is capped at n / alpha, with n = min(t, (T - t) / 10) after t
rounds of a horizon of T, or t without one.  Without the cap, features of zeros would count as known
for ever, and all other arms would be explored for as long.  Knowledge of another arm pays in the
T - t rounds that remain, as for a Gittins index (Lattimore 2016, Regret Analysis of the
Finite-Horizon Gittins Index Strategy for Multi-Armed Bandits).  T is an argument, and t and V are
public.  With few contexts the cap saves a fifth to a third of regret, with shorter tails, because
alpha may be larger.  If T D^2 / s^2 is below a hundred or so, some runs never find the best arm.

*Scatter.*  Rewards in [lo, hi] with mean m have a variance of at most (hi - m) (m - lo) (Bhatia &
Davis 2000).  For m in the middle that is (hi - lo)^2 / 4.  s_x^2 is the largest such bound for
means within two standard deviations of <x, estimate>, or s^2, if that is less.  These are the
deviations of rewards, counted with s, and of the noise.  They are needed since an arm may look
extreme by chance.  The regression weighs all rewards alike.  Its error along x comes mostly from
rewards of features like x, which have about that variance; this is no theorem.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from ..constraints import Choice, Constraints, Real
from ..errors import ArgumentError
from ..policies.parts import Part


@dataclass(frozen=True, repr=False)
class Optimism(Part):
    """The arm with the highest upper confidence bound: <x, estimate> + radius |x|_{V^-1}, plus a
    bound on the noise (Abbasi-Yadkori, Pál & Szepesvári 2011).

    Args:
        radius_scale: multiplies the radius; below 1 it claims no coverage, and mostly plays better.
        failure_probability: probability with which the radius may be too small at some time.
        parameter_bound: on the norm of the unknown parameter.  None means 1; a generalised linear
            model has an argument of its own for it.
        radius: for public contexts.  "safe" holds for all releases at once; "heuristic" takes the
            noise as independent of the features, which is tighter and claims no coverage;
            "published", with ``Switching``, is that of Azize & Basu (2024), Appendix F.  None:
            "safe".
        smallest_eigenvalue: with ``Switching``: lambda_0, the least eigenvalue of E[x x^T], from
            which the radius takes a bound on that of V; None takes V itself.

    When to choose: you need a proved bound on regret.  ``Divergence`` mostly has a fraction of its
    regret.

    >>> Optimism(radius_scale=0.5)
    Optimism(radius_scale=0.5)
    """

    what: ClassVar[str] = "exploration"
    title: ClassVar[str] = "LinUCB"
    source: ClassVar[str] = (
        "Abbasi-Yadkori, Pál & Szepesvári (2011), Improved Algorithms for Linear Stochastic Bandits"
    )

    radius_scale: float = 1.0
    failure_probability: float = 0.001
    parameter_bound: float | None = None
    radius: str | None = None
    smallest_eigenvalue: float | None = None

    constraints: ClassVar[Constraints] = {
        "radius_scale": Real(0.0, 1e12, as_given=True),
        "failure_probability": Real(0.0, 1.0, strict=True, as_given=True),
        "parameter_bound": Real(0.0, 1e12, as_given=True) | None,
        "radius": Choice("safe", "heuristic", "published") | None,
        "smallest_eigenvalue": Real(0.0, 1e12) | None,
    }


@dataclass(frozen=True, repr=False)
class Sampling(Part):
    """Thompson sampling (Agrawal & Goyal 2013): the best arm for one draw from the posterior,
    N(estimate, s^2 V^-1 + v^2 V^-2), which includes the noise v of the release.

    Args:
        inflation: multiplies the spread of the draw; regret theorems want it to grow like sqrt(d ln
            t).

    When to choose: randomised choices are wanted.  There is no regret theorem of it here.

    >>> Sampling()
    Sampling()
    """

    what: ClassVar[str] = "exploration"
    title: ClassVar[str] = "linear Thompson sampling"
    source: ClassVar[str] = (
        "Agrawal & Goyal (2013), Thompson Sampling for Contextual Bandits with Linear Payoffs"
    )

    inflation: float = 1.0

    constraints: ClassVar[Constraints] = {"inflation": Real(0.0, 1e12)}


@dataclass(frozen=True, repr=False)
class Divergence(Part):
    """Indexed minimum empirical divergence: explores an arm by its own uncertainty instead of a
    worst case (after Bian & Tan 2024, who have another radius).

    Plays the arm of least D^2 / (2 w^2) - ln(w^2 / s^2) + ln margin, without the margin for the
    leader.  D is the arm's gap to the leader, s^2 the variance of rewards, w^2 = alpha s^2
    |x|^2_{V^-1}.

    Args:
        alpha: optimism.  The lower, the more seldom an arm that looks worse is explored, and the
            likelier the best arm is lost for good.
        margin: an arm that looks worse is explored only if its variance exceeds ``margin`` times
            the leader's; 1 is plain IMED.
        share: share of the noise's variance that counts for exploration, if noise persists for
            long.  A lower share has less regret, but more runs lose the best arm.
        parameter_bound: with hidden contexts: bound on the norm of the unknown parameter, which
            limits unexplored directions.

    When to choose: regret should be small, and no theorem is needed.

    >>> Divergence(alpha=1.2)
    Divergence(alpha=1.2)
    """

    what: ClassVar[str] = "exploration"
    title: ClassVar[str] = "linear IMED"
    source: ClassVar[str] = (
        "after Bian & Tan (2024), Indexed Minimum Empirical Divergence-Based Algorithms for Linear"
        " Bandits"
    )

    alpha: float | None = None
    margin: float | None = None
    share: float | None = None
    parameter_bound: float | None = None

    constraints: ClassVar[Constraints] = {
        "alpha": Real(1e-3, 1e3) | None,
        "margin": Real(1.0, 1e6) | None,
        "share": Real(0.0, 1e3) | None,
        "parameter_bound": Real(0.0, 1e12, as_given=True) | None,
    }


EXPLORATIONS = (Optimism, Sampling, Divergence)
E = TypeVar("E", Optimism, Sampling, Divergence)


def resolved(explore: E, where: str, **own: Any) -> E:
    """``explore`` with a class's own constants instead of None.  ArgumentError if a given constant
    is not among them: it "must be None for ``where``".

    >>> resolved(Divergence(alpha=1.2), "Linear with EveryAnswer()", alpha=1.5, margin=2.0)
    Divergence(alpha=1.2, margin=2.0)
    """
    open_ones = {}
    for one in fields(explore):
        if one.default is None and (value := getattr(explore, one.name)) is None:
            open_ones[one.name] = own.get(one.name)
        elif one.default is None and one.name not in own:
            raise ArgumentError(f"{one.name} must be None for {where}, got {value!r}", one.name)
    filled = {name: value for name, value in open_ones.items() if value is not None}
    return replace(explore, **filled) if filled else explore
