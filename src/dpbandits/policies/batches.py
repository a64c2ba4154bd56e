"""One commit of many calls, of one policy or of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Protocol

from ..session.keeping import Keeper
from ..stores import Store
from .turns import Turns

_AT_ONCE = 200  # policies in a transaction, since each has a file open


class Kept(Protocol):
    """A policy."""

    _lock: Turns


@contextmanager
def batch_of(policies: Sequence[Kept]) -> Iterator[list[BaseException | None]]:
    """Make one commit of everything that happens to these policies in the block.

    Places of one store share a transaction, up to 200 of them.  What a call in the block returns
    may leave only after the block has ended without an error.

    Yields:
        A list, in which each policy has a place in their order.  After the block it holds None for
        each commit that was made, and the error of each that failed.

    Raises:
        StoreError, ClaimError: the commit of a policy failed; those of other stores, and of other
            policies of its store, count.
    """
    outcomes: list[BaseException | None] = [None] * len(policies)
    all_turns = {id(one): one._lock for one in policies}
    with ExitStack() as locks:
        for _, turns in sorted(all_turns.items()):  # in one order, so nobody waits in a circle
            locks.enter_context(turns)
        # Those of a block around this one are left to it.
        own = [turns for turns in all_turns.values() if not turns.batching]
        for turns in own:
            turns.batching = True
        try:
            yield outcomes
        finally:
            for turns in own:
                turns.batching = False
            failures = _commit([turns for turns in own if isinstance(turns.keeper, Keeper)])
            outcomes[:] = [failures.get(id(one._lock)) for one in policies]
            for failure in failures.values():
                raise failure


def _commit(all_turns: list[Turns]) -> dict[int, BaseException]:
    """Commit all, and return what failed, by the identity of turns."""
    alone: list[Turns] = []
    shared: dict[Store, list[Turns]] = {}
    failures: dict[int, BaseException] = {}
    for turns in all_turns:
        store = _keeper(turns).place.store
        (alone if store is None else shared.setdefault(store, [])).append(turns)
    for turns in alone:
        _attempt(turns, _keeper(turns).commit, failures)
    for store, together in shared.items():
        for first in range(0, len(together), _AT_ONCE):
            _commit_together(store, together[first : first + _AT_ONCE], failures)
    return failures


def _commit_together(
    store: Store, all_turns: list[Turns], failures: dict[int, BaseException]
) -> None:
    """Commit those of one store in a transaction."""
    ready = []
    with ExitStack() as locks:
        # In one order for all processes.
        for turns in sorted(all_turns, key=lambda one: _keeper(one).policy):
            try:
                batch = _keeper(turns).prepare()
                if batch is None:
                    turns.dirty = False
                else:
                    locks.enter_context(_keeper(turns).going_on())
                    ready.append((turns, batch))
            except Exception as error:  # it stays dirty, and the next call repeats it
                failures[id(turns)] = error
        outcomes: list[BaseException | None] = []
        try:
            outcomes = store.commit_all([batch for _, batch in ready]) if ready else []
        except Exception as error:  # a defect of the store: nothing counts as committed
            outcomes = [error] * len(ready)
        for (turns, _), outcome in zip(ready, outcomes, strict=True):
            _attempt(turns, partial(_keeper(turns).take_in, outcome), failures)


def _attempt(turns: Turns, commit: Callable[[], None], failures: dict[int, BaseException]) -> None:
    try:
        commit()
    except Exception as error:
        failures[id(turns)] = error
    else:
        turns.dirty = False


def _keeper(turns: Turns) -> Keeper:
    assert isinstance(turns.keeper, Keeper)
    return turns.keeper
