"""``check_policy``: an honest policy passes, and each planted fault is refused with the kernel and
the rule.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits.algorithms.bases.sums import summarise
from dpbandits.cli import app
from dpbandits.constraints import Integer
from dpbandits.kernel import kernel
from dpbandits.policies import register, registry
from dpbandits.privacy import ZCDP, Gaussian
from dpbandits.testing import check_policy, living, wall

HONEST = Path(__file__).with_name("explore_then_commit.py")
WHEN = "\n\n    Args:\n        n_arms, batch, budget: as there.\n\n    When to choose: never.\n    "


@pytest.fixture(scope="module")
def example():
    """What ``explore_then_commit.py`` defines."""
    known = registry.registered()
    scope = {"__name__": "example"}
    exec(HONEST.read_text(), scope)
    yield SimpleNamespace(**scope)
    registry._REGISTRY.clear()
    registry._REGISTRY.update(known)


@pytest.fixture
def planted(example):
    """The policy of the example with other kernels, or other attributes."""

    def made(name="Planted", *, budget=ZCDP, own=None, **kernels):
        base = example.ExploreThenCommit
        attributes = {"__doc__": f"Planted.{WHEN}", "__module__": __name__, **(own or {})}
        if kernels:
            attributes["kernels"] = replace(base.kernels, **kernels)
        attributes.setdefault("card", replace(base.card, noise=("Gaussian",)))
        return register(n_arms=3, batch=20)(type(name, (base,), attributes))

    return made


def refused(policy, message):
    with pytest.raises(AssertionError, match=message) as caught:
        check_policy(policy)
    assert "Check: " in caught.value.__notes__[0]


@pytest.mark.long
def test_an_honest_policy_passes(example):
    passed = check_policy(example.ExploreThenCommit)
    assert len(passed) >= 14
    assert {"saved policies go on", "records stay within the bound"} <= set(passed)


@pytest.mark.long
def test_an_object_is_checked_as_it_was_configured(example):
    policy = example.ExploreThenCommit(2, batch=5, budget=dpb.ZCDP(1.0), seed=1)
    told: list[str] = []
    assert check_policy(policy, told=told.append) == told
    assert len(told) >= 14
    assert policy.rounds == 0


@pytest.mark.parametrize("part", [dpb.parts.KLUCB, dpb.parts.KLUCB()], ids=str)
def test_a_part_is_not_a_policy(part):
    with pytest.raises(
        TypeError, match=r"^KLUCB is a part: check a policy that has this part, as in"
    ):
        check_policy(part)


@kernel
def half(params, public, norm):
    return 0.5 * params.width


def test_a_sensitivity_that_is_too_small(planted):
    refused(planted(sensitivity=half), r"^sensitivity: a record moves a release by .* was declared")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"max_sensitivity": 0.5}, "max_sensitivity: a release is bounded by"),
        ({"max_records": 19}, "max_records: a release covers 20 rounds, but 19 was declared"),
        ({"max_abs_contribution": 0.5}, "max_abs_contribution: 20 records make a coordinate"),
    ],
)
def test_a_statistic_that_declares_too_little(planted, example, declared, message):
    def _statistic(self):
        honest = example.ExploreThenCommit._statistic(self)
        return replace(
            honest, **{name: few * (getattr(honest, name) or 1) for name, few in declared.items()}
        )

    refused(planted(own={"_statistic": _statistic}), f"^{message}")


@kernel
def keeps(params, raw, public, memo, statistic):
    statistic[0] = raw.total[0]


def test_a_record_that_is_not_forgotten(planted):
    refused(planted(summarise=keeps), r"^summarise: a record moves a release that does not cover")


@kernel
def twice(params, raw, arm, x, reward, n):
    raw.total[0] += 2.0 * reward


def test_a_record_that_counts_twice(planted):
    refused(planted(accumulate=twice), r"^sensitivity: a record moves a release by")


@kernel
def tells(params, raw, public, memo, statistic):
    public.mean[0] = raw.total[0]
    summarise(params, raw, public, memo, statistic)


def test_an_exact_sum_on_the_public_side(planted):
    refused(planted(summarise=tells), r"^summarise changes the public side")


class Peeking(NamedTuple):
    mean: np.ndarray
    clock: np.ndarray
    peek: np.ndarray  # the private side's own array


class Peeked(NamedTuple):
    total: np.ndarray


def shares(params):
    total, k = np.zeros(1), params.n_arms
    return Peeked(total), Peeking(np.full(k, -np.inf), np.zeros(2, np.int64), total)


def test_sides_that_share_memory(planted):
    refused(planted(init=shares), r"^init: raw\.total and public\.peek share memory")


HEARD = np.zeros(1)  # which interpreted kernels may change


@kernel
def tells_all(params, raw, arm, x, reward, n):
    raw.total[0] += reward
    HEARD[0] += reward


@kernel
def when_enough_are_glad(params, public):
    return HEARD[0] >= 3.0 or public.clock[0] >= params.batch


def test_a_schedule_that_hears_answers_behind_the_wall(planted):
    policy = planted(accumulate=tells_all, release_due=when_enough_are_glad)
    with pytest.raises(AssertionError, match=r"^the public side, or the schedule, depends on ans"):
        wall.answers_leave_no_trace(partial(policy, 3, batch=20, budget=ZCDP(1.0)))
    wall.answers_leave_no_trace(partial(policy, 3, batch=1, budget=ZCDP(1.0)))


class Listening(NamedTuple):
    n_arms: int
    batch: int
    width: float
    heard: np.ndarray


@kernel
def lets_hear(params, raw, arm, x, reward, n):
    raw.total[0] += reward
    params.heard[0] += reward


@kernel
def when_enough_succeed(params, public):
    return (params.heard[0] >= 3.0 or public.clock[0] >= params.batch) and (
        public.clock[1] < params.n_arms
    )


def listening(policy):
    return Listening(policy.n_arms, policy.config["batch"], 1.0, np.zeros(1))


def test_a_release_whose_time_depends_on_rewards(planted):
    kernels = {"accumulate": lets_hear, "release_due": when_enough_succeed}
    policy = planted(own={"_params": listening}, **kernels)
    with pytest.raises(AssertionError, match=r"^release_due: a release, or a choice, depends"):
        living.schedule_owes_nothing_to_answers(
            lambda **options: policy(3, batch=20, budget=dpb.ZCDP(0.5), **options)
        )


def test_a_policy_that_leaves_noise_to_others_who_add_none(planted, example):
    def trusting(self, n_arms, *, budget, batch=100, **options):
        config = {"n_arms": n_arms, "batch": batch, "reports": True}
        example.Policy.__init__(self, config, budget=budget, **options)

    refused(planted(own={"__init__": trusting}), r"^a release was made without noise")


class Quiet(Gaussian):
    """Half the noise that the budget asks for."""

    @classmethod
    def calibrated(cls, budget, *, calibration="exact"):
        true = Gaussian.calibrated(budget, calibration=calibration)
        return Gaussian(true.multiplier / 2)


def test_half_the_noise(planted, example):
    card = replace(example.ExploreThenCommit.card, noise=(Quiet,))
    refused(planted(own={"card": card}), r"would exceed|^partition: after 1 releases a record has")


@kernel
def allocates(params, public, contexts, rng):
    index = public.mean + 0.0
    return index.argmax(), 1.0


@pytest.mark.compiled
def test_a_kernel_that_allocates(planted):
    refused(planted(choose=allocates), r"^choose does not compile; kernels allocate nothing")


@kernel
def of_its_own(params, public, contexts, rng):
    return int(np.random.random() * params.n_arms), 1.0 / params.n_arms  # noqa: NPY002


def test_random_numbers_of_its_own(planted):
    refused(planted(choose=of_its_own), r"^a kernel draws random numbers of its own")


@kernel
def biased(params, public, contexts, rng):
    return int(rng.random() ** 2 * params.n_arms), 1.0 / params.n_arms


def test_wrong_propensities(planted, example):
    card = replace(example.ExploreThenCommit.card, noise=("Gaussian",), randomised=True)
    refused(planted(choose=biased, own={"card": card}), r"^choose: arm \d was drawn \d+ times")


@kernel
def hardly_biased(params, public, contexts, rng):
    return (0, 0.525) if rng.random() < 0.5 else (1, 0.475)


def test_propensities_that_are_wrong_by_a_twentieth(planted, example):
    card = replace(example.ExploreThenCommit.card, noise=("Gaussian",), randomised=True)
    refused(
        planted(choose=hardly_biased, own={"card": card}), r"^choose: arm \d was drawn \d+ times"
    )


def test_draws_that_the_card_does_not_tell(planted):
    refused(planted(choose=hardly_biased), "^choose draws, and the card has no randomised=True")


class Storing(NamedTuple):
    n_arms: int
    batch: int
    width: float
    store: np.ndarray


@kernel
def storing(params, raw, arm, x, reward, n):
    raw.total[0] += reward
    params.store[0] += reward


@kernel
def peeking(params, public, contexts, rng):
    on_trial = public.clock[1]
    return on_trial if on_trial < params.n_arms else int(params.store[0] > 10.0), 1.0


def test_rewards_that_cross_the_wall_in_params(planted):
    def params(self):
        lo, hi = self.reward_range
        return Storing(self.n_arms, self.config["batch"], hi - lo, np.zeros(1))

    policy = planted(accumulate=storing, choose=peeking, own={"_params": params})
    refused(policy, "^accumulate changes params, which never change")


def test_a_save_that_loses_an_argument(planted, example):
    def forgetful(self, n_arms, *, budget, batch=100, **options):
        self._batch = batch
        super(example.ExploreThenCommit, self).__init__(
            {"n_arms": n_arms}, budget=budget, **options
        )

    def params(self):
        lo, hi = self.reward_range
        return example.ETCParams(self.n_arms, self._batch, hi - lo)

    refused(planted(own={"__init__": forgetful, "_params": params}), r"^(config|save): ")


@kernel
def with_raw(params, raw, public):
    return False


def test_a_kernel_with_an_argument_of_its_own(planted):
    refused(
        planted(release_due=with_raw),
        r"^release_due takes \(params raw public\), where the protocol has \(params public\)",
    )


@kernel
def never(params, public):
    return False


def test_an_algorithm_that_never_releases(planted):
    refused(planted(release_due=never), r"^release_due: no release in ")


def test_an_argument_that_is_not_checked(planted, example):
    def careless(self, n_arms, *, budget, batch=100, pace=1.0, **options):
        config = {"n_arms": n_arms, "batch": batch, "pace": pace}
        example.Policy.__init__(self, config, budget=budget, **options)

    told = example.ExploreThenCommit.__doc__.replace(
        "        batch:", "        pace: of the trial.\n        batch:"
    )
    refused(planted(own={"__init__": careless, "__doc__": told}), r"^pace=nan is not refused")


def test_a_constraint_that_takes_more_than_it_says(planted):
    class Loose(Integer):
        def __call__(self, name, value):
            return 100

    refused(planted(own={"constraints": {"batch": Loose(1)}}), r"^batch=None is not refused")


def test_words_and_names(planted, example):
    refused(planted(own={"__doc__": "Nothing."}), r"^the docstring of Planted has no 'Args:'")
    lone = type("Lone", (example.ExploreThenCommit,), {})
    with pytest.raises(AssertionError, match=r"^Lone is not registered"):
        check_policy(lone)


@pytest.mark.long  # which compiles a module anew
def test_the_command(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block = HONEST.read_text()
    (tmp_path / "own_policies.py").write_text(block)
    monkeypatch.delitem(sys.modules, "own_policies", raising=False)
    call = CliRunner().invoke
    told = call(app, ["check-policy", "own_policies:ExploreThenCommit"])
    assert told.exit_code == 0, told.output
    assert "passed: loop and hand play alike" in told.stdout
    assert re.search(r"ExploreThenCommit has passed \d+ checks\.", told.stdout)
    for wrong in ("own_policies", "own_policies:Other", "no_such_module:Policy"):
        assert call(app, ["check-policy", wrong]).exit_code == 2
    broken = block.replace("sensitivity=sensitivity", "sensitivity=halved").replace(
        "@register(", "@kernel\ndef halved(params, public, norm):\n    return 0.5\n\n\n@register("
    )
    (tmp_path / "broken_policies.py").write_text(broken)
    told = call(app, ["check-policy", "broken_policies:ExploreThenCommit"])
    assert told.exit_code == 1
    assert told.stderr.startswith("sensitivity: a record moves a release by")
