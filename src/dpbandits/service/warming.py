"""Compile the code of an experiment in a process of its own.

To compile in the service would delay all requests for seconds.  The process fills the cache of
kernels, from which the service loads them.  A mark in the cache says that this was done.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..errors import BudgetExhausted
from ..kernel_cache import cache_folder
from ..policies import Policy
from ..shuffle import Messages
from .declaration import Declaration, DeclarationError, as_json

_AT_ONCE = asyncio.Semaphore(2)  # processes that compile
_MOST_ROUNDS = 300
_A_ROUND, _A_YEAR = 60.0, 3.2e7  # seconds


def is_warm(declaration: Declaration) -> bool:
    """Whether the cache has what an experiment needs."""
    return _mark(declaration).exists()


async def warm(declaration: Declaration) -> None:
    """Compile what an experiment needs, unless that was done.

    Raises:
        DeclarationError: the policy cannot be made or played.
    """
    if is_warm(declaration):
        return
    async with _AT_ONCE:
        await _warmed(declaration)
    mark = _mark(declaration)
    with suppress(OSError):
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


async def _warmed(declaration: Declaration) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __name__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    try:
        _, told = await process.communicate(as_json(declaration.given))
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode:
        reason = told.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it was killed"]
        raise DeclarationError([("name", f"{declaration.name} could not be tried: {reason[0]}")])


def _mark(declaration: Declaration) -> Path:
    """The file that stands for kernels of these words; names and titles make no difference."""
    words = as_json(dict(sorted(declaration.words.items())))
    digest = hashlib.sha256(__version__.encode() + words).hexdigest()[:32]
    return cache_folder() / "served" / digest


def play(policy: Policy, rounds: int = _MOST_ROUNDS) -> None:
    """Play a policy that nobody keeps until it has released, with answers in time and without."""
    if policy._serving:
        return _receive(policy, rounds)
    contexts, uses_clock = _contexts(policy), policy._uses_clock
    now = 0.0 if uses_clock else None
    targets = dict.fromkeys(policy.holdout.targets, 0) if policy.holdout is not None else {}
    with suppress(BudgetExhausted):
        for played in range(rounds):
            user = None if policy.max_rounds is None else played
            decision = policy.pull(contexts, user=user, at=now, targets=targets)
            if played % 3 < 2:
                policy.update(policy.reward_range[played % 2], decision, at=now)
            if policy.ledger.releases:
                break
            now = None if now is None else now + _A_ROUND
        if now is not None:
            policy.tick(now + _A_YEAR)
        policy.finish()
    _ = policy.estimates, policy.recommendation  # which have kernels of their own


def _receive(policy: Any, rounds: int) -> None:
    """Let a policy that people's devices serve take in zeros until it has released."""
    with suppress(BudgetExhausted):
        for _ in range(rounds):
            if policy._serving == "messages":
                protocol, version = policy.protocol, policy._round()[0]
                policy.receive(Messages(np.zeros(protocol.mixed_shape, np.int64), version))
            else:
                policy.receive(np.zeros(policy.statistic.size))
            if policy.ledger.releases:
                break
    _ = policy.estimates, policy.recommendation


def _contexts(policy: Policy) -> np.ndarray | None:
    if policy.sees == "advice":
        return np.full((policy.dimension, policy.n_arms), 1.0 / policy.n_arms)
    if policy.sees:
        return np.full((policy.n_arms, policy.dimension), 0.5 * policy.dimension**-0.5)
    return None


def main() -> None:
    """Play the experiment of standard input until it has released."""
    warnings.simplefilter("ignore")
    play(Declaration.read(json.load(sys.stdin)).build())


if __name__ == "__main__":
    main()
