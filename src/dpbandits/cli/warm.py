"""The command ``dpbandits warm``: compiles ahead, as for a container image."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument

from ..errors import ArgumentError
from .first_run import can_write
from .inputs import clear_errors

if TYPE_CHECKING:
    from ..policies import Policy

_MOST_ROUNDS = 20_000  # until a release


def warm(
    what: Annotated[
        list[str],
        Argument(
            metavar="(STUDY.toml | POLICY)...",
            help="Study files, and policies of `dpbandits list`.",
        ),
    ],
) -> None:
    """Compile the code of studies or policies ahead, and keep it in the cache for later runs.

    For a study, this compiles its simulations.  For a policy, it compiles `pull` and `update` of an
    example with default arguments.
    """
    from ..kernel_cache import cache_folder, cache_refusal

    with clear_errors():
        folder = cache_folder()
        if refusal := cache_refusal(folder):
            raise ArgumentError(refusal)
        if not can_write(folder):
            raise ArgumentError(
                f"the cache folder {folder} cannot be written. Set DPBANDITS_CACHE_DIR to another"
                " folder"
            )
        typer.echo(f"Cache: {folder}")
        for one in what:
            before, started = _kept(), time.perf_counter()
            played = _study(Path(one)) if one.endswith(".toml") else _policy(one)
            new, took = _kept() - before, time.perf_counter() - started
            done = f"{new:,} kernels compiled" if new else "nothing to compile"
            typer.echo(f"{one}: {done}; {played}, {took:.1f} s")


def _kept() -> int:
    from ..kernel_cache import cache_folder

    return sum(1 for _ in cache_folder().rglob("*.kernel"))


def _study(file: Path) -> str:
    """Play one round of every cell, with the types of all rounds."""
    from ..studies import load_study
    from ..studies.cells import cells_of
    from .compiling import compile_cell

    if not file.is_file():
        raise ArgumentError(f"there is no study file {file}")
    cells = cells_of(load_study(file))
    for cell in cells:
        compile_cell(cell)
    return f"{len(cells)} simulations played for a round"


def _policy(name: str) -> str:
    """Play small instances, with every kind of budget and noise, until each has released."""
    from ..policies import find

    cls, settings = find(name), [(None, "simulation")]
    for noise in ("simulation", "secure") if find_spec("opendp") else ("simulation",):
        settings += [(budget, noise) for budget in cls.example_budgets()]
    for budget, noise in settings:
        if noise == "simulation" or not cls.card.refuted_because:
            for late in (0, 2):
                play(cls(**cls.example, budget=budget, noise=noise, answers_within=late))
    return f"{len(settings)} kinds played until a release, with answers in time and late"


def play(policy: Policy, rounds: int = 1) -> None:
    """Answer the given number of pulls, and continue until a release; one pull late, if answers
    may come late.
    """
    contexts, waiting = _contexts(policy), []
    for played in range(_MOST_ROUNDS):
        if played >= rounds and policy.ledger.releases:
            return
        waiting.append(policy.pull(contexts))
        if len(waiting) > bool(policy.answers_within):
            policy.update(policy.reward_range[played % 2], waiting.pop(0))


def _contexts(policy: Policy) -> Any:
    import numpy as np

    if policy.sees == "advice":
        return np.full((policy.dimension, policy.n_arms), 1.0 / policy.n_arms)
    if policy.sees:
        return np.full((policy.n_arms, policy.dimension), policy.dimension**-0.5)
    return None
