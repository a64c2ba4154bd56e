"""Requests that come while others are worked on are one group."""

import asyncio

import pytest

from dpbandits.shuffler.together import Together


def test_what_comes_meanwhile_is_one_group():
    groups = []

    async def work(group):
        groups.append(list(group))
        await asyncio.sleep(0.01)
        return [ValueError(one) if one % 3 == 0 else None for one in group]

    async def all_of(count):
        together = Together(work)
        first = asyncio.create_task(together.do(1))
        await asyncio.sleep(0)
        rest = [asyncio.create_task(together.do(i)) for i in range(2, count)]
        return await asyncio.gather(first, *rest, return_exceptions=True)

    ends = asyncio.run(all_of(10))
    assert groups == [[1], list(range(2, 10))]
    assert [getattr(one, "args", None) for one in ends] == [
        (i,) if i % 3 == 0 else None for i in range(1, 10)
    ]


def test_a_failure_is_that_of_its_group_alone():
    async def work(group):
        await asyncio.sleep(0.01)
        if 1 in group:
            raise OSError("the disk is full")
        return [None] * len(group)

    async def both():
        together = Together(work)
        first = asyncio.create_task(together.do(1))
        await asyncio.sleep(0)
        given_up, later = (asyncio.create_task(together.do(i)) for i in (2, 3))
        await asyncio.sleep(0)
        given_up.cancel()  # its sender does not wait any more
        with pytest.raises(OSError, match="full"):
            await first
        assert await later is None

    asyncio.run(both())
