"""What policies by name do: arms, numbers and states that later versions have to repeat.

``recorded.json`` and ``states.zip`` were written by version 0.1.0, before names became presets, with
``python tests/presets/recording.py FOLDER``.  ``MergedTopTwo`` was recorded again when its rule to
stop and its batches were replaced, and three policies behind a shuffler when rounding took part in
the proof of their noise.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits import ArgumentError, BudgetExhausted
from dpbandits.policies import Policy, load, registered
from dpbandits.session.options import DEFAULTS

ROUNDS = 120
LATE = 2  # pulls until an answer comes
REWARDS = np.random.default_rng(3).random((400, 3))
CONTEXTS = np.random.default_rng(4).uniform(-0.6, 0.6, (400, 3, 2))
ADVICE = np.random.default_rng(5).dirichlet(np.ones(3), (400, 4))
# Values of which the first that a policy takes, and has not by default, makes a variant.
TRIED: tuple[Any, ...] = (
    True,
    False,
    "disjoint",
    "released",
    "published",
    "improved",
    "tight",
    "clip",
    "probit",
    "tree",
    "exp3",
    "ftpl",
    "bits",
    "server",
    "exact",
    0.2,
    2.5,
    3,
    40,
)
SHARED = {"budget", "n_arms", "dimension", "n_experts", "arms", "reports", "messages", *DEFAULTS}


def play(policy: Policy, rounds: int = ROUNDS) -> list[int]:
    """The arms of so many rounds, of which answers come late, and every seventh never."""
    arms, waiting, shown = [], [], ""
    if hasattr(policy, "n_experts"):
        shown = "advice"
    elif hasattr(policy, "dimension") and type(policy).seen is not Policy.seen:
        shown = "contexts"
    for t in range(rounds):
        row = {"advice": ADVICE, "contexts": CONTEXTS}.get(shown)
        given = () if row is None else (row[policy.session.rounds.pulls % len(row)],)
        try:
            decision = policy.pull(*given)
        except BudgetExhausted:
            decision = policy.pull(*given)
        arms.append(decision.arm)
        waiting.append((t, decision))
        if len(waiting) > LATE:
            before, due = waiting.pop(0)
            if before % 7:
                policy.update(REWARDS[before, due.arm], due)
    return arms


def facts(policy: Policy, rounds: int) -> dict[str, Any]:
    """What has to stay: keys of random numbers and of exchange, arms, and what was spent."""
    found = {"stream": policy.stream_key, "exchange": policy.exchange_key, "label": policy.label}
    arms = digest(play(policy, rounds))
    return {**found, "arms": arms, "spent": str(policy.ledger.spent())}


def digest(arms: list[int]) -> str:
    return hashlib.sha256(np.array(arms, np.int8).tobytes()).hexdigest()[:16]


def cases(name: str) -> list[dict[str, Any]]:
    """Arguments, apart from the budget, of the example and of a variant for each own argument."""
    cls, found = registered()[name], [{}]
    options = {"seed": 11, "answers_within": 3}
    budget = next(iter(cls.example_budgets()), None)
    for parameter in inspect.signature(cls).parameters.values():
        if parameter.name in SHARED:
            continue
        for value in TRIED:
            if type(value) is type(parameter.default) and value == parameter.default:
                continue
            try:
                cls(**{**cls.example, **options, parameter.name: value}, budget=budget)
            except (ArgumentError, TypeError):
                continue
            found.append({parameter.name: value})
            break
    return found


def make(name: str, given: dict[str, Any], budget: Any) -> Policy:
    cls = registered()[name]
    return cls(**{**cls.example, "seed": 11, "answers_within": 3, **given}, budget=budget)


def main(folder: str) -> None:
    warnings.simplefilter("ignore")
    recorded: dict[str, Any] = {}
    with zipfile.ZipFile(
        Path(folder) / "states.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9
    ) as states:
        for name, cls in registered().items():
            budgets = [*cls.example_budgets(), None]
            entries = []
            for budget in budgets:
                policy = make(name, {}, budget)
                own = facts(policy, ROUNDS)
                if budget is budgets[0]:
                    with tempfile.TemporaryDirectory() as place:
                        path = policy.save(str(Path(place) / "state.dpb"))
                        states.write(path, f"{name}.dpb")
                        own["after"] = digest(play(load(path), 60))
                entries.append({"given": {}, "budget": budget and budget.to_dict(), **own})
            for given in cases(name)[1:]:
                entries.append(
                    {
                        "given": given,
                        "budget": budgets[0] and budgets[0].to_dict(),
                        **facts(make(name, given, budgets[0]), 60),
                    }
                )
            recorded[name] = {"signature": str(inspect.signature(cls)), "cases": entries}
            print(name, len(entries), flush=True)
    (Path(folder) / "recorded.json").write_text(json.dumps(recorded, indent=1))


if __name__ == "__main__":
    main(sys.argv[1])
