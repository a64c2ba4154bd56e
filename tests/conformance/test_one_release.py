"""One release: compiled, and interpreted around a source of noise, it takes the same steps in the
same order and leaves the same trace.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from suite import BY_FAMILY, CASES, OF_KINDS, Case, over

from dpbandits.kernel import plain
from dpbandits.policies import Decision, Policy
from dpbandits.privacy.continual import release_exactly
from dpbandits.privacy.ledger import HEAD, SPAN, Line
from dpbandits.session.steps import cross_by, release_by, steps_of
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


class Watch:
    """Looks at its policy whenever a step of a release is taken."""

    def __init__(self, policy: Policy) -> None:
        self.session, self.moments = policy.session, list[Moment]()

    def look(self, step: str, value: Any = None) -> None:
        state = self.session.state
        drawn = {name: str(rng.bit_generator.state) for name, rng in state.streams.items()}
        ledger = state.wall.ledger
        made, lines = int(ledger.head[HEAD.releases]), ledger.span[: ledger.head[HEAD.lines]]
        ends = {(line[SPAN.last], line[SPAN.part]) for line in lines.tolist()}
        self.moments.append(Moment(step, made, ends, drawn, frozen(state.public), value))

    def tell(self, *line: Any) -> None:
        self.look("announce", Line(*(np.array(number).item() for number in line)))


def reward(decision: Decision) -> float:
    return float(REWARDS[decision.number % 512, decision.arm])


def traces(policy: Policy) -> list[dict[str, Any]]:
    """All that there is to know after each of the first releases."""
    seen, count = [], 8 if policy.card.learns_at_once else 2
    while len(seen) < count:
        play(policy, reward, until=releases(policy) + 1)
        seen.append(snapshot(policy) | {"memo": policy.session.state.memo.tobytes()})
    return seen


def watched(policy: Policy) -> Watch:
    """A watch at the crossing of the wall, in Python as under secure noise, and at its noise."""
    watch, gate = Watch(policy), policy.session.gate
    mechanism = release_exactly if gate.reports else gate.mechanism

    def noticed(*arguments: Any) -> None:
        watch.look("noise")
        mechanism(*arguments)
        watch.look("drawn", arguments[-2].tolist())

    cross = cross_by(gate.kernels, noticed, watch.tell)
    gate.steps = gate.steps._replace(cross=cross, release=release_by(gate.steps.end, cross))
    gate.needs_care = lambda _: True  # type: ignore[method-assign]
    return watch


def check(policies: tuple[Policy, Policy], *, noise: bool) -> None:
    compiled = traces(policies[0])
    watch = watched(policies[1])
    assert traces(policies[1]) == compiled
    assert not policies[1].session.state.wall.statistic.any()
    steps = [moment.step for moment in watch.moments]
    assert steps == ["announce", "noise", "drawn"] * len(compiled)
    for i in range(len(compiled)):
        announced, drawing, drawn = watch.moments[3 * i : 3 * i + 3]
        end = announced.value.last, announced.value.part
        assert (announced.charged, drawing.charged, drawn.charged) == (i, i + 1, i + 1)
        assert end not in announced.ends
        assert end in drawing.ends
        assert announced.drawn == drawing.drawn
        assert (drawn.drawn != drawing.drawn) == noise
        assert drawn.public == drawing.public  # nothing was published before
    # and something was published then
    after = [tuple(trace["public"]) for trace in compiled]
    drawn_ = [tuple(moment.public) for moment in watch.moments[2::3]]
    assert after != drawn_


# Phases, rare releases of features, and advice leave their sums as episodes of arms do.
RELEASING = [name for name in OF_KINDS if not name.startswith(("AdaCGOPE", "AdaCOFUL", "EXP4"))]


@over(BY_FAMILY, short=RELEASING)
def test_compiled_and_interpreted_releases_leave_the_same_trace(case: Case):
    noise = case.budget is not None
    check((case.make(seed=1), case.make(seed=1)), noise=noise)


@over(REPORTING, short=OF_KINDS)
def test_releases_of_reports_draw_nothing(case: Case):
    check((case.make(seed=1, reports=True), case.make(seed=1, reports=True)), noise=False)


def test_both_are_one_source():
    case = BY_FAMILY[0]
    policy = case.make()
    compiled = steps_of(policy.driven, policy.mechanism).cross
    interpreted = cross_by(policy.driven, plain, plain)
    assert plain(compiled).__globals__["cross"].py_func.__code__ is interpreted.__code__
