"""What the kernels of linear models with private features know, and where it stands."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...kernel import kernel
from ..maths.confidence import Walk


class Params(NamedTuple):
    n_arms: int
    n_models: int  # M: K with one for each arm, else 1
    dimension: int
    context_bound: float
    ridge: float  # lambda
    subgaussian: float  # s: how far rewards scatter around their mean
    grid: float  # to which records are rounded; 0 for none
    weight: float  # w
    diagonal: float  # weight of squared features; 1 but where a published recipe has another
    published: bool  # whether shift and radius are the published ones
    adds_up: bool  # whether the noise of a release is that of all increments so far
    # Of the noise of one release; if it adds up, sqrt(k) times as much at the k-th.
    matrix_norm: float  # S
    spread: float  # standard deviation of n - N theta along theta
    vector_norm: float  # bound on |n - N theta|
    walk: Walk  # the same where noise adds up
    base: float  # c
    log_odds: float  # 2 ln(1/p)
    parameter_bound: float  # on |theta|
    radius_scale: float
    clips: bool  # whether V is made positive definite by lifting its small eigenvalues alone
    switch: float  # s
    batch: int  # rounds of the first release, and of the shortest batch; people in a received sum
    growth: float  # by which the number of rounds grows between releases
    movement: float  # the most that a record moves the statistic
    # Of a published recipe, in units of S: the shift, and the largest that noise and shift are.
    lift: float = 2.0
    largest: float = 3.0
    # How much of noise and shift counts in the widths of IMED; nan for those that hold.
    share: float = math.nan
    margin: float = 0.0  # ln of IMED's
    middle: float = 0.0  # of the range of rewards
    half: float = 0.0  # half its width
    horizon: float = math.inf  # of IMED: rounds in which learning may pay
    longest: float = math.inf  # batch


class Raw(NamedTuple):
    total: np.ndarray  # (M (d + d (d + 1) / 2),) of the running batch


class Public(NamedTuple):
    precision: np.ndarray  # (M, d, d) V
    factor: np.ndarray  # (M, d, d) of V
    inverse: np.ndarray  # (M, d, d)
    estimate: np.ndarray  # (M d,)
    facts: np.ndarray  # (6, M)
    clock: np.ndarray  # (3,)
    sample: np.ndarray  # (M + 1, d) draws of theta, and working memory; for sampling


class Facts(NamedTuple):
    """Slots of ``Public.facts``."""

    radius: int = 0  # of the error that rewards make
    gap: int = 1  # h; of IMED the variance of noise and shift, over s^2
    bias: int = 2  # bound on |z| + (lambda + |C|) |theta|
    longest: int = 3  # see ``inverse_norm_bound``
    spread: int = 4  # standard deviation of the noise on V theta, in one direction
    added: int = 5  # bound on lambda + |C|


class Clock(NamedTuple):
    """Slots of ``Public.clock``."""

    rounds: int = 0  # booked
    next: int = 1  # rounds at the next release
    releases: int = 2


FACTS, CLOCK = Facts(), Clock()


@kernel
def statistic_size(dimension: int) -> int:
    """How many numbers are released of one model."""
    return dimension + dimension * (dimension + 1) // 2
