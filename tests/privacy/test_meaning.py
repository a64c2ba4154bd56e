"""What a budget is said to mean, against mechanisms that keep it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import norm
from typer.testing import CliRunner

from dpbandits import RDP, ZCDP, ApproxDP, PureDP
from dpbandits.cli import app
from dpbandits.papers.concentrated import AdaCUCB
from dpbandits.privacy.meaning import Meaning, one_in, percent_up

ROOT = Path(__file__).parents[2]


def seen(p: np.ndarray, q: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """How often the best guess between two laws is right, and the beliefs that outcomes make."""
    return 0.5 * float(np.maximum(p, q).sum()), p / (p + q), p


def renyi(p: np.ndarray, q: np.ndarray, alpha: float) -> float:
    return float(logsumexp(alpha * np.log(p) + (1.0 - alpha) * np.log(q)) / (alpha - 1.0))


def check(p: np.ndarray, q: np.ndarray, found: Meaning, slack: float = 1e-9) -> float:
    """The laws keep what is said; how near they come to the guess."""
    for one, other in ((p, q), (q, p)):
        guess, belief, weight = seen(one, other)
        assert guess <= found.guess + slack
        assert weight[belief > found.belief + slack].sum() <= found.exception + slack
    return guess / found.guess


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomised_response_attains_pure_budgets(epsilon):
    right = 1 / (1 + math.exp(-epsilon))
    laws = np.array([right, 1 - right]), np.array([1 - right, right])
    assert check(*laws, Meaning.of(PureDP(epsilon))) == pytest.approx(1.0)
    found = Meaning.of(PureDP(epsilon))
    assert found.belief == pytest.approx(right)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.5, 0.01), (2.0, 0.2)])
def test_the_worst_pair_of_laws_attains_approximate_budgets(epsilon, delta):
    """Kairouz, Oh & Viswanath: reveal with probability delta, and else randomise."""
    right = (1 - delta) / (1 + math.exp(-epsilon))
    left = 1 - delta - right
    p, q = np.array([delta, right, left, 0.0]), np.array([0.0, left, right, delta])
    with np.errstate(invalid="ignore"):
        assert check(p, q, Meaning.of(ApproxDP(epsilon, delta))) == pytest.approx(1.0)


def test_the_tail_of_approximate_budgets_is_no_more_than_needed():
    """A loss of more than epsilon on more than delta: which the naive reading denies."""
    epsilon, delta = 1.0, 0.01
    found = Meaning.of(ApproxDP(epsilon, delta))
    t = epsilon - math.log(1 - delta / found.exception)
    share = found.exception
    p, q = np.array([share, 1 - share]), np.array([share * math.exp(-t), 1 - share * math.exp(-t)])
    assert np.maximum(p - math.exp(epsilon) * q, 0).sum() == pytest.approx(delta)
    assert p[0] / (p[0] + q[0]) == pytest.approx(found.belief)
    assert p[0] / (p[0] + q[0]) > 1 / (1 + math.exp(-epsilon)) + 0.1


@pytest.mark.parametrize("rho", [0.001, 0.1, 0.5, 1.0, 3.0])
def test_gaussian_noise_and_randomised_response_keep_zcdp_as_it_is_said(rho):
    found, mu = Meaning.of(ZCDP(rho)), math.sqrt(2 * rho)
    grid = np.linspace(-12, 12 + mu, 200_001)
    p, q = (norm.pdf(grid - mean) * (grid[1] - grid[0]) for mean in (mu, 0.0))
    near = check(p, q, found, 1e-6)
    right = 1 / (1 + math.exp(-math.sqrt(2 * rho)))  # (epsilon^2 / 2)-zCDP
    laws = np.array([right, 1 - right]), np.array([1 - right, right])
    near = max(near, check(*laws, found))
    assert near > 0.93


@pytest.mark.long
@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_any_pair_of_laws_keeps_what_is_said_of_its_own_budget(weights, random):
    p = np.array(weights) / sum(weights)
    q = p * [random.uniform(0.5, 2.0) for _ in weights]
    q /= q.sum()
    orders = np.geomspace(1e-4, 300, 120) + 1
    rho = max(renyi(*laws, alpha) / alpha for laws in ((p, q), (q, p)) for alpha in orders)
    check(p, q, Meaning.of(ZCDP(max(rho * 1.001, 1e-12))), 1e-7)
    fourth = max(renyi(p, q, 4.0), renyi(q, p, 4.0), 1e-12)
    check(p, q, Meaning.of(RDP(4.0, fourth)), 1e-7)


@given(st.floats(0.5, 1.0))
def test_percentages_are_rounded_up(share):
    shown = float(percent_up(share).removesuffix(" %"))
    assert shown >= 100 * share - 1e-6
    assert shown <= 100 * share + 0.1 + 1e-9
    assert one_in(share / 1e6).startswith("1 in ")


# One sentence -----------------------------------------------------------------------------------

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SENTENCE = re.compile(
    r"Suppose an adversary knows.*?of one (?:round|user|person)\..*?belief in the"
    r" true value (?:never )?rises above [\d.]+ %(?: with a probability of at most 1 in [\d,]+\d"
    r"(?: \(twice delta\))?)?",
    re.S,
)
OTHERS = ("suspicion", "wavers", "equally likely", "guesses right", "(chance: 50 %)")
BUDGETS = {
    "0.1-zCDP": ZCDP(0.1),
    "ZCDP(0.5)": ZCDP(0.5),
    "0.5-zCDP": ZCDP(0.5),
    "1-zCDP": ZCDP(1.0),
    "0.1-DP": PureDP(0.1),
    "1-DP": PureDP(1.0),
    "(1, 1e-06)-DP": ApproxDP(1.0, 1e-6),
}


def test_pages_have_the_sentence_of_the_function_and_no_other():
    found = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        stated = [one for name, one in BUDGETS.items() if name in text]
        made = [Meaning.of(one).sentence("rewards", "round") for one in stated]
        said = SENTENCE.findall(text)
        assert all(f"{one}." in made for one in said), page
        for words in OTHERS:
            assert text.count(words) == sum(one.count(words) for one in said), (page, words)
        found += len(said)
    assert found >= 3


def test_a_sentence_with_other_numbers_would_be_seen():
    """The search finds what the function writes, so that no page hides from it."""
    for budget in BUDGETS.values():
        sentence = Meaning.of(budget).sentence("rewards", "round")
        assert [f"{one}." for one in SENTENCE.findall(f"Before. {sentence} After.")] == [sentence]


def test_the_table_of_budgets_is_computed():
    text = (ROOT / "docs" / "cards.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\S.*?DP) \| (.*?) \| (.*?) \| (.*?) \|$", text, re.M)
    assert len(rows) >= 6
    for name, *shown in rows:
        one = Meaning.of(BUDGETS[name])
        rare = one_in(one.exception) if one.exception else "never"
        assert shown == [percent_up(one.guess), percent_up(one.belief), rare]


def test_no_other_code_words_what_a_budget_means():
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if file.name not in {"meaning.py", "exact.py"}:  # in which coins are equally likely
            assert not [words for words in OTHERS if words in text], file


def test_guarantee_card_and_report_say_it_alike():
    from dpbandits.report.findings import meaning

    policy = AdaCUCB(2, budget=ZCDP(0.1), noise="secure")
    sentence = Meaning.of(ZCDP(0.1)).sentence("rewards", "round")
    assert sentence in str(policy.guarantee)
    words = [row for part in policy.card_page().sections for row in part.rows]
    assert ["in other words", sentence] in [list(row) for row in words]
    assert sentence.split("thinks")[1] in meaning(ZCDP(0.1))
    said = CliRunner()
    for command in ("explain", "card"):
        told = said.invoke(app, [command, "AdaCUCB", "--budget", "zcdp=0.1"])
        assert " ".join(sentence.split()) in " ".join(told.output.split())
    options = ["--arms", "3", "--horizon", "1000", "--budget", "zcdp=0.1"]
    assert f"0.1-zCDP: {sentence}" in said.invoke(app, ["plan", *options]).output


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        (ApproxDP(1.0, 1e-5), "at most 1 in 50,000 (twice delta)"),
        (ApproxDP(1.0, 1e-9), "at most 1 in 1,000,000"),
        (ZCDP(0.5), "at most 1 in 1,000,000"),
    ],
)
def test_a_rare_outcome_is_told_beside_delta(budget: ApproxDP | ZCDP, says: str):
    assert says in Meaning.of(budget).numbers
