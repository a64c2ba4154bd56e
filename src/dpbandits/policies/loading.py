"""Load a saved policy: from a place, or from a file of an earlier version."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from ..errors import ClaimError, StateFileError, StoreError
from ..session import format5
from ..session.keeping import ABOUT, HEAD_ROW, sealed_kinds
from ..session.packing import parted
from ..session.saved_head import Layout, filled_head
from ..session.saved_rows import fill_rows
from ..stores import WHY, FilePlace, Held, Mark, Place, Row
from ..stores.addresses import place_at
from ..stores.format5 import claim5, is_format5, read5
from ..stores.sealing import Sealer
from ..stores.stamps import Stamps
from ..stores.store import OTHER_FORMAT
from ..stores.witness import Witness
from .policy import Policy
from .registry import arguments_of_today, find, of_this_version

_FORMATS = (6,)
_ATTEMPTS = 20  # to claim a policy that commits all the time


def load(where: str | os.PathLike[str] | Place, *, simulation: bool = False) -> Policy:
    """Continue a saved policy, exactly where it stood.

    The policy that was saved there is refused at its next call.

    Args:
        where: the place or file that ``Policy.save`` wrote; a file has its journal beside it.
        simulation: True to load a copy for an experiment, as often as wanted, without claiming it;
            simulated noise only.

    Returns:
        The policy, in a new life, with its earlier releases, ledger, pending decisions and
        estimates.

    Raises:
        ArgumentError: ``where`` is neither a place nor the path of a file.
        StateFileError: the file or its journal is damaged, not ours, or from another version, or
            the state folder cannot be used.  Nothing was claimed.
        ClaimError: the state has been loaded before, is an older copy, or is unknown to the state
            folder; or the policy that was loaded from it is alive.
        FileNotFoundError: there is no policy in that place.
        StoreError: the place cannot be read or written.

    Example:
        >>> import tempfile, dpbandits as dpb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     policy = dpb.bandit(2, budget=dpb.ZCDP(1.0), seed=1)
        ...     again = dpb.load(policy.save(folder + "/trial.dpb"), simulation=True)
        >>> again.config == policy.config
        True
    """
    place = place_at(where)
    if isinstance(place, FilePlace) and is_format5(place.path):
        return _load5(place, simulation)
    for attempt in range(_ATTEMPTS):
        saved = read(place)
        try:
            with _unless_moved(place, saved.held.mark):
                return _gone_on(saved, place, simulation)
        except _Moved as moved:  # its holder has committed since it was read
            if attempt == _ATTEMPTS - 1:
                raise ClaimError(str(moved)) from None
    raise AssertionError


class Saved(NamedTuple):
    """What a place holds, before its rows are read."""

    about: dict[str, Any]
    held: Held


def read(place: Place) -> Saved:
    """Read the beginning of what a place holds.

    Raises:
        FileNotFoundError, StateFileError: there is no policy of this version.
    """
    held = place.read()
    if held is None:
        raise FileNotFoundError(f"there is no saved policy in {place}")
    first = next(held.rows, None)
    with of_this_version(place):
        if first is None or first.kind != ABOUT:
            raise ValueError("the first row does not name the policy")
        about = json.loads(Stamps(None).checked(first, place).content or b"")
        if about["version"] not in _FORMATS:
            raise StateFileError(f"{place} has format {about['version']}; {OTHER_FORMAT}")
        stamps = Stamps(Witness(about["policy"]).secret)
        stamps.checked(first, place)
        head = stamps.checked(Row(HEAD_ROW, b"", held.head), place).content or b""
    return Saved(about, Held(held.mark, head, stamps.all_checked(held.rows, place)))


def _gone_on(saved: Saved, place: Place, simulation: bool) -> Policy:
    if simulation:
        return _copy(_restored(saved, place), place)
    _refuse_copy(saved, place)  # before its keys are missed
    return _claimed(_restored(saved, place), saved, place)


def _refuse_copy(saved: Saved, place: Place) -> None:
    witness = Witness(saved.about["policy"])
    with witness.alone():
        witness.refuse(saved.held.mark, place)


class _Moved(Exception):
    """The place is not as it was when it was read."""


def _restored(saved: Saved, place: Place) -> Policy:
    about, (mark, head, rows) = saved
    with of_this_version(place):
        policy: Policy = find(about["class"])(**arguments_of_today(about["config"]))
        public, private = parted(head)
        layout = Layout(**about["layout"])
        if about["sealed"]:
            private, rows = opened(policy, about["policy"], private, rows)
        arrays = filled_head(policy.session, layout, public, private)
        fill_rows(policy.session, rows)
        policy.session.state.fill(policy._of_today(arrays))
        policy.session.former.setdefault(mark.life, policy.session.rounds.pulls)
        policy._first_life = about["policy"]
    return policy


def opened(
    policy: Policy, name: str, private: bytes, rows: Iterator[Row]
) -> tuple[bytes, Iterator[Row]]:
    """The private part and the rows of a place that has them sealed.

    Raises:
        StateFileError: the keys are elsewhere, or something was changed.
    """
    policy._sealer = sealer = Sealer(name)
    kinds = sealed_kinds(policy.session)
    return sealer.open(HEAD_ROW, b"", private), (
        row._replace(content=sealer.open(row.kind, row.key, row.content))
        if row.kind in kinds and row.content is not None
        else row
        for row in rows
    )


def _copy(policy: Policy, place: Place) -> Policy:
    if policy.noise_source.secure:
        raise ClaimError(
            f"{place} holds a policy with secure noise, which is never copied for a simulation:"
            f" {WHY}"
        )
    policy._first_life = policy._life  # saved elsewhere, it is another policy
    policy._sealer = None  # with the keys of the original
    return policy


def _claimed(policy: Policy, saved: Saved, place: Place) -> Policy:
    """Go on with the policy, in its own life."""
    mark, heir, witness = saved.held.mark, policy.session.life, Witness(policy._first_life)
    with witness.alone():
        witness.refuse(mark, place)
        witness.note(mark, heir=heir, durable=True)
        place.claim(mark, heir)
        witness.note(Mark(heir, mark.number), durable=True)
        policy._let_go = weakref.finalize(policy, witness.hold())
    keeper = policy._keeper_at(place, witness, mark.number)
    keeper.forget()
    keeper.destroy_keys()  # which a kill may have left
    if Layout(**saved.about["layout"]) != Layout.of(policy.session):
        keeper.renew_all()  # an earlier version wrote it: parts of batches would not fit
    policy._lock.keeper = keeper
    end_replaced(saved.about)
    return policy


def end_replaced(about: dict[str, Any]) -> None:
    """End the life that a restored policy has replaced; a kill may have left it.

    Without a secret the place was not checked, and may name anybody's.
    """
    if "replaces" not in about or Witness(about["policy"]).secret is None:
        return
    witness = Witness(about["replaces"])
    with witness.alone():
        witness.end(about["policy"])
    with suppress(StoreError):  # which the next load repeats
        Sealer(about["replaces"]).end()


@contextmanager
def _unless_moved(place: Place, mark: Mark) -> Iterator[None]:
    """Tell a refusal from a place that its holder has written since it was read: then it may seem
    to be behind its witness, and to need keys that are destroyed.
    """
    try:
        yield
    except (ClaimError, StateFileError) as error:
        now = place.mark()
        if now is not None and now.life == mark.life and now.number > mark.number:
            raise _Moved(str(error)) from None
        raise


def _load5(place: FilePlace, simulation: bool) -> Policy:
    header, arrays, announced = read5(place.path)
    with of_this_version(place):
        life, saves = header["life"]
        policy: Policy = find(header["class"])(**arguments_of_today(header["config"]))
        format5.restore(policy.session, header, policy._of_today(arrays))
    if simulation:
        _copy(policy, place)
    format5.replay(policy.session, announced)
    format5.charge_older_noise(policy.session, header)
    if not simulation:
        with claim5(place.path, life, saves):
            policy.save(place)
        policy._let_go = weakref.finalize(policy, Witness(policy._first_life).hold())
    return policy
