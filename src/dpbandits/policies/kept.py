"""Policies that a place keeps: saving, batches, and choices from the last durable values."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, ClaimError, StateFileError
from ..session.keeping import Keeper
from ..session.rounds import Choice
from ..stores import WHY, FilePlace, Mark, Place
from ..stores.addresses import place_at
from ..stores.sealing import Sealer
from ..stores.tokens import Seal
from ..stores.witness import Witness
from ..validation import flag
from .batches import batch_of
from .configured import Configured
from .turns import Turns

if TYPE_CHECKING:
    from ..session.session import Session

# What was drawn and not committed has been seen by nobody.
ASSUMED_OF_PLACES = "no process dies because of the values of noise that it has drawn"


class Kept(Configured):
    """The base of policies, as far as places keep them."""

    if TYPE_CHECKING:
        session: Session

    _inspected: Place | None = None  # where an inspection has read it
    _sealer: Sealer | None = None  # once a place keeps it
    _replaces: str | None = None  # the first life of the policy that it replaces, once restored

    def _begin_life(self) -> None:
        self._lock = Turns()
        self._life, self._seal = uuid.uuid4().hex, Seal()  # also of forks
        self._first_life = self._life  # by which stores know it
        self._let_go: Callable[[], Any] = lambda: None  # of what ``load`` holds

    def save(self, where: str | os.PathLike[str] | Place, *, new: bool = False) -> Any:
        """Write the whole state, pending decisions included, to a file or another place, and keep
        it there from now on.

        Every later call of this policy commits what it has changed to the place before it returns.
        ``batch`` makes one commit of several calls.  ``dpbandits.load`` goes on from the place.

        Args:
            where: the path of a file, or another place.
            new: True to refuse a place where something was saved before.

        Returns:
            The path of the file, or the place.

        Raises:
            ArgumentError: ``where`` is neither a place nor the path of a file, or ``new`` is not
                True or False.
            StateFileError: the state folder cannot be used.
            ClaimError: something was saved there, and ``new`` is True; an earlier save has been
                loaded; this process is a fork of the one that made the policy; or the policy is a
                simulation of another.
            StoreError: the place cannot be written, and the policy is kept where it was kept
                before; or only its witness cannot be told, which the next call does.
        """
        place, new = place_at(where), flag("new", new)
        with self._lock.aside:
            self._save(place, new)
        return place.path if isinstance(place, FilePlace) else place

    @contextmanager
    def batch(self, where: str | os.PathLike[str] | Place | None = None) -> Iterator[Keeper]:
        """Make one commit of all calls in a ``with`` block.

        Nothing that a call in the block returns may leave the process, or be shown to anyone,
        before the block has ended without an error.  Other threads wait until then.

        Args:
            where: the place that keeps the policy from now on; by default where it was saved.

        Returns:
            What keeps the policy.

        Raises:
            ArgumentError: the policy was not saved, and ``where`` is not given.
            StoreError, ClaimError: the commit failed.  The next call repeats it.

        >>> import tempfile, dpbandits as dpb
        >>> policy = dpb.bandit(2, budget=dpb.ZCDP(1.0), seed=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with policy.batch(folder + "/trial.dpb"):
        ...         for _ in range(100):
        ...             _ = policy.update(1.0, policy.pull())
        ...     dpb.inspect(folder + "/trial.dpb").rounds
        100
        """
        if where is not None:
            self.save(where)
        if self._keeper is None:
            raise ArgumentError(
                "where must name a place, got None: the policy has not been saved yet",
                "where",
            )
        with batch_of([self]):
            yield self._keeper

    def close(self) -> None:
        """Let another process load the policy from its place at once, at the end of a service.

        Everything is durable already.  Without this call, a loaded policy holds its place until
        its process ends, and in PostgreSQL until the lease has ended.

        Raises:
            StoreError: the place cannot be written; a lease then ends by itself.
            ClaimError: this process is a fork of the one that made the policy.

        >>> import tempfile, dpbandits as dpb
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = dpb.bandit(2, budget=dpb.ZCDP(1.0), seed=1).save(folder.name + "/trial.dpb")
        >>> policy = dpb.load(path)
        >>> policy.close()
        >>> dpb.load(path).rounds
        0
        """
        with self._lock:
            self._let_go()
            if self._keeper is not None:
                self._keeper.close()

    @property
    def holds_place(self) -> bool:
        """Whether the place still has this policy: no other process has loaded or replaced it."""
        with self._lock.lock:
            if self._keeper is None:
                return False
            mark = self._keeper.place.mark()
            return mark is not None and mark.life == self.session.life

    def renew(self) -> None:
        """Keep the lease on the place while nothing is committed.

        Raises:
            StoreError: the place cannot be written.
        """
        with self._lock:
            if self._keeper is not None:
                self._keeper.place.renew(self.session.life)

    def settle(self) -> None:
        """Write what an earlier call could not write.

        Raises:
            StoreError, ClaimError: it cannot be written now, either.
        """
        with self._lock:
            pass

    @property
    def notes(self) -> MutableMapping[tuple[str, bytes], bytes]:
        """What a service keeps with the policy; a commit writes it with everything else.

        A key is a kind and at most 80 bytes.  Kinds are "service", for public facts, and "reply"
        and "receipt", for clients that ask or send again.  Where contexts are private, databases
        have replies sealed.  ``restore`` drops both.  Write within ``batch``.
        """
        return self.session.notes

    @property
    def kept_in(self) -> Place | None:
        """The place that keeps the policy; None for one in memory only."""
        return self._inspected if self._keeper is None else self._keeper.place

    @property
    def _keeper(self) -> Keeper | None:
        keeper = self._lock.keeper
        return keeper if isinstance(keeper, Keeper) else None

    def _save(self, place: Place, new: bool) -> None:
        if self.session.gate.simulated:
            raise ClaimError(f"{place} was not written: this is a simulation of a policy")
        if self.session.gate.is_fork:
            raise ClaimError(
                f"{place} was not written: this process is a fork. Save in the process that made"
                f" the policy: {WHY}"
            )
        witness, before = Witness(self._first_life), self._keeper
        with witness.alone():
            if not witness.is_of(self.session.life):
                raise ClaimError(
                    f"{place} was not written: an earlier save of this policy has been loaded and"
                    f" carries on; {WHY}"
                )
            self._begin(place, witness, 0 if before is None else before.next_number, new=new)

    def _begin_at(self, place: Place, number: int) -> None:
        """Keep a restored policy, whose copy had batches up to that number."""
        witness = Witness(self._first_life)
        with witness.alone():
            self._begin(place, witness, number)

    def _begin(self, place: Place, witness: Witness, number: int, *, new: bool = False) -> None:
        with suppress(StateFileError):  # something else, which the save replaces or refuses
            found = place.mark()
            if found is not None and found.life == self.session.life:
                number = max(number, found.number)  # of a save that could not be noted
        witness.begin(Mark(self.session.life, number))  # first: no place is loaded without one
        keeper = self._keeper_at(place, witness, number)
        keeper.begin(new=new)
        self._lock.keeper = keeper
        keeper.note()  # which the next call repeats if it fails
        self._let_go()

    def _keeper_at(self, place: Place, witness: Witness, number: int) -> Keeper:
        name, config = self._named
        about = {"class": name, "config": dict(config), "policy": self._first_life}
        if self._replaces is not None:
            about["replaces"] = self._replaces
        if self._sealer is None:
            self._sealer = Sealer(self._first_life)
        return Keeper(self.session, place, about, witness, number, self._sealer)

    @contextmanager
    def _as_durable(self) -> Iterator[Choice]:
        """Go back to the public side that was durable last for a block, and give its choice."""
        keeper, state = self._keeper, self.session.state
        if keeper is None:
            yield self.session.rounds.current_choice
            return
        now = state.blocks[1].copy()
        state.blocks[1][:] = keeper.durable.public
        try:
            yield keeper.durable.choice
        finally:
            state.blocks[1][:] = now
