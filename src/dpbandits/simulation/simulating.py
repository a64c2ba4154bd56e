"""``simulate``: many runs of several policies in one environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..calls import addresses_of
from ..environments.base import AdviceEnvironment, ArmsEnvironment, ContextEnvironment, World
from ..errors import ArgumentError
from ..policies import Policy, Preset
from ..privacy.ledger import Ledger
from ..protocol import NO_ARM, no_arm
from ..session.steps import release_of
from ..validation import flag, integer, shown
from .clipping import entering_of, support_ends, warn_of_clipping
from .deciding import Answer, Question, Watch, columns
from .late import play_late
from .loops import arms_loop, context_loop
from .parallel import (
    ProgressCallback,
    distinct_policies,
    job_count,
    play_all,
    play_out,
    run_numbers,
)
from .results import Result, category
from .seeding import identity, stream
from .settings import PolicySetting, keyed
from .tally import CURSOR, Tally, new_tally

_CHUNK = 1 << 22  # rounds between two chances to be interrupted
_UNBROKEN = 1 << 62


class _Run(NamedTuple):
    tally: Tally
    releases: int
    draws: int
    spent: float
    recommended: int  # the arm; NO_ARM of policies that play for reward
    answers: dict[str, Answer] | None = None  # to whether it is decided which arm is best

    @classmethod
    def of(cls, tally: Tally, recommended: int, *ledgers: Ledger) -> _Run:
        """Of ledgers without a common record: the largest total is spent."""
        releases = sum(one.releases for one in ledgers)
        draws = sum(one.draws for one in ledgers)
        return cls(tally, releases, draws, max(map(Ledger.shown_total, ledgers)), recommended)


def simulate(
    policies: Policy | Sequence[Policy],
    environment: ArmsEnvironment | ContextEnvironment,
    *,
    horizon: int,
    runs: int = 1,
    first_run: int = 0,
    seed: int = 0,
    record: int | Sequence[int] = 200,
    n_jobs: int = 1,
    round_by_round: bool = False,
    decided: float | Mapping[str, float] | None = None,
    progress: ProgressCallback | bool = False,
) -> Result:
    """Play every policy ``runs`` times for ``horizon`` rounds.

    Policies are templates: each run starts from an empty state, and the given objects are not
    changed.  Where the environment has a ``delay``, they are played pull by pull, as by a service,
    with their ``answers_within``, by the clock if the delay has a ``rate``.  So are policies with a
    holdout, which takes part in regret, pulls and releases.  Without a delay every answer comes at
    once.  Simulated noise is used throughout.  The result is the same for any ``n_jobs``.

    All rounds are recorded.  For policies with ``max_rounds``, the noise and the cost in ``spent``
    are those of a user with that many rounds.  In general every round is another user's.  If users
    return in the environment, none may come more often, or twice in one release.
    Otherwise the policy is refused.

    Args:
        policies: one or more.  Two policies must differ in more than seed and name.  Two of one
            name must differ in their budget only.
        environment: answers the pulls.
        horizon: rounds per run.
        runs: independent repetitions.
        first_run: the number of the first one.  Every run has random numbers of its own, so that
            ``Result.merge`` makes one result of runs 0 to 49 and 50 to 99.
        seed: the seed of all random numbers, see ``dpbandits.simulation.seeding``.
        record: about how many log-spaced rounds to record regret at, or the rounds themselves; the
            horizon is always among them.
        n_jobs: processes; -1 for one per core.  Work of a few seconds is done in this one alone.
        round_by_round: True draws every reward separately, instead of exact sums.  The law is the
            same, but it takes longer; use it for checks.  With contexts rewards are always drawn
            separately.
        decided: a confidence, or a dictionary with ``confidence`` and ``gap``, to ask
            ``Policy.decided`` at each recorded round.  Policies with intervals are then played pull
            by pull, and ``runs`` has the first round at which it is decided.
        progress: True for a bar, or a function to be called with (runs done, runs in all).

    Returns:
        A ``Result`` with ``frame``, ``runs``, ``settings``, ``summary()``, ``plot()`` and
        ``save()``.

    Raises:
        ArgumentError: an argument is out of range, or policy and environment do not fit.

    Warns:
        ClippingWarning: rewards lie outside of a policy's ``reward_range``, and another range would
            hold them, or at least their means.

    See also: ``replay`` for logs, ``plan``, ``Result.merge``.

    Example:
        >>> from dpbandits import ZCDP
        >>> from dpbandits.papers.concentrated import AdaCUCB
        >>> from dpbandits.environments import Bernoulli
        >>> policy, world = AdaCUCB(2, budget=ZCDP(1.0)), Bernoulli([0.9, 0.1])
        >>> result = simulate(policy, world, horizon=1000, runs=3, seed=7)
        >>> bool(result.runs["regret"].mean() < 400)
        True
    """
    chosen = distinct_policies(policies)
    if not isinstance(environment, World):
        raise ArgumentError(
            "environment must be an ArmsEnvironment or a ContextEnvironment (logs are for replay),"
            f" got {shown(environment)}"
        )
    horizon, numbers = integer("horizon", horizon, 1), run_numbers(first_run, runs)
    seed, n_jobs = integer("seed", seed, 0), job_count(n_jobs)
    flag("round_by_round", round_by_round)
    question = Question.of(decided)
    for policy in chosen:
        _check_fit(policy, environment, horizon, question)
    marks = recorded_rounds(horizon, record)
    warn_of_clipping(chosen, environment, stacklevel=3)

    game: dict[str, Any] = {"horizon": horizon, "seed": seed, "marks": marks, "asked": question}
    play_one = partial(play, environment=environment, round_by_round=round_by_round, **game)
    finished = play_all(chosen, numbers, n_jobs, progress, play_one)
    described = {repr(environment): _describe_environment(environment)}
    info: dict[str, Any] = {
        "horizon": horizon,
        "runs": len(numbers),
        "seed": seed,
        "environments": described,
    }
    if question is not None:
        info["decided"] = question._asdict()
    settings = [PolicySetting.of(policy) for policy in chosen]
    keys = [{"environment": repr(environment), **setting.keys} for setting in settings]
    totals = [
        _totals(named, numbers, played, environment, question)
        for named, played in zip(keys, finished, strict=True)
    ]
    frame = _curves(keys, marks, numbers, finished)
    return Result(frame, pd.concat(totals, ignore_index=True), keyed(settings), info)


def recorded_rounds(horizon: int, record: int | Sequence[int]) -> np.ndarray:
    """The rounds at which regret is recorded: increasing, ending with the horizon."""
    if isinstance(record, int | np.integer):
        spaced = np.geomspace(1, horizon, integer("record", record, 1))
        return np.unique(np.append(np.round(spaced).astype(np.int64), horizon))
    if not isinstance(record, Sequence | np.ndarray) or np.ndim(record) != 1:
        raise ArgumentError(f"record must be an integer or a list of rounds, got {record!r}")
    rounds = np.unique([integer("record", r, 1, horizon) for r in record]).astype(np.int64)
    return np.unique(np.append(rounds, horizon))


def _check_fit(
    policy: Policy, environment: World, horizon: int, question: Question | None = None
) -> None:
    taken, shown = what_is_taken(type(policy)), what_is_shown(environment)
    if taken != shown:
        raise ArgumentError(
            f"policies must fit the environment: {policy!r} takes {taken}, and {environment!r}"
            f" has {shown}",
            "policies",
        )
    if policy.n_arms != environment.n_arms:
        raise ArgumentError(
            f"n_arms of {policy!r} must be {environment.n_arms}, the environment's number of arms"
        )
    shown_dimension = getattr(environment, "dimension", None)
    if policy.sees and policy.dimension != shown_dimension:
        name = "n_experts" if policy.sees == "advice" else "dimension"
        raise ArgumentError(
            f"{name} of {policy!r} must be {shown_dimension}, as in the environment"
        )
    if environment.horizon is not None and horizon > environment.horizon:
        raise ArgumentError(
            f"horizon must be at most {environment.horizon}, the environment's, got {horizon}"
        )
    if policy.planned_rounds is not None and horizon > policy.planned_rounds:
        raise ArgumentError(
            f"horizon must be at most {policy.planned_rounds}, the rounds that {policy!r} is"
            f" planned for, got {horizon}"
        )
    if environment.delay and environment.delay.rate is None and policy.settings.uses_clock:
        raise ArgumentError(
            f"rate of the delay must be given, in people per second, because {policy!r} depends on"
            " times",
            "rate",
        )
    singly = policy.settings.holdout or question is not None
    if singly and policy.settings.uses_clock and environment.delay is None:
        raise ArgumentError(
            f"environment must have a delay with a rate: {policy!r} depends on times, and is played"
            " with a holdout, or with the argument decided",
            "environment",
        )
    if policy.settings.holdout and policy.settings.holdout.targets:
        raise ArgumentError(
            f"policies must have a holdout without targets in a simulation, got {policy!r}:"
            " environments do not know which arms targets choose. Leave targets out, or call pull"
            " and update in a loop of your own",
            "policies",
        )
    check_users(policy, environment, horizon)


def check_users(policy: Policy, environment: World, horizon: int) -> None:
    """Refuse users who come more than ``max_rounds`` times, or twice in one release.  Loops record
    every round, but a policy would not record these.
    """
    coming = getattr(environment, "attendance", None)
    if policy.max_rounds is None or coming is None:
        return
    attendance = coming[:horizon]
    most = int(np.bincount(attendance).max())
    if most > policy.max_rounds:
        raise ArgumentError(
            f"max_rounds of {policy!r} must be at least {most}: a user has {most} rounds",
            "max_rounds",
        )
    covered = policy.statistic.max_records or len(attendance)
    longest = 1 if policy.card.learns_at_once else min(covered, len(attendance))
    # Stable, so that a user's rounds stay in order and differences are gaps.
    order = np.argsort(attendance, kind="stable")
    again = attendance[order][1:] == attendance[order][:-1]
    soonest = int(np.diff(order)[again].min(initial=len(attendance)))
    if soonest < longest:
        raise ArgumentError(
            f"users must come at most once in a release of {policy!r}: a release may cover"
            f" {longest} rounds, but a user comes again after {soonest} rounds. Make the"
            " environment's gap larger, or batches shorter",
            "policies",
        )


def what_is_taken(policy: Policy | type[Policy] | Preset) -> str:
    """The contexts that the policies of a class see before they choose."""
    return policy.sees or "no contexts"


def what_is_shown(environment: object) -> str:
    """The contexts that an environment shows before a choice."""
    if isinstance(environment, AdviceEnvironment):
        return "advice"
    return "contexts" if isinstance(environment, ContextEnvironment) else "no contexts"


def play(
    policy: Policy,
    environment: World,
    horizon: int,
    run: int,
    seed: int,
    marks: np.ndarray,
    round_by_round: bool = False,
    trace: bool = False,
    asked: Question | None = None,
) -> _Run:
    """One run of one policy; with ``trace`` the tally holds the arm of every round.  ``asked``:
    whether it is decided which arm is best.
    """
    owner = identity(policy.stream_key)
    world = stream(seed, "environment", identity(environment.stream_key), run)
    choices = stream(seed, "policy", owner, run) if policy.card.randomised else None
    privacy = stream(seed, "privacy", owner, run)
    state = policy.new_state()
    entering = entering_of(policy, environment.support)
    traced = horizon if trace else 0
    watches = asked is not None and asked.fits(policy, environment)
    if environment.delay is not None or policy.settings.holdout is not None or watches:
        tally = new_tally(marks, policy.n_arms, trace=traced)
        delays = np.zeros(horizon, np.int64)
        if environment.delay is not None:
            late = stream(seed, "environment", identity(repr(environment)), run)
            delays = environment.delay.draw(horizon, late)
        of_holdout = (stream(seed, name, owner, run) for name in ("holdout", "privacy of holdout"))
        played = policy.simulated(choices, privacy, *of_holdout)
        watch = Watch(asked, played) if asked is not None and watches else None
        look = None if watch is None else watch.look
        play_late(played, environment, tally, horizon, world, delays, look)
        found = NO_ARM if played.recommendation is None else played.recommendation
        held = [] if played.holdout is None else [played.holdout.ledger]
        run_ = _Run.of(tally, found, played.ledger, *held)
        return run_ if watch is None else run_._replace(answers=watch.answers)
    parameter = _parameter_of(environment, getattr(policy, "n_models", 1))
    tally = new_tally(marks, policy.n_arms, distances=parameter.size > 0, trace=traced)
    # Where every round ends in a release, it is compiled into the loop.
    crossing = release_of(policy.driven, policy.mechanism, inside=policy.card.learns_at_once)
    sides, rngs = (policy.params, state.raw, state.public, state.memo), (world, choices, privacy)
    drawn = [addresses_of(rng) for rng in rngs]
    met: tuple[Any, ...]
    if isinstance(environment, ContextEnvironment):
        loop = context_loop(policy.driven, crossing, environment.kernels)
        altered = policy.alters(environment.context_bound)
        contexts = np.zeros((policy.n_arms, policy.dimension))
        seen = np.zeros_like(contexts) if altered else contexts
        met = (environment.state, parameter, tally, contexts, seen, altered, entering, horizon)
    else:
        loop = arms_loop(policy.driven, crossing, environment.kernels)
        max_hold = 1 if round_by_round or policy.takes_each_reward else _UNBROKEN
        met = (environment.state, tally, entering, horizon, max_hold)

    def advance() -> int:
        until = int(tally.cursor[CURSOR.round]) + _CHUNK
        return loop((*sides, state.wall), (*met, until), *drawn)

    ledger = play_out(policy, state, advance)
    recommend = policy.kernels.recommend
    found = NO_ARM if recommend is no_arm else int(recommend(policy.params, state.public))
    return _Run.of(tally, found, ledger)


def _parameter_of(environment: World, n_models: int) -> np.ndarray:
    """The parameter that so many models estimate; empty where it is unknown, or beyond these
    models.
    """
    theta = environment.parameter if isinstance(environment, ContextEnvironment) else None
    if theta is None or theta.size > n_models * theta.shape[-1]:
        return np.zeros(0)
    return np.broadcast_to(theta, (n_models, theta.shape[-1])).flatten()


def _describe_environment(environment: World) -> dict[str, Any]:
    means, reference = None, None
    if isinstance(environment, ArmsEnvironment):
        means = environment.means().tolist()
        if environment.reference is not None:
            name, shares = environment.reference
            reference = {"name": name, "shares": shares.tolist()}
    return {
        "title": environment.title,
        "support": support_ends(environment.support),
        "arm_names": environment.arm_names,
        "means": means,
        "reference": reference,
    }


def _curves(
    keys: list[dict[str, str]], marks: np.ndarray, numbers: range, finished: list[list[_Run]]
) -> pd.DataFrame:
    """One row per policy, run and recorded round."""
    rows, policies = len(numbers) * marks.size, np.arange(len(keys))
    named = {name: category([one[name] for one in keys]) for name in keys[0]}
    tallies = [run.tally for played in finished for run in played]
    columns = {
        **{name: values.take(np.repeat(policies, rows)) for name, values in named.items()},
        "run": np.tile(np.repeat(numbers, marks.size), len(keys)),
        "round": np.tile(marks, len(tallies)),
        "regret": np.concatenate([tally.curve for tally in tallies]),
    }
    if any(tally.distance.size for tally in tallies):
        unknown = np.full(marks.size, np.nan)
        columns["distance"] = np.concatenate(
            [one.distance if one.distance.size else unknown for one in tallies]
        )
    return pd.DataFrame(columns, copy=False)


def _totals(
    keys: dict[str, str],
    numbers: range,
    played: list[_Run],
    environment: World,
    question: Question | None,
) -> pd.DataFrame:
    """One row per run."""
    counts = np.array([run.tally.counts for run in played])
    return pd.DataFrame(
        {
            **keys,
            "run": numbers,
            "regret": [run.tally.sums[0] for run in played],
            "reward": [run.tally.sums[1] for run in played],
            "releases": [run.releases for run in played],
            "draws": [run.draws for run in played],
            "spent": [run.spent for run in played],
            **_searches(played, environment),
            **columns([run.answers for run in played], question, environment),
            **{f"pulls_{a}": counts[:, a] for a in range(counts.shape[1])},
        }
    )


def _searches(played: list[_Run], environment: World) -> dict[str, np.ndarray]:
    """The ends of searches for the best arm; empty for policies that play for reward."""
    arms = np.array([run.recommended for run in played])
    if NO_ARM in arms or isinstance(environment, ContextEnvironment):
        return {}
    rounds = np.array([run.tally.cursor[CURSOR.stopped] for run in played])
    means = environment.means()
    lost = means.max() - means[arms]
    return {
        "stopped": np.where(rounds > 0, rounds, np.nan),
        "recommended": arms,
        "wrong": (lost > 0.0).astype(float),
        "simple_regret": lost,
    }
