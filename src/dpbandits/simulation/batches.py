"""What ``simulate`` and ``replay`` share: several policies, many runs of each, in batches over
threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

from joblib import Parallel, delayed

from ..errors import ArgumentError
from ..policies import Policy
from ..policies.promise import describe, what_holds
from ..validation import integer
from .clipping import range_of

Progress = Callable[[int, int], None] | bool
R = TypeVar("R")

MOST_JOBS = 1024
_LARGEST = 25  # runs of a batch: enough to keep a thread busy, few enough to show progress


def distinct_policies(policies: Policy | Sequence[Policy]) -> list[Policy]:
    """The policies as a list: one or more, which differ in more than their seed."""
    if not isinstance(policies, Policy | Sequence):
        raise ArgumentError(f"policies must be a policy or a list of policies, got {policies!r}")
    chosen = [policies] if isinstance(policies, Policy) else list(policies)
    for policy in chosen:
        if not isinstance(policy, Policy):
            raise ArgumentError(f"policies must hold policies, got {policy!r}")
    names = [policy.stream_key for policy in chosen]
    if not names or len(set(names)) < len(names):
        raise ArgumentError(
            f"policies must be one or more that differ in more than their seed, got {names}"
        )
    return chosen


def job_count(n_jobs: int) -> int:
    """``n_jobs`` as joblib takes it: a positive number of threads, or -1 for one per core."""
    return (
        -1 if n_jobs == -1 and isinstance(n_jobs, int) else integer("n_jobs", n_jobs, 1, MOST_JOBS)
    )


def play_in_batches(
    policies: list[Policy],
    runs: int,
    n_jobs: int,
    progress: Progress,
    play: Callable[[Policy, int], R],
) -> list[list[R]]:
    """``play(policy, run)`` for every policy and run; a list of results per policy, in the order of
    runs whatever ``n_jobs``.

    ``progress`` is called with (runs done, runs in all) after every batch; True shows a bar.
    """
    if not (isinstance(progress, bool) or callable(progress)):
        raise ArgumentError(f"progress must be True, False or a function, got {progress!r}")
    batches = list(_batches(len(policies), runs))
    work = (delayed(_play_batch)(play, policies[i], batch) for i, batch in batches)
    finished: list[list[R]] = [[] for _ in policies]
    results = Parallel(n_jobs=n_jobs, backend="threading", return_as="generator")(work)
    done, total = 0, len(policies) * runs
    with _bar() if progress is True else nullcontext(progress or _silent) as report:
        for (i, batch), played in zip(batches, results, strict=True):
            finished[i] += played
            done += len(batch)
            report(done, total)
    return finished


def keys_of(policy: Policy) -> dict[str, str]:
    """What names a policy's rows in results: the policy, the budget that was asked for, and the one
    that really holds.
    """
    return {
        "policy": policy.label,
        "budget": str(policy.budget or "none"),
        "holds": str(what_holds(policy) or "none"),
    }


def describe_policy(policy: Policy) -> dict[str, Any]:
    """What results keep about a policy."""
    guarantee, meter = describe(policy, simulated=True), policy.meter
    return {
        **keys_of(policy),
        "reward_range": range_of(policy),
        "class": type(policy).__name__,
        "currency": None if meter is None else meter.currency,
        "limit": None if meter is None else meter.limit,  # of what the column ``spent`` counts
        "guarantee": guarantee.to_dict(),
        "sentence": str(guarantee),
    }


def _silent(done: int, total: int) -> None: ...


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    from rich.progress import Progress as Bar

    with Bar() as bar:
        task = bar.add_task("runs", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _batches(policies: int, runs: int) -> Iterator[tuple[int, range]]:
    size = max(1, min(_LARGEST, runs // 4))
    for i in range(policies):
        for start in range(0, runs, size):
            yield i, range(start, min(start + size, runs))


def _play_batch(play: Callable[[Policy, int], R], policy: Policy, batch: range) -> list[R]:
    return [play(policy, run) for run in batch]
