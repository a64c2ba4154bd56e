"""The public half of a policy, which may leave the process that holds the private one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..privacy.exact import Source
from ..stores.arguments import as_json
from .registry import arguments_of_today, find

Decide = Callable[[Any, Source], tuple[int, Any]]  # of contexts, and of random bytes


class Chooser:
    """Choose arms from released values alone: the public half of a policy. It holds no private
    record.  Where the guarantee holds, its state may be shown to anyone.

    ``Policy.chooser()`` makes it.  It runs on a person's device, on the replicas of a service, or
    in an audit; it can be pickled, and written as JSON.  Random choices draw their numbers from the
    operating system: with private contexts from ``take``, as JavaScript does, else from a generator
    that it seeds.

    Attributes:
        arguments: of the policy, and its ``class``.
        release: the number of releases that it includes.
        retired: the arms that it does not choose.
        kernels: the functions of the policy.
        take: the source of random bytes; ``take(n)`` gives the next n.

    Example:
        >>> from dpbandits import ZCDP
        >>> from dpbandits.papers.concentrated import AdaCUCB
        >>> chooser = AdaCUCB(3, budget=ZCDP(1.0)).chooser()
        >>> Chooser.from_json(chooser.to_json()).choose()
        0
    """

    take: Source = staticmethod(os.urandom)

    def __init__(
        self,
        policy: str,
        given: dict[str, Any],
        public: Mapping[str, ArrayLike],
        release: int,
        retired: Sequence[int] = (),
    ) -> None:
        self.arguments, self.release = {**given, "class": policy}, release
        self.retired = tuple(retired)
        chooses = find(policy)(**given)
        if chooses.card.hides_contexts:  # a log on a device would tell of them
            chooses.watch.silence()
        for arm in self.retired:
            chooses.retire(arm)
        self.kernels = chooses.kernels
        self._decide, self._public = chooses.public_half()
        self._state = chooses.session.state
        for name, array in self._public.items():
            array[...] = np.reshape(public[name], array.shape)  # an empty list has lost its shape

    @property
    def public(self) -> dict[str, np.ndarray]:
        """The arrays that it chooses with, by name, without a copy."""
        return self._public

    def choose(self, contexts: ArrayLike | None = None) -> int:
        """The arm for a person, with contexts as ``Policy.pull`` takes them.

        Raises:
            ArgumentError: the contexts do not have the policy's shape, or hold a number that is not
                finite (which counts as 0 where contexts are private).
        """
        return self.decide(contexts)[0]

    def decide(self, contexts: ArrayLike | None = None) -> tuple[int, Any]:
        """Choose an arm for a person.

        Returns:
            The arm, from 0, and its features as the algorithm takes them; 0 without contexts.
        """
        return self._decide(contexts, self.take)

    def seeded(self, rng: np.random.Generator) -> Chooser:
        """A copy that draws its random choices from this generator, which may be no secret."""
        copy = self.from_json(self.to_json())
        copy.take = rng.bytes
        if copy._state.choice_rng is not None:
            copy._state.choice_rng = rng
        return copy

    def to_json(self) -> str:
        """As JSON: the class and its arguments, and the public arrays by name, as nested lists."""
        whole = {"arguments": self.arguments, "release": self.release, "public": self._public}
        if self.retired:
            whole["retired"] = self.retired
        return json.dumps(whole, default=as_json)

    @classmethod
    def from_json(cls, text: str, like: Chooser | None = None) -> Chooser:
        """Make a chooser from the text that ``to_json`` wrote.

        Args:
            like: a chooser of the same policy, for a text that is not trusted: no other policy is
                made.

        Raises:
            ArgumentError: the text is something else, or of another version or policy.
        """
        try:
            read = json.loads(text)
            given = arguments_of_today(read["arguments"])
            if like is None or given == like.arguments:
                known = (read["public"], int(read["release"]), read.get("retired", ()))
                return cls(given.pop("class"), given, *known)
        except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ArgumentError(
                f"text must be the JSON of a chooser, got {error!r}", "text"
            ) from error
        raise ArgumentError("chooser must come from the policy that made the device", "chooser")

    def __reduce__(self) -> Any:
        return Chooser.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        return f"<Chooser of {self.arguments['class']} with {self.release} releases>"
