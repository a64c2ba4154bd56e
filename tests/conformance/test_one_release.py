"""One release: compiled, and interpreted around a store, it takes the same steps in the same order
and leaves the same trace.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import pytest
from suite import BY_FAMILY, CASES, OF_KINDS, Case, over

from dpbandits.kernel import plain
from dpbandits.policies import Decision, Policy
from dpbandits.privacy.ledger import HEAD, SPAN
from dpbandits.session import gate
from dpbandits.session.steps import cross_by, steps_of
from dpbandits.stores import Announcement, Store
from dpbandits.testing.walk import frozen, play, releases, snapshot

pytestmark = pytest.mark.compiled

REWARDS = np.random.default_rng(6).random((512, 3))
# Where contexts are private, reports come without a pull: see test_local_contexts.
REPORTING = [
    case
    for case in CASES
    if case.cls.card.trust_model == "local" and case.budget and not case.cls.card.hides_contexts
]


class Moment(NamedTuple):
    """What stood where when a step of a release was taken."""

    step: str
    charged: int  # releases in the ledger
    ends: set[tuple[int, int]]  # of its lines, and their parts
    drawn: Any  # where the stream of noise stands
    public: Any
    value: Any


class Watch(Store):
    """A store in memory that looks at its policy whenever it is called."""

    def __init__(self, policy: Policy) -> None:
        self.session, self.moments = policy.session, []

    def look(self, step: str, value: Any = None) -> None:
        state = self.session.state
        drawn = {name: str(rng.bit_generator.state) for name, rng in state.streams.items()}
        ledger = state.wall.ledger
        made, lines = int(ledger.head[HEAD.releases]), ledger.span[: ledger.head[HEAD.lines]]
        ends = {(line[SPAN.last], line[SPAN.part]) for line in lines.tolist()}
        self.moments.append(Moment(step, made, ends, drawn, frozen(state.public), value))

    def announce(self, coming: Announcement) -> None:
        self.look("announce", coming.line)

    def confirm(self, values: np.ndarray) -> None:
        assert not self.session.state.wall.statistic.any()
        self.look("confirm", values.tolist())

    def read(self) -> bytes:
        raise FileNotFoundError

    def write(self, snapshot: bytes, life: Any) -> None: ...

    def announced(self, life: Any) -> list[Announcement]:
        return []

    def claim(self, life: Any) -> Any:
        return nullcontext()


def reward(decision: Decision) -> float:
    return float(REWARDS[decision.number % 512, decision.arm])


def traces(policy: Policy) -> list[dict[str, Any]]:
    """All that there is to know after each of the first releases."""
    seen, count = [], 8 if policy.card.learns_at_once else 2
    while len(seen) < count:
        play(policy, reward, until=releases(policy) + 1)
        seen.append(snapshot(policy) | {"memo": policy.session.state.memo.tobytes()})
    return seen


def watched(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """A watch in the place of the policy's store, and at its noise."""
    store = policy.session.gate.store = Watch(policy)

    def noticed(mechanism: Any) -> Any:
        def noisy(*arguments: Any) -> None:
            store.look("noise")
            mechanism(*arguments)

        return noisy

    def by(kernels: Any, mechanism: Any, tell: Any, keep: Any) -> Any:
        return cross_by(kernels, noticed(mechanism), tell, keep)

    monkeypatch.setattr(gate, "cross_by", by)
    return store


def check(policies: tuple[Policy, Policy], monkeypatch: pytest.MonkeyPatch, *, noise: bool) -> None:
    compiled = traces(policies[0])
    store = watched(policies[1], monkeypatch)
    assert traces(policies[1]) == compiled
    steps = [moment.step for moment in store.moments]
    assert steps == ["announce", "noise", "confirm"] * len(compiled)
    for i in range(len(compiled)):
        announced, drawing, confirmed = store.moments[3 * i : 3 * i + 3]
        end = announced.value.last, announced.value.part
        assert (announced.charged, drawing.charged, confirmed.charged) == (i, i + 1, i + 1)
        assert end not in announced.ends
        assert end in drawing.ends
        assert announced.drawn == drawing.drawn
        assert (confirmed.drawn != drawing.drawn) == noise
        assert confirmed.public == drawing.public  # nothing was published before
        assert np.array(confirmed.value).tobytes() in compiled[i]["wall"]
    # and something was published then
    after = [tuple(trace["public"]) for trace in compiled]
    confirmed = [tuple(moment.public) for moment in store.moments[2::3]]
    assert after != confirmed


# Phases, rare releases of features, and advice leave their sums as episodes of arms do.
RELEASING = [name for name in OF_KINDS if not name.startswith(("AdaCGOPE", "AdaCOFUL", "EXP4"))]


@over(BY_FAMILY, short=RELEASING)
def test_compiled_and_interpreted_releases_leave_the_same_trace(case: Case, monkeypatch):
    noise = case.budget is not None
    check((case.make(seed=1), case.make(seed=1)), monkeypatch, noise=noise)


@over(REPORTING, short=OF_KINDS)
def test_releases_of_reports_draw_nothing(case: Case, monkeypatch):
    policies = tuple(case.make(seed=1, reports=True) for _ in range(2))
    check(policies, monkeypatch, noise=False)


def test_both_are_one_source():
    case = BY_FAMILY[0]
    policy = case.make()
    compiled = steps_of(policy.driven, policy.mechanism).cross
    interpreted = cross_by(policy.driven, plain, plain, plain)
    assert plain(compiled).__globals__["cross"].py_func.__code__ is interpreted.__code__
