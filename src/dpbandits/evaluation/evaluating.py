"""``evaluate``: the value of a policy from the log of another one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..policies import Policy
from ..policies.chooser import Chooser
from ..tables import Frame
from ..validation import choice, flag, integer, interval_text, real
from ..validation import interval as pair
from .estimators import ESTIMATORS, WITH_MODEL, Terms, Weights, terms, weights
from .intervals import METHODS, Episodes, bernstein, betting, bootstrap
from .models import predictions
from .reading import Columns, read_rows
from .report import NOT_PRIVATE, Diagnostics, Evaluation
from .rows import Rows, refuse_missing_overlap
from .targets import probabilities

_FEW = 50  # effective records, below which an estimate says little


def evaluate(
    log: str | os.PathLike[str] | Frame,
    target: int | str | Policy | Chooser | Callable[[Any], Any] | ArrayLike,
    *,
    estimator: str = "SNIPS",
    interval: str = "bernstein",
    confidence: float = 0.95,
    q: Any = None,
    clip: float | None = None,
    largest_weight: float | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    arm: str = "arm",
    reward: str = "reward",
    propensity: str = "propensity",
    episode: str | None = None,
    features: Sequence[object] | str | np.ndarray | None = None,
    propensities: ArrayLike | str | None = None,
    held_out: bool = False,
    resamples: int = 2000,
    seed: int = 0,
) -> Evaluation:
    """Estimate the mean reward of a target policy from the log of another policy.

    **The result is not private.**  It is for the operator, who may see the log.  If the log has
    rewards of protected people, the budget of the bandit does not protect this result.

    Each round is weighted by w = pi(a|x) / p: the target's probability of the logged arm, over the
    log's.  So the log has to hold the propensity p of each choice, and its policy must have played
    each arm of the target with a probability above 0.  If a draw stands for several rounds, they
    are one episode, and intervals count episodes.  Rows that were not recorded, or have no reward,
    are left out with a warning.

    Args:
        log: a folder of ``DecisionLog``; a pandas or Arrow table, or a dictionary of columns; or a
            file: Parquet, CSV, or lines of JSON as Vowpal Wabbit writes them (.dsjson or .json).
            Tables with the columns of the Open Bandit Dataset are recognised.
        target: an arm, by number or name, where text of digits is a number unless the log has such
            a name; a policy, or its ``chooser()``; a function of the context that returns an arm,
            or a probability for each arm; or a table of probabilities, shape (K,) or (rows, K), and
            (rows, K, positions) for Open Bandit.
        estimator: "SNIPS", "IPS", "DM", "DR", "switch-DR" or "CAB"; ``dpbandits.evaluation.
            estimators`` has the formulas.
        interval: "bernstein", for a number of episodes that was fixed beforehand; "betting", which
            may be looked at any time, and holds for policies that learn; or "bootstrap", which is
            approximate.  The first two need bounds of weights and rewards.
        confidence: the probability that the interval covers the value.
        q: predictions of rewards, for DM, DR, switch-DR and CAB, which are clipped to
            ``reward_range``: a function of all contexts and an arm that returns shape (n,); a
            table, shape (K,) or (rows, K); a regressor with ``fit`` and ``predict``, such as those
            of scikit-learn; or None for means of arms.  A regressor and means are fitted to one
            half of the episodes for the other half.
        clip: the bound on weights; of switch-DR and CAB their threshold.
        largest_weight: a bound on the weights that there can be.  By default the largest of the
            log, or of all arms by ``propensities``.
        reward_range: bounds of rewards.
        arm, reward, propensity: names of columns.
        episode: the column that names the draw of each row.  Rows with the same entry share a draw.
            By default the column "episode", where there is one; otherwise each row is a draw.
        features: contexts: a column of what ``pull`` takes, names of columns, or an array with a
            row for each row of the log.
        propensities: those of all arms, which CAB needs: shape (K,) or (rows, K), or the name of a
            column of lists.
        held_out: whether only people of a holdout count: rows in whose column "held_out" is True.
            Chance chose their arms, so every target can be evaluated.
        resamples: of the bootstrap.
        seed: of the bootstrap, and of policies that draw their arms.

    Returns:
        An ``Evaluation``: the value, its interval, diagnostics, and what the result does not cover.

    Raises:
        ArgumentError: an argument or an entry is out of range; a propensity is unknown; the
            propensity is 1 in rows in which the target may choose another arm; or no row has an arm
            of the target.

    See also: ``replay``, for logs of arms that were drawn uniformly; ``DecisionLog``.

    References: Maurer & Pontil (2009); Waudby-Smith & Ramdas (2024); Karampatziakis, Mineiro &
    Ramdas (2021).

    Example:
        >>> import numpy as np
        >>> from dpbandits import evaluate
        >>> rng = np.random.default_rng(1)
        >>> arms = rng.choice(2, 1000, p=[0.8, 0.2])
        >>> rewards = (rng.random(1000) < np.array([0.3, 0.6])[arms]).astype(float)
        >>> log = {"arm": arms, "reward": rewards, "propensity": np.array([0.8, 0.2])[arms]}
        >>> evaluate(log, 1)
        <Evaluation: SNIPS 0.6528, 95 % interval 0.5059 to 0.7996 (bernstein), not private>
    """
    choice("estimator", estimator, ESTIMATORS)
    choice("interval", interval, METHODS)
    alpha = 1.0 - real("confidence", confidence, 0.0, 1.0, strict=True)
    bounds = pair("reward_range", reward_range)
    integer("resamples", resamples, 1), integer("seed", seed, 0)
    if clip is not None:
        real("clip", clip, 0.0, strict=True)
    if largest_weight is not None:
        real("largest_weight", largest_weight, 0.0, strict=True)
    if q is not None and estimator not in WITH_MODEL:
        raise ArgumentError(f"q must not be given for {estimator}, which uses no model", "q")
    flag("held_out", held_out)
    columns = Columns(arm, reward, propensity, episode, features, propensities, held_out=held_out)
    rows = read_rows(log, columns)
    _refuse_rewards(rows, bounds)
    rng = np.random.default_rng(seed)
    table = probabilities(target, rows, rng.spawn(1)[0])
    rows = rows.with_arms(table.shape[1])
    refuse_missing_overlap(rows, table)
    weighed = weights(rows, table, estimator, clip, largest_weight)
    predicted, folds = None, None
    if estimator in WITH_MODEL:
        predicted, folds = predictions(q, rows, table.shape[1], bounds)
    own_q = predicted is not None and folds is None
    if folds is not None and interval == "betting":
        raise ArgumentError(
            "q must be a function or a table from other data with interval='betting': a model must"
            " not know later rewards",
            "q",
        )

    def ends(found: Episodes, alpha: float, lo: float, hi: float) -> tuple[float, float]:
        if interval == "bootstrap":
            return bootstrap(found, alpha, resamples, rng)
        return (bernstein if interval == "bernstein" else betting)(found, alpha, lo, hi)

    used = terms(estimator, rows, table, weighed, predicted, bounds)
    found = _episodes(rows, used)
    parts = [found]
    if folds is not None and interval == "bernstein":  # given the other half, each has its own
        half = np.arange(found.first.size) % 2
        parts = [found.part(half == fold) for fold in (0, 1)]
    shares = np.array([part.second.sum() for part in parts]) / found.second.sum()
    low, high = shares @ [ends(part, alpha / len(parts), *bounds) for part in parts]
    overlap = Terms(weighed.raw, np.ones(len(rows)), 0.0, weighed.bound)
    met = ends(_episodes(rows, overlap), alpha, 0.0, weighed.bound)
    told = _diagnostics(rows, table, weighed, clip, met)
    return Evaluation(
        float(found.first.sum() / found.second.sum()),
        float(low),
        float(high),
        estimator,
        interval,
        confidence,
        told,
        _warned(rows, told, estimator, interval, clip, largest_weight, own_q),
    )


def _refuse_rewards(rows: Rows, bounds: tuple[float, float]) -> None:
    lo, hi = bounds
    if outside := int(((rows.rewards < lo) | (rows.rewards > hi)).sum()):
        raise ArgumentError(
            f"reward_range must contain all rewards of the log, got {interval_text(lo, hi, False)}:"
            f" {outside:,} of {len(rows):,} rewards lie outside of it",
            "reward_range",
        )


def _episodes(rows: Rows, used: Terms) -> Episodes:
    longest = float(np.bincount(rows.episodes).max())
    bounds = (longest * one for one in (used.low, used.high, used.scale))
    return Episodes(rows.sums(used.first), rows.sums(used.second), *bounds)


def _diagnostics(
    rows: Rows,
    table: np.ndarray,
    weighed: Weights,
    clip: float | None,
    met: tuple[float, float],
) -> Diagnostics:
    each, can = rows.sums(weighed.raw), rows.propensities
    if can is None:
        can = np.bincount(rows.arms, minlength=table.shape[1])
    return Diagnostics(
        n=len(rows),
        episodes=each.size,
        effective_sample_size=float(each.sum() ** 2 / (each**2).sum()),
        largest_weight=float(weighed.raw.max()),
        clipped=0.0 if clip is None else float((weighed.raw > clip).mean()),
        overlap=float(weighed.raw.mean()),
        overlap_low=met[0],
        overlap_high=met[1],
        support=float((table * (can > 0.0)).sum(axis=1).mean()),
        left_out=rows.left_out,
    )


def _warned(
    rows: Rows,
    told: Diagnostics,
    estimator: str,
    interval: str,
    clip: float | None,
    largest: float | None,
    own_q: bool,
) -> list[str]:
    """Limits of the result, in sentences; the caller is also warned of faults of the log."""
    alarms = [
        f"Rows left out ({why}): {count:,}. The value is that of the other rows."
        for why, count in rows.left_out
    ]
    if told.overlap_is_missing:
        alarms.append(
            "The mean weight differs from 1, or the target plays arms that the log could not play"
            " (arms without support). The log seems to lack rounds in which the target's arm could"
            " be played, or the log's propensities are wrong. The value leaves out rounds that the"
            " log lacks."
        )
    if told.effective_sample_size < _FEW:
        alarms.append(f"The effective sample size is below {_FEW}: few rounds decide the value.")
    for alarm in alarms:
        warnings.warn(alarm, stacklevel=3)
    return [NOT_PRIVATE, *alarms, *_limits(rows, estimator, interval, clip, largest, own_q)]


def _limits(
    rows: Rows,
    estimator: str,
    interval: str,
    clip: float | None,
    largest: float | None,
    own_q: bool,
) -> list[str]:
    assumed = interval != "bootstrap" and largest is None and clip is None
    alone = rows.episodes[-1] + 1 == len(rows) and not rows.of_decisions
    fixed = "The target and q" if own_q else "The target"
    told = {
        f"{fixed} must not come from the rewards of this log: use other data. Otherwise the value"
        " may be far off, and the interval does not cover this error.": True,
        "The interval holds for a number of episodes that was fixed beforehand.": interval
        == "bernstein",
        "The interval is approximate, and holds for many episodes.": interval == "bootstrap",
        "The interval assumes that episodes are independent, but the episodes of a policy that"
        " learns are dependent. For such episodes interval='betting' is proved.": interval
        != "betting",
        "The interval assumes that no weight can exceed the largest of the log.": assumed,
        "Clipped weights bias the value. The interval does not cover this bias.": clip is not None,
        "The interval does not cover errors of the model q.": estimator == "DM",
        "Each row counts as a draw of its own, because no column names the draws.": alone,
        "The value holds for rounds like those of the log.": True,
    }
    return [sentence for sentence, holds in told.items() if holds]
