"""Rewards that cross the wall one by one, each as soon as it is there.

The raw side holds it as ``total`` (1,); the public ``clock`` begins with the rounds, the arm of the
last one, and whether its reward is to be released, which ``publish`` has to take back.
"""

from __future__ import annotations

from ...kernel import kernel

ROUNDS, ARM, FRESH = range(3)


@kernel
def record_pull(params, public, arm, x, n):
    public.clock[ROUNDS] += n
    public.clock[ARM] = arm
    public.clock[FRESH] = 1


@kernel
def release_due(params, public):
    return public.clock[FRESH] == 1
