"""Budgets as they are written, and their order on a page."""

import itertools

import pytest

from dpbandits import GDP, RDP, ZCDP, ApproxDP, ArgumentError, PureDP
from dpbandits.plotting.labels import budget_label, by_notion, promise

ORDERED = [
    PureDP(0.5),
    PureDP(2.0),
    ZCDP(0.1),
    ZCDP(1.0),
    ApproxDP(0.5, 1e-6),
    ApproxDP(2.0, 1e-6),
    RDP(4.0, 0.25),
    RDP(8.0, 0.1),
    GDP(0.5),
    None,
]


@pytest.mark.parametrize(
    ("budget", "text", "notion", "number"),
    [
        (PureDP(0.5), "0.5-DP", "Pure DP", ("ε", 0.5)),
        (ApproxDP(2.0, 1e-6), "(2, 1e-06)-DP", "Approximate DP, δ = one in a million", ("ε", 2.0)),
        (ZCDP(0.123456789), "0.123457-zCDP", "zCDP", ("ρ", 0.123456789)),
        (RDP(8.0, 0.25), "(8, 0.25)-RDP", "Rényi DP, order 8", ("ε", 0.25)),
        (GDP(0.123456789), "0.123457-GDP", "Gaussian DP", ("μ", 0.123456789)),
    ],
)
def test_a_budget_has_a_text_and_a_place(budget, text, notion, number):
    label = budget_label(budget)
    assert (label.text, label.notion, (label.symbol, label.value)) == (text, notion, number)
    assert label.budget is budget
    assert label.private
    assert not budget_label(None).private


def test_budgets_of_a_notion_stand_together_from_strict_to_loose():
    shuffled = [budget_label(budget) for budget in [*ORDERED[::-2], *ORDERED, *ORDERED[::2]]]
    found = by_notion(shuffled)
    assert [label.budget for alike in found for label in alike] == ORDERED
    assert [len(alike) for alike in found] == [2, 2, 2, 1, 1, 1, 1]


def test_what_is_no_budget_is_refused():
    with pytest.raises(ArgumentError, match=r"^budget must be PureDP or ZCDP"):
        budget_label("1-DP")  # type: ignore[arg-type]


@pytest.mark.parametrize(("asked", "holds"), list(itertools.product(ORDERED, ORDERED)))
def test_a_promise_says_what_holds_where_that_is_something_else(asked, holds):
    said = str(promise(asked, holds))
    assert said.startswith(budget_label(asked).text)
    assert ("no guarantee" in said) == (holds is None and asked is not None)
    assert ("asked for" in said) == (holds is not None and asked != holds)
    assert holds is None or budget_label(holds).text in said
