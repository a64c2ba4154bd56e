"""Decisions: ``pull`` returns one, and ``update`` takes its answer."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self

from ..errors import UpdateError
from ..stores.tokens import LIFETIME, LONGEST, Seal
from ..validation import real


def _refused(what: str) -> Callable[..., NoReturn]:
    def refuse(self: Decision, *_: Any) -> NoReturn:
        raise TypeError(
            f"a decision {what}: use decision.arm for the arm, .number or .token for the decision"
        )

    return refuse


class _LikeAnArm:
    """A decision is an index, and equals its arm; for other uses an error names the alternative.

    It is no key: two persons may get one arm, and their pending decisions would replace each other.
    It is no number and no condition: a decision in the place of a reward would go unnoticed, and
    arm 0 would be false.
    """

    __slots__ = ("_lifetime", "_seal")  # the key of tokens must not leave with the fields
    _seal: Seal
    _lifetime: float  # of a token, in seconds
    arm: int
    number: int
    life: str

    def sealed(self, seal: Seal, wait: float = 0.0) -> Self:
        """The decision itself, which from now on can be given a token.  ``wait`` is how many
        seconds there are to its deadline; inf if that is no time.
        """
        self._seal, self._lifetime = seal, min(wait + LIFETIME, LONGEST)
        return self

    def __index__(self) -> int:
        return self.arm

    def __eq__(self, other: object) -> bool:
        if isinstance(other, numbers.Number):
            return bool(self.arm == other)  # type: ignore[comparison-overlap]  # any number
        if isinstance(other, _LikeAnArm):
            if (self.life, self.number) == (other.life, other.number):
                return True
            raise TypeError(
                "two decisions cannot be compared: compare decision.arm or decision.number"
            )
        if isinstance(other, str):
            raise TypeError(
                "a decision is not compared with text: use decision.name for the name of its arm,"
                " .arm for its number, .token for its token"
            )
        return NotImplemented

    def __format__(self, spec: str) -> str:
        return str(self) if spec == "" else _refused("has no format of a number")(self)

    __hash__ = _refused("is no key of a dict")
    __bool__ = _refused("has no truth value (test `decision is None` instead)")
    __float__ = __complex__ = _refused("is no number")
    __lt__ = __le__ = __gt__ = __ge__ = _refused("has no order")
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refused("is no number")
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _refused("is no number")
    __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = _refused("is no number")
    __neg__ = __pos__ = __abs__ = __round__ = __invert__ = _refused("is no number")
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refused("is no number")


@dataclass(slots=True, eq=False)
class Decision(_LikeAnArm):
    """One pull: the arm, and the data needed to answer it.

    It works as an index of sequences and arrays, ``outcomes[decision]``, and equals its arm,
    ``decision == 0``.  Other uses as an arm raise a ``TypeError``: as a key of a dictionary or of a
    table, as a number, or as a condition.  Use ``decision.arm`` there.  Decisions that wait for an
    answer are kept by ``number`` or ``token``.

    Attributes:
        arm: the arm to play, from 0.
        propensity: the probability with which the arm was drawn; None where it has no closed form.
            A policy that holds an arm for several rounds draws once: all decisions of these rounds
            have the probability of that draw, and so do unrecorded decisions that repeat it.
        recorded: False if the policy will not learn from this round.
        number: the running number of the pull, from 0.
        life: the life of the policy that made it, see ``stores``.
        name: the name of the arm, where arms have names.
        drawn: the number of the pull at which the arm was drawn.  It is ``number``, unless the arm
            of an earlier draw stands; None after a load.
        held_out: whether the person is in the holdout.  Then ``propensity`` is the probability of
            the arm given that the person is held out: the arm's weight, among open arms.
    """

    arm: int
    propensity: float | None
    number: int
    recorded: bool
    life: str = field(repr=False)
    name: str | None = field(default=None, repr=False)
    drawn: int | None = field(default=None, repr=False)
    held_out: bool = field(default=False, repr=False)

    @property
    def token(self) -> str:
        """A short signed string that ``update`` takes in the place of this decision.  It suits
        links and forms, because it does not reveal the arm, and cannot be forged.  It expires 30
        days after a deadline by the clock.  Other tokens of pulls do not expire for 30 years.

        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(3, budget=ZCDP(1.0), seed=1)
        >>> token = policy.pull().token
        >>> len(token), policy.update(1.0, token)
        (64, True)
        """
        return self._signed(self._seal_of(), self._lifetime)

    def token_for(self, lifetime: float) -> str:
        """A token that expires after so many seconds.

        Raises:
            UpdateError: this decision is a copy that has left its process.
            ArgumentError: ``lifetime`` is no number of seconds from 1 to 10**9.
        """
        return self._signed(self._seal_of(), real("lifetime", lifetime, 1.0, LONGEST))

    def _signed(self, seal: Seal, seconds: float) -> str:
        return seal.token(self.life, self.number, self.recorded, seconds, self.held_out)

    def _seal_of(self) -> Seal:
        seal: Seal | None = getattr(self, "_seal", None)
        if seal is None:
            raise UpdateError(
                "decision must be the object that pull() returned: copies have no token"
            )
        return seal

    def __reduce__(self) -> Any:
        # Without the key, which stays with the policy.
        return Decision, tuple(getattr(self, name) for name in self.__match_args__)
