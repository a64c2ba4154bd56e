"""Links of generalised linear models: functions from <x, theta> to the mean outcome.

E[y | x] = nu(<x, theta>), with a smooth, increasing nu.  Its slope lies in [mu, L] on the relevant
interval, mu > 0.  So the link is well-conditioned, with condition number L / mu (Chen, Li, Rakhlin
& Simchi-Levi 2025, Assumption 1).  With |x| <= 1 and |theta| <= 1 that interval is [-1, 1].

Privacy does not rest on the bounds that a link declares.  Code behind the wall applies ``cut`` to
``slope`` and ``mean``, with the bounds that calibrated the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..constraints import Choice
from ..errors import ArgumentError
from ..kernel import Kernel, kernel
from ..validation import real

_POINTS = 2001  # of an interval on which a link is checked
_STEP = 1e-5  # of its difference quotients
_SLACK = 1e-6


@kernel
def _identity(t: float) -> float:
    return t


@kernel
def one(t: float) -> float:
    """A slope, or a weight, that is 1 everywhere."""
    return 1.0


@kernel
def _logistic(t: float) -> float:
    # exp overflows beyond 709.
    return 1.0 / (1.0 + math.exp(-t)) if t > -700.0 else 0.0


@kernel
def _logistic_slope(t: float) -> float:
    # The slope is even in t, and this exponential never overflows.
    decayed = math.exp(-abs(t))
    return decayed / ((1.0 + decayed) * (1.0 + decayed))


@kernel
def _probit(t: float) -> float:
    return 0.5 * math.erfc(-t / math.sqrt(2.0))


@kernel
def _probit_slope(t: float) -> float:
    return math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)


@kernel
def cut(value: float, low: float, high: float) -> float:
    """``value`` cut to [low, high], and NaN replaced by 0, which must lie there.  A link may return
    NaN for some features and not for others, and no noise would hide that.
    """
    return min(max(value, low), high) if value == value else 0.0


@dataclass(frozen=True)
class Conditioning:
    """Bounds on a link's slope and curvature on an interval.

    Attributes:
        reach: the interval is [-reach, reach].
        least_slope: mu.
        largest_slope: L.
        curvature: a bound on the absolute second derivative.
    """

    reach: float
    least_slope: float
    largest_slope: float
    curvature: float

    @property
    def number(self) -> float:
        """The condition number L / mu."""
        return self.largest_slope / self.least_slope


@dataclass(frozen=True)
class Link:
    """The mean outcome nu and its slope, as kernels that take one number.

    Attributes:
        name: by which policies and estimators take it.
        mean: nu.
        slope: its derivative.
        farthest: up to which |<x, theta>| it may be used.
    """

    name: str
    mean: Kernel
    slope: Kernel
    farthest: float

    def conditioning(self, reach: float) -> Conditioning:
        """Bounds on its slope and curvature on [-reach, reach].

        Raises:
            ArgumentError: the link is not made for so wide an interval, or is flat in it.

        >>> round(link_of("logistic").conditioning(1.0).number, 3)
        1.272
        """
        reach = real("reach", reach, 0.0)
        if reach > self.farthest:
            raise ArgumentError(
                f"reach must be at most {self.farthest:g} for the link {self.name!r}, got"
                f" {reach!r}. reach is the bound on features times the bound on the parameter",
                "reach",
            )
        points = np.linspace(-reach, reach, _POINTS)
        slopes = np.array([self.slope(float(t)) for t in points])
        least, largest = float(slopes.min()), float(slopes.max())
        curves = np.abs(np.diff(slopes)) / (points[1] - points[0]) if reach > 0.0 else np.zeros(1)
        # Between two points a slope may leave what it has at both by half of what it moves.
        moved = 0.5 * float(np.abs(np.diff(slopes)).max())
        least, largest = max(least - moved, 0.5 * least), largest + moved
        if self.name in EXACT:
            least, largest = float(slopes[[0, -1]].min()), self.slope(0.0)
        if not least > 0.0:
            what = f"everywhere in [-{reach:g}, {reach:g}], which {self.name!r} does not"
            raise ArgumentError(f"link must rise {what}", "link")
        return Conditioning(reach, least, largest, 1.01 * float(curves.max()))


# Beyond these limits slopes are below 1e-30, or second derivatives are no numbers.
_LINKS = {
    "identity": Link("identity", _identity, one, 1e12),
    "logistic": Link("logistic", _logistic, _logistic_slope, 60.0),
    "probit": Link("probit", _probit, _probit_slope, 8.0),
}
LINK_NAME = Choice(known=_LINKS)
EXACT = tuple(_LINKS)  # slopes are largest at 0 and fall to both sides


def link_of(name: str) -> Link:
    """The link of this name.

    Raises:
        ArgumentError: there is none.
    """
    return _LINKS[LINK_NAME("link", name)]


def register_link(
    name: str,
    mean: Callable[[float], float],
    slope: Callable[[float], float],
    *,
    least_slope: float,
    largest_slope: float,
) -> Link:
    """Let policies and estimators take a link of your own by a name.

    Args:
        name: an identifier; registering it again replaces the link for objects that are made later.
            A process that loads a saved policy must register the link first.
        mean: nu on [-1, 1], with values in [-1, 1]; compiled with ``kernel``, hence limited to
            ``math`` and numbers.
        slope: its derivative.
        least_slope: mu > 0.
        largest_slope: L.

    Returns:
        The link.

    Raises:
        ArgumentError: the name is no identifier or that of a built-in link.  Or on one of 2,001
            points of [-1, 1] a mean is outside [-1, 1], or a slope is outside [mu, L] or not the
            derivative.

    Example:
        >>> import math
        >>> link = register_link(
        ...     "tanh",
        ...     lambda t: math.tanh(t),
        ...     lambda t: 1.0 - math.tanh(t) ** 2,
        ...     least_slope=0.41,
        ...     largest_slope=1.0,
        ... )
        >>> round(link.conditioning(1.0).number, 2)
        2.38
    """
    if not (isinstance(name, str) and name.isidentifier()) or name in EXACT:
        raise ArgumentError(
            f"name must be an identifier other than {', '.join(EXACT)}, got {name!r}", "name"
        )
    lowest = real("least_slope", least_slope, 0.0, strict=True)
    highest = real("largest_slope", largest_slope, lowest)
    _check(mean, slope, lowest, highest)
    _LINKS[name] = Link(name, kernel(mean), kernel(slope), 1.0)
    return _LINKS[name]


def _check(
    mean: Callable[[float], float], slope: Callable[[float], float], lowest: float, highest: float
) -> None:
    for t in np.linspace(-1.0, 1.0, _POINTS):
        value, rise = float(mean(float(t))), float(slope(float(t)))
        if not -1.0 <= value <= 1.0:
            raise ArgumentError(
                f"mean must have values in [-1, 1] for arguments in [-1, 1], got {value!r} at"
                f" {t:g}",
                "mean",
            )
        if not lowest * (1.0 - _SLACK) <= rise <= highest * (1.0 + _SLACK):
            ends = f"least_slope={lowest:g} and largest_slope={highest:g} on [-1, 1]"
            what = f"lie between {ends}, got {rise!r} at {t:g}"
            raise ArgumentError(f"slope must {what}", "slope")
        inner = float(np.clip(t, _STEP - 1.0, 1.0 - _STEP))
        quotient = (float(mean(inner + _STEP)) - float(mean(inner - _STEP))) / (2.0 * _STEP)
        if abs(quotient - float(slope(inner))) > 1e-4 * max(1.0, highest):
            what = f"the derivative of mean, got {rise!r} instead of {quotient:.6g} at {t:g}"
            raise ArgumentError(f"slope must be {what}", "slope")
