"""One commit of many calls, of one policy or of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Protocol

from ..session.keeping import Keeper
from ..stores import Store
from .turns import Turns


class Kept(Protocol):
    """A policy."""

    _lock: Turns


@contextmanager
def batch_of(policies: Sequence[Kept]) -> Iterator[None]:
    """Make one commit of everything that happens to these policies in the block.

    Places of one store share a transaction.  What a call in the block returns may leave only after
    the block has ended without an error.

    Raises:
        StoreError, ClaimError: the commit of a policy failed; those of other stores, and of other
            policies of its store, count.
    """
    all_turns = {id(one): one._lock for one in policies}
    with ExitStack() as locks:
        for _, turns in sorted(all_turns.items()):  # in one order, so nobody waits in a circle
            locks.enter_context(turns)
        # Those of a block around this one are left to it.
        own = [turns for turns in all_turns.values() if not turns.batching]
        for turns in own:
            turns.batching = True
        try:
            yield
        finally:
            for turns in own:
                turns.batching = False
            _commit([turns for turns in own if isinstance(turns.keeper, Keeper)])


def _commit(all_turns: list[Turns]) -> None:
    alone: list[Turns] = []
    shared: dict[Store, list[Turns]] = {}
    failures: list[BaseException] = []
    for turns in all_turns:
        store = _keeper(turns).place.store
        (alone if store is None else shared.setdefault(store, [])).append(turns)
    for turns in alone:
        failures += _outcome(turns, _keeper(turns).commit)
    for store, together in shared.items():
        failures += _commit_together(store, together)
    if failures:
        raise failures[0]


def _commit_together(store: Store, all_turns: list[Turns]) -> list[BaseException]:
    """Commit those of one store in a transaction, and return what failed."""
    failures: list[BaseException] = []
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
                failures.append(error)
        outcomes = store.commit_all([batch for _, batch in ready]) if ready else []
        for (turns, _), outcome in zip(ready, outcomes, strict=True):
            failures += _outcome(turns, partial(_keeper(turns).take_in, outcome))
    return failures


def _outcome(turns: Turns, commit: Callable[[], None]) -> list[BaseException]:
    try:
        commit()
    except Exception as error:
        return [error]
    turns.dirty = False
    return []


def _keeper(turns: Turns) -> Keeper:
    assert isinstance(turns.keeper, Keeper)
    return turns.keeper
