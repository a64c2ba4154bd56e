"""The owner: one thread that has all policies, and makes one commit for many requests.

Requests come from an event loop.  The owner takes all that wait, runs them in the order in which
they came, and commits everything that they have changed in one transaction.  Only then do replies
leave.  A request whose commit fails gets an error, and the client repeats it: the decision was kept
in memory, and the next commit writes it.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..errors import ArgumentError, ClaimError, StandbyError, StoreError
from ..policies import Policy, load
from ..policies.batches import batch_of
from ..policies.loading import Saved, read
from ..stores import Store
from .declaration import Declaration
from .experiment import Experiment, declaration_in
from .export import Export
from .log import log
from .problems import Problem, busy
from .warming import play

MOST_AT_ONCE, MOST_WAITING = 1024, 16_384
MOST_OF_ONE = MOST_WAITING // 2  # that may wait of one tenant
GATHER = 1e-3  # seconds in which requests come together, when there are many
TICK, LOOK = 1.0, 5.0  # seconds between ticks, and between looks at leases
SLOW = 1.0  # seconds, after which a failure is that of the whole store
Key = tuple[str, str]  # tenant and name
_Failed = dict[Key, BaseException]
_Some = dict[Key, Experiment]
_ALONE: Key = ("", "")  # of calls on the owner itself


class _Request(NamedTuple):
    """A call on an experiment, and who waits for its result."""

    key: Key
    call: Callable[..., Any]  # takes the experiment, and the time
    future: asyncio.Future[Any]


class Owner(threading.Thread):
    """The thread that has all experiments of a store.

    Attributes:
        experiments: by tenant and name.  Other threads may only look one up.
        missing: places of the store that could not be taken, and why.
        cold: those of them whose code is not compiled yet; ``take_warm`` takes them.
        stuck: whether the store has kept the owner waiting, and then failed.

    Args:
        store: where policies are kept.
        clock: the time in seconds since the epoch.
        declared: what the file of experiments says, by tenant and name.
        is_warm: whether the code of a declaration is compiled.
        exports: the folder for the decisions of all experiments; None for no export.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = time.time,
        declared: Mapping[Key, Declaration] = MappingProxyType({}),
        is_warm: Callable[[Declaration], bool] = lambda _: True,
        exports: Path | None = None,
    ) -> None:
        super().__init__(name="owner", daemon=True)
        self.declared, self._is_warm, self._exports = declared, is_warm, exports
        self.store, self._clock, self._now = store, clock, 0.0
        self.experiments: dict[Key, Experiment] = {}
        self._waiting: deque[_Request] = deque()
        self._awake, self._stopping = threading.Event(), False
        # By tenant: counted by the event loop, and by this thread.
        self._asked, self._taken = Counter[str](), Counter[str]()
        self._many = False  # whether the last batch had more than one request
        self._ticked, self._looked = 0.0, 0.0
        self.missing: dict[str, str] = {}
        self._why: dict[str, Problem] = {}  # as a client is told
        self.stuck = False
        self.cold: dict[str, Declaration] = {}
        self._warm: set[str] = set()  # places whose code was compiled, or could not be
        self._foreign: set[str] = set()  # places of policies that were not served

    # From other threads -----------------------------------------------------------------------

    def ask(self, key: Key, call: Callable[[Experiment, float], Any]) -> asyncio.Future[Any]:
        """Let the owner call a function with an experiment and the time, within a batch.

        Raises:
            Problem: there is no such experiment, or too many requests wait.
        """
        if key not in self.experiments:
            place = ".".join(key)
            if place in self.missing:
                raise starting() if place in self.cold else self._why[place]
            raise unknown_experiment()
        return self._put(key, call)

    def ask_alone(self, call: Callable[[float], Any]) -> asyncio.Future[Any]:
        """Let the owner call a function between batches."""
        return self._put(_ALONE, call)

    def _put(self, key: Key, call: Callable[..., Any]) -> asyncio.Future[Any]:
        tenant = key[0]
        mine = self._asked[tenant] - self._taken[tenant]
        if self._stopping or len(self._waiting) >= MOST_WAITING or mine >= MOST_OF_ONE:
            raise busy()
        self._asked[tenant] += 1
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(_Request(key, call, future))
        if not self._awake.is_set():
            self._awake.set()
        return future

    def stop(self) -> None:
        """Answer what waits, and let other processes have the policies."""
        self._stopping = True
        self._awake.set()

    # The thread -------------------------------------------------------------------------------

    def run(self) -> None:
        try:
            self._run()
        except BaseException as error:
            log("owner died", error=type(error).__name__)
            self._stopping = True
            _deliver([(one.future, _broken()) for one in self._waiting])
            os.kill(os.getpid(), signal.SIGTERM)  # a supervisor starts another process
            raise

    def _run(self) -> None:
        while not (self._stopping and not self._waiting):
            if not self._waiting:
                self._awake.wait(TICK)
            self._awake.clear()
            if self._many:
                time.sleep(GATHER)
            count = min(len(self._waiting), MOST_AT_ONCE)
            self._many = count > 1
            requests = [self._waiting.popleft() for _ in range(count)]
            self._taken.update(one.key[0] for one in requests)
            if self._stopping and self.stuck:  # nobody waits for the store once more
                _deliver([(one.future, _broken()) for one in requests])
            else:
                self._serve(requests)
            del requests  # whose errors would keep experiments alive
            if not self._stopping:  # between batches, too: a flood must not hold deadlines up
                self._tick()
        if not self.stuck:
            every: _Some = {**self.experiments}
            _export(every, self._settled(every), math.inf)
        for experiment in self.experiments.values() if not self.stuck else ():
            with suppress(Exception):
                experiment.policy.close()
        self.store.close()

    def _time(self) -> float:
        """The time, which never runs backwards."""
        self._now = max(self._now, self._clock())
        return self._now

    def _serve(self, requests: list[_Request]) -> None:
        done: list[tuple[asyncio.Future[Any], Any]] = []
        together: list[_Request] = []
        for one in requests:
            if one.key is _ALONE:
                done += self._serve_together(together)
                done.append((one.future, _result(one.call, self._time())))
                together = []
            else:
                together.append(one)
        done += self._serve_together(together)
        _deliver(done)

    def _serve_together(self, requests: list[_Request]) -> list[tuple[asyncio.Future[Any], Any]]:
        """Serve requests with one commit, and return their results."""
        if not requests:
            return []
        now = self._time()
        asked = {one.key for one in requests}
        touched = {key: one for key, one in self.experiments.items() if key in asked}
        failed = {key: _elsewhere() for key in asked - touched.keys()} | self._settled(touched)
        ready = [one for one in requests if one.key not in failed]
        results: dict[int, Any] = {}

        def work() -> None:
            for one in ready:
                results[id(one)] = _result(one.call, touched[one.key], now)

        failed |= self._in_batch({key: touched[key] for key in touched if key not in failed}, work)
        return [(one.future, failed.get(one.key, results.get(id(one)))) for one in requests]

    def _settled(self, experiments: _Some) -> _Failed:
        """Write what earlier commits could not write; those for which that fails again."""
        failed: _Failed = {}
        self.stuck = False
        for key, one in experiments.items():
            begun = time.monotonic()
            try:
                one.policy.settle()
            except Exception as error:
                failed[key] = error
                self.stuck = _is_stuck(error, begun)
                if self.stuck:
                    failed |= dict.fromkeys(experiments.keys() - failed.keys(), error)
                    break
        self._let_go_of(failed)
        return failed

    def _let_go_of(self, failed: _Failed) -> None:
        """Experiments that others have taken over are no longer here."""
        for key, error in failed.items():
            if isinstance(error, ClaimError) and key in self.experiments:
                self._let_go(key, error)

    def _in_batch(self, experiments: _Some, work: Callable[[], None]) -> _Failed:
        """Do some work in one commit, and return the errors of experiments that were not kept."""
        outcomes: list[BaseException | None] = []
        policies, begun = [one.policy for one in experiments.values()], time.monotonic()
        try:
            with batch_of(policies) as outcomes:
                work()
        except Exception as error:  # also of a defect: the thread lives on
            log("commit failed", error=type(error).__name__)
            outcomes = outcomes if any(outcomes) else [error] * len(policies)
        found = zip(experiments, outcomes, strict=True)
        failed = {key: outcome for key, outcome in found if outcome is not None}
        self.stuck |= any(_is_stuck(error, begun) for error in failed.values())
        self._let_go_of(failed)
        return failed

    def _tick(self) -> None:
        now = self._time()
        if now < self._ticked + TICK:
            return
        self._ticked = now
        if now >= self._looked + LOOK:
            self._looked = now
            self._keep_leases()
        every: _Some = {**self.experiments}
        for key in self._settled(every):
            del every[key]

        def work() -> None:
            for one in every.values():
                error = _result(one.tick, now)
                if error is not None:
                    log("tick failed", experiment=one.name, error=type(error).__name__)

        _export(every, self._in_batch(every, work), now)

    def _keep_leases(self) -> None:
        """Say that this process lives, and take over what others have left."""
        for at, one in [*self.experiments.items()]:
            with suppress(StoreError):  # the next try may succeed
                one.policy.renew()
                if not one.policy.holds_place:
                    self._let_go(at, ClaimError(f"{one.policy.kept_in} has another holder"))
        try:
            self.take_over()
        except Exception as error:
            log("store failed", error=type(error).__name__)

    # Experiments, in the thread -----------------------------------------------------------------

    def take_over(self) -> None:
        """Take all experiments of the store that no other process has.

        What cannot be taken is in ``missing``, and is tried again now and then: this process may be
        a standby.  One whose code is not compiled yet is left: this thread never compiles
        what another process can.

        Raises:
            StoreError: the store cannot be used.
        """
        mine = {str(one.policy.kept_in) for one in self.experiments.values()}
        for key in self.store.keys():  # noqa: SIM118 - of a store
            place = self.store.place(key)
            if str(place) in mine or key in self._foreign:
                continue
            begun = time.monotonic()
            try:
                saved = read(place)
                if not saved.about.get("served"):
                    self._foreign.add(key)  # a policy of somebody else
                    continue
                self._refuse_cold(key, saved)
                if place.lease_left > 0.0:
                    raise StandbyError(f"{place} is held by a process that was alive lately")
                self._take(key, load(place))
            except Exception as error:
                self._miss(key, error)
                if _is_stuck(error, begun):  # each of the others would wait as long
                    raise

    def _refuse_cold(self, key: str, saved: Saved) -> None:
        if key in self._warm:
            return
        if key not in self.cold:
            declaration = declaration_in(saved.held.rows)
            if self._is_warm(declaration):
                self._warm.add(key)
                return
            self.cold[key] = declaration
        raise starting()

    def take_warm(self, key: str, _: float = 0.0) -> None:
        """Take a place whose code was compiled meanwhile, unless another process has it."""
        self._warm.add(key)
        try:
            self.take_over()
        finally:
            self.cold.pop(key, None)

    def _take(self, key: str, policy: Policy) -> None:
        made = Experiment.of(policy)
        play(made.declaration.build(), rounds=1)  # which loads kernels
        at = made.tenant, made.name
        if at in self.declared:
            made.changes = made.declaration.changes(self.declared[at])
        if self._exports is not None:
            made.export = _export_of(self._exports, key, policy)
        self.experiments[at] = made
        self.missing.pop(key, None)
        log("experiment taken", place=key)
        for one in made.changes:
            log("declaration differs, and was not taken", experiment=made.name, word=str(one))

    def _miss(self, key: str, error: BaseException) -> None:
        told = str(error)
        if told != self.missing.get(key):
            if isinstance(error, StandbyError):
                log("experiment is served by another process", place=key)
            else:
                kind = error.kind if isinstance(error, Problem) else type(error).__name__
                log("experiment missing", place=key, error=kind, detail=told)
        self.missing[key] = told
        self._why[key] = _missing(error)

    def _let_go(self, at: Key, error: BaseException) -> None:
        """Another process has taken an experiment over."""
        with suppress(Exception):
            self.experiments[at].policy.close()  # which may come back to this process later
        del self.experiments[at]
        self._miss(".".join(at), StandbyError(str(error)))

    def create(self, tenant: str, declaration: Declaration, who: str, now: float) -> Experiment:
        """Make an experiment, and keep it.

        Raises:
            Problem: there is one of that name, with other words; or a policy that is not served.
            ClaimError: another process has made it.
            DeclarationError: the policy cannot be made.
        """
        known = self.experiments.get((tenant, declaration.name))
        if known is not None:
            refuse_changes(known.declaration, declaration)
            return known
        place = self.store.place(f"{tenant}.{declaration.name}")
        if place.mark() is not None:
            if read(place).about.get("served"):
                raise ClaimError(f"{place} has the experiment of another process")
            raise Problem(
                409,
                "taken",
                "The store already holds a policy of that name, which this service does not serve."
                " Give the experiment another name, or use another store.",
            )
        play(declaration.build(), rounds=1)  # which loads kernels
        policy = declaration.build()
        Experiment(tenant, declaration, policy).begin(who, now)
        policy.save(place, new=True)
        policy.close()
        # From here on no other process can load it while this one lives.
        self._take(f"{tenant}.{declaration.name}", load(place))
        return self.experiments[tenant, declaration.name]


def _export_of(folder: Path, key: str, policy: Policy) -> Export | None:
    try:
        return Export(folder, key, policy)
    except (ArgumentError, OSError) as error:
        log("decisions are not exported", place=key, detail=str(error))
        return None


def _export(experiments: _Some, failed: _Failed, now: float) -> None:
    """Write the decisions that were kept."""
    for key, one in experiments.items():
        if one.export is not None and key not in failed:
            one.export.write(now)


def unknown_experiment() -> Problem:
    """The problem of a name that no experiment has."""
    return Problem(404, "unknown-experiment", "There is no such experiment.")


def starting() -> Problem:
    """The problem of an experiment whose code is being compiled."""
    return Problem(503, "starting", "The experiment starts. Send the same request again.")


def refuse_changes(known: Declaration, other: Declaration) -> None:
    """Refuse another declaration of a name that is taken, with the words that differ."""
    words = [one.word for one in known.changes(other)]
    if words:
        raise Problem(
            409,
            "exists",
            f"There is another experiment of that name, with other values of {', '.join(words)}.",
            words=words,
        )


def _broken() -> Problem:
    return Problem(503, "stopping", "The service stops. Send the same request again.")


def _elsewhere() -> Problem:
    return Problem(503, "elsewhere", "Another process serves this experiment.")


def _missing(error: BaseException) -> Problem:
    """What a client is told of an experiment that cannot be taken."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, StandbyError):
        return _elsewhere()
    return Problem(
        503,
        "unusable",
        "The store's copy of this experiment cannot be used here: it may be an older copy, or it"
        " was continued elsewhere. The log has the reason.",
    )


def _is_stuck(error: BaseException, begun: float) -> bool:
    """Whether a store has kept its caller waiting since then, and failed."""
    return isinstance(error, StoreError) and time.monotonic() >= begun + SLOW


def _result(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call(*args)
    except Exception as error:
        return error


def _deliver(done: list[tuple[asyncio.Future[Any], Any]]) -> None:
    """Hand results to the event loop, which wakes up once for all of them."""
    if not done:
        return

    def set_all() -> None:
        for future, result in done:
            if future.done():  # its client has hung up
                continue
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)

    with suppress(RuntimeError):  # the loop is closed
        done[0][0].get_loop().call_soon_threadsafe(set_all)
