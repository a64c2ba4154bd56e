"""``pull`` + ``update`` of every policy, how many functions of Python they call, what secure noise
adds, and the memory that rounds keep.

One round at a time by the clock, and the median of them: a release, or other work on the machine,
does not show in it, so the remark has the mean, and what rounds with a release take.  Policies take
turns of some rounds each, so that all meet the same machine.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from dpbandits import PureDP, conclude
from dpbandits.algorithms import EXP3, HTINF, MergedIMED, RSLinearIMED
from dpbandits.algorithms.bases.local import LocalPolicy
from dpbandits.papers.concentrated import AdaCUCB, AdaPUCB
from dpbandits.policies import Policy, registered
from dpbandits.simulation.simulating import what_is_taken

from .timing import Row, best, scaled

ROUNDS = 20_000
TURN = 500  # rounds


class Person(NamedTuple):
    """What is known of a person before the decision, and her answer, or the report of it."""

    shown: np.ndarray | None
    answer: float


class Served(NamedTuple):
    """Round by round: microseconds, and whether there was a release."""

    microseconds: np.ndarray
    released: np.ndarray

    def median(self, *, released: bool) -> float:
        return float(np.median(self.microseconds[self.released == released]))


def rows(size: float) -> Iterator[Row]:
    rounds = scaled(ROUNDS, size, 20)
    yield from _simulated(rounds)
    yield from _called(rounds)
    yield from _masked(rounds)
    yield _held_out(rounds)
    yield from _secure(rounds)
    yield from _intervals(rounds)
    yield _memory(rounds)


def _simulated(rounds: int) -> Iterator[Row]:
    """Every registered policy."""
    cases = []
    for cls in registered().values():
        given = _arguments(cls, rounds)
        people = _people(cls(**given), rounds)
        serve(cls(**given), people)  # a twin, with the same rounds: all is compiled
        cases.append((cls(**given), people))
    for (policy, _), served in zip(cases, _in_turns(cases, rounds), strict=True):
        yield Row(
            f"pull + update, {policy.preset}, {policy.budget or 'open'}",
            float(np.median(served.microseconds)),
            "us",
            "<= 20",
            f"mean {served.microseconds.mean():.1f}; {_said_of_releases(served)}",
        )


def _called(rounds: int) -> Iterator[Row]:
    """Calls of functions in Python, which take most of the time, and are equally many anywhere."""
    for cls, most in ((MergedIMED, 46), (RSLinearIMED, 56), (EXP3, 77)):
        policy = cls(**_arguments(cls, 2 * rounds))
        people = _people(policy, rounds)
        _play(policy, people)
        calls = 0

        def counted(_: FrameType, event: str, __: Any) -> None:
            nonlocal calls
            calls += event == "call"

        before = sys.getprofile()
        sys.setprofile(counted)
        try:
            _play(policy, people)
        finally:
            sys.setprofile(before)
        name = f"Python calls of pull + update, {cls.__name__}"
        yield Row(name, calls / rounds, "", f"<= {most}", "mean")


def _play(policy: Policy, people: list[Person]) -> None:
    for person in people:
        policy.update(person.answer, policy.pull(person.shown))


def _arguments(cls: type[Policy], rounds: int) -> dict[str, Any]:
    """Those of the small instance, for so many rounds; where devices randomise rewards, people
    report.
    """
    budget = (*cls.example_budgets(), None)[0]
    given: dict[str, Any] = {**cls.example, "budget": budget, "seed": 1}
    if "horizon" in given:
        given["horizon"] = max(given["horizon"], rounds)
    if issubclass(getattr(cls, "policy_class", cls), LocalPolicy):
        given["reports"] = True
    return given


def _masked(rounds: int) -> Iterator[Row]:
    """Six of ten arms by their names, beside the same policy without names and masks."""
    names = [f"arm {a}" for a in range(10)]
    for cls in (MergedIMED, HTINF):
        plain = cls(10, budget=PureDP(1.0), seed=1)
        masked = cls(10, budget=PureDP(1.0), seed=1, arm_names=names)
        people = _people(plain, rounds)
        available = [[], names[2:8]]
        for policy, given in zip((plain, masked), available, strict=True):
            serve(policy, people[:TURN], given)
        without, among = _in_turns([(plain, people), (masked, people)], rounds, available)
        once, again = np.median(without.microseconds), np.median(among.microseconds)
        remark = f"{again:.1f} us after {once:.1f} us"
        name = f"pull + update, {cls.__name__}, with names and masks"
        yield Row(name, float(again / once), "x without", "<= 1.2", remark)


def _held_out(rounds: int) -> Row:
    """With a holdout, beside the same policy without."""
    cases = []
    for holdout in (None, 0.1):
        policy = MergedIMED(3, budget=PureDP(1.0), seed=1, holdout=holdout)
        people = _people(policy, rounds)
        serve(policy, people[:TURN])
        cases.append((policy, people))
    plain, held = (one.median(released=False) for one in _in_turns(cases, rounds))
    name = "holdout of 10 %: pull + update, MergedIMED"
    return Row(name, held / plain, "x without", "<= 1.3", f"{held:.1f} us after {plain:.1f} us")


def _intervals(rounds: int) -> Iterator[Row]:
    """Of all arms, of a difference, of the leader's margin, and a report, with Laplace noise."""
    policy = MergedIMED(3, budget=PureDP(1.0), seed=1)
    _play(policy, _people(policy, rounds))
    remark = f"3 arms, {policy.ledger.releases} releases"
    for name, pair in (("intervals", None), ("interval of a difference", (0, 1))):
        seconds = best(lambda pair=pair: policy.intervals(difference=pair), 10)
        yield Row(name, 1e3 * seconds, "ms", "<= 200", remark)
    yield Row("is it decided?", 1e3 * best(policy.decided, 5), "ms", "<= 400", remark)
    seconds = best(lambda: conclude(policy, control=0), 5)
    yield Row("report of a trial", 1e3 * seconds, "ms", "<= 500", remark)


def _in_turns(
    cases: list[tuple[Policy, list[Person]]], rounds: int, available: Sequence[list[str]] = ()
) -> list[Served]:
    turns: list[list[Served]] = [[] for _ in cases]
    masks = available or [[] for _ in cases]
    for start in range(0, rounds, TURN):
        for (policy, people), own, mask in zip(cases, turns, masks, strict=True):
            own.append(serve(policy, people[start : start + TURN], mask))
    return [Served(*map(np.concatenate, zip(*own, strict=True))) for own in turns]


def _said_of_releases(served: Served) -> str:
    count = int(served.released.sum())
    if count in (0, served.released.size):
        return "no release" if count == 0 else "every round releases"
    return f"{count} of {served.released.size} rounds release, {served.median(released=True):.1f}"


def serve(policy: Policy, people: list[Person], available: Sequence[str] = ()) -> Served:
    served = Served(np.zeros(len(people)), np.zeros(len(people), bool))
    mask = available or None
    for i, person in enumerate(people):
        before, start = policy.ledger.releases, time.perf_counter_ns()
        policy.pull(person.shown, available=mask)
        policy.update(person.answer)
        served.microseconds[i] = (time.perf_counter_ns() - start) / 1000
        served.released[i] = policy.ledger.releases > before
    return served


def _people(policy: Any, count: int) -> list[Person]:
    """People as the policy meets them: with features, advice, or a device that randomises."""
    rng = np.random.default_rng(1)
    answers = rng.random(count).round().tolist()
    if isinstance(policy, LocalPolicy):
        answers = list(map(policy.randomiser(), answers))
    taken = what_is_taken(type(policy))
    if taken == "no contexts":
        return [Person(None, answer) for answer in answers]
    if taken == "advice":
        shown = rng.dirichlet(np.ones(policy.n_arms), (count, policy.n_experts))
    else:
        shown = rng.standard_normal((count, policy.n_arms, policy.dimension))
        shown *= 0.9 / np.linalg.norm(shown, axis=2, keepdims=True)
    return list(map(Person, shown, answers))


def _secure(rounds: int) -> Iterator[Row]:
    """Rounds with and without a release."""
    for cls, budget in ((AdaPUCB, PureDP(1.0)), (AdaCUCB, AdaCUCB.example_budgets()[0])):
        name = f"pull + update, {cls.__name__}, secure noise"
        try:
            policy = cls(3, budget=budget, noise="secure")
        except ImportError as missing:
            yield Row.skipped(name, missing)
            continue
        served = serve(policy, _people(policy, rounds))
        yield Row(f"{name}, no release", served.median(released=False), "us", "<= 20", "median")
        yield Row(f"{name}, release", served.median(released=True), "us", "<= 150", "median")


def _memory(rounds: int) -> Row:
    policy = AdaCUCB(5, budget=AdaCUCB.example_budgets()[0], seed=1)
    people = _people(policy, rounds)
    serve(policy, people)
    tracemalloc.start()
    for _ in range(5):
        serve(policy, people)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    name = f"memory kept by {5 * rounds:,} more rounds of AdaC-UCB"
    return Row(name, grown / 1024, "KiB", "", "independent of T")
