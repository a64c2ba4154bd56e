"""Calls from Python: what is remembered of one call must not decide what another one does."""

from __future__ import annotations

import gc
import inspect
from typing import NamedTuple

import numpy as np
import pytest
from numba.core import config
from numba.core.errors import TypingError

from dpbandits.calls import called, generator_at
from dpbandits.kernel import entry, interpreted

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="without numba nothing is called")


class Pair(NamedTuple):
    values: np.ndarray
    weight: float


@entry
def draw(pair, n, rng):
    generator = generator_at(rng)
    total = 0.0
    for _ in range(n):
        total += generator.normal() + generator.laplace() + generator.integers(0, 100)
        total += generator.beta(2.0, 3.0) + generator.random()
    return total * pair.weight + pair.values[0]


@entry
def first(array, n):
    return array[0] * n


@entry
def write(array, value):
    array[0] = value
    return value


@entry
def is_none(rng):
    return generator_at(rng) is None


@pytest.mark.long
def test_a_generator_draws_what_numpy_draws_and_moves_on() -> None:
    pair, call = Pair(np.ones(2), 2.0), called(draw, draws=True)
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    for n in (1, 2, 5):
        assert call(pair, n, one) == interpreted(draw)(pair, n, other)
        assert one.bit_generator.state == other.bit_generator.state


def test_each_call_has_the_generator_that_it_is_given() -> None:
    pair, call = Pair(np.ones(2), 1.0), called(draw, draws=True)
    rngs = [np.random.default_rng(seed) for seed in range(600)]  # more than are kept at hand
    expected = [interpreted(draw)(pair, 1, np.random.default_rng(seed)) for seed in range(600)]
    assert [call(pair, 1, rng) for rng in rngs] == expected


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_all_bit_generators_are_taken(bits: type) -> None:
    one, other = np.random.Generator(bits(1)), np.random.Generator(bits(1))
    pair = Pair(np.ones(2), 1.0)
    assert called(draw, draws=True)(pair, 3, one) == interpreted(draw)(pair, 3, other)


def test_no_generator_is_none() -> None:
    assert called(is_none, draws=True)(None)
    assert not called(is_none, draws=True)(np.random.default_rng())


@pytest.mark.long
def test_arguments_of_other_types_are_looked_at_again() -> None:
    """An array of another type, or with other strides, would be read as what it is not."""
    call = called(first)
    arrays = [
        np.array([1.5, 2.0]),
        np.array([2, 3]),
        np.array([4.0, 5.0], np.float32),
        np.array([[1.0], [3.0]])[:, 0],
        np.arange(6.0)[::2][1:],
        np.array([7.0, 8.0]),
    ]
    for array in arrays * 2:
        for n in (2, 2.5, True, np.int8(3)):
            assert call(array, n) == array[0] * n


def test_an_array_that_may_no_longer_be_written_to_is_not() -> None:
    call, array = called(write), np.zeros(2)
    assert call(array, 1.0) == 1.0
    array.setflags(write=False)
    for protected in (array, np.broadcast_to(np.zeros(1), (2,)).copy()):
        protected.setflags(write=False)
        with pytest.raises(TypingError):
            call(protected, 3.0)
        assert protected[0] in (0.0, 1.0)


def test_no_answer_is_remembered() -> None:
    call, secret = called(first), np.array([0.123456789])
    call(secret, 0.987654321)
    known = inspect.getclosurevars(call).nonlocals["known"]
    _, kinds, arrays = known
    held = gc.get_referents(kinds, *kinds, arrays, *arrays, known, *call.__closure__)
    assert not any(one is secret for one in held)
    assert 0.987654321 not in [one for one in held if isinstance(one, float)]


def test_other_tuples_are_looked_at_again() -> None:
    call, rng = called(draw, draws=True), np.random.default_rng(1)
    for values in (np.array([1.0]), np.array([2]), np.array([3.0], np.float32)):
        assert call(Pair(values, 1.0), 0, rng) == values[0]
