"""How worst regret grows with one size, beside how its bound does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple

import numpy as np

from ...report.claims import Claim, Expectation
from ..plans import Results, measured, spoken
from .section import SLACK
from .worst_case import Probe, S, log_weights


class Sweep(NamedTuple, Generic[S]):
    """What is varied, and in which settings."""

    symbol: str
    name: str
    values: Sequence[float]
    settings: Callable[[str], list[S]]
    held: str


def grows(
    name: str,
    sweep: Sweep[S],
    probe: Probe,
    results: Results,
    *,
    settings: Sequence[S],
    bounds: Sequence[float],
    source: str,
    reading: str,
    exponent: str = "",
) -> Claim:
    """That the worst regret of a policy grows no faster than the bound does on the same settings.

    Args:
        name: of the policy.
        sweep: what is varied; its values are those of the settings.
        probe: how worst regret is measured.
        results: of all cells.
        settings: of the policy, one for each value.
        bounds: on regret in these settings.
        source: who says so, and where.
        reading: see ``Claim``.
        exponent: what to say of the theorem besides.
    """
    proved = float(np.log(bounds) @ log_weights(sweep.values))
    return Claim(
        f"{name}: worst regret grows with {sweep.symbol} no faster than the bound, whose slope is"
        f" {proved:.2f} here{exponent}. Measured: the slope of log regret in log {sweep.symbol},"
        f" for {sweep.name} from {spoken_value(min(sweep.values))} to"
        f" {spoken_value(max(sweep.values))} ({sweep.held}).",
        source,
        reading,
        measured(probe.columns(results, settings), probe.slope(sweep.values)),
        Expectation(high=proved + SLACK),
        over_random=probe.over_random(results, settings),
    )


def slopes(names: Iterable[str], sweeps: Sequence[Sweep[S]], claims: Sequence[Claim]) -> str:
    """What ``grows`` found, in one sentence, from its claims: those of all names for the first
    sweep, then for the next.
    """
    names, parts = list(names), []
    for i, sweep in enumerate(sweeps):
        of = zip(names, claims[i * len(names) :], strict=False)
        found = ", ".join(
            f"{name} {claim.measured.mean:.2f} {claim.range} (bound {_proved(claim):.2f})"
            for name, claim in of
        )
        parts.append(f"in {sweep.symbol}, {found}")
    return "; ".join(parts) + "."


def _proved(claim: Claim) -> float:
    return claim.expected.high - SLACK


def spoken_value(value: float) -> str:
    """Rounds, arms or one over epsilon as one says them.

    >>> spoken_value(1_000_000), spoken_value(2.0), spoken_value(50.0)
    ('1M', '2', '50')
    """
    return spoken(round(value)) if value >= 1000 else f"{value:g}"
