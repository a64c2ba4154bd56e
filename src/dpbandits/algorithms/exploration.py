"""Ways to explore, as values: what linear and other models do with a released regression.

They look at what was released, an estimate and V, and at the features x at hand: privacy is that of
the class, whichever it explores by.  Arguments that are None are the class's own best constants.

**Divergence** is IMED (Honda & Takemura 2015; for linear models Bian & Tan 2024): the arm of least
D^2 / (2 w^2) - ln(w^2 / s_x^2) + ln margin, w^2 = alpha s_x^2 |x|^2_{V^-1}, s_x is the scatter of
rewards, and D what <x, estimate> lacks to the best, for which the margin is left out.  An arm is
tried as often as it takes to say that it is worse, about as surely as the best one is known, and
only if its variance is more than ``margin`` times that of the best.  w is the error that rewards
make in one direction, and no bound for all at once: exploration ends by itself where contexts are
diverse enough to teach everything, and goes on, logarithmically, where they are not.  Bian & Tan
have a confidence radius, of order sqrt(d ln T), in place of s_x.  There is no regret theorem: alpha
= 1 is the law of normal rewards, and the constants were chosen by measurement
(``docs/contexts/exploration.md``).  What noise does to D and w is said by classes.
*Rounds that pay.*  s_x^2 / w^2 is a number of rounds, how well an arm is known.  No arm counts as
known by more than n / alpha of them, with n = min(t, (T - t) / 10) after t rounds of a horizon of
T, or t without one.  Without that, features of nothing at all would be known for ever, and all
others be tried for as long.  What is learned of another arm pays in the T - t rounds that remain,
however well the best one is known, as for a Gittins index (Lattimore 2016, Regret Analysis of the
Finite-Horizon Gittins Index Strategy for Multi-Armed Bandits).  T is an argument, and t and V are
public.  Where contexts are few this is a fifth to a third less regret, with shorter tails, because
alpha may be larger; where a gap is so small that T D^2 / s^2 is below a hundred or so, some runs
never find out.

*Scatter.*  Rewards in [lo, hi] whose mean is m have a variance of at most (hi - m) (m - lo) (Bhatia
& Davis 2000), with m in the middle (hi - lo)^2 / 4.  s_x^2 is the largest for means within two
standard deviations of <x, estimate>, those of rewards, for which s counts, and of the noise; or
s^2, if that is less.  An arm that happens to look extreme need not be so, hence these two.  The
regression weighs all rewards alike, and what it errs by along x comes mostly from rewards of
features like x, which have about that scatter; that this is so is no theorem.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from ..errors import ArgumentError
from ..policies.parts import Part
from ..validation import choice, real


@dataclass(frozen=True, repr=False)
class Optimism(Part):
    """The arm of the highest upper confidence bound: <x, estimate> + radius |x|_{V^-1}, and what
    the noise may amount to (Abbasi-Yadkori, Pál & Szepesvári 2011).

    Args:
        radius_scale: multiplies the radius; below 1 it claims no coverage, and mostly plays better.
        failure_probability: with which the radius may be too small at some time.
        parameter_bound: on the norm of the unknown parameter.  None: 1; a generalised linear model
            has it as an argument of its own.
        radius: for public contexts.  "safe" holds for all releases at once; "heuristic" takes the
            noise as independent of the features, which is tighter and claims no coverage;
            "published", with ``Switching``, is that of Azize & Basu (2024), Appendix F.  None:
            "safe".
        smallest_eigenvalue: with ``Switching``: lambda_0, the least eigenvalue of E[x x^T], from
            which the radius takes a bound on that of V; None takes V itself.

    When to choose: regret is to have a bound that is proved.  ``Divergence`` mostly loses a
    fraction of it.

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

    def __post_init__(self) -> None:
        # Kept as given: names of policies, by which random numbers go, always have told them so.
        real("radius_scale", self.radius_scale, 0.0, 1e12)
        real("failure_probability", self.failure_probability, 0.0, 1.0, strict=True)
        if self.parameter_bound is not None:
            real("parameter_bound", self.parameter_bound, 0.0, 1e12)
        _unless_none(self, "smallest_eigenvalue", 0.0, 1e12)
        if self.radius is not None:
            choice("radius", self.radius, ("safe", "heuristic", "published"))


@dataclass(frozen=True, repr=False)
class Sampling(Part):
    """Thompson sampling (Agrawal & Goyal 2013): the best arm for one draw from the posterior,
    N(estimate, s^2 V^-1 + v^2 V^-2), the noise v of the release included.

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

    def __post_init__(self) -> None:
        self._set(inflation=real("inflation", self.inflation, 0.0, 1e12))


@dataclass(frozen=True, repr=False)
class Divergence(Part):
    """Indexed minimum empirical divergence: an arm is tried as often as its own uncertainty wants,
    and not as a worst case does (after Bian & Tan 2024, who have another radius).

    The arm of least D^2 / (2 w^2) - ln(w^2 / s^2) + ln margin, the margin left out for the best: D
    is what the arm lacks to the best, s^2 how far rewards scatter, w^2 = alpha s^2 |x|^2_{V^-1}.

    Args:
        alpha: optimism; the lower, the more seldom is an arm tried that looks worse, and the more
            probably is the best one lost for good.
        margin: how many times the variance of the best an arm has to have, to be tried although it
            looks worse; 1 is plain IMED.
        share: of the noise's variance which explores, where noise stands for long.  The lower, the
            less regret, and the more runs are lost.
        parameter_bound: with hidden contexts: on the norm of the unknown parameter, towards which
            what is not known yet may lie.

    When to choose: little regret, without a theorem.

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

    def __post_init__(self) -> None:
        _unless_none(self, "alpha", 1e-3, 1e3)
        _unless_none(self, "margin", 1.0, 1e6)
        _unless_none(self, "share", 0.0, 1e3)
        if self.parameter_bound is not None:  # kept as given, as that of ``Optimism``
            real("parameter_bound", self.parameter_bound, 0.0, 1e12)


EXPLORATIONS = (Optimism, Sampling, Divergence)
E = TypeVar("E", Optimism, Sampling, Divergence)


def resolved(explore: E, where: str, **own: Any) -> E:
    """``explore`` with a class's own constants in the place of None; ArgumentError where a constant
    is given that is not among them, which "must be None for ``where``".

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


def _unless_none(part: Part, name: str, low: float, high: float) -> None:
    """Check an argument that may be None."""
    value = getattr(part, name)
    if value is not None:
        part._set(**{name: real(name, value, low, high)})
