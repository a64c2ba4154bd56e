"""What tests of stores play with: policies whose answers come late, their whole state, and other
processes.
"""

import hashlib
import io
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.papers.dgs import LinUCBDGS
from dpbandits.privacy import Budget
from dpbandits.session.saving import saved
from dpbandits.stores import decode

REWARDS = np.random.default_rng(3).random((400, 3))
CONTEXTS = np.random.default_rng(4).uniform(-0.6, 0.6, (400, 3, 2))
ADVICE = np.random.default_rng(5).dirichlet(np.ones(3), (400, 4))
FORKING = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
UNWARNED = pytest.mark.filterwarnings("ignore::DeprecationWarning")
LATE = 2  # rounds until an answer comes


def ada(**options):
    return dpb.papers.concentrated.AdaCUCB(
        3, budget=dpb.ZCDP(0.5), **({"seed": 11, "patience": 3} | options)
    )


def pull(policy):
    if not policy.sees:
        return policy.pull()
    shown = ADVICE if policy.sees == "advice" else CONTEXTS
    return policy.pull(shown[policy.session.rounds.pulls % len(shown)])


class Clinic:
    """Plays a policy: answers come late, every seventh never."""

    def __init__(self, policy):
        self.policy, self.waiting, self.arms, self.t = policy, [], [], 0

    def play(self, rounds):
        for _ in range(rounds):
            try:
                decision = pull(self.policy)
            except dpb.BudgetExhausted:
                decision = pull(self.policy)
            self.arms.append(decision.arm)
            self.waiting.append((self.t, decision))
            if len(self.waiting) > LATE:
                t, due = self.waiting.pop(0)
                if t % 7:
                    self.policy.update(REWARDS[t % len(REWARDS), due], due)
            self.t += 1
        return self

    def until_release(self):
        before = self.policy.ledger.releases
        while self.policy.ledger.releases == before:
            self.play(1)
        return self


class Known(NamedTuple):
    """All that a policy knows and has spent, for comparison."""

    arrays: dict
    rounds: tuple
    streams: str
    spent: Budget | None


def state_of(policy):
    header, arrays = saved(policy.session)
    exact = {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}
    waiting = {name: exact.pop(name) for name in list(exact) if name.startswith("rounds.")}
    # as text, because a propensity may be nan
    rounds, streams = (json.dumps(header[name], default=int) for name in ("rounds", "streams"))
    return Known(exact, (rounds, waiting), streams, policy.ledger.spent())


def lost_rounds_count_as_default(policy):
    """Whether the raw side holds the default reward of every round whose answer was lost."""
    session = policy.session
    raw, public, booked = session.state.raw, session.state.public, session.rounds.unreleased
    # its increments need a sum to go on from: the one that the released estimate has
    if isinstance(policy, LinUCBDGS):
        return raw.total == pytest.approx(public.precision @ public.estimate)
    # which divide a loss by the probability of its arm
    if policy.preset in ("EXP4", "BatchedEXP4", "FrozenEXP4"):
        loss, expected = policy.reward_range[1] - policy.default_reward, np.zeros(raw.total.size)
        for arm, one in booked.items():
            if policy.preset == "FrozenEXP4":  # one sum per arm, all of whose weights agree
                expected[arm] += loss * one.weights[0]
            else:
                expected += loss * one.weights
        return raw.total == pytest.approx(expected)
    if policy.preset == "AdaCOFUL":
        weights = sum((one.weights for one in booked.values()), np.zeros(policy.dimension))
        return raw.total == pytest.approx(weights * policy.default_reward)
    lost = sum(one.rounds for one in booked.values())
    return sum(side.sum() for side in raw) == pytest.approx(lost * policy.default_reward)


# Files ---------------------------------------------------------------------------------------


def claims(folder):
    return list(folder.rglob("*.claimed"))


def journal(path):
    return Path(f"{path}.journal")


def journalled(path):
    """The entries of a file's journal."""
    lines = journal(path).read_text().splitlines()
    return [json.loads(line.split(" ", 1)[1]) for line in lines]


def rewritten(path, change):
    """The file with another header, and a checksum that fits it."""
    header, arrays = decode(path.read_bytes(), path)
    change(header)
    buffer = io.BytesIO()
    np.savez(buffer, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    signed(path, buffer.getvalue())


def signed(path, archive):
    archive = archive[:-2] + (64).to_bytes(2, "little")
    path.write_bytes(archive + hashlib.sha256(archive).hexdigest().encode())


# Other processes -----------------------------------------------------------------------------


def start(script, *arguments):
    """A Python process that runs the script, which may import from this folder."""
    source = str(Path(dpb.__file__).parents[1])
    paths = os.pathsep.join([source, str(Path(__file__).parent)])
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def forked(work):
    """What ``work`` returns in a forked child: text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()


def exit_code(work):
    """With what a forked child ends that does some work."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refused(action):
    """What a claim error says, or "allowed"."""
    try:
        action()
    except dpb.ClaimError as error:
        return str(error)
    return "allowed"
