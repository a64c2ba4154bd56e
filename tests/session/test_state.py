"""A state lies in two blocks of memory, and compiled code sees no difference."""

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.session.state import State, named_arrays

MAKERS = [
    lambda: dpb.algorithms.MergedIMED(5, budget=dpb.ZCDP(0.5), seed=1),
    lambda: dpb.algorithms.PrivateLinUCB(4, 3, horizon=100, budget=dpb.ZCDP(0.5), seed=1),
    lambda: dpb.papers.concentrated.AdaCUCB(3, budget=dpb.ZCDP(0.5), noise="secure"),
    lambda: dpb.algorithms.PrivateLinUCB(4, 3, horizon=100, budget=dpb.ZCDP(0.5), noise="secure"),
]


@pytest.mark.parametrize("make", MAKERS)
def test_arrays_are_of_the_types_that_init_gave_them(make):
    policy = make()
    raw, public = policy.kernels.init(policy.params)
    state = policy.session.state
    for side, given in (("raw", raw), ("public", public)):
        packed = dict(named_arrays(side, getattr(state, side)))
        for name, array in named_arrays(side, given):
            np.testing.assert_array_equal(packed[name], array)
            assert packed[name].dtype == array.dtype
            # Of the flags, who owns the memory is no part of the type.
            assert packed[name].flags.num & ~0x4 == array.flags.num & ~0x4


def test_columns_first_stay_columns_first():
    state = dpb.algorithms.UCB1(3).new_state()
    columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    packed = State(state.raw, columns, state.memo, state.wall).in_blocks().public
    assert packed.flags.f_contiguous
    np.testing.assert_array_equal(packed, columns)


@pytest.mark.parametrize("make", MAKERS)
def test_no_array_reaches_into_another(make):
    arrays = make().session.state.arrays
    for number, name in enumerate(arrays, start=1):
        arrays[name][...] = number
    for number, name in enumerate(arrays, start=1):
        assert (arrays[name] == np.full_like(arrays[name], number)).all(), name


@pytest.mark.parametrize("make", MAKERS)
def test_a_copy_brings_everything_back_again_and_again(make):
    state = make().session.state
    before = {name: array.tobytes() for name, array in state.arrays.items()}
    copied = state.copied()
    for _ in range(2):
        for array in state.arrays.values():
            array[...] = 1
        state.make_room(grow=True)
        state.restore(copied)
        assert {name: array.tobytes() for name, array in state.arrays.items()} == before
