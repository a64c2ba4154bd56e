"""Common code of ``simulate`` and ``replay``: several policies with many runs each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, DPBanditsError
from ..policies import Policy, Preset
from ..privacy.ledger import Ledger
from ..session.state import State
from ..validation import integer
from ..validation import shown as brief
from .processes import shared_out
from .tally import BAD_SENSITIVITY, DONE, LEDGER_FULL
from .tasks import Piece

ProgressCallback = Callable[[int, int], None]

MOST_JOBS = 1024
MOST_RUNS = 2**31  # numbers of runs are words of seeds


def distinct_policies(policies: Policy | Sequence[Policy]) -> list[Policy]:
    """The policies as a list, if ``simulate`` can take them."""
    if not isinstance(policies, Policy | Sequence) or isinstance(policies, str):
        raise ArgumentError(
            f"policies must be a policy or a list of policies, got {_told(policies)}"
        )
    chosen = [policies] if isinstance(policies, Policy) else list(policies)
    for policy in chosen:
        if not isinstance(policy, Policy):
            raise ArgumentError(f"policies must hold policies, got {_told(policy)}")
    keys = [policy.stream_key for policy in chosen]
    if not keys or len(set(keys)) < len(keys):
        raise ArgumentError(
            "policies must hold at least one policy, and each policy once (seed and name do not"
            f" count), got {keys}"
        )
    if shared := shared_name(chosen):
        raise ArgumentError(f"policies must not share a name, got {shared!r} twice", "policies")
    return chosen


def _told(given: object) -> str:
    """An object in the place of a policy, in words."""
    if isinstance(given, Preset) or (isinstance(given, type) and issubclass(given, Policy)):
        return f"the class {given.__name__}: make a policy of it, {given.__name__}(...)"
    return brief(given)


def shared_name(policies: Sequence[Policy]) -> str | None:
    """The name of two policies that differ in more than budget and seed; None if none have one."""
    owners: dict[str, Policy] = {}
    for policy in policies:
        owner = owners.setdefault(policy.label, policy)
        if (type(owner), owner.arguments) != (type(policy), policy.arguments):
            return policy.label
    return None


def job_count(n_jobs: int) -> int:
    """``n_jobs``, checked: a positive number of processes, or -1 for one per core."""
    if n_jobs == -1 and isinstance(n_jobs, int):
        return -1
    return integer("n_jobs", n_jobs, 1, MOST_JOBS)


def run_numbers(first_run: int, runs: int) -> range:
    """The numbers of runs, each of which has random streams of its own."""
    first = integer("first_run", first_run, 0, MOST_RUNS)
    return range(first, first + integer("runs", runs, 1))


def play_all(
    policies: list[Policy],
    runs: range,
    n_jobs: int,
    progress: ProgressCallback | bool,
    play: Callable[..., Any],
) -> list[list[Any]]:
    """Call ``play(policy, run=run)`` for every policy and run.  Returns a list of results per
    policy, in the order of runs for any ``n_jobs``.

    ``progress`` is called with (runs done, runs in all) after every piece; True shows a bar.
    """
    done, total = 0, len(policies) * len(runs)

    def tell(piece: Piece) -> None:
        nonlocal done
        done += len(piece.units)
        report(done, total)

    task = _Runs(policies, runs, play)
    with shown(progress) as report:
        return shared_out(task, [len(runs)] * len(policies), n_jobs, tell)


@dataclass(frozen=True)
class _Runs:
    """The task of all runs."""

    policies: list[Policy]
    runs: range
    play: Callable[..., Any]

    def __call__(self, policy: int, number: int) -> Any:
        return self.play(self.policies[policy], run=self.runs[number])


def play_out(policy: Policy, state: State, advance: Callable[[], int]) -> Ledger:
    """Go on with a compiled loop until it is done, with room in the ledger for all releases."""
    while (status := advance()) != DONE:
        if status == BAD_SENSITIVITY:
            raise DPBanditsError(
                f"a record moved the sum of {policy!r} by more than the declared sensitivity. This"
                " is a bug in the policy's class"
            )
        if status == LEDGER_FULL:
            # Compiled code cannot allocate, so it pauses for this.
            state.make_room()
    return Ledger(state.wall.ledger, policy.meter)


def shown(progress: ProgressCallback | bool) -> AbstractContextManager[ProgressCallback]:
    """The function to call with (runs done, runs in all): a bar for True, nothing for False."""
    if not (isinstance(progress, bool) or callable(progress)):
        raise ArgumentError(f"progress must be True, False or a function, got {progress!r}")
    return _bar() if progress is True else nullcontext(progress or (lambda done, total: None))


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    from rich.progress import Progress as Bar

    with Bar() as bar:
        task = bar.add_task("runs", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
