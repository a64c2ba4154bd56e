"""``evaluate_privately``: values of policies from a log, with a budget of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..policies import Policy
from ..policies.chooser import Chooser
from ..privacy import Budget
from ..tables import Frame
from .private import REWARDS, PrivateEvaluation, Release
from .reading import Columns, read_hidden, read_rows
from .rows import Rows, chosen, refuse_missing_overlap
from .targets import probabilities


def evaluate_privately(
    log: str | os.PathLike[str] | Frame,
    target: Any,
    *,
    budget: Budget,
    largest_weight: float,
    protects: str = REWARDS,
    reward_range: tuple[float, float] = (0.0, 1.0),
    default_reward: float | None = None,
    user: str | None = None,
    records_per_user: int = 1,
    noise: str = "simulation",
    grid: float | None = None,
    seed: int | None = None,
    arm: str = "arm",
    reward: str = "reward",
    propensity: str = "propensity",
    episode: str | None = None,
    features: Any = None,
) -> PrivateEvaluation:
    """Release the mean reward of a target policy, from the log of another policy, with
    differential privacy.

    The release spends ``budget`` for each record of the log.  What else was released from these
    records, such as the releases of the policy that made the decisions, costs extra: budgets add
    up.  Records of a holdout, which no other release has, cost this budget alone.

    Targets must not come from these records, except through releases: choose them before, or take
    ``chooser()`` of a policy with a budget.

    Args:
        log: as for ``evaluate``, but no lines of JSON; each row needs a draw of its own.
        target: as for ``evaluate``; or a dictionary of targets by name, which are one release.
            With ``protects="contexts and rewards"`` the name of a column: the target's probability
            of the arm of each record.
        budget: what the release costs; any notion that has Gaussian or Laplace noise.
        largest_weight: c >= 1, at which weights are cut.  Take one over the least probability with
            which the log plays an arm: then no weight is cut.  Below that, intervals leave out
            what is cut.
        protects: "rewards", where arms, contexts and propensities may be public; or "contexts and
            rewards".  Then arms and contexts are not read.
        reward_range: bounds of rewards, to which they are clipped.
        default_reward: counts for a missing reward.  Default: the lower end of the range.
        user: the column that names the person of each record, who may have several.  Default: each
            record is a person.
        records_per_user: how many records of one user count, in the order of rows.
        noise: "simulation" (seeded, protects no person) or "secure" (extra ``secure``).
        grid: of secure noise: a power of two, to which weights are rounded.
        seed: of simulated noise.
        arm, reward, propensity, episode, features: as for ``evaluate``.

    Returns:
        A ``PrivateEvaluation``: values, intervals that include the noise, guarantee and ledger.

    Raises:
        ArgumentError: an argument is out of range, or the log lacks a column; rows share draws; a
            target comes from a policy without a budget; or, with ``protects="rewards"``, the log
            says nothing of the target.

    See also: ``evaluate``, whose results are not private.

    Source: this package; the proof is in ``dpbandits.evaluation.private``.

    Example:
        >>> import numpy as np
        >>> from dpbandits import ZCDP, evaluate_privately
        >>> rng = np.random.default_rng(1)
        >>> arms = rng.choice(2, 10_000)
        >>> rewards = (rng.random(10_000) < np.array([0.3, 0.6])[arms]).astype(float)
        >>> log = {"arm": arms, "reward": rewards, "propensity": np.full(10_000, 0.5)}
        >>> evaluate_privately(log, 1, budget=ZCDP(0.1), largest_weight=2.0, seed=1)
        <values from 10,000 records, with 95 % intervals: arm 1: 0.6021 (0.5802 to 0.6236)>
    """
    if target is None or (isinstance(target, Mapping | list | tuple) and len(target) == 0):
        raise ArgumentError(
            "target must be given, such as a policy or a dictionary of policies", "target"
        )
    release = Release(
        budget,
        protects,
        largest_weight,
        reward_range,
        default_reward,
        records_per_user,
        noise,
        grid,
        seed,
    )
    if user is None and release.records_per_user > 1:
        raise ArgumentError(
            f"user must be given with records_per_user={release.records_per_user}", "user"
        )
    columns = Columns(arm, reward, propensity, episode, features, user=user, private=True)
    if release.protects == REWARDS:
        rows = read_rows(log, columns)
        targets = target if isinstance(target, Mapping) else {_name_of(target, rows): target}
        names = list(targets)
        chances = np.column_stack([_chances(one, rows, release) for one in targets.values()])
    else:
        names, of = _columns_of(target)
        rows, chances = read_hidden(log, columns, of)
    _refuse_shared_draws(rows)
    return release.of(rows.rewards, rows.propensity, chances, names, rows.users)


def _columns_of(target: Any) -> tuple[list[str], list[str]]:
    """The names of targets, and of the columns of the log with their probabilities."""
    told = target if isinstance(target, Mapping) else {target: target}
    if not all(isinstance(one, str) for one in told.values()):
        raise ArgumentError(
            "target must name a column of the log if protects='contexts and rewards'. In each row,"
            " this column holds the target's probability of the row's arm",
            "target",
        )
    return [str(name) for name in told], list(told.values())


def _chances(target: Any, rows: Rows, release: Release) -> np.ndarray:
    """The target's probability of the arm of each record."""
    if isinstance(target, Policy):
        target = target.chooser()
    if isinstance(target, Chooser):
        _refuse_unprotected(target.arguments, release)
    table = probabilities(target, rows)
    refuse_missing_overlap(rows, table)
    return np.minimum(chosen(table, rows.arms), 1.0)


def _refuse_unprotected(policy: Mapping[str, Any], release: Release) -> None:
    """Refuse a policy that may show what it learned from these records."""
    if policy["budget"] is None:
        without = "a budget"
    elif policy["noise"] == "simulation" and release.noise == "secure":
        without = "secure noise"
    else:
        return
    raise ArgumentError(
        f"target must be a policy with {without}, got one without: the target's choices would"
        " reveal what the target learned from these records",
        "target",
    )


def _refuse_shared_draws(rows: Rows) -> None:
    if (draws := int(rows.episodes.max()) + 1) < len(rows):
        raise ArgumentError(
            f"log must have one episode for each record, got {draws:,} episodes for {len(rows):,}"
            " records. Records of one episode share a random draw, so they are not independent",
            "log",
        )


def _name_of(target: Any, rows: Rows) -> str:
    if isinstance(target, str):
        return target
    if np.ndim(target) == 0 and isinstance(target, int | np.integer):
        names = dict(enumerate(rows.names or ()))
        return names.get(int(target), f"arm {target}")
    return getattr(target, "__name__", "target")
