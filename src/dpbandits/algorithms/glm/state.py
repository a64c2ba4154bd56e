"""What the kernels of generalised linear models know, and where it stands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..hidden import model as linear


class NewtonParams(NamedTuple):
    linear: linear.Params  # of the model that stands for this one near a point
    n_arms: int
    dimension: int
    context_bound: float
    length: float  # L, for the width
    movement: float  # the most that a record moves the statistic
    reach: float  # <x, p> is cut to [-reach, reach]
    residual: float  # R / w, to which r - nu is cut
    flattest: float  # m, the least slope of the link
    steepest: float  # L, the largest
    curvature: float  # M
    std: float  # of the noise on a coordinate of a release
    capacity: int  # records of one epoch
    last: int  # rounds after which nothing more is released, nor kept


class NewtonRaw(NamedTuple):
    features: np.ndarray  # (capacity, d) of the records of the running epoch
    outcomes: np.ndarray  # (capacity,)
    models: np.ndarray  # (capacity,) int64
    kept: np.ndarray  # (2,) int64: how many, and how many ever


class NewtonPublic(NamedTuple):
    linear: linear.Public
    estimate: np.ndarray  # (M d,)
    point: np.ndarray  # (M, d) at which the records of the running epoch will be looked at
    seen: np.ndarray  # (M (d + d (d + 1) / 2),) the last release
    moments: np.ndarray  # the same size: [w sum of z x ; svec(sum of h x x^T)]
    travel: np.ndarray  # (5, M)


class Travel(NamedTuple):
    """Slots of ``NewtonPublic.travel``."""

    miss: int = 0  # bound on |point - theta|
    step: int = 1  # how far the point has moved the last time
    path: int = 2  # how far it has moved, all together
    remainder: int = 3  # bound on |sum of rho x|^2 in the norm of the inverse
    rounds: int = 4  # of the epochs that are over


TRAVEL = Travel()
