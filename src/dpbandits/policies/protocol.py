"""The kernel protocol: what an algorithm consists of.

An algorithm is a handful of compiled functions over three named tuples: ``params`` (public, frozen
scalars), ``raw`` (the private side, arrays only) and ``public`` (the public side, arrays only).  A
function that decides or publishes has no ``raw`` argument, so that it cannot leak by accident.  No
kernel adds noise, and none raises.

``init(params) -> (raw, public)``
    the empty state
``prepare(params, public, contexts, rng)``
    draw what a choice needs and the public side keeps: a leader, an expert, how often to resample;
    ahead of every ``choose``
``choose(params, public, contexts, rng) -> (arm, propensity)``
    the arm, and the probability with which it was drawn (nan: unknown); ``contexts`` is what is
    seen before choosing: nothing, features of the arms, shape (K, d), or experts' advice, shape
    (K, N)
``hold_rounds(params, public, arm) -> rounds``
    for how many rounds that choice stands
``preprocess_contexts(params, contexts, seen, rng)``
    the contexts as the algorithm takes them: within its norm bound, or perturbed
``record_pull(params, public, arm, x, n)``
    public bookkeeping of n rounds of the arm; linear in n, and n = -1 takes one round back
``accumulate(params, raw, public, arm, x, reward, n)``
    add the (sum of the) rewards of n rounds; the order of calls is irrelevant
``release_due(params, public) -> bool``
    whether a release is due, from public quantities only
``partition(params, public) -> int``
    whose records that release covers: ``WHOLE``, or those of one arm
``sensitivity(params, public, norm) -> float``
    the most one record moves the statistic, in the L1 or L2 norm
``summarise(params, raw, public, statistic)``
    fill in the statistic, and forget what it was made of
``publish(params, public, release)``
    take in the noisy statistic, or the noisy running sum of all statistics where the policy has a
    counter (``privacy.continual``)
``estimate(params, public, i) -> float``
    what is believed of the i-th coefficient of mean rewards; nan: nothing

``choose``, ``hold_rounds``, ``release_due``, ``partition``, ``sensitivity`` and ``estimate`` change
nothing.  ``record_pull`` runs when an arm is pulled, ``accumulate`` when its reward is known.
``x`` is the arm's row of the contexts of that round, and 0 where nothing is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..kernel import Kernel, kernel
from ..privacy.budgets import Budget
from ..privacy.channels import Channel
from ..privacy.continual import Running
from ..privacy.guarantees import TrustModel, View
from ..privacy.ledger import WHOLE, LedgerArrays

if TYPE_CHECKING:
    from .policy import Policy


@kernel
def one_round(params, public, arm):
    """``hold_rounds`` of an algorithm that chooses anew in every round."""
    return 1


@kernel
def whole(params, public):
    """``partition`` of an algorithm whose release covers every record of its span."""
    return WHOLE


@kernel
def as_shown(params, contexts, seen, rng):
    """``preprocess_contexts`` of an algorithm without contexts, or that takes them as they are."""
    for a in range(contexts.shape[0]):
        for i in range(contexts.shape[1]):
            seen[a, i] = contexts[a, i]


@kernel
def no_estimate(params, public, i):
    """``estimate`` of an algorithm without a linear model."""
    return np.nan


@kernel
def nothing_to_prepare(params, public, contexts, rng):
    """``prepare`` of an algorithm that draws its arm alone, or nothing."""


class Kernels(NamedTuple):
    """One algorithm's functions, by their names in the protocol."""

    init: Kernel
    choose: Kernel
    record_pull: Kernel
    accumulate: Kernel
    release_due: Kernel
    sensitivity: Kernel
    summarise: Kernel
    publish: Kernel
    hold_rounds: Kernel = one_round
    partition: Kernel = whole
    preprocess_contexts: Kernel = as_shown
    estimate: Kernel = no_estimate
    prepare: Kernel = nothing_to_prepare


class Wall(NamedTuple):
    """The opening in the wall, as compiled code sees it."""

    family: int
    multiplier: float
    norm: int  # of the sensitivity: 1 or 2
    statistic: np.ndarray  # (n,) float64: exact, private; zero after every release
    release: np.ndarray  # (n,) float64
    # (parts + 1,) int64: first round that a part's next release covers; the last entry is WHOLE's
    opened: np.ndarray
    ledger: LedgerArrays
    charged: int  # the family that ledger lines name
    running: Running  # the running sum of the statistics, for policies with a counter
    # (n,) float64, or (0,) without a counter: what running sums before a crash had released
    base: np.ndarray


@dataclass(frozen=True)
class Card:
    """What a reader of a list of policies wants to know about one.

    Attributes:
        title: one line.
        source: paper, algorithm, and the theorem of the privacy claim.
        channels: the noise of each kind of budget; empty where only the open channel fits.
        trust_model: who has to be trusted with raw rewards; "none" for policies without privacy.
        view: from which view the guarantee holds.
        learns_at_once: whether each answer is released when it arrives, instead of at the end of an
            episode.
        randomised: whether ``prepare``, ``choose`` or ``preprocess_contexts`` draws random numbers.
        void: why the published claim is not one, for algorithms that are here to be reproduced;
            empty for all others.
    """

    title: str
    source: str
    channels: dict[type[Budget], type[Channel]]
    trust_model: TrustModel = "central"
    view: View = "interactive"
    learns_at_once: bool = False
    randomised: bool = False
    void: str = ""


_REGISTRY: dict[str, type[Policy]] = {}
P = TypeVar("P", bound="type[Policy]")


def register(**example: Any) -> Callable[[P], P]:
    """Make a policy class known to ``dpbandits list``, to study files and to the conformance suite.

    ``example`` are constructor arguments, apart from the budget, of a small instance with three
    arms that the suite can run.
    """

    def enter(policy: P) -> P:
        policy.example = example
        _REGISTRY[policy.__name__] = policy
        return policy

    return enter


def registered() -> dict[str, type[Policy]]:
    """Every policy class by name, in alphabetical order."""
    return dict(sorted(_REGISTRY.items()))


def example_policies(**options: Any) -> Iterator[Policy]:
    """One small instance of every registered class and kind of budget, and its open counterpart.

    ``options`` go to every constructor.
    """
    for cls in registered().values():
        for budget in (*cls.example_budgets(), None):
            yield cls(**cls.example, budget=budget, **options)
