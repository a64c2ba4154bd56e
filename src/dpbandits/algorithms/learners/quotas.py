"""Rounds laid out beforehand: in every phase each arm has a quota, they are played in turn, and
what they brought is released together.

The public side has ``goal``, ``played`` (K,) and a ``clock`` that begins with the phase and the
rounds left in it; the raw side ``total`` (K,).  How long a phase is thus never depends on its
rewards.
"""

from __future__ import annotations

from ...kernel import kernel

PHASE, LEFT = range(2)
FOREVER = 1 << 60


@kernel
def choose(params, public, contexts, rng):
    """The first arm whose quota is not used up."""
    for a in range(params.n_arms):
        if public.played[a] < public.goal[a]:
            return a, 1.0
    return 0, 1.0


@kernel
def hold_rounds(params, public, arm):
    return public.goal[arm] - public.played[arm]


@kernel
def record_pull(params, public, arm, x, n):
    public.played[arm] += n
    public.clock[LEFT] -= n


@kernel
def accumulate(params, raw, public, arm, x, reward, n):
    raw.total[arm] += reward


@kernel
def release_due(params, public):
    return public.clock[LEFT] == 0
