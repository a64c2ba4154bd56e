"""What the kernels of linear policies with public contexts know, whichever way they explore."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...kernel import kernel


class LinearParams(NamedTuple):
    n_arms: int
    n_models: int  # M: K with one for each arm, else 1
    dimension: int
    context_bound: float
    ridge: float  # lambda
    subgaussian: float  # s: how far rewards scatter around their mean
    grid: float  # to which increments are rounded; 0 for none
    movement: float  # the most that a record moves an increment, in the channel's norm
    growth: float  # 1 + C, of ``Switching``
    # Of the radius, which is fixed but for optimism.
    log_odds: float = 1.0  # 2 ln(1 / p); alpha of IMED
    widens: float = 0.0  # 1 where the radius grows with ln det V
    bias: float = 0.0  # sqrt(lambda) times the bound on |theta|
    noise_norm: float = 0.0  # bound on the norm of the noise of every release
    spread: float = 0.0  # the same in one direction; instead of ``noise_norm``
    radius_scale: float = 1.0
    adds_up: bool = False  # whether ``noise_norm`` is that of the first release, and noise adds up
    # lambda_0, the least eigenvalue of E[x x^T], where a bound on V stands for V; nan otherwise
    eigenvalue: float = math.nan
    log_rounds: float = 0.0  # ln(d / p), of that bound
    # Of IMED; see ``least_divergent_at_once``.
    noise: float = 0.0  # the variance of a release over s^2, where noise stands for long
    share: float = 0.0  # of that variance which explores
    margin: float = 0.0  # its logarithm
    middle: float = 0.0  # of the range of rewards
    half: float = 0.0  # half its width
    horizon: float = math.inf  # rounds in which learning may pay


class LinearRaw(NamedTuple):
    total: np.ndarray  # (M d,) sums of x * reward since the last release


@kernel
def radius_of(params: LinearParams, log_det: float, eigenvalue: float, noise_norm: float) -> float:
    """The confidence radius for ln(det V / lambda^d), and a bound on V's smallest eigenvalue."""
    sampling = params.subgaussian * np.sqrt(params.log_odds + params.widens * log_det) + params.bias
    return params.radius_scale * (sampling + noise_norm / np.sqrt(eigenvalue))
