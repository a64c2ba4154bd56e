"""Views: an adversary's choices and observations, as a game over the law of a policy.

A person's record is their reward, and their context where that is private too.  Two worlds are
neighbours if they differ in the record of one round.  A *row* is the content of a round: a context,
and in each column an arm and a reward that the policy receives.

===============  ======================================  ===========================================
view             rows of a world                         column that a round takes
===============  ======================================  ===========================================
"view"           one reward for all arms                 that of the decision
"table"          one reward for every arm                that of the decision
"interactive"    one reward for every arm                any, chosen by the adversary
"adaptive"       every reward of every arm; in the       any, chosen by the adversary
                 person's round every two of an arm
"anticipating"   an arm and a reward up to the person's  that of the decision
                 round; then one reward, as in "view"
===============  ======================================  ===========================================

The first three are Definitions 3 and 4 of Azize & Basu (2024), Concentrated Differential Privacy
for Bandits.  "adaptive" is the stronger adversary of their Remark 2.  It chooses rewards during the
run, the person's two among them; the person's round is fixed in advance.  With ``joint`` contexts
are private, too, and the decision of the person's own round is hidden (Definitions 7 and 8 there).
"anticipating" is the definition of Chen, Li, Rakhlin & Simchi-Levi (2025), which has no other form.
Without it contexts are public and alike in both worlds.

Under a joint view the arm that was really played is part of a person's record.  It depends on their
private context, and perhaps on their own choice.  Where the adversary chooses arms, the record is
therefore any (context, arm, reward) against any other.  This covers every reaction to the
recommendation.  By joint convexity, a mixture of records is told from another one no better than
the worst pair of them.  That holds for policies that are tables.  Behind a channel, the person's
decision may depend on hidden reports.  A mixture that depends on them may be told where none of its
parts is.  There the record is a context and an answer, an arm and a reward, to each decision.  An
adversary that sees later decisions alone sets earlier arms in advance there, and is only compared
with others that do.

**Deterministic adversaries suffice.** An adversary that tosses coins sees them.  Given the coins it
is deterministic.  So its observations in both worlds are mixtures of those of deterministic
adversaries, over coins with the same law in both.  A hockey-stick divergence, and the moment exp((a
- 1) D_a), of two such mixtures is the mean of those of its parts, hence at most the largest.

**Backward induction.**  Each of these is a sum over sequences of decisions o_1, ..., o_T of a
function of their probabilities (p, q) in the two worlds.  A choice after o_1, ..., o_t affects the
sequences that begin so, and no others.  So the largest sum over all adversaries is computed from
the end: sum over o_T, maximum over the choice before it, sum over o_(T-1), and so on.  A ``Game``
has its axes in that order.  Adversaries are never listed.

**Consequences for the views.**  A weaker view is a special case of a stronger one, so divergences
grow from "view" to "adaptive".  In pure DP the largest quotient belongs to one sequence of
decisions; along it an adaptive adversary gives one arm and one reward in each round, which some
table has.  So "interactive" and "adaptive" agree, as "view" and "table" do (Proposition 1(a)).  For
policies that are tables they agree in every Rényi divergence, too.  By induction from the end, the
largest sum of p^a q^(1 - a) from some history on is p^a q^(1 - a) times a number.  That number
depends on the policy's inputs, not on its decisions.  So the adversary may plan ahead.  In
(epsilon, delta) it may not: ``examples.interactive_not_adaptive``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations, product
from typing import Literal, NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..validation import choice

View = Literal["view", "table", "interactive", "adaptive", "anticipating"]
Joint = bool | Literal["others", "later"]
VIEWS: tuple[View, ...] = ("view", "table", "interactive", "adaptive")
JOINT_VIEWS: tuple[View, ...] = ("view", "table", "anticipating", "interactive", "adaptive")

MOST_LEAVES = 2**24
MOST_EXACT = 2**18  # fractions take some hundred times as long


class _Row(NamedTuple):
    """The content of a round: a context, and an arm and a reward in each column."""

    context: int
    arms: Sequence[int]  # of the columns
    rewards: Sequence[int]  # of the columns


class Sizes(NamedTuple):
    """The sizes of a finite policy: numbers of arms, rewards, contexts and rounds."""

    arms: int
    rewards: int
    contexts: int
    rounds: int

    def __str__(self) -> str:
        shown = f", {self.contexts} contexts" if self.contexts > 1 else ""
        return f"{self.arms} arms, {self.rewards} rewards{shown}, {self.rounds} rounds"


class Game(NamedTuple):
    """The probabilities of all sequences of decisions in pairs of neighbouring worlds.

    The axes are: pairs of worlds, decision, choice of the adversary, decision, ..., decision.  The
    axis of a choice has length 1 where the adversary has none.  So does that of a hidden decision.
    """

    before: np.ndarray
    after: np.ndarray


_Kind = Literal["list", "table", "record", "answers", "any", "challenge"]


class _Rules(NamedTuple):
    """The rows of a world, by position: before the person's round, in it, and after it."""

    before: _Kind
    own: _Kind
    after: _Kind
    queried: bool = False  # whether the adversary chooses columns


_RULES = {
    ("view", False): _Rules("list", "list", "list"),
    ("table", False): _Rules("table", "table", "table"),
    ("interactive", False): _Rules("table", "table", "table", queried=True),
    ("adaptive", False): _Rules("any", "challenge", "any", queried=True),
    ("view", True): _Rules("list", "list", "list"),
    ("table", True): _Rules("table", "table", "table"),
    ("anticipating", True): _Rules("record", "record", "list"),
    ("interactive", True): _Rules("table", "record", "table", queried=True),
    ("adaptive", True): _Rules("any", "record", "any", queried=True),
}


def _count(kind: _Kind, sizes: Sizes) -> int:
    """The number of rows of a kind."""
    k, r = sizes.arms, sizes.rewards
    stored = {"list": r, "table": r**k, "record": k * r, "answers": (k * r) ** k, "any": 1}
    return sizes.contexts * stored[kind]


def _columns(kind: _Kind, sizes: Sizes) -> int:
    """The number of columns of these rows."""
    k, r = sizes.arms, sizes.rewards
    return {"any": k * r, "challenge": k * r * (r - 1)}.get(kind, k)


def _rows(kind: _Kind, sizes: Sizes) -> list[_Row]:
    """They themselves, ordered by their contexts."""
    arms, rewards = range(sizes.arms), range(sizes.rewards)
    stored: Iterable[Sequence[Sequence[int]]]
    match kind:
        case "list":
            stored = [(arms, [r] * sizes.arms) for r in rewards]
        case "table":
            stored = [(arms, row) for row in product(rewards, repeat=sizes.arms)]
        case "record":
            stored = [([a] * sizes.arms, [r] * sizes.arms) for a in arms for r in rewards]
        case "answers":
            answers = product(product(arms, rewards), repeat=sizes.arms)
            stored = [tuple(zip(*row, strict=True)) for row in answers]
        case "any":
            stored = [tuple(zip(*product(arms, rewards), strict=True))]
        case "challenge":  # one row for each world
            told = [(a, *pair) for a in arms for pair in permutations(rewards, 2)]
            columns = list(zip(*told, strict=True))
            stored = [(columns[0], side) for side in columns[1:]]
    return [_Row(x, *row) for x in range(sizes.contexts) for row in stored]


def _pairs(kind: _Kind, sizes: Sizes, joint: Joint) -> list[tuple[_Row, _Row]]:
    """Rows of the person in two neighbouring worlds."""
    own = _rows(kind, sizes)
    if kind == "challenge":
        return list(zip(own[::2], own[1::2], strict=True))
    return [
        (one, other) for one, other in permutations(own, 2) if joint or one.context == other.context
    ]


def games(
    law: np.ndarray,
    sizes: Sizes,
    view: View,
    joint: Joint,
    most: int = MOST_LEAVES,
    *,
    hidden: bool = False,
) -> Iterator[Game]:
    """The game of each round in which a record may differ, of ``most`` probabilities in all.

    With ``joint``, contexts are private and the person's own decision is hidden.  True or "others"
    is for an adversary that sees all other decisions.  "later" is for one that sees those after it,
    as in the definitions of the papers, and chooses arms up to then without any observation.
    ``hidden`` says that the policy knows reports that a channel has made, and is no table (see
    ``law``).

    Raises:
        ArgumentError: there is no such view, or its games are too large; nothing was allocated.
    """
    rules = _rules(view, joint)
    if hidden and rules.queried and rules.own == "record":
        rules = rules._replace(own="answers")
    _refuse_large(sizes, view, joint, rules, most)
    return _played(law, sizes, rules, joint)


def _rules(view: View, joint: Joint) -> _Rules:
    choice("view", view, JOINT_VIEWS)
    if joint not in (False, True, "others", "later"):
        raise ArgumentError(
            f"joint must be True, False, 'others' or 'later', got {joint!r}", "joint"
        )
    if (view, bool(joint)) not in _RULES:
        raise ArgumentError(
            f"joint must be True for view={view!r}, which hides a person's decision", "joint"
        )
    return _RULES[view, bool(joint)]


def _refuse_large(sizes: Sizes, view: View, joint: Joint, rules: _Rules, most: int) -> None:
    k, _, x, t = sizes
    if rules.own == "challenge":
        pairs = x
    else:
        own = _count(rules.own, sizes)
        pairs = own * (own - 1 if joint else own // x - 1)
    before, after = (_count(kind, sizes) for kind in (rules.before, rules.after))
    worlds = x * sum(before**j * pairs * after ** (t - 2 - j) for j in range(t - 1))
    leaves = k**t * _choices(rules.before, sizes, rules) ** max(t - 2, 0)
    leaves *= _choices(rules.own, sizes, rules)
    if worlds * leaves > most:
        raise ArgumentError(
            f"{'joint ' if joint else ''}view {view!r} of {sizes} takes {worlds * leaves:,}"
            f" probabilities, and at most {most:,} are feasible: take a shorter horizon, or a"
            " weaker view",
            "view",
        )


def _choices(kind: _Kind, sizes: Sizes, rules: _Rules) -> int:
    """The number of columns among which the adversary chooses."""
    return _columns(kind, sizes) if rules.queried and kind != "answers" else 1


def _played(law: np.ndarray, sizes: Sizes, rules: _Rules, joint: Joint) -> Iterator[Game]:
    last = sizes.rounds - 1
    pairs = _pairs(rules.own, sizes, joint) if sizes.rewards > 1 or joint else []
    if not pairs:  # there is nothing to keep
        return
    before, after = _rows(rules.before, sizes), _rows(rules.after, sizes)
    for j in range(last):
        others = [before] * j + [after] * (last - 1 - j)
        # The number of each round's row, of the pair, and of the last round's context.
        lengths = (*map(len, others), len(pairs), sizes.contexts)
        *drawn, pair, shown = np.indices(lengths).reshape(len(lengths), -1)
        sides = []
        for records in zip(*pairs, strict=True):
            rounds = [
                (rows, number, rules.queried) for rows, number in zip(others, drawn, strict=True)
            ]
            rounds.insert(j, (list(records), pair, rules.queried and rules.own != "answers"))
            sides.append(_seen(law[_codes(sizes, rounds, shown)], j, joint))
        yield Game(*sides)


def _codes(
    sizes: Sizes, rounds: list[tuple[list[_Row], np.ndarray, bool]], shown: np.ndarray
) -> np.ndarray:
    """The indices in the law of all events in some worlds, with the axes of a game.

    For each round but the last, ``rounds`` has the possible rows, the rows of each world, and
    whether the adversary chooses the column.  ``shown`` is the context of the last round in each
    world.
    """
    codes = np.zeros(shown.size, np.int64)
    for rows, number, queried in rounds:
        contexts, arms, rewards = (np.array(part)[number] for part in zip(*rows, strict=True))
        codes = _decided(sizes, codes, contexts)
        told = arms * sizes.rewards + rewards  # by world and column
        if queried:
            codes, told = codes[..., np.newaxis], told[:, np.newaxis]
        codes = codes * (sizes.arms * sizes.rewards) + _beside(told, codes.ndim)
        codes = codes if queried else codes[..., np.newaxis]
    return _decided(sizes, codes, shown)


def _decided(sizes: Sizes, codes: np.ndarray, contexts: np.ndarray) -> np.ndarray:
    """The codes after a context was shown and a decision made."""
    shown = codes * sizes.contexts + _beside(contexts, codes.ndim)
    return shown[..., np.newaxis] * sizes.arms + np.arange(sizes.arms)


def _beside(values: np.ndarray, ndim: int) -> np.ndarray:
    """Values by world, and perhaps by the last axis, as an array of ``ndim`` axes."""
    return values.reshape(len(values), *[1] * (ndim - values.ndim), *values.shape[1:])


def _seen(law: np.ndarray, j: int, joint: Joint) -> np.ndarray:
    """The law of the decisions that are seen if the record of round j, from 0, is private."""
    if not joint:
        return law
    hidden = range(j + 1) if joint == "later" else (j,)
    return law.sum(axis=tuple(1 + 2 * t for t in hidden), keepdims=True)
