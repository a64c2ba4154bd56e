"""What tests of stores play with: policies whose answers come late, their whole state, and other
processes.
"""

import gc
import hashlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.papers.dgs import LinUCBDGS
from dpbandits.privacy import Budget
from dpbandits.privacy.ledger import Ledger
from dpbandits.privacy.secure_sum import SecureSum
from dpbandits.session.packing import parted
from dpbandits.session.saved_head import private_part, public_part
from dpbandits.session.saved_rows import whole_rows
from dpbandits.stores import Batch, FilePlace, Mark, Place, Row
from dpbandits.stores.stamps import Stamps
from dpbandits.stores.witness import Witness

REWARDS = np.random.default_rng(3).random((400, 3))
CONTEXTS = np.random.default_rng(4).uniform(-0.6, 0.6, (400, 3, 2))
ADVICE = np.random.default_rng(5).dirichlet(np.ones(3), (400, 4))
FORKING = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
UNWARNED = pytest.mark.filterwarnings("ignore::DeprecationWarning")
LATE = 2  # rounds until an answer comes


def ada(**options):
    return dpb.papers.concentrated.AdaCUCB(
        3, budget=dpb.ZCDP(0.5), **({"seed": 11, "answers_within": 3} | options)
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
    """All that a policy knows and has spent, for comparison; not its lives."""

    arrays: dict
    rounds: tuple
    streams: tuple
    spent: Budget | None


def state_of(policy):
    session = policy.session
    told, counts, choice, streams, private = parted(private_part(session))
    facts, numbers, times, heads, last, public = parted(public_part(session))
    rows = sorted(row for row in whole_rows(session) if row.kind != "release")
    exact = {"private": private, "public": public, "facts": facts, "heads": heads, "last": last}
    exact |= {"lines": [row for row in rows if row.kind == "line"]}
    exact |= {"shared": [numbers for _, *numbers in session.exchange.made]}
    waiting = [row for row in rows if row.kind != "line"]
    rounds = session.rounds
    flights = [[n for n in one.pulls if n in rounds.flown] for one in rounds.flights.values()]
    order = list(rounds.pending), flights
    drawn = tuple(json.loads(told)["streams"]), streams
    return Known(
        exact, (numbers, counts, choice, times, waiting, order), drawn, spent_inside(policy)
    )


def inside(policy):
    """Releases and recorded rounds, also within a commit, when the policy shows neither."""
    session = policy.session
    return int(session.state.wall.ledger.head[1]), session.rounds.recorded


def spent_inside(policy):
    """What the ledger has charged, also within a commit."""
    session = policy.session
    most = policy.max_rounds if policy.takes_reports else session.rounds.users.most
    meter = policy._terms.meter(policy._terms.growth(policy._counter, most))
    return Ledger(session.state.wall.ledger, meter).spent()


def state_in(where):
    """That of the policy in a place, which is not claimed; of simulated noise."""
    return state_of(dpb.load(where, simulation=True))


def fail(patch, owner, name, error, *, after=False, when=lambda *_: True):
    """Let a method fail, before or after it has done its work."""
    method = getattr(owner, name)

    def failing(*arguments, **options):
        if not when(*arguments):
            return method(*arguments, **options)
        if after:
            method(*arguments, **options)
        raise error

    patch.setattr(owner, name, failing)


def lose_a_draw(patch, policy, *, after=False):
    """Let each draw of secure noise be interrupted."""
    fail(patch, policy.noise_source, "add_noise", KeyboardInterrupt(), after=after)
    fail(patch, SecureSum, "add", KeyboardInterrupt(), after=after)


def died(clinic):
    """Forget a policy, as in a crash."""
    clinic.policy = None
    gc.collect()


def lost_rounds_count_no_more(policy):
    """Whether no answer is left of rounds that were lost, and no release will cover them."""
    session = policy.session
    raw, public, rounds = session.state.raw, session.state.public, session.rounds
    # its increments need a sum to go on from: the one that the released estimate has
    if isinstance(policy, LinUCBDGS):
        return raw.total == pytest.approx(public.precision @ public.estimate)
    waits = (
        any(one.rounds for one in rounds.unreleased.values())
        or rounds.flights
        or rounds.pending
        or rounds.release_due
    )
    return not waits and not any(side.any() for side in raw)


# Files ---------------------------------------------------------------------------------------


def known(folder):
    """What the state folder below a folder knows."""
    files = sorted(folder.rglob("state/**/*"))
    return {
        path.name: path.read_bytes()
        for path in files
        if path.is_file() and path.suffix != ".living"
    }


def journal(path):
    return Path(f"{path}.journal")


class Contents(NamedTuple):
    """What a file holds, without stamps, and what makes them."""

    mark: Mark
    head: bytes
    rows: Iterator[Row]
    stamps: Stamps


def contents(path):
    """All that a file holds."""
    mark, head, rows = FilePlace(path).read()
    rows = list(rows)
    folder = Path(os.environ["DPBANDITS_STATE_DIR"]) / "witnesses"
    about = json.loads(rows[0].content[:-12])
    known = [one.name for one in folder.iterdir() if "." not in one.name]
    # A test may have given it the name of no policy.
    policy = about["policy"] if about["policy"] in known else known[0]
    stamps = Stamps(Witness(policy).secret)
    head = stamps.checked(Row("head", b"", head), path).content
    return Contents(mark, head, stamps.all_checked(iter(rows), path), stamps)


def rewritten(path, change):
    """The file with other words about its policy, a checksum and stamps that fit them."""
    held = contents(path)
    first, *rows = held.rows
    about = json.loads(first.content)
    change(about)
    whole(path, held, [Row("about", b"", json.dumps(about).encode()), *rows])


def whole(path, held, rows, head=None):
    """A file with these rows, stamped."""
    path.unlink()
    journal(path).unlink(missing_ok=True)
    stamped = [held.stamps.stamped(row) for row in rows]
    top = held.stamps.stamped(Row("head", b"", held.head if head is None else head)).content
    FilePlace(path).commit(Batch(held.mark.number, top, stamped, whole=True), held.mark.life)


def signed(path, archive):
    """A file of an earlier version, with a checksum that fits."""
    archive = archive[:-2] + (64).to_bytes(2, "little")
    path.write_bytes(archive + hashlib.sha256(archive).hexdigest().encode())


class Recording(Place):
    """A place that notes what is committed to another, and fails when it is told to.

    Attributes:
        batches: what was tried, as bytes, with the number.
        failing: how many of the next commits fail, having done nothing.
        losing: how many of the next commits are made, and say that they have failed.
        looked: called in each commit, before and after it is made.
    """

    def __init__(self, place):
        self.place, self.batches, self.failing, self.losing = place, [], 0, 0
        self.looked = lambda moment: None

    def __str__(self):
        return str(self.place)

    def mark(self):
        return self.place.mark()

    def read(self):
        return self.place.read()

    def claim(self, held, heir):
        self.place.claim(held, heir)

    def commit(self, batch, life):
        self.batches.append(batch)
        self.looked("before")
        if self.failing:
            self.failing -= 1
            raise dpb.errors.StoreError(28, f"{self} could not be written: no space left")
        self.place.commit(batch, life)
        if self.losing:
            self.losing -= 1
            raise dpb.errors.StoreError(110, f"{self} did not answer")
        self.looked("after")


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
