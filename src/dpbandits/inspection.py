"""Inspect a saved policy without loading it to continue.

The result uses the public arrays, the ledger, and the largest count of rounds of a user.  No
private data are read from the file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import StateFileError
from .html import Html, glance
from .policies.privacy_card import PrivacyCard, spent
from .policies.registry import find, of_this_version
from .privacy.budgets import Budget
from .privacy.guarantees import Guarantee
from .privacy.ledger import Ledger
from .session.estimates import Estimates
from .session.saving import charge, charge_older_noise, show
from .stores import Announcement, Life, Store, decode, store_at
from .stores.snapshots import arguments

_ATTEMPTS = 20


@dataclass(frozen=True, eq=False, repr=False)
class Inspection:
    """The public facts of a saved policy, as ``inspect`` returns them.

    Attributes:
        policy: the call that makes it: class, arguments and budget.
        guarantee: its privacy guarantee.
        ledger: its releases, with all that were announced since the save.
        estimates: estimates from the values released by the save.
        rounds: the number of rounds recorded by then.
        since: the number of releases announced since; each is charged, made or not.
        superseded: whether this save was loaded, or a later one made; the ledger then lacks later
            releases.  False also where the store cannot tell.
        card: its privacy card.
    """

    policy: str
    guarantee: Guarantee
    ledger: Ledger
    estimates: Estimates
    rounds: int
    since: int
    superseded: bool
    card: PrivacyCard

    @property
    def spent(self) -> Budget | None:
        """The largest privacy loss of any person by now; None for nothing, or without a budget."""
        return self.ledger.spent()

    @property
    def facts(self) -> dict[str, str]:
        """All but the estimates, in words."""
        found = {
            "policy": self.policy,
            "guarantee": str(self.guarantee),
            "spent": spent(self.guarantee, self.ledger),
            "releases": f"{self.ledger.releases:,}, of them {self.since:,} since the last save",
            "rounds": f"{self.rounds:,} recorded by the last save",
        }
        if self.superseded:
            found["warning"] = (
                "This save has been loaded, or a later one was made: the policy goes on elsewhere,"
                " and may have spent more than is said here."
            )
        return found

    def __repr__(self) -> str:
        return f"<Inspection of {self.policy}: spent {spent(self.guarantee, self.ledger)}>"

    def _repr_html_(self) -> Html:
        facts = glance("Inspection", [], [list(fact) for fact in self.facts.items()])
        return Html(facts + self.estimates._repr_html_())


def inspect(where: str | os.PathLike[str] | Store) -> Inspection:
    """Look at a saved policy, without loading it, and as often as one likes.

    It may be alive in another process, or have secure noise: nothing is claimed or written, and
    nothing that could release is made.

    Args:
        where: the store or file that ``Policy.save`` wrote; a file has its journal beside it.

    Returns:
        An ``Inspection``: the ledger, the estimates and the privacy card.

    Raises:
        ArgumentError: ``where`` is neither a store nor the path of a file.
        StateFileError: the file or its journal is damaged, not ours, or from another version.
        FileNotFoundError: there is no such file.
        MissingExtra: the policy has secure noise, and the extra ``secure`` is not installed.

    Example:
        >>> import tempfile, dpbandits as dpb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(1.0), seed=1)
        ...     path = policy.save(folder + "/trial.dpb")
        ...     policy.update(1.0, policy.pull())
        ...     _ = policy.pull()  # which releases
        ...     dpb.inspect(path).spent
        True
        ZCDP(rho=1.0)
    """
    store = store_at(where)
    header, arrays, announced = _read(store)
    with of_this_version(store):
        life = Life(*header["life"])
        policy = find(header["class"])(**arguments(header["config"]))
        show(policy.session, header, policy._of_today(arrays))
        estimates = policy.estimates
    charge(policy.session, announced)
    charge_older_noise(policy.session, header)
    policy.session.gate.store = store  # which the card names
    return Inspection(
        policy=policy.heading,
        guarantee=policy.guarantee,
        ledger=policy.ledger,
        estimates=estimates,
        rounds=policy.rounds,
        since=len(announced),
        superseded=store.superseded(life),
        card=policy.card_page(),
    )


def _read(store: Store) -> tuple[dict[str, Any], dict[str, np.ndarray], list[Announcement]]:
    """Read a snapshot, and the releases announced since; the policy may be saving itself
    meanwhile.
    """
    for _ in range(_ATTEMPTS):
        content = store.read()
        header, arrays = decode(content, store)
        announced = store.announced(Life(*header["life"]))
        if store.read() == content:
            return header, arrays, announced
    raise StateFileError(f"{store} is saved more often than it can be read; try again")
