"""``replay``: estimate the mean reward of a policy on the people of a randomised trial (Li, Chu,
Langford & Wang 2011).

The people come one by one.  A round counts when the person got the arm that the policy chooses.
All other people are skipped, and the policy learns nothing from them.  The estimate assumes that
people are identically distributed, and that arms were drawn uniformly and independently of the
person.  Then the counted rounds are distributed as if the policy had been in charge (Theorem 1 of
the paper).  Each person counts with probability 1 / K, independently of the past, so the number of
rounds tells nothing about the rewards.  The mean reward per counted round is unbiased, over the
draw of the people and of their arms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ..calls import addresses_of, generator_at
from ..environments.datasets.logged import LoggedTrial
from ..errors import ArgumentError
from ..html import Html, glance
from ..kernel import Kernel, bind, entry, unbound
from ..policies import Policy
from ..privacy.ledger import Ledger, is_full
from ..protocol import Kernels
from ..session.steps import steps_of
from ..validation import integer, real
from .clipping import warn_of_clipping
from .late import replay_late
from .parallel import (
    ProgressCallback,
    distinct_policies,
    job_count,
    play_all,
    play_out,
    run_numbers,
)
from .results import (
    KEYS,
    bootstrap_band,
    described,
    environment_titles,
    in_order,
    load_table,
    merged_info,
    merged_settings,
    save_table,
)
from .seeding import identity, stream
from .settings import PolicySetting, SettingsByKey, keyed, policy_styles, with_budget_labels
from .simulating import what_is_taken
from .tally import BAD_SENSITIVITY, DONE, LEDGER_FULL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

decide = absorb_and_release = preprocess_contexts = stop = recommend = unbound


class Cursor(NamedTuple):
    """Slots of the cursor of a replay."""

    person: int = 0  # who comes next
    counted: int = 1  # rounds
    arm: int = 2  # that stands
    left: int = 3  # rounds for which it does
    stopped: int = 4  # 1 where a search for the best arm is over


CURSOR = Cursor()


@entry
def _replay(sides: Any, people: Any, choices_at: Any, privacy_at: Any) -> int:
    """Meet people until all have been met or ``limit`` rounds have counted; ``counted`` receives
    whose rounds they were.  From the end of a search for the best arm on nothing is learned.
    """
    params, raw, public, memo, wall = sides
    arms, rewards, cursor, counted, limit = people
    choice_rng, privacy_rng = generator_at(choices_at), generator_at(privacy_at)
    while cursor[CURSOR.person] < arms.size and cursor[CURSOR.counted] < limit:
        if is_full(wall.ledger):
            return LEDGER_FULL
        if cursor[CURSOR.left] == 0:
            cursor[CURSOR.arm], _, cursor[CURSOR.left] = decide(params, public, 0, choice_rng)
        person = cursor[CURSOR.person]
        cursor[CURSOR.person] += 1
        arm, reward = arms[person], rewards[person]
        if arm != cursor[CURSOR.arm]:
            continue
        counted[cursor[CURSOR.counted]] = person
        cursor[CURSOR.counted] += 1
        if cursor[CURSOR.stopped]:
            continue
        cursor[CURSOR.left] -= 1
        rounds = cursor[CURSOR.counted]
        if not absorb_and_release(
            params, raw, public, memo, wall, arm, 0, reward, rounds, privacy_rng
        ):
            return BAD_SENSITIVITY
        if cursor[CURSOR.left] == 0 and stop(params, public):
            # One round is left for ever, so that nothing is chosen again.
            cursor[CURSOR.stopped], cursor[CURSOR.left] = 1, 1
            cursor[CURSOR.arm] = recommend(params, public)
    return DONE


@entry
def _replay_contexts(sides: Any, people: Any, choices_at: Any, privacy_at: Any) -> int:
    """Replay for policies with contexts; ``seen`` holds the contexts as they take them, if
    ``altered``.
    """
    params, raw, public, memo, wall = sides
    arms, rewards, cursor, counted, limit, contexts, seen, altered = people
    choice_rng, privacy_rng = generator_at(choices_at), generator_at(privacy_at)
    while cursor[CURSOR.person] < arms.size and cursor[CURSOR.counted] < limit:
        if is_full(wall.ledger):
            return LEDGER_FULL
        person = cursor[CURSOR.person]
        cursor[CURSOR.person] += 1
        taken = contexts[person]
        if altered:
            preprocess_contexts(params, contexts[person], seen, choice_rng)
            taken = seen
        arm = decide(params, public, taken, choice_rng)[0]
        if arm != arms[person]:
            continue
        counted[cursor[CURSOR.counted]] = person
        cursor[CURSOR.counted] += 1
        rounds, reward = cursor[CURSOR.counted], rewards[person]
        if not absorb_and_release(
            params, raw, public, memo, wall, arm, taken[arm], reward, rounds, privacy_rng
        ):
            return BAD_SENSITIVITY
    return DONE


@cache
def replay_loop(kernels: Kernels, mechanism: Kernel, *, contexts: bool = False) -> Kernel:
    """The loop of one algorithm, of the steps behind ``pull`` and ``update``."""
    steps = steps_of(kernels, mechanism)
    own = {"decide": steps.decide, "absorb_and_release": steps.absorb_and_release}
    if contexts:
        return bind(_replay_contexts, **own, preprocess_contexts=steps.preprocess_contexts)
    return kernels.fill(_replay, "stop", "recommend", **own)


@dataclass(frozen=True)
class ReplayResult:
    """The result of ``replay``.

    Attributes:
        runs: one row per (environment, policy, budget, run): ``holds`` as in ``Result``, ``rounds``
            that counted, ``successes`` (the sum of their rewards), ``rate`` = successes / rounds,
            ``releases``, ``draws``, ``spent`` (in the currency of the budget), ``pulls_0``, ... .
        settings: as in ``Result``.
        info: ``horizon``, ``runs``, ``seed``; ``environments``: environment -> facts of the trial
            itself (``title``, ``people``, ``mean``, ``means`` of the arms, ``counts``,
            ``arm_names``).  JSON data.
    """

    runs: pd.DataFrame
    settings: SettingsByKey
    info: dict[str, Any]

    @property
    def titles(self) -> dict[str, str]:
        """Titles of environments in headings, by their keys."""
        return environment_titles(self.info["environments"])

    @classmethod
    def combined(cls, results: Sequence[ReplayResult]) -> ReplayResult:
        """Several replays of the same log as one."""
        settings = merged_settings(result.settings for result in results)
        runs = pd.concat([result.runs for result in results], ignore_index=True)
        return cls(runs, settings, results[0].info)

    @classmethod
    def merge(cls, parts: Sequence[ReplayResult]) -> ReplayResult:
        """The runs of several replays, as ``Result.merge``."""
        info = merged_info([part.runs for part in parts], [part.info for part in parts])
        settings = merged_settings(part.settings for part in parts)
        return cls(in_order([part.runs for part in parts], "run"), settings, info)

    def save(self, path: str | Path) -> Path:
        """Write everything to one Parquet file; the file appears complete or not at all."""
        return save_table(path, self.runs, self.settings, {"info": self.info})

    @classmethod
    def load(cls, path: str | Path) -> ReplayResult:
        """Read a result that ``save`` wrote.

        Raises:
            StateFileError: the file is no saved replay.

        See also: ``save``.
        """
        runs, settings, extra = load_table(path, "info")
        return cls(runs, settings, extra["info"])

    def _repr_html_(self) -> Html:
        rows = described(self.summary(), self.titles, self.settings)
        heads = ["trial", "policy", "budget", "mean rate", "95 % interval"]
        return glance(f"Replay, {self.info['runs']:,} runs", heads, rows)

    def plot(self, *, width: float | None = None, style: str | None = None) -> Figure:
        """Plot the mean rate of every policy and budget with its 95 % interval, beside the trial's
        own rate.  Several replays share a figure after ``combined``.

        Args:
            width: in inches; by default that of ``style``.
            style: "page" (the default) or a column of a paper, as of ``Result.plot``.

        Returns:
            A matplotlib figure that shows itself in a notebook, with ``savefig`` and
            ``save_data``.

        Raises:
            ArgumentError: there is no such style.

        Example:
            >>> from dpbandits import ZCDP
            >>> from dpbandits.algorithms import MergedIMED
            >>> from dpbandits.environments import DoctorReplay
            >>> result = replay(MergedIMED(4, budget=ZCDP(1.0)), DoctorReplay(), runs=3)
            >>> print(result.plot().get_axes()[0].get_xlabel())
            success rate among the counted people
        """
        from ..plotting.rows import replay_rates  # brings matplotlib, which takes a while

        (trial,) = replayed_trials(self)
        styles = policy_styles(self.settings)
        options: Any = {"width": width, "style": style or "page"}
        return replay_rates(trial.rates, trial.own_rate, styles, **options)

    def summary(
        self, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
    ) -> pd.DataFrame:
        """The mean rate of every policy, beside the trial's own rate.

        The interval covers the order of the people and the noise.  It does not extend to other
        people: all runs meet the same people, and ``trial`` and ``best`` are exact for them.

        Returns:
            One row per environment, policy and budget.  Columns: environment, policy, budget,
            holds, runs; ``rounds``, ``successes`` and ``releases`` (means over runs); ``spent``
            (the largest of all runs); ``mean`` of the rate with the bootstrap interval ``low`` to
            ``high``; ``trial`` (the mean reward under the trial's own allocation) and ``best``
            (under its best arm).

        Raises:
            ArgumentError: an argument is out of range.
        """
        confidence = real("confidence", confidence, 0.0, 1.0, strict=True)
        resamples = integer("resamples", resamples, 1)
        seed = integer("seed", seed, 0)
        rows = []
        names = [*KEYS, "holds"]
        for keys, group in self.runs.groupby(names, sort=False):
            low, high = bootstrap_band(group[["rate"]].to_numpy(), confidence, resamples, seed)
            trial = self.info["environments"][keys[0]]
            rows.append(
                {
                    **dict(zip(names, keys, strict=True)),
                    "runs": len(group),
                    **group[["rounds", "successes", "releases"]].mean(),
                    "spent": group["spent"].max(),
                    "mean": group["rate"].mean(),
                    "low": low[0],
                    "high": high[0],
                    "trial": trial["mean"],
                    "best": max(trial["means"]),
                }
            )
        return pd.DataFrame(rows)


class ReplayedTrial(NamedTuple):
    """One replayed trial.

    Columns of ``rates``: ``policy``, ``budget``, ``setting``, ``budget_label``, ``rate``,
    ``rate_low``, ``rate_high``, mean ``rounds`` and ``releases``; rows of one policy stand
    together, budgets from strict to loose.
    """

    title: str  # of the log
    rates: pd.DataFrame
    own_rate: float  # the success rate under the trial's own allocation


def replayed_trials(replay: ReplayResult) -> Iterator[ReplayedTrial]:
    """Every log that was replayed."""
    renamed = {"mean": "rate", "low": "rate_low", "high": "rate_high"}
    summary = with_budget_labels(replay.summary(), replay.settings).rename(columns=renamed)
    keys = zip(summary["policy"], summary["budget"], strict=True)
    summary["setting"] = [replay.settings[key] for key in keys]
    for key, rates in summary.groupby("environment", sort=False):
        places = list(rates["policy"].drop_duplicates())
        order = [(places.index(row.policy), row.budget_label.order) for row in rates.itertuples()]
        yield ReplayedTrial(
            replay.titles[str(key)],
            rates.assign(order=order).sort_values("order", ignore_index=True),
            float(rates["trial"].iloc[0]),
        )


def replay(
    policies: Policy | Sequence[Policy],
    log: LoggedTrial,
    *,
    horizon: int | None = None,
    runs: int = 100,
    first_run: int = 0,
    seed: int = 0,
    n_jobs: int = 1,
    progress: ProgressCallback | bool = False,
) -> ReplayResult:
    """Replay a randomised trial under every policy, ``runs`` times, each time with the people in
    another order.

    With K arms, about one person in K counts: those whose arm in the trial is the one that the
    policy chooses.  Policies are templates, and their noise is simulated, as in ``simulate``.  In
    run i all policies meet the people in the same order, for any ``n_jobs``.  Every person is a
    separate user.

    If the log has times, answers come late, as in the log.  So a planned ``answers_within`` can be
    tried, in pulls or by the clock.  The n-th counted round is at the time of the log's n-th
    question, because a policy in charge would ask everybody.  This assumes that waits do not depend
    on these times.

    Args:
        policies, first_run, seed, n_jobs, progress: as of ``simulate``.
        log: each person's arm, the outcome, and for policies with contexts the features.
        horizon: a run ends after so many counted rounds; by default, and at the latest, when
            everybody has been met.
        runs: the number of orders.

    Returns:
        A ``ReplayResult`` with ``runs``, ``settings``, ``summary()`` and ``plot()``.

    Raises:
        ArgumentError: an argument is out of range, or a policy and the log do not fit.

    Warns:
        ClippingWarning: rewards of the log lie outside of a policy's ``reward_range``.

    See also: ``simulate``, ``LoggedTrial``.

    References:
        L. Li, W. Chu, J. Langford, X. Wang (2011), Unbiased offline evaluation of
        contextual-bandit-based news article recommendation algorithms, WSDM.

    Example:
        >>> from dpbandits import ZCDP
        >>> from dpbandits.papers.concentrated import AdaCUCB
        >>> from dpbandits.environments import DoctorReplay
        >>> result = replay(AdaCUCB(4, budget=ZCDP(1.0)), DoctorReplay(), runs=3)
        >>> bool(result.runs["rounds"].between(450, 620).all())
        True
    """
    chosen = distinct_policies(policies)
    numbers, seed, n_jobs = (
        run_numbers(first_run, runs),
        integer("seed", seed, 0),
        job_count(n_jobs),
    )
    horizon = None if horizon is None else integer("horizon", horizon, 1)
    if not isinstance(log, LoggedTrial):
        raise ArgumentError(f"log must be a LoggedTrial, got {type(log).__name__}", "log")
    for policy in chosen:
        _check_fit(policy, log)
    warn_of_clipping(chosen, log, stacklevel=3)
    game = partial(_play, log=log, horizon=horizon, seed=seed)
    finished = play_all(chosen, numbers, n_jobs, progress, game)
    facts = {
        "title": log.title,
        "people": len(log),
        "mean": log.mean(),
        "means": log.means().tolist(),
        "counts": log.counts.tolist(),
        "arm_names": log.arm_names,
    }
    sizes = {"horizon": horizon, "runs": len(numbers), "seed": seed}
    info = {**sizes, "environments": {repr(log): facts}}
    settings = [PolicySetting.of(policy) for policy in chosen]
    rows = [
        {"environment": repr(log), **setting.keys, "run": run, **facts}
        for setting, played in zip(settings, finished, strict=True)
        for run, facts in zip(numbers, played, strict=True)
    ]
    return ReplayResult(pd.DataFrame(rows), keyed(settings), info)


def _check_fit(policy: Policy, log: LoggedTrial) -> None:
    if policy.settings.holdout is not None:
        raise ArgumentError(
            f"policies must have no holdout in a replay, got {policy!r}",
            "policies",
        )
    if policy.sees and log.times is not None:
        raise ArgumentError(
            f"policies must take no contexts if the log has times of answers, got {policy!r}",
            "policies",
        )
    if policy.sees:
        taken, has = what_is_taken(type(policy)), log.dimension
        if taken == "advice" or policy.dimension != has:
            wanted = taken if taken == "advice" else f"{taken} of dimension {policy.dimension}"
            found = "none" if has is None else f"contexts of dimension {has}"
            raise ArgumentError(
                f"policies must fit the log: {policy!r} takes {wanted}, and the log has {found}",
                "policies",
            )
    if policy.n_arms != log.n_arms:
        raise ArgumentError(f"n_arms of {policy!r} must be {log.n_arms}, the log's number of arms")


def _play(
    policy: Policy, run: int, *, log: LoggedTrial, horizon: int | None, seed: int
) -> dict[str, Any]:
    """The values in the row of a run."""
    owner = identity(policy.stream_key)
    order = stream(seed, "environment", identity(log.stream_key), run).permutation(len(log))
    choices = stream(seed, "policy", owner, run) if policy.card.randomised else None
    rngs = (choices, stream(seed, "privacy", owner, run))
    limit = len(log) if horizon is None else min(horizon, len(log))
    if log.times is None:
        met, ledger = _at_once(policy, log, order, limit, rngs)
    else:
        played = policy.simulated(*rngs)
        met, ledger = replay_late(played, log, order, limit), played.ledger
    successes = float(log.rewards[met].sum())
    pulls = np.bincount(log.arms[met], minlength=log.n_arms)
    return {
        "rounds": met.size,
        "successes": successes,
        "rate": successes / met.size if met.size else np.nan,
        "releases": ledger.releases,
        "draws": ledger.draws,
        "spent": ledger.shown_total(),
        **{f"pulls_{a}": count for a, count in enumerate(pulls)},
    }


def _at_once(
    policy: Policy, log: LoggedTrial, order: np.ndarray, limit: int, rngs: tuple[Any, Any]
) -> tuple[np.ndarray, Ledger]:
    """The people whose rounds counted, with each answer before the next person."""
    contextual, state = bool(policy.sees), policy.new_state()
    loop = replay_loop(policy.driven, policy.mechanism, contexts=contextual)
    arms, rewards = log.arms[order], log.rewards[order]
    seen = np.clip(rewards, *policy.reward_range) if policy.clip else rewards
    if policy.noise_source.secure:
        seen = np.array([policy.noise_source.to_grid(reward) for reward in seen.tolist()])
    cursor, counted = np.zeros(len(CURSOR), np.int64), np.empty(limit, np.int64)
    people: tuple[Any, ...] = (arms, seen, cursor, counted, limit)
    if contextual:
        assert log.contexts is not None
        shape, altered = log.contexts.shape[1:], policy.alters(log.context_bound)
        people += (log.contexts[order], np.zeros(shape), altered)
    sides = (policy.params, state.raw, state.public, state.memo)
    drawn = [addresses_of(rng) for rng in rngs]
    ledger = play_out(policy, state, lambda: loop((*sides, state.wall), people, *drawn))
    return order[counted[: cursor[CURSOR.counted]]], ledger
