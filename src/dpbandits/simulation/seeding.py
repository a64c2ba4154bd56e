"""Three named random streams per run, derived from (seed, user of the stream, run).

*environment* is keyed by the environment alone, so every policy of a study meets the same
instances.  *policy* (exploration, ties) and *privacy* (channels) are keyed by the policy. So adding
a policy to a study never changes another one's numbers.
"""

from __future__ import annotations

import hashlib

import numpy as np

from ..privacy.noise import STREAMS


def identity(text: str) -> int:
    """A stable 64-bit number for a description."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def stream(seed: int, name: str, owner: int, run: int) -> np.random.Generator:
    """The generator of one named stream of one run."""
    words = (STREAMS.index(name), owner & 0xFFFFFFFF, owner >> 32, run)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=words)))
