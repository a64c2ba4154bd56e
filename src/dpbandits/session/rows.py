"""Dictionaries that note their changes, for steps that are undone and for commits."""

from __future__ import annotations

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")
ABSENT = object()


class Rows(dict[K, V]):
    """A dictionary that notes its changes while somebody wants to know of them.

    Attributes:
        changes: keys that were set or deleted, and their values before; None while nobody asks.
    """

    __slots__ = ("changes",)

    def __init__(self, items: Any = ()) -> None:
        super().__init__(items)
        self.changes: list[tuple[K, Any]] | None = None

    def __setitem__(self, key: K, value: V) -> None:
        if self.changes is not None:
            self.changes.append((key, self.get(key, ABSENT)))
        dict.__setitem__(self, key, value)  # which takes half the time of ``super()``

    def __delitem__(self, key: K) -> None:
        if self.changes is not None:
            self.changes.append((key, self.get(key, ABSENT)))
        dict.__delitem__(self, key)

    def pop(self, key: K, *default: Any) -> Any:
        if self.changes is not None and key in self:
            self.changes.append((key, self[key]))
        return super().pop(key, *default)

    def popitem(self) -> tuple[K, V]:
        key, value = super().popitem()
        if self.changes is not None:
            self.changes.append((key, value))
        return key, value

    def clear(self) -> None:
        if self.changes is not None:
            self.changes.extend(self.items())
        super().clear()

    def changed(self) -> dict[K, Any]:
        """The keys that may have changed, with their values before."""
        return dict(reversed(self.changes or ()))

    def renewed(self) -> int:
        """How many keys were deleted and set again."""
        known, count = set[K](), 0
        for key, before in self.changes or ():
            if before is not ABSENT:
                known.add(key)
            elif key in known:
                count += 1
        return count

    def kept(self) -> int:
        """How many times a key was set to what it had."""
        later, count = dict[K, Any](), 0
        for key, before in reversed(self.changes or ()):
            count += later.get(key, self.get(key, ABSENT)) is before
            later[key] = before
        return count

    def take_back(self, since: int) -> None:
        """Undo all changes after the first ``since``, in the order of the dictionary, too."""
        assert self.changes is not None
        later = self.changes[since:]
        del self.changes[since:]
        restored = False
        for key, before in reversed(later):
            if before is ABSENT:
                super().pop(key, None)
            else:
                restored |= key not in self
                super().__setitem__(key, before)
        if restored:  # at its end, and the order of pulls decides who is learned from next
            for key in sorted(self):  # type: ignore[type-var]
                super().__setitem__(key, super().pop(key))
