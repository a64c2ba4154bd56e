"""One commit of many calls, of one policy or of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
            _commit([turns.keeper for turns in own if isinstance(turns.keeper, Keeper)])


def _commit(keepers: list[Keeper]) -> None:
    shared: dict[Store, list[Keeper]] = {}
    failures: list[BaseException] = []
    for keeper in keepers:
        store = keeper.place.store
        if store is None:
            failures += _outcome(keeper, None, tried=False)
        else:
            shared.setdefault(store, []).append(keeper)
    for store, ones in shared.items():
        ready = [(one, batch) for one in ones if (batch := one.prepare()) is not None]
        outcomes = store.commit_all([batch for _, batch in ready]) if ready else []
        for (one, _), outcome in zip(ready, outcomes, strict=True):
            failures += _outcome(one, outcome, tried=True)
    if failures:
        raise failures[0]


def _outcome(keeper: Keeper, outcome: BaseException | None, *, tried: bool) -> list[BaseException]:
    try:
        if tried:
            keeper.settle(outcome, tried=True)
        else:
            keeper.commit()
    except Exception as error:
        return [error]
    return []
