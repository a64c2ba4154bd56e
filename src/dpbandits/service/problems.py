"""Problem details: what the service says where it cannot do what was asked (RFC 9457)."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ClaimError, StateFileError, StoreError, UpdateError


class Problem(Exception):
    """A refusal.

    Attributes:
        status: of HTTP.
        kind: a word, by which programs tell problems apart.
        detail: a sentence.
        more: further members of the reply.
    """

    def __init__(self, status: int, kind: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail, self.more = status, kind, detail, more

    @classmethod
    def of(cls, error: BaseException) -> Problem:
        """The problem that stands for an error; that of a bug says nothing."""
        if isinstance(error, Problem):
            return error
        problems = getattr(error, "problems", None)
        if problems:
            listed = [{"word": word, "detail": text} for word, text in problems]
            return cls(422, "invalid", str(error), errors=listed)
        if isinstance(error, ArgumentError):
            return cls(422, "invalid", str(error), word=error.argument)
        if isinstance(error, UpdateError):
            return cls(404, "unknown-decision", str(error))
        if isinstance(error, ClaimError):
            return cls(503, "elsewhere", "Another process serves this experiment.")
        if isinstance(error, StoreError | StateFileError):
            return cls(503, "store", "The store cannot be written. Send the same request again.")
        return cls(500, "internal", "The service failed. The log has the kind of the error.")

    def to_dict(self) -> dict[str, Any]:
        """As the body of a reply."""
        title = self.kind.replace("-", " ").capitalize()
        told = {"type": self.kind, "title": title, "status": self.status, "detail": self.detail}
        return {**told, **self.more}


def busy() -> Problem:
    """The problem of a request for which there is no room at the moment."""
    return Problem(503, "busy", "Too many requests wait. Send the same request again.")
