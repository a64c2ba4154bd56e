"""The two ways to do the steps of a call: in this thread, or in the event loop."""

from __future__ import annotations

import asyncio
import ssl
import time
from functools import cache
from typing import TypeVar

import httpx

from .exchange import Came, Pause, Step, Steps

T = TypeVar("T")


@cache
def certificates() -> ssl.SSLContext:
    """The authorities that httpx trusts.  A process loads them once, because that takes 20 ms."""
    return httpx.create_ssl_context()


class Blocking:
    """Does the steps of a call in the thread of the caller."""

    _http: httpx.Client

    def _run(self, steps: Steps[T]) -> T:
        came: Came = None
        while True:
            try:
                step = steps.send(came)
            except StopIteration as end:
                result: T = end.value
                return result
            came = self._do(step)

    def _do(self, step: Step) -> Came:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            return self._http.send(step.request)
        except httpx.RequestError as error:
            return error


class Awaited:
    """Does the steps of a call in the event loop."""

    _http: httpx.AsyncClient

    async def _run(self, steps: Steps[T]) -> T:
        came: Came = None
        while True:
            try:
                step = steps.send(came)
            except StopIteration as end:
                result: T = end.value
                return result
            came = await self._do(step)

    async def _do(self, step: Step) -> Came:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._http.send(step.request)
        except httpx.RequestError as error:
            return error
