"""The exceptions of the package, under one base class."""

from __future__ import annotations


class DPBanditsError(Exception):
    """The base of errors that this package raises on purpose.  Misuse in code may also raise
    ``TypeError`` or ``AttributeError``.
    """


class ArgumentError(DPBanditsError, ValueError):
    """An argument is outside its allowed range; the message names it, its value and the range.

    Attributes:
        argument: its name, with which the message then begins; None where the error is about no
            single argument.
    """

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class UpdateError(DPBanditsError, ValueError):
    """A reward does not fit the pulls so far: no pull, an answered one, another policy's.  Nothing
    has changed.
    """


class SubmissionError(DPBanditsError, ValueError):
    """A shuffler refuses a submission: another version, values that no device makes, a second
    record of one sender, a full batch.  Nothing has changed.
    """


class BudgetExhausted(DPBanditsError):
    """The next release would spend more than the budget.  It was not made.  The policy goes on with
    earlier releases.
    """


class StateFileError(DPBanditsError):
    """A file is not a saved policy, is damaged, or comes from a newer version; or claims cannot be
    noted.  Nothing was used.
    """


class StoreError(DPBanditsError, OSError):
    """A store could not be read or written.

    Nothing of the batch counts, or the store does not say whether it does.  The policy repeats the
    batch at the next call, with the same bytes.
    """


class ClaimError(DPBanditsError):
    """Another copy of the policy may hold the same raw data, and a second copy would release it
    twice.

    The state has been loaded before, is older than one that was, was overwritten by another
    policy's, or the process was forked.
    """


class StandbyError(ClaimError):
    """A process that lives has the policy; this one may take it over once that process ends."""


class ReentryError(DPBanditsError, RuntimeError):
    """A call came within another call of the same policy and thread, as from a signal handler.
    Nothing was done.
    """


class MissingExtra(DPBanditsError, ImportError):
    """A feature needs an optional dependency that is not installed."""


class ClippingWarning(UserWarning):
    """Rewards lie outside of a policy's range and are clipped, or public features exceed its bound
    and are scaled.  Either biases the policy's estimates.
    """


class BudgetWarning(UserWarning):
    """A budget is so loose that it says little: its delta is not far below 1 / people, or its
    epsilon allows nearly everything.
    """


class CacheWarning(UserWarning):
    """Other users can change the cache of compiled code, and so could have their code run.  It is
    not used, and everything is compiled in memory.
    """


class ClusterWarning(UserWarning):
    """Machines of a cluster differ in what may change the last bits of numbers, there are none yet,
    or others on the network can take them over.
    """


class JobsWarning(UserWarning):
    """Work that was to be shared among processes cannot be played by another one."""


class StudyError(ArgumentError):
    """A study file is wrong; ``problems`` lists everything that is, each with its place in the
    file.
    """

    def __init__(self, source: str, problems: list[str]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n  ".join([f"{source} has {count}:", *problems]))
        self.problems = problems
