"""Go on from a backup, or any other copy of a policy: the only safe way.

A policy whose newest state is lost may have released more than its copy knows: records that the
copy still holds, with noise that the copy would use again.  The difference of two such releases
could show exact rewards.  So the restored policy begins a new life, and drops:

* all raw and exact sums, and all pulls that wait: their records may have been released;
* the running noise of sums, and the state of random generators: both may have been used;
* what tokens of earlier lives stand for: their answers are refused;
* replies that a service has kept for clients that ask again;
* the keys of the lost policy, which would open its copies.

No estimate is biased by what was dropped: episodes that were not released begin anew on the public
side, too (``Running.give_up``).  Where rounds have public features, these stay counted, and the
running sum goes on from the one that the present estimate stands for.  Both use public values
alone, so they cost nothing.

Guarantee: no record of the copy enters a release of the restored policy, so no record is released
by both lives.

* The ledger charges every record that the copy held unreleased, as if it had been released.
* Records of people who came later are in the lost life alone, or in the restored one alone; the
  two compose in parallel.
* With ``max_rounds`` users may have come to both lives, and the copy does not know how often they
  came to the lost one.  Each life keeps the budget by itself, so after k restores k + 1 times the
  budget holds.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from ..errors import MissingExtra, StateFileError
from ..privacy.ledger import HEAD, SPAN, WHOLE, Line
from ..session import format5
from ..session.packing import parted
from ..session.rounds import Choice
from ..session.saved_head import Layout, coin_of, filled_public, public_arrays
from ..session.saved_rows import HOLDOUT, fill_rows
from ..session.session import Session
from ..session.state import Span
from ..stores import FilePlace, Place, Row
from ..stores.addresses import place_at
from ..stores.format5 import is_format5, read5
from ..stores.sealing import Sealer
from ..stores.tokens import Seal
from ..stores.witness import Witness
from .loading import end_replaced, opened, read
from .policy import Policy
from .registry import arguments_of_today, find, of_this_version

_KEPT = ("line", "release", "learned", "flight", "booked", "user", "service")


def restore(where: str | os.PathLike[str] | Place) -> Policy:
    """Go on from a backup or another copy of a saved policy whose newest state is lost.

    Use it where ``load`` refuses a place as an older copy, or as unknown to the state folder.  The
    policy keeps its releases, its ledger and its estimates.  It drops every record that was not
    released, and counts its cost as if it had been.  No estimate counts a dropped record, and
    episodes that were not released begin anew.  Tokens of earlier decisions are refused.

    Args:
        where: the place or file of the copy; the restored policy is kept there from now on.

    Returns:
        The policy, in a new life.

    Raises:
        ArgumentError: ``where`` is neither a place nor the path of a file.
        StateFileError: it is damaged, not ours, or from another version.
        FileNotFoundError: there is no policy in that place.
        ClaimError: a process that lives has loaded the policy, or has a lease on the place.  End
            that process first.
        StoreError: the place cannot be read or written, and the copy stays as it was; or the
            place was written, but the lost policy cannot be ended, and ``load`` goes on.

    Example:
        >>> import shutil, tempfile, dpbandits as dpb
        >>> folder = tempfile.mkdtemp()
        >>> policy = dpb.bandit(2, budget=dpb.ZCDP(1.0), seed=1)
        >>> path = policy.save(folder + "/trial.dpb")
        >>> backup = shutil.copy(path, folder + "/backup.dpb")
        >>> _ = policy.update(1.0, policy.pull())
        >>> dpb.restore(backup).ledger.spent() == policy.ledger.spent()
        True
    """
    place = place_at(where)
    if isinstance(place, FilePlace) and is_format5(place.path):
        policy, lost, number = _read5(place)
    else:
        policy, lost, number = _read(place)
    session = policy.session
    for one in session.streams:
        _drop_records(one)
    session.former, session.last = {}, None
    session.restored += 1
    policy._replaces, policy._sealer = lost, None
    if lost is None:
        policy._begin_at(place, number)
    else:
        _replace(policy, place, lost, number)
    return policy


def _replace(policy: Policy, place: Place, lost: str, number: int) -> None:
    """Keep the policy, and then end the life that it replaces.

    Until the place has taken the restored policy, the old one can be loaded, and its keys are all
    there.  What a kill leaves undone afterwards, the next ``load`` does.
    """
    witness = Witness(lost)
    with witness.alone():
        witness.refuse_living(place)
        policy._begin_at(place, max(number, witness.number))
        witness.end(policy.session.life)
    Sealer(lost).end()


def _read(place: Place) -> tuple[Policy, str, int]:
    """The public side of what a place holds, its first life, and the number of its last batch."""
    about, (mark, head, rows) = read(place)
    with of_this_version(place):
        policy: Policy = find(about["class"])(**arguments_of_today(about["config"]))
        session, layout = policy.session, Layout(**about["layout"])
        public, private = parted(head)
        kept: Iterator[Row] = (row for row in rows if row.kind.removeprefix(HOLDOUT) in _KEPT)
        with suppress(StateFileError, MissingExtra):  # whose keys are lost
            if about["sealed"]:
                private, kept = opened(policy, about["policy"], private, kept)
            known = json.loads(parted(private)[0])
            for one in session.streams:
                one.seal = Seal(bytes.fromhex(known["key"]))
            if session.holdout is not None:
                session.coin = coin_of(session, known)
            about["sealed"] = False
        block = filled_public(session, layout, public)
        fill_rows(session, kept if not about["sealed"] else _in_clear(kept, policy))
        session.state.fill_public(policy._of_today(public_arrays(layout, block)))
    end_replaced(about)
    return policy, about["policy"], mark.number


def _in_clear(rows: Iterable[Row], policy: Policy) -> Iterator[Row]:
    """Rows that can be read without keys; users cannot be told without theirs."""
    hidden = ("user", "booked") if policy.card.hides_contexts else ("user",)
    return (row for row in rows if row.kind.removeprefix(HOLDOUT) not in hidden)


def _read5(place: FilePlace) -> tuple[Policy, None, int]:
    header, arrays, announced = read5(place.path)
    with of_this_version(place):
        policy: Policy = find(header["class"])(**arguments_of_today(header["config"]))
        format5.restore(policy.session, header, policy._of_today(arrays))
    format5.replay(policy.session, announced)
    format5.charge_older_noise(policy.session, header)
    return policy, None, 0


def _drop_records(session: Session) -> None:
    """Charge every record that no release covers, and drop it.  A search that is over releases no
    more, so nothing is charged.
    """
    if session.choices.found() is not None:
        session.end_search()
        return
    gate, rounds = session.gate, session.rounds
    spans = [flight.ended.span for flight in rounds.flights.values()]
    spans += [one for one in _unreleased(session) if one.first <= one.last]
    family, bound, multiplier = (
        gate.ledger_family,
        gate.statistic.max_sensitivity,
        gate.channel.multiplier,
    )
    lines = [Line(*span, family, bound, multiplier, 0) for span in spans]
    _resume(session)
    session.give_up(*(lines if gate.private else ()))


def _resume(session: Session) -> None:
    """Let the choice of the running episode stand, where its rounds tell the arm; or else none."""
    rounds = session.rounds
    if session.gate.statistic.parts == 0 and len(rounds.unreleased) == 1:
        rounds.current_choice = Choice(next(iter(rounds.unreleased)), math.nan)
    else:
        rounds.left = 0


def _unreleased(session: Session) -> Iterator[Span]:
    """For each part the records that are in no episode that is over, by ledger and flights."""
    ledger, parts = session.state.wall.ledger, session.gate.statistic.parts
    span = ledger.span[: int(ledger.head[HEAD.lines])]
    for part in range(parts) if parts else (WHOLE,):
        mine = span[(span[:, SPAN.part] == part) | (span[:, SPAN.part] == WHOLE)]
        ended = [flight.ended.span for flight in session.rounds.flights.values()]
        covered = [one.last for one in ended if one.part in (part, WHOLE)]
        first = 1 + max([-1, *covered, *mine[:, SPAN.last].tolist()])
        yield Span(first, session.rounds.recorded - 1, part)
