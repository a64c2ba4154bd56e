"""What can go wrong, under one base class."""

from __future__ import annotations


class DPBanditsError(Exception):
    """The base of every error that this package raises on purpose."""


class ArgumentError(DPBanditsError, ValueError):
    """An argument is outside its allowed range; the message names it, its value and the range.

    ``argument`` is its name, with which the message begins; None where the error is about no one.
    """

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class UpdateError(DPBanditsError, ValueError):
    """A reward fits no pull: none, an answered or another policy's.  Nothing has changed."""


class SubmissionError(DPBanditsError, ValueError):
    """A shuffler refuses what was submitted: another version, values that no device makes, a second
    record of one sender, a full batch.  Nothing has changed.
    """


class BudgetExhausted(DPBanditsError):
    """A release would exceed the budget: it is not made, and the policy serves what is public."""


class StateFileError(DPBanditsError):
    """A saved file is none, damaged, or newer; or claims cannot be noted.  Nothing was used."""


class ClaimError(DPBanditsError):
    """Another copy of the policy may hold the same raw data, and a second copy would release it
    twice.

    The state has been loaded before, is older than one that was, was overwritten by another
    policy's, or the process was forked.
    """


class MissingExtra(DPBanditsError, ImportError):
    """A feature needs an optional dependency that is not installed."""


class ClippingWarning(UserWarning):
    """Rewards of an environment are clipped, or public features scaled, which biases learning."""


class BudgetWarning(UserWarning):
    """A loose budget: delta is not far below 1 / people, or epsilon allows nearly everything."""


class StudyError(ArgumentError):
    """A study file is wrong; ``problems`` lists everything that is, with its place in the file."""

    def __init__(self, source: str, problems: list[str]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n  ".join([f"{source} has {count}:", *problems]))
        self.problems = problems
