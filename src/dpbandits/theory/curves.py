"""Bounds beside measurements: the proved bounds of several policies, as one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
import pandas as pd

from ..environments import Environment
from ..policies import Policy
from ..simulation.settings import PolicySetting
from .bounds import Bound
from .promises import promises

COLUMNS = ["environment", "policy", "budget", "round", "value", "bound", "label", "kind", "of"]


def bound_curves(
    policies: Policy | Iterable[Policy],
    environments: Environment | Iterable[Environment],
    rounds: Sequence[int],
) -> pd.DataFrame:
    """Proved bounds at every round, for ``Result.plot(bounds=...)``.

    Args:
        policies: one or several, as ``simulate`` takes them.
        environments: one or several.
        rounds: the rounds at which regret was recorded.

    Returns:
        One row per bound and round: ``environment``, ``policy`` and ``budget`` as in the tables of
        a ``Result``, ``round``, ``value``, ``bound`` (its name), ``label`` (its source and how far
        it holds), ``kind`` and ``of``.  Trivial bounds are left out.

    Example:
        >>> from dpbandits import ZCDP
        >>> from dpbandits.papers.concentrated import AdaCUCB
        >>> from dpbandits.environments import Bernoulli
        >>> policy = AdaCUCB(2, budget=ZCDP(0.1), beta=3.5)
        >>> table = bound_curves(policy, Bernoulli([0.9, 0.5]), [100, 1000])
        >>> table.groupby("bound")["value"].max().round(1).to_dict()
        {'adac_ucb': 621.9, 'adac_ucb_minimax': 1513.7, 'lai_robbins': 5.4}
    """
    listed = [policies] if isinstance(policies, Policy) else list(policies)
    worlds = [environments] if isinstance(environments, Environment) else list(environments)
    rows = []
    for world, policy in product(worlds, listed):
        keys = PolicySetting.of(policy).keys
        played = (repr(world), keys["policy"], keys["budget"])
        for one in promises(policy, world, rounds):
            told = (one.bound.name, label_of(one.bound), one.bound.kind, one.bound.of)
            for round_, value in zip(one.horizons, one.values, strict=True):
                if np.isfinite(value) and value > 0.0:
                    rows.append((*played, int(round_), float(value), *told))
    return pd.DataFrame(rows, columns=COLUMNS)


def label_of(bound: Bound) -> str:
    """A bound's label in legends and tables: its source, and its kind and validity.

    >>> from dpbandits.theory import BOUNDS
    >>> label_of(BOUNDS["dgs"])
    'Wang, Zhao & Wang (2022), Theorem 3 (upper; proof void)'
    """
    words = {"explicit": "", "order": "order only", "asymptotic": "as T grows"}
    words |= {"proved": "", "corrected": "corrected", "void": "proof void"}
    remarks = filter(None, [bound.kind, words[bound.constants], words[bound.holds]])
    return f"{bound.source} ({'; '.join(remarks)})"
