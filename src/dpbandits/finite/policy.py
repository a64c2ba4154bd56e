"""Finite policies, and their exact privacy.

An adversary sees decisions, and nothing is approximated.  ``law`` lists the law of a small policy.
``views`` covers all neighbouring worlds and all adversaries of a view.  ``divergences`` takes the
largest divergence.

**Errors.**  If all probabilities are fractions, everything is computed in fractions but for
exponentials and logarithms.  Floats are rounded a few times in the probability of a sequence, and
again in sums.  ``delta`` is right to some 1e-14, the others to some 1e-12 of their size where
probabilities are no smaller than 1e-3.  Zeros are exact in both: an event that is impossible in one
world only is not taken for a rare one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, Self

import numpy as np

from ..errors import ArgumentError
from ..validation import integer, number
from . import divergences
from .law import MOST, checked, law_of, refuse_large, through
from .views import MOST_EXACT, MOST_LEAVES, Game, Joint, Sizes, View, games

_MOST_ASKED = 10**5  # histories after which a policy of the package is asked: a minute


class FinitePolicy:
    """A policy as tables of probabilities: of every arm after every history.

    Args:
        probabilities: for each round t, from 1, a table with a column for each arm and a row for
            each history (a_1, r_1, ..., a_(t-1), r_(t-1)), whose digits number the rows, the first
            one counting most.  With contexts a history is (x_1, a_1, r_1, ..., x_t).  Any nesting
            with rows in this order will do.  Floats, or for exact results integers, ``Fraction``
            and text like "2/3" throughout.
        rewards: the values that a reward may take.
        contexts: the values that a context may take, if there are contexts.

    When to choose: to compute the privacy of a policy with few rounds exactly, to test a definition
    of privacy, or to refute a claim.  Time and memory grow exponentially with the horizon: with two
    arms and binary rewards 5 rounds are feasible, or 6 where no arms are queried.

    Attributes:
        sizes: the numbers of arms, rewards, contexts and rounds.

    Raises:
        ArgumentError: a table does not fit, a row is no distribution, or there is too much of it.

    Example:
        Arm 1 follows a reward of 1 with probability 3/4, and a reward of 0 with 1/4:

        >>> after = [["3/4", "1/4"], ["1/4", "3/4"]]  # by reward
        >>> policy = FinitePolicy([["1/2", "1/2"], [after, after]])  # by arm
        >>> round(policy.epsilon(0.0), 6), round(policy.delta(0.5), 6)
        (1.098612, 0.33782)
    """

    _hidden = False  # whether it knows reports that nobody else does

    def __init__(
        self,
        probabilities: Sequence[object] | np.ndarray,
        *,
        rewards: Sequence[object] = (0, 1),
        contexts: Sequence[object] = (),
    ) -> None:
        tables = checked(probabilities)
        if not isinstance(contexts, Sequence | np.ndarray):
            raise ArgumentError(f"contexts must be a sequence, got {contexts!r}", "contexts")
        k, exact = tables[0].shape[1], tables[0].dtype == object
        sizes = Sizes(k, _length("rewards", rewards), max(len(contexts), 1), len(tables))
        refuse_large(sizes, MOST_EXACT if exact else MOST)
        records = sizes.contexts * k * sizes.rewards
        for t, table in enumerate(tables):
            expected = (records**t * sizes.contexts, k)
            if table.shape != expected:
                raise ArgumentError(
                    f"probabilities[{t}] must have {expected[0]:,} rows, one for each history, and"
                    f" {k} columns, got {table.shape[0]:,} and {table.shape[1]}",
                    "probabilities",
                )
        self.sizes, self._law = sizes, law_of(tables, sizes)

    @classmethod
    def from_function(
        cls,
        n_arms: int,
        horizon: int,
        choose: Callable[..., Sequence[object]],
        *,
        rewards: Sequence[object] = (0, 1),
        contexts: Sequence[object] = (),
    ) -> Self:
        """Make a policy from a function: ``choose(arms, rewards)`` after that history.

        With contexts it is ``choose(arms, rewards, contexts)``; the last context is the current
        one.  Its result is the probability of each arm.

        Returns:
            The policy with these probabilities in every history of fewer than ``horizon`` rounds.

        Raises:
            ArgumentError: an argument is out of range, a result of ``choose`` is no distribution,
                or there are too many histories.

        Example:
            >>> def follow(arms, rewards):
            ...     return [0.5, 0.5] if not rewards or rewards[-1] else [0.25, 0.75]
            >>> FinitePolicy.from_function(2, 3, follow)
            FinitePolicy(2 arms, 2 rewards, 3 rounds)
        """
        shown = tuple(contexts) or (None,)
        k, rounds = integer("n_arms", n_arms, 1), integer("horizon", horizon, 1)
        refuse_large(Sizes(k, _length("rewards", rewards), len(shown), rounds))
        tables = []
        for done in range(rounds):
            table = []
            for *told, x in product(*(shown, range(k), rewards) * done, shown):
                seen = [(*told[0::3], x)] if contexts else []
                table.append(choose(tuple(told[1::3]), tuple(told[2::3]), *seen))
            tables.append(table)
        return cls(tables, rewards=rewards, contexts=contexts)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a policy from a JSON object, whose entries are the arguments by name.

        Returns:
            The policy; exact if probabilities are integers, and text like "2/3", throughout.

        Raises:
            ArgumentError: the text is no such object, or an argument does not fit.

        Example:
            >>> FinitePolicy.from_json('{"probabilities": [[["1/3", "2/3"]]], "rewards": [0, 1]}')
            FinitePolicy(2 arms, 2 rewards, 1 rounds)
        """
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ArgumentError(f"text must be JSON: {error}", "text") from None
        known = {"probabilities", "rewards", "contexts"}
        if not isinstance(given, dict) or "probabilities" not in given or given.keys() - known:
            raise ArgumentError(
                "text must be a JSON object with probabilities, and optionally rewards and"
                " contexts",
                "text",
            )
        for name, value in given.items():
            if not isinstance(value, list):
                raise ArgumentError(f"{name} must be a list, got {value!r}"[:300], name)
        return cls(**given)

    @classmethod
    def from_reports(
        cls,
        make: Callable[..., Any],
        horizon: int,
        *,
        rewards: Sequence[float] = (0.0, 1.0),
        grid: float = 1.0,
        reach: int = 20,
    ) -> Self:
        """Make a policy of this package under local trust, with its randomisers.

        The running policy gives its arm after every history of reports, and reports have the law of
        secure noise.

        Args:
            make: makes the policy, given the options that are set here: ``reports``, ``noise``,
                ``grid``, and ``choices_public``, because the interactive adversary replaces arms.
                The policy's choices must be deterministic.
            horizon: number of rounds.
            rewards: the values that a reward may take.
            grid: the grid of the noise.
            reach: reports that lie more grid units than this outside of the reward range are cut to
                it.

        Returns:
            The policy of rewards, ``behind`` the law of its reports.

        Raises:
            ArgumentError: the choices draw random numbers, an argument is out of range, or there
                are too many histories.

        Example:
            >>> from functools import partial
            >>> from dpbandits import PureDP
            >>> from dpbandits.papers.others import LDPUCB
            >>> policy = FinitePolicy.from_reports(partial(LDPUCB, 2, budget=PureDP(1.0)), 3)
            >>> policy.epsilon(0.0) <= 1.0
            True
        """

        def policy() -> Any:
            return make(reports=True, noise="secure", grid=grid, choices_public=True)

        first = policy()
        reports, channel = first.randomiser().law(rewards, reach)

        def choose(arms: tuple[int, ...], told: tuple[float, ...]) -> Sequence[float]:
            asked = policy()
            for arm, report in zip(arms, told, strict=True):
                asked.pull()
                asked.update(report, arm=arm)
            decision = asked.pull()
            if decision.propensity != 1.0:
                raise ArgumentError(
                    f"make must return a policy that chooses deterministically, got {asked!r}",
                    "make",
                )
            return [float(arm == decision.arm) for arm in range(asked.n_arms)]

        k, rounds = first.n_arms, integer("horizon", horizon, 1)
        refuse_large(Sizes(k, reports.size, 1, rounds))
        if (asked := sum((k * reports.size) ** t for t in range(rounds))) > _MOST_ASKED:
            raise ArgumentError(
                f"horizon must be shorter, or reach smaller: {k} arms, {reports.size} reports and"
                f" {rounds} rounds have {asked:,} histories, and at most {_MOST_ASKED:,} are"
                " feasible",
                "horizon",
            )
        told_of = cls.from_function(k, rounds, choose, rewards=reports.tolist())
        return told_of.behind(channel)

    def behind(self, channel: Sequence[object] | np.ndarray) -> Self:
        """Put a channel before this policy: it takes reports for rewards.

        Args:
            channel: shape (rewards, reports): the probability that a reward is reported as each of
                the values that this policy takes.  A reward is reported once.

        Returns:
            The policy of rewards, whose adversary does not see reports.

        Raises:
            ArgumentError: ``channel`` has no column for each value, a row is no distribution, or
                there are too many histories.

        Example:
            With randomised response even the worst adversary sees no more than epsilon = ln 3:

            >>> told = [[[1, 0], [0, 1]], [[1, 0], [0, 1]]]
            >>> copies = FinitePolicy([["1/2", "1/2"], told])
            >>> coin = [["3/4", "1/4"], ["1/4", "3/4"]]
            >>> copies.epsilon(0.0), round(copies.behind(coin).epsilon(0.0), 6)
            (inf, 1.098612)
        """
        (table,) = checked([channel])
        if table.shape[1] != self.sizes.rewards:
            raise ArgumentError(
                f"channel must have {self.sizes.rewards} columns, one for each value that the"
                f" policy takes, got {table.shape[1]}",
                "channel",
            )
        exact = self._law.dtype == table.dtype == object
        refuse_large(self.sizes._replace(rewards=len(table)), MOST_EXACT if exact else MOST)
        behind = self.__class__.__new__(self.__class__)
        behind._law = through(self._law, self.sizes, table)
        behind._hidden = True
        behind.sizes = self.sizes._replace(rewards=len(table))
        return behind

    def __repr__(self) -> str:
        return f"FinitePolicy({self.sizes})"

    def delta(
        self, epsilon: float | Sequence[float], view: View = "interactive", *, joint: Joint = False
    ) -> float | np.ndarray:
        """The least delta for an epsilon of at least 0 or infinity.

        Args:
            epsilon: one or several.
            view: "view", "table", "interactive" or "adaptive", from the weakest to the strongest;
                "anticipating", with ``joint`` only.  The definitions are in ``finite.views``.
            joint: whether contexts are private, and the person's own decision is hidden: True or
                "others" for an adversary that sees all other decisions, "later" for one that sees
                later ones.

        Returns:
            A number from 0 to 1; an array for several epsilons.

        Raises:
            ArgumentError: an argument is outside its range, or there is too much to go through.

        See also: ``epsilon``, ``rho``.
        """
        played = self._games(view, joint)
        return _each("epsilon", epsilon, 0.0, lambda one: divergences.delta(played, one))

    def epsilon(
        self, delta: float | Sequence[float], view: View = "interactive", *, joint: Joint = False
    ) -> float | np.ndarray:
        """Least epsilon for a delta in [0, 1], infinite where none is enough; else as ``delta``."""
        played = self._games(view, joint)
        return _each("delta", delta, 0.0, lambda one: divergences.epsilon(played, one), 1.0)

    def renyi(
        self, order: float | Sequence[float], view: View = "interactive", *, joint: Joint = False
    ) -> float | np.ndarray:
        """The largest Rényi divergence of an order, or of several; ``view`` and ``joint`` are as of
        ``delta``.

        Returns:
            A number, or an array for several orders.  At order 1 it is the divergence of Kullback
            and Leibler, at infinity ``epsilon(0)``.

        Raises:
            ArgumentError: as for ``delta``; or an order is less than 1.
        """
        played = self._games(view, joint)
        return _each("order", order, 1.0, lambda one: divergences.renyi(played, one))

    def rho(self, view: View = "interactive", *, joint: Joint = False) -> float:
        """The least rho with which the policy is rho-zCDP, or up to a millionth more."""
        return divergences.rho(self._games(view, joint))

    def _games(self, view: View, joint: Joint) -> list[Game]:
        most = MOST_EXACT if self._law.dtype == object else MOST_LEAVES
        return list(games(self._law, self.sizes, view, joint, most, hidden=self._hidden))


def _each(
    name: str, value: Any, low: float, measure: Callable[[Any], float], high: float = np.inf
) -> float | np.ndarray:
    """The measure at a number from ``low`` to ``high``, or an array for several."""
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return np.array([_each(name, one, low, measure, high) for one in value])
    if not isinstance(value, Fraction):
        value = number(name, value)
    if not low <= value <= high:
        among = f"at least {low:g}" if high == np.inf else f"from {low:g} to {high:g}"
        raise ArgumentError(f"{name} must be {among}, got {value!r}", name)
    return measure(value)


def _length(name: str, values: Sequence[object]) -> int:
    if not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
        raise ArgumentError(
            f"{name} must be a sequence with at least one value, got {values!r}", name
        )
    return len(values)
