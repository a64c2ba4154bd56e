"""Curves of regret over random instances, which several papers have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ..policies import Policy
from ..report.exhibits import Exhibit, Panel, Series
from ..report.intervals import curve, mean
from .plans import Results


class Played(Protocol):
    """Policies that meet the same worlds, and by which key results of each are found."""

    @property
    def policies(self) -> Mapping[str, Any]: ...

    def key(self, name: str) -> str: ...


def figure(
    name: str,
    reading: str,
    panels: Mapping[str, Played],
    each: str,
    results: Results,
    *,
    names: Mapping[str, str],
    free: str,
) -> Exhibit:
    """Mean regret over rounds, in panels by their titles, for the claims of a reading.

    Args:
        each: what a panel stands for, in words.
        names: of policies in legends; those of the policies themselves for others.
        free: the policy without privacy, whose line is dashed.
    """

    def line(played: Played, key: str, policy: Policy) -> Series:
        found, label = played.key(key), names.get(key) or policy.name or ""
        rounds, regret = results.rounds(found), results.curves(found)
        return Series(label, rounds, *curve([regret], mean), dashed=key == free)

    drawn = [
        Panel(
            title,
            "rounds",
            "mean regret",
            [line(one, *item) for item in one.policies.items()],
            x_scale="linear",
        )
        for title, one in panels.items()
    ]
    return Exhibit(
        name,
        f"{reading}: regret",
        "Mean over random instances, with 95 % bands; dashed without privacy.",
        f"{reading}: curves of mean regret, one panel per {each}.",
        drawn,
    )
