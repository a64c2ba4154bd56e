"""The definitions of privacy, read off the page: every world, every adversary, every sequence.

Nothing here knows of ``dpbandits.finite``.  A policy is a function from a history ((x_1, a_1, r_1),
..., ) and the present context to the probabilities of its arms.  What an adversary may see is a
dictionary of probabilities; a definition is a list of pairs of them, one for each two neighbours and
each deterministic adversary.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any, NamedTuple

Law = dict[tuple, Any]
Choose = Callable[[tuple, int], list]


class World(NamedTuple):
    choose: Choose
    arms: int
    rewards: int
    contexts: int
    rounds: int


def play(world: World, contexts, answer, hidden: Iterable[int] = ()) -> Law:
    """The law of what is seen, o_t or None for each round.

    ``answer(t, seen, o)`` is the arm that the policy is told of in round t, and its reward; ``seen``
    is what the adversary has seen before round t.
    """
    law: Law = defaultdict(int)

    def follow(t, told, seen, p):
        if t == world.rounds:
            law[seen] += p
            return
        for o, chance in enumerate(world.choose(told, contexts[t])):
            arm, reward = answer(t, seen, o)
            shown = None if t in hidden else o
            follow(t + 1, (*told, (contexts[t], arm, reward)), (*seen, shown), p * chance)

    follow(0, (), (), 1)
    return law


def neighbours(records: list, rounds: int, same=lambda one, other: True) -> Iterator[tuple]:
    """(j, d, d'): two lists of records, which differ in round j alone."""
    for d in product(records, repeat=rounds):
        for j in range(rounds):
            for other in records:
                if other != d[j] and same(other, d[j]):
                    yield j, d, (*d[:j], other, *d[j + 1 :])


def same_context(one, other):
    return one[0] == other[0]


def unseen(joint, j):
    return {False: (), "others": (j,), "later": tuple(range(j + 1))}[joint]


def view(world: World, joint=False) -> Iterator[tuple[Law, Law]]:
    """A list of rewards, fixed in advance."""
    records = list(product(range(world.contexts), range(world.rewards)))
    yield from _fixed(world, records, lambda record, o: record[1], joint)


def table(world: World, joint=False) -> Iterator[tuple[Law, Law]]:
    """A table of the rewards of all arms."""
    yield from _fixed(world, _rows(world), lambda record, o: record[1][o], joint)


def _fixed(world: World, records, reward, joint) -> Iterator[tuple[Law, Law]]:
    @cache
    def law(d, hidden):
        return play(world, [one[0] for one in d], lambda t, seen, o: (o, reward(d[t], o)), hidden)

    rule = (lambda one, other: True) if joint else same_context
    for j, *sides in neighbours(records, world.rounds, rule):
        yield tuple(law(d, unseen(joint, j)) for d in sides)


def interactive(world: World) -> Iterator[tuple[Law, Law]]:
    """A table, with q_t = B_t(o_1, ..., o_t) in the place of the decision."""
    for b in adversaries(world, range(world.arms)):

        @cache
        def law(d, b=b):
            shown = [x for x, _ in d]
            return play(world, shown, lambda t, seen, o: _queried(b, (*seen, o), d[t][1]))

        for _, *sides in neighbours(_rows(world), world.rounds, same_context):
            yield tuple(map(law, sides))


def joint_interactive(world: World) -> Iterator[tuple[Law, Law]]:
    """She has a context, an arm and a reward; the others are as before, and see nothing of her."""
    hers = list(product(range(world.contexts), range(world.arms), range(world.rewards)))
    for j in range(world.rounds):
        for b in adversaries(world, range(world.arms), hidden=j):
            for others in product(_rows(world), repeat=world.rounds - 1):
                laws = []
                for own in hers:
                    d = (*others[:j], own, *others[j:])
                    laws.append(
                        play(
                            world,
                            [one[0] for one in d],
                            lambda t, seen, o, d=d, b=b, j=j: (
                                d[t][1:] if t == j else _queried(b, (*seen, o), d[t][1])
                            ),
                            (j,),
                        )
                    )
                yield from product(laws, repeat=2)


def adaptive(world: World) -> Iterator[tuple[Law, Law]]:
    """Arms and rewards are made up on the way, and so is the round in which two rewards are given,
    of which the policy is told one: the challenge.
    """
    told = list(product(range(world.arms), combinations_with_replacement(range(world.rewards), 2)))
    for b in adversaries(world, told):
        paths = product(range(world.arms), repeat=world.rounds - 1)
        if any(_challenges(b, path) > 1 for path in paths):
            continue
        for contexts in product(range(world.contexts), repeat=world.rounds):
            both = [
                play(world, contexts, lambda t, seen, o, side=side, b=b: _told(b, (*seen, o), side))
                for side in (0, 1)
            ]
            yield tuple(both)
            yield tuple(both[::-1])


def anticipating(world: World) -> Iterator[tuple[Law, Law]]:
    """Histories up to round j are set, arms included, and differ in the last record; then contexts
    and rewards are fixed, and decisions after j are seen.
    """
    records = list(product(range(world.contexts), range(world.arms), range(world.rewards)))
    future = list(product(range(world.contexts), range(world.rewards)))
    for j in range(world.rounds):
        for past in product(records, repeat=j):
            for one, other in product(records, repeat=2):
                for coming in product(future, repeat=world.rounds - j - 1):
                    yield tuple(
                        play(
                            world,
                            [r[0] for r in (*past, own, *coming)],
                            lambda t, seen, o, j=j, d=(*past, own, *coming): (
                                d[t][1:] if t <= j else (o, d[t][1])
                            ),
                            range(j + 1),
                        )
                        for own in (one, other)
                    )


# Adversaries ------------------------------------------------------------------------------------


def adversaries(world: World, options, hidden=None) -> Iterator[dict]:
    """Every function from what was seen, up to now, to what is done; nothing hangs on the last."""
    seen = [
        path
        for t in range(world.rounds - 1)
        for path in product(*([None] if s == hidden else range(world.arms) for s in range(t + 1)))
        if t != hidden
    ]
    for done in product(options, repeat=len(seen)):
        yield dict(zip(seen, done, strict=True))


def _challenges(b, path):
    return sum(len(set(b[path[: t + 1]][1])) == 2 for t in range(len(path)))


def _told(b, seen, side):
    arm, rewards = b.get(seen, (0, (0, 0)))
    return arm, rewards[side]


def _queried(b, seen, row):
    arm = b.get(seen, 0)
    return arm, row[arm]


def _rows(world):
    return list(product(range(world.contexts), product(range(world.rewards), repeat=world.arms)))


# Divergences ------------------------------------------------------------------------------------


def distinct(pairs: Iterable[tuple[Law, Law]]) -> list[tuple[Law, Law]]:
    """The same without repetitions."""
    return [(dict(p), dict(q)) for p, q in {(tuple(p.items()), tuple(q.items())) for p, q in pairs}]


def hockey_stick(p: Law, q: Law, s) -> Any:
    return sum(max(p.get(o, 0) - s * q.get(o, 0), 0) for o in {*p, *q})


def over_events(p: Law, q: Law, s) -> Any:
    """The same as the definition has it: the largest over all events."""
    outcomes = sorted({*p, *q})
    return max(
        sum(p[o] - s * q[o] for o, is_in in zip(outcomes, event, strict=True) if is_in)
        for event in product((False, True), repeat=len(outcomes))
    )


def renyi(p: Law, q: Law, order: float) -> float:
    outcomes = [o for o in p if p[o] > 0]
    if any(q.get(o, 0) == 0 for o in outcomes):
        return math.inf
    if order == 1.0:
        return sum(p[o] * math.log(p[o] / q[o]) for o in outcomes)
    power = order - 1.0  # by how much the moment exceeds 1, so that small powers keep their digits
    excess = math.fsum(p[o] * math.expm1(power * math.log(p[o] / q[o])) for o in outcomes)
    return math.log1p(excess) / power
