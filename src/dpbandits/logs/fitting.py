"""Warm starts: a policy learns from the log of another one, before its first pull.

**Private logs** go through the same wall as later rewards.  Each record is a round of the policy,
with the log's arm instead of the policy's own choice.  ``pull``, ``update`` and ``finish`` process
it: it enters one release as any other record does, and the ledger gets its lines.  Neighbouring
logs differ in the protected part of one record, and releases are as far apart as for two streams of
answers.  Unprotected data decide which records are summed together: arms, their order, and public
features.  They must not depend on rewards of the log.

**Public logs** do not depend on protected rewards.  Their sums are published as they are, past the
wall: without noise, and at no cost.  Later releases of a running sum add to that of the log
(``Wall.earlier``), and their noise protects only the people who come later.

**Whose arms?**  A policy may learn from arms that it has not chosen if its use of a sum does not
depend on the reason for an arm: means of arms, regressions.  Adversarial learners divide by their
own propensities, and eliminations play plans of their own: they are refused.

**Propensities.**  If the log's arms were drawn by features z that the policy does not see, an arm's
mean reward in the log is that of its own people.  Let p(z) be the probability with which a person
gets arm a, and f_a a number that all people share.  A record of arm a is taken with probability
min(1, f_a / p), by a draw of its own.  Then a person is among the records of arm a with probability
p(z) min(1, f_a / p(z)) = min(p(z), f_a).

* If no p(z) is below f_a, that is f_a for every person.  Then the records are a sample of all
  people, and their mean is the arm's.  The least propensity of the arm in the log is taken as such
  a bound.
* One record of a tiny propensity makes f_a tiny, and leaves nearly all others out.  With
  ``least_propensity`` f_a is not below that number.  Then people with p(z) < f_a are among the
  records too seldom.  They have the weight w(z) = min(p(z), f_a) / f_a in place of 1, and the mean
  is E[w r] / E[w].  The total variation between weighted and unweighted people is E[(1 - w /
  E[w])^+].  This is at most 1 - E[w], as w / E[w] >= w.  So the error of the mean is at most (1 -
  E[w]) (hi - lo).  The mean of 1{A = a} min(1, f_a / p) / f_a over n records estimates E[w] without
  bias, since P(A = a | z) min(1, f_a / p(z)) / f_a = w(z).
* Dropping all records below the bound would be worse.  The records of each arm would come from
  another population, that with p(z) >= f_a, at a distance of 1 - P(p(z) >= f_a) >= 1 - E[w].

No record counts more than once, and sensitivities stay as they are; weights 1 / p would multiply
them.  The choice of records depends on propensities and draws alone, which guarantees assume
independent of rewards.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..policies import Policy
from ..policies.watch import LOGGER
from ..session import Choice
from ..session.open_arms import row
from ..tables import Frame
from ..validation import flag, integer, real
from .reading import Log, as_table, propensities, read, seen_aside
from .schedule import batches

_SHARE = 0.1  # of a log's records, of which operators hear


class Fitted(NamedTuple):
    """Counts of the records that a policy has learned from.

    Attributes:
        used: number of records of each arm that were used, shape (K,).
        left: number of unused records: propensities excluded them, or their batch was not full.

    If contexts are private, both reveal data of the log's people: show them only to holders of the
    log.
    """

    used: np.ndarray
    left: np.ndarray


def fit_logs(
    policy: Policy,
    frame: str | os.PathLike[str] | Frame,
    *,
    private: bool = True,
    arm: str = "arm",
    reward: str = "reward",
    features: Sequence[object] | str | np.ndarray | None = None,
    propensity: str | None = None,
    least_propensity: float = 0.0,
    seed: int = 0,
) -> Fitted:
    """Let a policy learn from a log, before its first pull.

    The operator's log, the Python logger ``dpbandits``, gets warnings about missing rewards, and
    about private contexts that the policy does not take.  It also gets a warning if propensities
    exclude a tenth of the records or more.

    Args:
        policy: a policy without a pull.  It must be able to learn from arms that it has not chosen,
            like policies for finite arms on sums, and linear models.
        frame: a pandas or Arrow table, or a dictionary of columns, with a row for each record, in
            order of time; or the folder of a ``DecisionLog``.  A private log must hold each person
            at most once, and such a folder only recorded rounds.
        private: whether the log's rewards are protected.  False if they are public: then they cost
            nothing, and get no noise.
        arm: the column of arms, from 0, or of their names.  If both the policy's arms and those of
            a ``DecisionLog`` have names, arms are matched by names, not by numbers.
        reward: the column of rewards.  They are clipped to the policy's ``reward_range``; missing
            ones count as ``default_reward``.
        features: for policies with contexts: the columns of one vector, a column of arguments of
            ``pull``, or an array with one such argument per record.
        propensity: the column of the arms' probabilities, if they depended on features that the
            policy does not see.
        least_propensity: lower bound of f, where a record is taken with probability f over its
            propensity.  A larger bound uses more records, and biases the mean of the arm; the
            module ``dpbandits.logs.fitting`` bounds this bias.
        seed: of the draws that propensities require.

    Returns:
        The numbers of used records of each arm, and of unused ones.

    Raises:
        ArgumentError: the policy cannot learn from a log, or has pulled; a column is missing or
            invalid; or a running sum was planned for fewer records.  The policy has then learned
            and spent nothing.

    See also: ``DecisionLog``, ``read_logs``, ``replay``.

    Example:
        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(2, budget=ZCDP(0.5), seed=1)
        >>> log = {"arm": [0, 1] * 50, "reward": [0.0, 1.0] * 50}
        >>> fit_logs(policy, log).used.tolist()
        [45, 45]
        >>> policy.ledger.spent(), policy.pull().arm
        (ZCDP(rho=0.5), 1)
    """
    _refuse(policy)
    flag("private", private)
    lowest = real("least_propensity", least_propensity, 0.0, 1.0)
    rng = np.random.default_rng(integer("seed", seed, 0))
    table = as_table(frame, private=private)
    whole = log = read(policy, table, arm, reward, features, private=private)
    off = np.zeros(policy.n_arms)
    if propensity is None and lowest > 0.0:
        raise ArgumentError(
            f"least_propensity must be 0 if propensity is not given, got {lowest:g}",
            "least_propensity",
        )
    if propensity is not None:
        if features is not None:
            raise ArgumentError(
                "propensity must not be given with features: if arms were chosen by these"
                " features, a model of rewards and features needs no propensities",
                "propensity",
            )
        given = propensities(table, propensity, whole.arms.size)
        log, off = choose_records(whole, given, lowest, rng)
    if private:
        _refuse_long(policy, log.arms.size)
    _tell(policy, whole, log.arms.size, off)
    policy.assume(_assumption(policy, whole.arms.size, private))
    counts = np.bincount(whole.arms, minlength=policy.n_arms)
    walk = _play(policy, log) if private else _publish(policy, log)
    used = np.bincount(list(walk), minlength=policy.n_arms)
    return Fitted(used, counts - used)


def _tell(policy: Policy, log: Log, taken: int, off: np.ndarray) -> None:
    n, name = log.arms.size, policy.name or policy.preset

    def tell(count: int, words: str, *more: object) -> None:
        if count >= _SHARE * max(n, 1):
            LOGGER.warning(f"%s: {words} (docs/logs.md)", name, count, n, 100 * count / n, *more)

    tell(
        int(np.isnan(log.rewards).sum()),
        "%d of the %d rewards of the log (%.0f %%) are missing, and count as default_reward, %r",
        policy.default_reward,
    )
    tell(
        log.replaced,
        "%d of the %d contexts of the log (%.0f %%) do not fit the policy, or have no row for"
        " the arm that was played, and count as zeros",
    )
    tell(
        n - taken,
        "%d of the %d records of the log (%.0f %%) are left out because of their propensities. A"
        " larger least_propensity leaves out fewer, but biases estimates",
    )
    if off.max() > 0.0:
        LOGGER.warning(
            "%s: with this least_propensity the mean of arm %d may be off by up to %.2g times the"
            " width of reward_range (docs/logs.md)",
            *(name, off.argmax(), off.max()),
        )


def _assumption(policy: Policy, n: int, private: bool) -> str:
    if not private:
        return f"the policy began with a public log of {n} records, independent of private rewards"
    told = "order" if policy.card.hides_contexts else "arms, features, propensities and order"
    return (
        f"the policy began with a log of {n} records; their {told} do not depend on rewards, and"
        " no person in it comes again"
    )


def _refuse_long(policy: Policy, n: int) -> None:
    """Refuse more records than a running sum was planned for: how many there are is public."""
    most = policy.config.get("horizon")
    if policy.session.state.wall.running.limit > 0 and most is not None and n > most:
        raise ArgumentError(
            f"frame must have at most {most} records, got {n}: the policy was made with"
            f" horizon={most}",
            "frame",
        )


def _refuse(policy: Policy) -> None:
    if not isinstance(policy, Policy):
        raise ArgumentError(
            f"policy must be a Policy, such as dpb.Arms(...), got {type(policy).__name__}", "policy"
        )
    rounds = policy.session.rounds
    if not policy.learns_off_policy:
        wrong = (
            f"be able to use rewards of arms that it did not choose, got {policy!r}. Policies with"
            " one sum for each arm, and linear models, are able to"
        )
    elif policy.takes_reports:
        wrong = f"take rewards, not reports of devices, got {policy!r}: a log holds rewards"
    elif policy.max_rounds is not None:
        wrong = f"have max_rounds=None, got max_rounds={policy.max_rounds}"
    elif rounds.recorded or rounds.pulls or policy.session.told:
        wrong = f"be new, got {policy!r}: its earlier releases may hold records of the log"
    else:
        return
    raise ArgumentError(f"policy must {wrong}", "policy")


# Propensities -------------------------------------------------------------------------------------


def choose_records(
    log: Log, given: np.ndarray, lowest: float, rng: np.random.Generator
) -> tuple[Log, np.ndarray]:
    """Choose records of a log without contexts, with arms as if drawn independently of the person.

    Propensities are ``given``, shape (n,); ``lowest`` replaces an arm's least propensity if that is
    below it.  Also returns an estimate of the bias of each arm's mean, shape (K,), in units of the
    reward range's width: 0 without a lower bound.
    """
    least = np.ones(int(log.arms.max(initial=0)) + 1)
    np.minimum.at(least, log.arms, given)
    least = np.maximum(least, lowest)
    accepted = np.minimum(1.0, least[log.arms] / given)
    taken = np.flatnonzero(rng.random(log.arms.size) < accepted)
    weight = np.bincount(log.arms, accepted, least.size) / (least * max(log.arms.size, 1))
    capped = np.bincount(log.arms, given < least[log.arms], least.size) > 0
    return log.only(taken), np.where(capped, np.clip(1.0 - weight, 0.0, 1.0), 0.0)


# Learning -----------------------------------------------------------------------------------------


def _play(policy: Policy, log: Log) -> Iterator[int]:
    """Play each record as a round; yields its arm."""
    session = policy.session
    for arm, batch in batches(policy, log.arms):
        if not policy.card.learns_at_once:
            session.rounds.current_choice, session.rounds.left = Choice(arm, np.nan), len(batch)
        for i in batch:
            decision = policy.pull(log.shown(i))
            if policy.card.learns_at_once:
                # nothing of this round has been booked: its answer says which arm it was
                pending, x = session.rounds.pending, row(seen_aside(policy, log.shown(i)), arm)
                pending[decision.number] = pending[decision.number]._replace(arm=arm, weights=x)
            policy.update(log.rewards[i], decision)
            yield arm
        policy.finish()


def _publish(policy: Policy, log: Log) -> Iterator[int]:
    """Learn from public records past the wall: their sums are published without noise; yields the
    arm of each record.
    """
    kernels, session, state = policy.driven, policy.session, policy.session.state
    counts = np.bincount(log.arms, minlength=policy.n_arms)
    whole = policy.params_for(1) is not None
    for arm, batch in batches(policy, log.arms, whole=whole):
        own = policy.params_for(int(counts[arm])) if whole else policy.params
        for i in batch:
            x = row(policy.seen(log.shown(i)), arm)
            reward = session.intake.entering(float(log.rewards[i]), session.rounds)
            kernels.record_pull(own, state.public, arm, x, 1)
            kernels.weigh(own, state.public, arm, x)
            kernels.accumulate(own, state.raw, arm, x, reward, 1)
            yield arm
        if kernels.release_due(own, state.public):
            _pass(policy, own)
    # No round was pulled; of missing rewards the operator has heard.
    policy.watch.look(replace(session.rounds, pulls=log.arms.size, missing=0))


def _pass(policy: Policy, params: Any) -> None:
    """Publish the due sums without noise."""
    kernels, state = policy.driven, policy.session.state
    exact = np.zeros_like(state.wall.statistic)
    kernels.close(params, state.public, state.memo)
    kernels.summarise(params, state.raw, state.public, state.memo, exact)
    if state.wall.earlier.size:  # a running sum
        state.wall.earlier[:] += exact
        exact = state.wall.release
        exact[:] = state.wall.earlier
    kernels.publish(params, state.public, state.memo, exact)
