"""Kernels that take few of numba's passes give the numbers that numba and NumPy give."""

import itertools
import math
import pickle

import cloudpickle
import numba
import numpy as np
import pytest
from numba.core import compiler, errors

from dpbandits.calls import _DIGEST, _Drawing, addresses_of, generator_at
from dpbandits.compiling import WholeCompiler
from dpbandits.kernel import entry
from dpbandits.kernel_cache import KERNELS
from test_kernel import run_anew

SHAPES = [0.01, 0.3, 1.0, 1.5, 7.0, 300.0]
COUNTS = [0, 1, 5, 30, 31, 1_000, 10**6]
CHANCES = [0.0, 0.01, 0.3, 0.5, 0.7, 0.99, 1.0]


@entry
def _draw_all(rng, shapes, counts, chances, found):
    drawing = generator_at(rng)
    at = 0
    for shape in shapes:
        for _ in range(50):
            found[at] = drawing.random()
            found[at + 1] = drawing.standard_normal()
            found[at + 2] = drawing.standard_gamma(shape)
            found[at + 3] = drawing.laplace(-shape, shape)
            found[at + 4] = drawing.beta(shape, 2.0)
            at += 5
    for count in counts:
        for chance in chances:
            for _ in range(20):
                found[at] = drawing.binomial(count, chance)
                at += 1
    return at


def test_draws_are_those_of_numpy():
    """Of all laws, one after another, and with the same state of the generator afterwards."""
    ours, theirs = np.random.default_rng(1), np.random.default_rng(1)
    found = np.zeros(10_000)
    drawn = _draw_all(
        addresses_of(ours), np.array(SHAPES), np.array(COUNTS), np.array(CHANCES), found
    )
    expected = []
    for shape in SHAPES:
        for _ in range(50):
            expected += [
                theirs.random(),
                theirs.standard_normal(),
                theirs.standard_gamma(shape),
                theirs.laplace(-shape, shape),
                theirs.beta(shape, 2.0),
            ]
    for count, chance in itertools.product(COUNTS, CHANCES):
        expected += [theirs.binomial(count, chance) for _ in range(20)]
    assert found[:drawn].tolist() == expected
    assert ours.bit_generator.state == theirs.bit_generator.state


@entry
def _draw_more(rng):
    drawing = generator_at(rng)
    several = drawing.random(3)
    pair = drawing.standard_normal(2)
    total = several.sum() + pair.sum() + drawing.laplace(0.0, 1.0, 2).sum()
    return total + drawing.integers(0, 10) + drawing.poisson(3.0) + drawing.beta(1, 2)


def test_other_draws_are_those_of_numba():
    """Arrays, integers as arguments, and methods that NumPy's code is not called for."""
    ours, theirs = np.random.default_rng(2), np.random.default_rng(2)
    several, pair = theirs.random(3), theirs.standard_normal(2)
    total = several.sum() + pair.sum() + theirs.laplace(0.0, 1.0, 2).sum()
    expected = total + theirs.integers(0, 10) + theirs.poisson(3.0) + theirs.beta(1, 2)
    assert _draw_more(addresses_of(ours)) == pytest.approx(expected, rel=1e-15)
    assert ours.bit_generator.state == theirs.bit_generator.state


def _of_one(x):
    logs = np.log(x), np.log1p(x), math.log(x) if x > 0 else 0.0
    return *logs, np.exp(x), np.expm1(x), np.sqrt(x), np.isnan(x), np.isinf(x)


def _of_two(a, b):
    return min(a, b), max(a, b), min(a, b, a), int(a), int(b)


NUMBERS = [0.0, -0.0, 1.5, -2.5, 1e15, 3, -4, 0, True, False, np.float32(0.1), np.int32(7)]
UNUSUAL = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (_of_one, [(x,) for x in (*NUMBERS, *UNUSUAL)]),
        (_of_two, list(itertools.product(NUMBERS, NUMBERS))),
    ],
)
def test_numbers_are_those_of_numba(function, given):
    """The same bits and types, for numbers of all kinds."""
    ours, theirs = entry(function), numba.njit(function)
    for arguments in given:
        found, expected = ours(*arguments), theirs(*arguments)
        assert list(map(type, found)) == list(map(type, expected)), arguments
        assert np.array(found).tobytes() == np.array(expected).tobytes(), arguments
    for kinds, compiled in theirs.overloads.items():
        assert ours.overloads[kinds].signature == compiled.signature


@pytest.fixture
def passed_on(monkeypatch, tmp_path):
    """The names of functions that take all of numba's passes."""
    monkeypatch.setenv("DPBANDITS_CACHE_DIR", str(tmp_path))
    found, whole = [], compiler.CompilerBase._compile_core

    def noted(self):
        if isinstance(self, WholeCompiler):  # numba's own functions always do
            found.append(self.state.func_id.func_name)
        return whole(self)

    monkeypatch.setattr(compiler.CompilerBase, "_compile_core", noted)
    return found


def _logarithms(values):
    return np.log(values)


def _total(values):
    return sum([2.0 * value for value in values])


def _wrong(values):
    return values.no_such_thing


def test_numba_compiles_what_few_passes_cannot(passed_on):
    values = np.array([1.0, 2.0])
    assert entry(_logarithms)(values).tolist() == np.log(values).tolist()
    assert entry(_total)(values) == 6.0
    assert len(passed_on) == 2
    with pytest.raises(errors.TypingError, match="no_such_thing"):
        entry(_wrong)(values)


NO_OTHER_PASSES = """
import dpbandits
from dpbandits.environments import Bernoulli
from dpbandits.compiling import WholeCompiler
from numba.core import compiler
whole = compiler.CompilerBase._compile_core
def refuse(self):
    if isinstance(self, WholeCompiler):
        raise AssertionError(f"few passes failed for {self.state.func_id.func_name}")
    return whole(self)
compiler.CompilerBase._compile_core = refuse
policy = dpbandits.bandit(3, budget=dpbandits.ZCDP(1.0), horizon=1_000)
dpbandits.simulate(policy, Bernoulli([0.9, 0.1, 0.5]), horizon=1_000, seed=1)
policy.update(policy.pull().arm)
print("compiled")
"""


@pytest.mark.long
def test_few_passes_suffice_for_the_default_policy(tmp_path):
    assert run_anew(NO_OTHER_PASSES, DPBANDITS_CACHE_DIR=str(tmp_path)) == "compiled"


CALLERS = """
import sys
import numba
from dpbandits.calls import addresses_of
from dpbandits.kernel import entry, kernel
@kernel
def twice(x):
    return 2 * x
@kernel
def shown(x):
    print("shown", twice(x))
    return twice(x) + 1
@kernel
def further(x):
    return shown(x) + 1
@entry
def from_python(x):
    return further(x)
@numba.njit
def of_numba(x):
    return further(x)
print(from_python(3.0), of_numba(4.0))
sys.stdout.flush()
"""


def test_functions_of_numba_call_kernels_that_call_kernels(tmp_path):
    """These also print, for which compiled code needs the environments of all callees."""
    for _ in range(2):  # compiled, and from the cache
        said = run_anew(CALLERS, DPBANDITS_CACHE_DIR=str(tmp_path)).split("\n")
        assert sorted(said) == ["8.0 10.0", "shown 6.0", "shown 8.0"]


def test_kernels_that_take_a_generator_know_the_code_that_draws():
    """Kernels that only hand it on have no other digest of that code."""
    assert _DIGEST[:16] in str(_Drawing())


def _alone(x):
    return x


def test_a_copy_of_a_kernel_does_not_displace_it():
    kept = entry(_alone)
    copy = pickle.loads(cloudpickle.dumps(kept))
    assert copy is not kept
    assert KERNELS[kept._digest] is kept
