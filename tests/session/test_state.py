"""A state lies in two blocks of memory, and compiled code sees no difference."""

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.privacy.ledger import HEAD, WHOLE, Line
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


def contents(state):
    """All arrays as bytes; of the ledger, its lines."""
    ledger = state.wall.ledger
    lines = ledger.head[HEAD.lines]
    shown = {"wall.ledger.span": ledger.span[:lines], "wall.ledger.noise": ledger.noise[:lines]}
    return {name: array.tobytes() for name, array in (state.arrays | shown).items()}


@pytest.mark.parametrize("lines", [0, 1, 2])
@pytest.mark.parametrize("make", MAKERS)
def test_a_copy_brings_everything_back_again_and_again(make, lines):
    state = make().session.state
    for i in range(lines):
        state.charge(Line(i, i, WHOLE, 1, 1.0 + i, 1.0, 1))
    before, copied = contents(state), state.copied()
    for grow in (True, False, False):
        for name, array in state.arrays.items():
            if not name.startswith("wall.ledger"):
                array[...] = 1
        if grow:
            state.make_room(grow=True)
        for i in range(lines, lines + 3):  # of which the first is folded into the last line
            state.charge(Line(i, i, WHOLE, 1, float(max(i, 1)), 1.0, 1))
        assert contents(state) != before
        state.restore(copied)
        assert contents(state) == before
