"""The log format of Vowpal Wabbit's decision service (dsjson): a line of JSON for each decision.

``a`` lists the actions from 1, the drawn one first, and ``p`` their probabilities in that order.
``_label_cost`` is the negative reward.  Lines without a decision are left out: checkpoints (which
begin with a bracket), and rewards that no decision was found for.  So are decisions with
``_skipLearn``, which were not carried out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError

CONTEXTS, PROPENSITIES = "_contexts", "_propensities"  # columns that no other format has


def read(path: Path) -> dict[str, Any]:
    """The decisions of a file as a table; its rows tell whether they are ``recorded``."""
    found, dropped = [], set()
    with open(path, encoding="utf-8-sig", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("["):
                continue
            event = _event(line, path, number)
            if "_label_cost" not in event:
                if "_outcomes" in event:
                    raise _wrong(path, number, "a decision with several slots")
                continue
            try:
                found.append(_decision(event))
            except (LookupError, TypeError, ValueError):  # whose words may hold an entry
                raise _wrong(path, number, "something else") from None
            dropped.add(event.get("pdrop", 0.0))
    if not found:
        raise ArgumentError(f"log must hold decisions in dsjson, got none: {path}", "log")
    if len(dropped) > 1:
        raise ArgumentError(
            "log must have the same value of 'pdrop' (the rate of dropped decisions) in all lines,"
            f" got several: {path}",
            "log",
        )
    return _columns(found)


def _event(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise _wrong(path, number, "something else")
    return event


def _decision(event: dict[str, Any]) -> dict[str, Any]:
    arms, chances = np.array(event["a"], np.int64) - 1, np.array(event["p"], float)
    arm, chance = int(event["_label_Action"]) - 1, float(event["_label_probability"])
    if sorted(arms.tolist()) != list(range(arms.size)) or chances.shape != arms.shape:
        raise ValueError("actions without probabilities")
    every = np.empty(arms.size)
    every[arms] = chances / chances.sum()
    if abs(every[arm] - chance) > 1e-4:
        raise ValueError("another probability of the drawn action")
    return {
        "arm": arm,
        "reward": -float(event["_label_cost"]),
        "propensity": min(chance, 1.0),  # of 32 bits
        "recorded": not event.get("_skipLearn", False),
        CONTEXTS: event.get("c"),
        PROPENSITIES: every,
    }


def _columns(found: list[dict[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {name: [one[name] for one in found] for name in found[0]}
    every = table[PROPENSITIES]
    width = max(one.size for one in every)
    table[PROPENSITIES] = np.array([np.pad(one, (0, width - one.size)) for one in every])
    return table


def _wrong(path: Path, number: int, got: str) -> ArgumentError:
    return ArgumentError(
        "log must hold a decision among actions in each line, with '_label_Action',"
        f" '_label_probability', 'a' and 'p' as in dsjson, got {got} on line {number} of {path}",
        "log",
    )
