"""The methods of clients, written once: each returns the steps of a call.

A client runs the steps, and returns their result or something to await.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from time import monotonic
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload
from urllib.parse import quote
from uuid import uuid4

import httpx
import msgspec

from .exchange import Endpoint, Pause, ServiceError, Steps, read, unexpected
from .messages import Arm, Decision, DecisionRequest, RewardReply, RewardRequest, encode
from .transports import Awaited, Blocking

_NO_SERVICE = RewardReply(False, "the decision was made without the service")
_LOOK_EVERY = 0.5  # seconds
P = ParamSpec("P")
T = TypeVar("T")
_Listed = TypeVar("_Listed", Decision, RewardReply)


class Method(Generic[P, T]):
    """A method that is written as steps, and is called for their result."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self._steps, self.__doc__ = steps, steps.__doc__

    @overload
    def __get__(self, one: None, owner: type) -> Self: ...
    @overload
    def __get__(self, one: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, one: Awaited, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, one: Blocking | Awaited | None, owner: type) -> Any:
        if one is None:
            return self
        steps = self._steps.__get__(one)

        @wraps(steps)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return one._run(steps(*args, **kwargs))

        return call


class ClientMethods:
    """Methods of ``Client`` and ``AsyncClient``.

    ``Steps[T]`` stands for a T; of an ``AsyncClient``, for something to await that gives a T.
    Methods raise a ``ServiceError`` if the service refuses, or was not reached in time.
    """

    _endpoint: Endpoint

    @Method
    def experiments(self) -> Steps[list[dict[str, Any]]]:
        """The experiments that the key covers, at a glance."""
        reply = yield from self._endpoint.ask("GET", "/v1/experiments")
        return read(reply, dict[str, list[dict[str, Any]]])["experiments"]

    @Method
    def declare(
        self, words: Mapping[str, Any], *, wait: bool = False, within: float = 600.0
    ) -> Steps[dict[str, Any]]:
        """Declare an experiment; one that is declared again with the same words goes on.

        Args:
            words: as in a file of declarations, with ``name``.
            wait: whether to wait until it runs, which takes a minute if code is compiled.
            within: seconds to wait.

        Returns:
            Its name and status; after waiting, its summary.
        """
        end = monotonic() + within
        reply = yield from self._endpoint.ask(
            "POST", "/v1/experiments", encode(words), repeatable=False
        )
        told = read(reply, dict[str, Any])
        while wait:
            reply = yield from self._endpoint.ask("GET", _path(words["name"]))
            told = read(reply, dict[str, Any])
            if told.get("status") == "failed":
                raise ServiceError(None, "failed", str(told.get("detail")))
            if told.get("status") != "starting":
                break
            if monotonic() >= end:
                late = f"The experiment was not ready after {within:g} seconds."
                raise ServiceError(None, "starting", late)
            yield Pause(_LOOK_EVERY)
        return told


class ExperimentMethods:
    """Methods of ``Experiment`` and ``AsyncExperiment``.

    ``Steps[T]`` stands for a T; of an ``AsyncExperiment``, for something to await that gives a T.
    Methods raise a ``ServiceError`` if the service refuses, or was not reached in time.
    """

    name: str
    _endpoint: Endpoint

    # Decisions and rewards --------------------------------------------------------------------

    @Method
    def decide(
        self,
        *,
        unit: str | int | None = None,
        contexts: Any = None,
        advice: Any = None,
        available: Sequence[Arm] | None = None,
        targets: Mapping[str, Arm] | None = None,
        deferred: bool = False,
        decision_id: str | None = None,
        fallback: Arm | None = None,
        within: float | None = None,
    ) -> Steps[Decision]:
        """Ask for a decision.

        Args:
            unit, contexts, advice, available, targets, deferred, decision_id: see
                ``DecisionRequest``.
            fallback: the arm to serve if the service is not reached in time.  The client then
                decides itself, and no reward is sent for it.  It has to be available.
            within: seconds to try; by default those of the client.
        """
        asked = _identified(
            DecisionRequest(
                unit=unit,
                contexts=contexts,
                advice=advice,
                available=available,
                targets=targets,
                deferred=deferred,
                decision_id=decision_id,
            )
        )
        try:
            reply = yield from self._post("decisions", asked, within=within)
        except ServiceError as error:
            if fallback is None or not error.is_temporary:
                raise
            assert asked.decision_id is not None
            return Decision.fallback(asked.decision_id, fallback)
        return read(reply, Decision)

    @Method
    def decide_many(
        self, requests: Sequence[DecisionRequest]
    ) -> Steps[list[Decision | ServiceError]]:
        """Ask for several decisions, at most 1,000; each may fail alone.

        Returns:
            For each request its decision, or an error, which is not raised.
        """
        asked = [_identified(one) for one in requests]
        return (yield from self._many("decisions", asked, Decision))

    @Method
    def reward(
        self, reward: float | None, decision: Decision | str, *, arm: Arm | None = None
    ) -> Steps[RewardReply]:
        """Send the reward of a decision.

        Args:
            reward, decision, arm: see ``RewardRequest``.
        """
        one = RewardRequest(reward, decision, arm)
        if one.is_local:
            return _NO_SERVICE
        return read((yield from self._post("rewards", one.to_dict())), RewardReply)

    @Method
    def reward_many(
        self, rewards: Sequence[RewardRequest]
    ) -> Steps[list[RewardReply | ServiceError]]:
        """Send several rewards, at most 1,000; each may fail alone.

        Returns:
            For each reward its reply, or an error, which is not raised.
        """
        sent = [one.to_dict() for one in rewards if not one.is_local]
        replies = iter((yield from self._many("rewards", sent, RewardReply)))
        return [_NO_SERVICE if one.is_local else next(replies) for one in rewards]

    @Method
    def activate(self, decision: Decision | str) -> Steps[RewardReply]:
        """Say that a deferred decision was carried out; its reward may come."""
        return (yield from self._carried_out("activate", decision))

    @Method
    def cancel(self, decision: Decision | str) -> Steps[RewardReply]:
        """Say that a deferred decision was not carried out; it counts as not made."""
        return (yield from self._carried_out("cancel", decision))

    # What is public ---------------------------------------------------------------------------

    @Method
    def summary(self) -> Steps[dict[str, Any]]:
        """The experiment at a glance."""
        return (yield from self._get(""))

    @Method
    def guarantee(self) -> Steps[dict[str, Any]]:
        """What is protected, and under which assumptions; in sentences under "in_words"."""
        return (yield from self._get("/guarantee"))

    @Method
    def ledger(self) -> Steps[dict[str, Any]]:
        """Releases and their privacy loss."""
        return (yield from self._get("/ledger"))

    @Method
    def estimates(self) -> Steps[dict[str, Any]]:
        """Estimates from released values."""
        return (yield from self._get("/estimates"))

    @Method
    def card(self) -> Steps[str]:
        """The privacy card, as Markdown."""
        reply = yield from self._endpoint.ask("GET", _path(self.name) + "/card")
        return reply.text

    @Method
    def chooser(self) -> Steps[str]:
        """The public half of the policy, for ``dpbandits.policies.Chooser.from_json``."""
        reply = yield from self._endpoint.ask("GET", _path(self.name) + "/chooser")
        return reply.text

    @Method
    def randomiser(self) -> Steps[dict[str, Any]]:
        """What devices need for the reports that they send now."""
        return (yield from self._get("/randomiser"))

    @Method
    def config(self) -> Steps[str]:
        """What a device is shipped with, for ``dpbandits.device.ConnectedDevice``."""
        reply = yield from self._endpoint.ask("GET", _path(self.name) + "/config")
        return reply.text

    # What operators do ------------------------------------------------------------------------

    @Method
    def trail(self) -> Steps[list[dict[str, Any]]]:
        """What operators did, and why."""
        lines: list[dict[str, Any]] = (yield from self._get("/trail"))["lines"]
        return lines

    @Method
    def pause(self, *, reason: str) -> Steps[dict[str, Any]]:
        """Serve the baseline, and record nothing; returns the summary, as all of these do."""
        return (yield from self._operate("pause", reason=reason))

    @Method
    def resume(self, *, reason: str) -> Steps[dict[str, Any]]:
        """Go on after a pause, or after the breaker has tripped."""
        return (yield from self._operate("resume", reason=reason))

    @Method
    def archive(self, *, reason: str) -> Steps[dict[str, Any]]:
        """Make no more decisions, take rewards until their deadlines, then finish for good."""
        return (yield from self._operate("archive", reason=reason))

    @Method
    def retire(self, arm: Arm, *, reason: str) -> Steps[dict[str, Any]]:
        """Serve an arm no more."""
        return (yield from self._operate("retire", arm=arm, reason=reason))

    @Method
    def add(self, arm: Arm, *, reason: str) -> Steps[dict[str, Any]]:
        """Serve a retired arm again."""
        return (yield from self._operate("add", arm=arm, reason=reason))

    @Method
    def delete(self) -> Steps[dict[str, Any]]:
        """Forget an experiment that could not be made; archive others."""
        reply = yield from self._endpoint.ask("DELETE", _path(self.name), repeatable=False)
        return read(reply, dict[str, Any])

    @Method
    def erase(self, unit: str | int, *, reason: str) -> Steps[int]:
        """Erase the pending data of a person; returns the number of their decisions."""
        told = yield from self._operate("erase", unit=unit, reason=reason)
        return int(told["decisions"])

    # Pieces -----------------------------------------------------------------------------------

    def _get(self, what: str) -> Steps[dict[str, Any]]:
        reply = yield from self._endpoint.ask("GET", _path(self.name) + what)
        return read(reply, dict[str, Any])

    def _post(
        self, what: str, body: Any, *, repeatable: bool = True, within: float | None = None
    ) -> Steps[httpx.Response]:
        content = encode(body)  # once, for all attempts
        return (
            yield from self._endpoint.ask(
                "POST",
                f"{_path(self.name)}/{what}",
                content,
                repeatable=repeatable,
                within=within,
            )
        )

    def _many(
        self, what: str, items: Sequence[Any], kind: type[_Listed]
    ) -> Steps[list[_Listed | ServiceError]]:
        if not items:
            return []
        reply = yield from self._post(f"{what}/batch", {what: items})
        results = read(reply, dict[str, list[dict[str, Any]]]).get("results", [])
        if len(results) != len(items):
            raise unexpected(reply.status_code)
        return [_item(one, kind) for one in results]

    def _carried_out(self, what: str, decision: Decision | str) -> Steps[RewardReply]:
        if isinstance(decision, Decision):
            if decision.is_local:
                return _NO_SERVICE
            decision = decision.decision_id
        return read((yield from self._post(what, {"decision_id": decision})), RewardReply)

    def _operate(self, what: str, **words: Any) -> Steps[dict[str, Any]]:
        # A repetition would have a second line in the trail.
        reply = yield from self._post(what, words, repeatable=False)
        return read(reply, dict[str, Any])


def _path(name: str) -> str:
    return f"/v1/experiments/{quote(name, safe='')}"


def _identified(asked: DecisionRequest) -> DecisionRequest:
    """A request with an id, by which the service recognises repetitions."""
    if asked.decision_id is not None:
        return asked
    return msgspec.structs.replace(asked, decision_id=str(uuid4()))


def _item(told: dict[str, Any], kind: type[_Listed]) -> _Listed | ServiceError:
    status = int(told["status"])
    if "problem" in told:
        return ServiceError.of(told["problem"], status)
    try:
        return msgspec.convert(told, kind)
    except msgspec.ValidationError:
        return unexpected(status)
