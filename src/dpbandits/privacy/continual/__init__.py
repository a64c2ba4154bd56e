"""Continual sums: running sums that cross the wall again and again, at the price of one release.

Guarantee:

* Protected: one record, by all releases together, from an adversary who may choose increments after
  seeing releases.
* Adjacency: one record moves exactly one increment by at most D; given earlier releases, all others
  are equal.
* Sensitivity: D |C|, with the longest column of C in the channel's norm.
* Assumed: the same D in every row, and the same scale.

An increment x_t, a vector of n numbers, arrives with each release.  The matrix A that sums (lower
triangular, all ones) is split into A = B C.  The private mechanism is the sequence of rows y_t =
C_t x + z_t with independent noise z_t of scale ``multiplier * D * |C|``.  Here |C| is the longest
column of C in the channel's norm.  The published sum, B y = (sum so far) + B z, follows from y
alone.  The gain comes from correlated noise of different releases.

**Over all releases together, a record costs one release of the channel with that multiplier.**  Fix
all other people, and let the record be in increment s.  For all values released before row t, the
two worlds have equal increments elsewhere, also after s if increments depend on releases.  So row t
moves by a vector of length C_ts D at most, a bound that depends on the position alone.  C has no
entries above its diagonal: a row uses no later increment.  So the rows are an adaptive composition
of channels with fixed parameters:

* Gaussian: row t is (C_ts / m|C|)-GDP and (C_ts^2 / 2 m^2 |C|^2)-zCDP.  Squares add up under
  adaptive composition, and their sum over t is at most |C|^2 with |C| in L2: (1/m)-GDP, (1 /
  2m^2)-zCDP, and (alpha, alpha / 2m^2)-RDP (Denisov, McMahan, Rush, Smith & Thakurta 2022, Theorem
  2.1, for continuous noise).
* Discrete Gaussian noise on integers obeys the same bounds row by row, GDP among them.  For that
  ``discrete`` adds 1/10 of a squared step to every integer row.  Hence the totals are the same.
* Laplace: row t is (C_ts / m|C|)-DP.  These add up to at most 1/m with |C| in L1: the rows are as
  private as one release.

The adversary may choose increments after seeing releases, as bandits do.  The argument needs the
same D in every row.  Where the scale changes, later rows count with the scale they were drawn with.
The record then costs sum_t (C_ts D_s / scale_t)^2 / 2, which no single release bounds.

**The cost of M records of one user**, in increments s_1 < ... < s_M: row t moves by at most (C_ts_1
+ ... + C_ts_M) D.  So these records together cost as much as one of length |sum of these columns|.
The choice of columns may depend on earlier releases.  On every path the costs of the rows stay
below that of the worst choice, and each currency has a filter.  ``Counter.growth`` is that worst
choice, or a bound of it, in units of the longest column.

| mechanism | noise | variance at T = 20,000, rho = 1 | memory |
|---|---|---|---|
| ``Independent`` | any | 10,000 | 1 |
| ``HybridTree``, T unknown | any | 183 | log T |
| ``BinaryTree`` | any | 105 | log T |
| ``HonakerTree`` | any | 58.5 | log T |
| ``BufferedToeplitz`` | Gaussian | 8.94 | 5 |
| ``SqrtToeplitz`` | Gaussian | 8.90 | T |
"""

from .counters import Counter, Independent, IndependentIntegers
from .running_sums import (
    SINGLE,
    RunningSum,
    draws_of,
    is_spent,
    mechanism_from_python,
    mechanism_of,
    no_running_sum,
    release_exactly,
    release_replaced,
)
from .symmetric import smat, svec
from .toeplitz import BufferedToeplitz, SqrtToeplitz, overshoot
from .trees import BinaryTree, HonakerTree, HybridTree
from .wishart_tree import WishartTree

__all__ = [
    "SINGLE",
    "BinaryTree",
    "BufferedToeplitz",
    "Counter",
    "HonakerTree",
    "HybridTree",
    "Independent",
    "IndependentIntegers",
    "RunningSum",
    "SqrtToeplitz",
    "WishartTree",
    "draws_of",
    "is_spent",
    "mechanism_from_python",
    "mechanism_of",
    "no_running_sum",
    "overshoot",
    "release_exactly",
    "release_replaced",
    "smat",
    "svec",
]
