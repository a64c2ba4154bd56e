"""A notion of one's own: one class that ``notion`` registers, and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits.auditing.loss_bounds import claim_of
from dpbandits.cli import app
from dpbandits.environments import Bernoulli
from dpbandits.errors import StudyError
from dpbandits.planning.targets import ladder
from dpbandits.plotting.labels import budget_label
from dpbandits.privacy import Budget, ContinualSum, Gaussian, Meaning, SqrtToeplitz, notion
from dpbandits.privacy.budgets import NOTIONS, Limit
from dpbandits.privacy.ledger import Meter
from dpbandits.protocol import Card
from dpbandits.studies import load_study
from dpbandits.studies.cautions import cautions


@dataclass(frozen=True)
class Bits(Budget):
    """Pure DP whose epsilon is counted in bits."""

    bits: float

    key, title, short = "bits", "Pure DP in bits", "bit DP"
    noises = ("Laplace",)
    varies, symbol = "bits", "b"

    def kept_in(self, *, gaussian: bool = True) -> Limit:
        return Limit("pure", self.bits * math.log(2.0))

    def of(self, total, currency) -> Bits:
        return Bits(total / math.log(2.0))

    def to_approx(self, delta: float, *, gaussian: bool = False) -> dpb.ApproxDP:
        return dpb.ApproxDP(self.bits * math.log(2.0), delta)


@pytest.fixture
def registered():
    yield notion(Bits)
    del NOTIONS["bits"]


TWIN = dpb.PureDP(math.log(2.0))


def played(budget, rounds=200):
    policy = dpb.algorithms.MergedIMED(3, budget=budget, seed=4)
    arms = []
    for t in range(rounds):
        arms.append(policy.pull().arm)
        policy.update(float(t % 2))
    return policy, arms


def test_policies_play_as_its_currency_says(registered):
    (mine, arms), (_, wanted) = played(Bits(1.0)), played(TWIN)
    assert arms == wanted
    assert (mine.ledger.spent(), mine.effective_budget) == (Bits(1.0), Bits(1.0))
    assert "The limit for each record is 1-bit DP" in mine.card_page().markdown()
    assert "| as (epsilon, delta) | (0.693148, 1e-06)-DP: " in mine.card_page().markdown()
    assert Bits(1.0) in dpb.algorithms.MergedIMED.example_budgets()


def test_it_is_saved(registered, tmp_path):
    mine, _ = played(Bits(1.0))
    mine.save(tmp_path / "trial")
    del mine
    assert dpb.load(tmp_path / "trial").budget == Bits(1.0)


def test_algorithms_without_its_noise_refuse_it_by_name(registered):
    with pytest.raises(dpb.ArgumentError, match=r"^budget must be None or .* got Bits\(bits=1.0\)"):
        dpb.papers.concentrated.AdaCUCB(3, budget=Bits(1.0))
    with pytest.raises(dpb.ArgumentError, match=r"^budget must be .* got Bits\(bits=1.0\)"):
        Gaussian.calibrated(Bits(1.0))
    with pytest.raises(dpb.ArgumentError, match="Laplace noise"):
        ContinualSum(SqrtToeplitz(8), Bits(1.0), sensitivity=1.0)  # which has Gaussian noise only


def test_what_it_means_follows_from_its_epsilon(registered):
    mine, pure = Meaning.of(Bits(1.0)), Meaning.of(TWIN)
    assert pure.guess <= mine.guess <= pure.guess + 1e-9
    assert mine.belief == pytest.approx(2 / 3 + 2 / 15)  # with an exception, one bit more
    assert not cautions([Bits(1.0)])
    assert cautions([Bits(30.0)])
    assert claim_of(Bits(1.0), gaussian=False)[0] == TWIN.epsilon


def test_it_is_labelled_and_searched(registered):
    label = budget_label(Bits(0.5))
    assert (label.text, label.notion, label.symbol) == ("0.5-bit DP", "Pure DP in bits", "b")
    assert Bits(1.0) in ladder(Bits(9.0), 4)


STUDY = """
title = "Bits"
runs = 2
horizon = 100
[[environments]]
kind = "Bernoulli"
means = [0.2, 0.8]
[[policies]]
kind = "MergedIMED"
[budgets]
bits = [1.0, 2]
"""


def test_study_files_and_the_command_line_know_its_key(registered, tmp_path):
    path = tmp_path / "bits.toml"
    path.write_text(STUDY)
    study = load_study(path)
    assert [policy.budget for policy in study.policies] == [Bits(1.0), Bits(2.0)]
    done = CliRunner().invoke(app, ["run", str(path), "--output", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert "2-bit DP" in (tmp_path / "run" / "report.html").read_text()
    told = CliRunner().invoke(app, ["explain", "MergedIMED", "--budget", "bits=1"])
    assert "1-bit DP" in told.stdout
    path.write_text(STUDY.replace("1.0, 2", "-1"))
    with pytest.raises(StudyError, match=r"budgets.bits\[0\]: bits must be a number in \(0, inf\)"):
        load_study(path)


def test_plans_are_made_in_it(registered):
    found = dpb.plan(Bernoulli([0.3, 0.7]), budget=Bits(1.0), horizon=200, runs=2, n_jobs=1)
    assert "1-bit DP" in str(found)


def test_two_notions_cannot_have_one_key():
    class Other(dpb.PureDP):
        pass

    with pytest.raises(TypeError, match="Other needs a key of its own: PureDP already has 'pure'"):
        notion(Other)


def test_a_notion_says_how_it_is_kept():
    class Half(Budget):
        key, noises = "half", ("Laplace",)

    with pytest.raises(TypeError, match="abstract"):
        Half()


@pytest.mark.parametrize("budget", [Bits(1.0), 1.0, "pure=1", dpb.PureDP], ids=str)
@pytest.mark.parametrize(
    "taking",
    [
        lambda budget: dpb.algorithms.MergedIMED(3, budget=budget),
        lambda budget: ContinualSum(SqrtToeplitz(8), budget, sensitivity=1.0),
        lambda budget: Gaussian.calibrated(budget),
        Meter.of,
        Meaning.of,
        budget_label,
        lambda budget: cautions([budget]),
        lambda budget: claim_of(budget, gaussian=False),
        lambda budget: dpb.plan(Bernoulli([0.3, 0.7]), budget=budget, horizon=200, runs=2),
    ],
)
def test_what_nobody_registered_is_refused_everywhere(taking, budget):
    with pytest.raises(dpb.ArgumentError, match=r"^budget must be .*, got "):
        taking(budget)


@pytest.mark.parametrize("noise", ["Gaussian", ("Gauss",), ("gaussian", "Laplace")])
def test_a_card_names_families_that_there_are(noise):
    with pytest.raises(
        dpb.ArgumentError,
        match=r"^noise must be a tuple of channels, or of names among 'Gaussian', 'Laplace'",
    ):
        Card(title="", source="", noise=noise)
