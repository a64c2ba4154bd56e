"""What notebooks show: tables of a few lines, with everything escaped."""

import re
from html.parser import HTMLParser

import pytest

import dpbandits as dpb
from dpbandits.environments import Bernoulli
from dpbandits.html import glance
from dpbandits.papers.dgs import LinUCBDGS
from dpbandits.plotting.drawing import empty_figure

NASTY = "<script>alert('x')</script> & co"


class Balanced(HTMLParser):
    """Every element is closed, in order; what stands in cells and titles."""

    def __init__(self, html):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + "\n"


def played(**options):
    policy = dpb.algorithms.MergedIMED(30, budget=dpb.ZCDP(0.5), seed=1, **options)
    for _ in range(400):
        decision = policy.pull()
        policy.update(float(decision.arm == 2), decision)
    return policy


def test_policies_guarantees_ledgers_and_what_is_inside_are_tables():
    policy = played(name=NASTY)
    looks = [policy, policy.guarantee, policy.ledger, policy.estimates, policy.diagnostics]
    for look in looks:
        page = Balanced(look._repr_html_())
        assert page.seen <= {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}
        assert "table" in page.seen
        assert len(look._repr_html_()) < 6000  # of 30 arms, and some sixty lines
    assert NASTY in Balanced(policy._repr_html_()).text
    assert "and 10 more" in policy._repr_html_()
    assert "protects nobody" in policy._repr_html_()
    assert "0.5-zCDP" in policy.guarantee._repr_html_()
    assert f"{policy.ledger.releases} releases" in policy.ledger._repr_html_()
    assert len(re.findall("<tr", policy.ledger._repr_html_())) == 11
    assert "do not publish them" in policy.diagnostics._repr_html_()


def test_a_policy_without_privacy_says_so():
    policy = dpb.algorithms.MergedIMED(2, budget=None)
    assert "nothing" in Balanced(policy._repr_html_()).text
    assert "No guarantee" in policy.guarantee._repr_html_()
    refuted = LinUCBDGS(2, 3, budget=dpb.PureDP(1.0), horizon=9, sensitivity="tight")
    assert refuted.card.refuted_because in Balanced(refuted.guarantee._repr_html_()).text


def test_words_stand_to_the_left_and_numbers_to_the_right():
    page = glance("", ["arm", "what"], [["0", "1 of 2"], ["1", "leader"]])
    assert re.findall("<td[^>]*>", page) == ["<td>", '<td style="text-align: left">'] * 2


def test_results_are_tables_and_figures_show_themselves():
    policies = [
        dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(0.5), name=NASTY),
        dpb.algorithms.UCB1(2),
    ]
    result = dpb.simulate(policies, Bernoulli([0.9, 0.1]), horizon=1000, runs=3)
    page = Balanced(result._repr_html_())
    last = result.summary().groupby("policy").tail(1)
    assert NASTY in page.text
    assert len(re.findall("<tr", result._repr_html_())) == 1 + len(last)
    picture, size = result.plot(width=5.0)._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert size == {"width": 480}


def test_without_rows_there_is_no_table():
    assert "table" not in glance("Nothing", ["a"], [])
    assert isinstance(empty_figure(1, 1)._repr_png_(), tuple)


@pytest.mark.parametrize("rounds", [0, 1])
def test_few_rounds_are_no_special_case(rounds):
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(0.5), seed=1)
    for _ in range(rounds):
        policy.update(1.0, policy.pull())
    for look in (policy, policy.ledger, policy.estimates):
        Balanced(look._repr_html_())
        assert repr(look)
