"""Audits of one policy each: 20,000 runs of 1,000 rounds per world, on all cores, by the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator

import dpbandits as dpb
from dpbandits.papers.others import DPTS

from .timing import Row, scaled

RUNS, HORIZON = 20_000, 1000
PURE, ZCDP = dpb.PureDP(1.0), dpb.ZCDP(0.5)
POLICIES = {
    "AdaCUCB": lambda horizon: dpb.papers.concentrated.AdaCUCB(3, budget=ZCDP),
    "LDPUCB": lambda horizon: dpb.papers.others.LDPUCB(3, budget=PURE),
    "DPTS": lambda horizon: DPTS(3, horizon=horizon, counter="tree", budget=PURE),
    "EXP4": lambda horizon: dpb.algorithms.EXP4(3, 4, horizon=horizon, batch=16, budget=ZCDP),
    "LinUCBJDP": lambda horizon: dpb.algorithms.LinUCBJDP(
        3, 2, horizon=horizon, batch=4, budget=ZCDP
    ),
    "PrivateLinUCB": lambda horizon: dpb.algorithms.PrivateLinUCB(
        3, 2, horizon=horizon, budget=ZCDP
    ),
}


def rows(size: float) -> Iterator[Row]:
    runs, horizon = scaled(RUNS, size, 50), scaled(HORIZON, size**0.5, 64)
    for name, make in POLICIES.items():
        policy = make(horizon)
        dpb.audit(policy, runs=50, horizon=horizon)  # compiles
        before, start = time.process_time(), time.perf_counter()
        found = dpb.audit(policy, runs=runs, horizon=horizon)
        seconds, work = time.perf_counter() - start, time.process_time() - before
        proved = f"{found.measured:.2f} of {found.possible:.2f} possible"
        remark = f"{work:.0f} s of processors; {found.claim.measure.symbol} >= {proved}"
        yield Row(f"{name}, {runs} runs per world, {horizon} rounds", seconds, "s", "<= 60", remark)
