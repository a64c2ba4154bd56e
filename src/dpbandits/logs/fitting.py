"""Warm starts: a policy learns from the log of another one, before its first pull.

**Private logs** go through the same wall as later rewards.  Each record is a round of the policy,
with the arm that the log has in the place of the policy's own choice: it is pulled, answered and
released by ``pull``, ``update`` and ``finish``, enters one release as any other record does, and
ledger lines are written.  Neighbouring logs differ in what the policy protects of one record, and
releases are as far apart as for two streams of answers.  What is not protected, arms and their
order, and features where they are public, decides which records are summed up together: it has to
owe nothing to rewards of the log.

**Public logs** owe nothing to anybody's protected rewards.  Their sums are published as they are,
past the wall: no noise is drawn, nothing is spent.  Later releases of a running sum are made on top
of that of the log (``Wall.earlier``), and noise is for the people who come later alone.

**Whose arms?**  A policy may learn from arms that it has not chosen if what it makes of a sum does
not depend on why an arm was played: means of arms, regressions.  Adversarial learners divide by
their own propensities, and eliminations play plans of their own: they are refused.

**Propensities.**  Where the log's arms were drawn by features that the policy does not see, an
arm's mean reward in the log is that of those who got it.  With p the propensity of a record's arm
and f the least one of that arm in the log, a record is taken with probability f / p, by a draw of
its own: then whoever a person is, she is among an arm's records with probability f, and their mean
is the arm's.  No record counts more than once, and sensitivities stay as they are; weights 1 / p
would multiply them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..policies import Policy
from ..session import Choice
from ..validation import flag, integer


class Fitted(NamedTuple):
    """What a policy has learned from.

    Attributes:
        used: records of each arm that have entered, shape (K,).
        left: those that have not: propensities left them out, or a batch would have needed more.

    Where contexts are private, both tell of the log's people: they are for whoever has the log.
    """

    used: np.ndarray
    left: np.ndarray


class _Log(NamedTuple):
    arms: np.ndarray  # (n,) int64
    rewards: np.ndarray  # (n,)
    contexts: Any  # (n, ...) what ``pull`` takes, or None


def fit_logs(
    policy: Policy,
    frame: Any,
    *,
    private: bool = True,
    arm: str = "arm",
    reward: str = "reward",
    features: Sequence[str] | str | np.ndarray | None = None,
    propensity: str | None = None,
    seed: int = 0,
) -> Fitted:
    """Let a policy learn from a log, before its first pull.

    Args:
        policy: which has made no pull.  It must be able to learn from arms that it has not chosen:
            policies for finite arms on sums, and linear models.
        frame: a pandas or Arrow table, or a dictionary of columns; a row for each record, in the
            order in which they came.
        private: whether the log's rewards are protected.  False where they are public: then they
            cost nothing, and get no noise.
        arm: the column of arms, from 0.
        reward: the column of rewards.  They are clipped to the policy's ``reward_range``, and never
            to their own; what is NaN counts as ``default_reward``.
        features: for policies with contexts: the columns of one vector, the column of what ``pull``
            takes, or an array of that for each record.
        propensity: the column of the probabilities with which the arms were drawn, where they went
            by features that the policy does not see.
        seed: of the draws that propensities ask for.

    Returns:
        How many records of each arm were used, and how many are left.

    Raises:
        ArgumentError: the policy cannot learn from a log, or has pulled; or a column is missing, or
            not what it should be.
        BudgetExhausted: a running sum was planned for fewer records; what came before has entered.

    Example:
        >>> from dpbandits import ZCDP, MergedIMED
        >>> policy = MergedIMED(2, budget=ZCDP(0.5), seed=1)
        >>> log = {"arm": [0, 1] * 50, "reward": [0.0, 1.0] * 50}
        >>> fit_logs(policy, log).used.tolist()
        [45, 45]
        >>> policy.ledger.spent(), policy.pull().arm
        (ZCDP(rho=0.5), 1)
    """
    _refuse(policy)
    flag("private", private)
    log = _read(policy, frame, arm, reward, features)
    counts = np.bincount(log.arms, minlength=policy.n_arms)
    if propensity is not None:
        rng = np.random.default_rng(integer("seed", seed, 0))
        log = choose_records(log, _numbers(frame, propensity), features, rng)
    policy.assume(_assumption(policy, int(counts.sum()), private))
    walk = _play(policy, log) if private else _publish(policy, log)
    used = np.bincount([log.arms[i] for i in walk], minlength=policy.n_arms)
    return Fitted(used, counts - used)


def _assumption(policy: Policy, n: int, private: bool) -> str:
    if not private:
        return f"the log of {n} records that it began with is public, and owes nothing to rewards"
    told = "order" if policy.card.hides_contexts else "arms, features, propensities and order"
    return (
        f"the {told} of the log of {n} records that it began with owe nothing to rewards, and"
        " nobody in it comes again"
    )


def _refuse(policy: Policy) -> None:
    if not isinstance(policy, Policy) or not policy.learns_off_policy:
        raise ArgumentError(
            "policy must be one for finite arms on sums, or a linear model: what others make of a"
            f" reward depends on why they chose the arm; got {policy!r}",
            "policy",
        )
    if policy.takes_reports:
        raise ArgumentError(
            f"policy must take rewards: a log holds none that devices randomised, got {policy!r}",
            "policy",
        )
    if policy.max_rounds is not None:
        raise ArgumentError(
            f"policy must not count the rounds of users, got max_rounds={policy.max_rounds}",
            "policy",
        )
    if policy.session.rounds.recorded or policy.session.rounds.pulls or policy.session.told:
        raise ArgumentError(
            "policy must be new: its records, or a log's, may be among the releases that it has"
            f" made, got {policy!r}",
            "policy",
        )


# Reading ------------------------------------------------------------------------------------------


def _column(frame: Any, name: str) -> Any:
    try:
        return frame[name]
    except (KeyError, IndexError, TypeError, ValueError):
        raise ArgumentError(f"frame must have a column {name!r}", "frame") from None


def _numbers(frame: Any, name: str) -> np.ndarray:
    column = _column(frame, name)
    try:
        return np.array(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be a column of numbers", name) from None


def _read(policy: Policy, frame: Any, arm: str, reward: str, features: Any) -> _Log:
    """The log, of which every row has been looked at: nothing is learned from half of one."""
    given, rewards = _numbers(frame, arm), _numbers(frame, reward)
    if given.ndim != 1 or rewards.shape != given.shape:
        raise ArgumentError(f"{reward} must be a column as long as {arm}", reward)
    arms = np.nan_to_num(given, nan=-1.0).astype(np.int64)
    if not (np.all(arms == given) and np.all((arms >= 0) & (arms < policy.n_arms))):
        raise ArgumentError(f"{arm} must be whole numbers from 0 to {policy.n_arms - 1}", arm)
    if np.isin(arms, policy.retired).any():
        raise ArgumentError(f"{arm} must hold arms that are not retired", arm)
    for value in rewards:
        policy.checked_reward(float(value))
    contexts = _contexts(frame, features)
    if contexts is not None and len(contexts) != arms.size:
        raise ArgumentError(f"features must have an entry for each of {arms.size} records")
    blanked = policy.session.rounds.blanked
    for one, chosen in zip([None] if contexts is None else contexts, arms, strict=False):
        shown = policy.seen(one)
        if isinstance(shown, np.ndarray) and chosen >= len(shown):
            raise ArgumentError(f"features must have a row for every {arm} that was chosen")
    policy.session.rounds.blanked = blanked  # they are looked at once more
    return _Log(arms, rewards, contexts)


def _contexts(frame: Any, features: Any) -> Any:
    if features is None or isinstance(features, np.ndarray):
        return features
    if not isinstance(features, str):
        return np.column_stack([_numbers(frame, name) for name in features])
    column = _column(frame, features)
    try:
        return np.array(
            _nested(column.to_pylist() if hasattr(column, "to_pylist") else column), float
        )
    except (TypeError, ValueError):
        raise ArgumentError(f"{features} must hold arrays of one shape", features) from None


def _nested(column: Any) -> Any:
    """Lists of lists of numbers, whatever holds them: a data frame has arrays of arrays."""
    return [_nested(one) for one in column] if hasattr(column, "__len__") else column


def choose_records(
    log: _Log, propensities: np.ndarray, features: Any, rng: np.random.Generator
) -> _Log:
    """The records whose arms are as if drawn without looking at anybody."""
    if features is not None:
        raise ArgumentError(
            "propensity must not be given with features: a model of rewards given features does not"
            " mind by what an arm was chosen, if it was by these",
            "propensity",
        )
    if propensities.shape != log.arms.shape or not np.all(
        (propensities > 0.0) & (propensities <= 1.0)
    ):
        raise ArgumentError(
            f"propensity must be a column of {log.arms.size} numbers in (0, 1]", "propensity"
        )
    least = np.ones(int(log.arms.max(initial=0)) + 1)
    np.minimum.at(least, log.arms, propensities)
    taken = np.flatnonzero(rng.random(log.arms.size) < least[log.arms] / propensities)
    return _Log(log.arms[taken], log.rewards[taken], None)


# Learning -----------------------------------------------------------------------------------------


def _batches(policy: Policy, log: _Log, params: Sequence[Any]) -> Iterator[tuple[int, list[int]]]:
    """Arms, and the records of their next batch: always of the one that is complete first.
    ``params`` are those of each arm.

    With contexts every record is a batch.  Between two of them the caller plays the first.
    """
    if log.contexts is not None:
        for i, arm in enumerate(log.arms.tolist()):
            yield arm, [i]
        return
    kernels, side = policy.driven, policy.session.state
    queues = [np.flatnonzero(log.arms == a).tolist() for a in range(policy.n_arms)]
    met = [0] * policy.n_arms
    while True:
        best: tuple[int, int, int] | None = None
        for a, queue in enumerate(queues):
            n = int(kernels.hold_rounds(params[a], side.public, a)) if met[a] < len(queue) else 0
            if 0 < n <= len(queue) - met[a] and (best is None or queue[met[a] + n - 1] < best[0]):
                best = queue[met[a] + n - 1], a, n
        if best is None:
            return
        _, a, n = best
        yield a, queues[a][met[a] : met[a] + n]
        met[a] += n


def _shown(log: _Log, i: int) -> Any:
    return None if log.contexts is None else log.contexts[i]


def _row(policy: Policy, log: _Log, i: int, arm: int) -> Any:
    """The features of an arm as the algorithm takes them; 0 where there are none."""
    shown = policy.seen(_shown(log, i))
    return shown[arm].copy() if isinstance(shown, np.ndarray) else 0


def _play(policy: Policy, log: _Log) -> Iterator[int]:
    """Each record as a round; tells which."""
    rounds = policy.session.rounds
    for arm, batch in _batches(policy, log, [policy.params] * policy.n_arms):
        if not policy.card.learns_at_once:
            rounds.current_choice, rounds.left = Choice(arm, np.nan), len(batch)
        for i in batch:
            decision = policy.pull(_shown(log, i))
            if policy.card.learns_at_once:
                # nothing of this round has been booked: its answer says which arm it was
                pending, x = rounds.pending, _row(policy, log, i, arm)
                pending[decision.number] = pending[decision.number]._replace(arm=arm, weights=x)
            policy.update(log.rewards[i], decision)
            yield i
        policy.finish()


def _publish(policy: Policy, log: _Log) -> Iterator[int]:
    """The same past the wall: sums are published as they are."""
    kernels, state = policy.driven, policy.session.state
    counts = np.bincount(log.arms, minlength=policy.n_arms)
    params = [policy.params_for(max(int(n), 1)) for n in counts]
    (lo, hi), noise = policy.reward_range, policy.session.gate.noise
    rewards = np.where(np.isnan(log.rewards), policy.default_reward, log.rewards)
    if policy.clip:
        rewards = np.clip(rewards, lo, hi)
    for arm, batch in _batches(policy, log, params):
        own = params[arm]
        for i in batch:
            x = _row(policy, log, i, arm)
            kernels.record_pull(own, state.public, arm, x, 1)
            kernels.weigh(own, state.public, arm, x)
            kernels.accumulate(own, state.raw, arm, x, noise.to_grid(float(rewards[i])), 1)
            yield i
        if kernels.release_due(own, state.public):
            _pass(policy, own)


def _pass(policy: Policy, params: Any) -> None:
    """Publish what is due without noise."""
    kernels, state = policy.driven, policy.session.state
    exact = np.zeros_like(state.wall.statistic)
    kernels.close(params, state.public, state.memo)
    kernels.summarise(params, state.raw, state.public, state.memo, exact)
    if state.wall.earlier.size:  # a running sum
        state.wall.earlier[:] += exact
        exact = state.wall.release
        exact[:] = state.wall.earlier
    kernels.publish(params, state.public, state.memo, exact)
