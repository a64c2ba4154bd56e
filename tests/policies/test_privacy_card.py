"""Privacy cards: the numbers are those of budget and ledger, nothing raw is on them, and errata are
those of the page.
"""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_notebook import NASTY, Balanced

import dpbandits as dpb
from dpbandits.cli import modest_audits, promises
from dpbandits.cli.promises import write_cards
from dpbandits.cli.warm import play
from dpbandits.errors import ArgumentError
from dpbandits.policies import registered
from dpbandits.validation import downward, upward

ERRATA = Path(__file__).parents[2] / "docs" / "errata.md"


def rows(card):
    """Facts by name, and the cells of tables with heads."""
    return {row[0]: row[1] for one in card.sections if not one.heads for row in one.rows}


def section(card, title):
    return next((one for one in card.sections if one.title.startswith(title)), None)


def checked(cls, budget):
    policy = cls(**cls.example, budget=budget, seed=1)
    play(policy, 30)
    card, refuted = policy.card_page(), bool(cls.card.refuted_because)
    (claimed, derived, measured) = section(card, "Three").rows[0]
    assert card.claimed == policy.guarantee.asked == budget
    assert (card.holds is None) == (budget is None or refuted)
    assert card.derived == policy.ledger.spent()
    if card.holds is None:
        assert "not computed" in derived
    else:
        assert f"record that lost most privacy has lost {policy.ledger.spent()}" in derived
        assert derived.endswith(f". The limit for each record is {card.holds}")
    assert f"{policy.ledger.releases:,} release" in derived
    assert measured == "not audited (no attack was run)"
    assert (str(budget) in claimed) == (budget is not None)
    promise = policy.guarantee
    words = card.markdown().replace("\\", "")
    for sentence in (promise.promise(str(promise.holds)), promise.trust, *promise.assumptions):
        assert sentence in words  # as `explain` says it
        assert sentence in str(promise)
    assert all(caveat.rstrip(".") in words for caveat in promise.caveats)
    facts = rows(card)
    moved = f"{upward(policy.statistic.max_sensitivity):.6g}"
    private = policy.effective_budget is not None
    assert facts.get("sensitivity", "").startswith(moved if private else "")
    if budget is not None and not private:
        assert facts["noise scale"] == "differs between releases"
    elif "noise scale" in facts:
        assert facts["noise scale"].startswith(f"{downward(policy.noise_scale):.6g}")
    if card.holds is not None:
        assert card.holds == card.claimed == card.derived  # each example releases something
        assert "rewards" in facts["neighbours"]
    elif budget is not None:
        assert "no guarantee holds" in claimed
    else:
        assert section(card, "Not protected").points == ["Everything: no guarantee holds"]
    Balanced(card._repr_html_())
    page = card.html()
    assert page.count("<section>") == len(card.sections)
    assert not re.search(r"(src|href)=|https?:|@import", page)  # it needs nothing else
    (known,) = [one for one in card.sections if one.title.startswith("Known")]
    assert [
        erratum.where in point
        for erratum, point in zip(cls.card.errata, known.points, strict=bool(cls.card.errata))
    ] == [True] * len(cls.card.errata)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[] if name in ("AdaCUCB", "LinUCBDGS", "UCB1") else pytest.mark.long
        )
        for name in registered()
    ],
)
def test_every_card_has_the_numbers_of_budget_and_ledger(name):
    cls = registered()[name]
    for budget in cls.example_budgets() or [None]:
        checked(cls, budget)


def test_nothing_raw_is_on_a_card():
    def told(reward):
        policy = dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(1e-9), first=40, seed=1)
        for _ in range(79):  # one release, and a sum that waits
            policy.update(reward, policy.pull())
        card = policy.card_page()
        return card.markdown(), card.html(), card._repr_html_(), repr(card)

    assert told(0.123) == told(0.9876)
    assert "1 release" in told(0.5)[0]


def test_a_server_of_devices_releases_what_it_receives():
    local = dpb.HiddenLinearLocal(2, 2, budget=dpb.ZCDP(0.5), horizon=9, reports=True, seed=1)
    device = local.device()
    device.choose(np.eye(2))
    mixed = dpb.ArmsShuffled(2, budget=dpb.PureDP(1.0), messages=True, seed=1)
    shuffler = mixed.shuffler()
    batch = mixed.device().report_many(np.ones(shuffler.protocol.batch))
    took = {local: device.report(1.0), mixed: shuffler.shuffle([batch])}
    for policy, what in ((local, "a report"), (mixed, "the shuffler's output for a batch")):
        told = rows(policy.card_page())["when releases are made"]
        assert told.startswith(f"whenever the server receives {what}. ")
        assert policy.ledger.releases == 0
        assert policy.receive(took[policy])
        assert policy.ledger.releases == 1


def test_what_was_not_asked_for_is_told():
    asked = dpb.ApproxDP(10.0, 0.1)
    card = dpb.papers.concentrated.AdaCUCB(2, budget=asked, calibration="paper", seed=1).card_page()
    assert card.holds.delta > asked.delta == card.claimed.delta
    assert f", but {card.holds.shown()} holds" in section(card, "Three").rows[0][0]
    loose = dpb.papers.concentrated.AdaCUCB(2, budget=asked, clip=False, seed=1).card_page()
    assert loose.holds is None
    assert rows(loose)["rewards"].startswith("not clipped")
    waits = dpb.papers.concentrated.AdaCUCB(
        2, budget=asked, answers_within=None, max_rounds=3, seed=1
    ).card_page()
    assert "the time of a release shows when" in rows(waits)["when releases are made"]
    assert "3 recorded rounds" in rows(waits)["returning users"]
    assert not any(
        "A person who returns" in point for point in section(waits, "Not protected").points
    )
    reports = dpb.papers.others.LDPUCB(
        2, budget=dpb.PureDP(1.0), reports=True, noise="secure"
    ).card_page()
    assert "devices" in rows(reports)["noise"]
    assert any(
        "whether a report came" in point for point in section(reports, "Not protected").points
    )


def test_before_any_release_nothing_is_spent():
    card = dpb.algorithms.MergedIMED(2, budget=dpb.PureDP(1.0), seed=1).card_page()
    assert card.derived is None
    assert (
        section(card, "Three").rows[0][1]
        == "nothing yet, because no release was made. The limit for each record is 1-DP"
    )
    assert section(card, "Ledger").points == ["Nothing has been released yet."]


def test_words_are_true_of_the_policy():
    def said(policy):
        return policy.card_page().markdown()

    reports = said(dpb.algorithms.LDPIMED(2, budget=dpb.PureDP(1.0), reports=True, seed=1))
    assert "on people's devices, before these add noise and send the result" in reports
    assert "counts as 0, with noise like that of any report" in reports
    assert "SIMULATED" in reports
    # Without a budget releases are true sums, which decide.
    assert "receives no reward without noise" not in said(dpb.algorithms.UCB1(2, budget=None))
    assert "SIMULATED: a seed makes this noise repeatable" in said(
        dpb.papers.concentrated.AdaPUCB(2, budget=dpb.PureDP(1.0), seed=1)
    )
    # Rounded up, whatever its size.
    large = said(dpb.papers.concentrated.AdaCUCB(2, budget=dpb.RDP(1.0001, 0.5), seed=1))
    assert "(138146, 1e-06)-DP" in large


def test_an_audit_stands_beside_the_claim():
    policy = dpb.algorithms.MergedIMED(2, budget=dpb.PureDP(1.0), seed=1, name=NASTY)
    card = policy.card_page(SimpleNamespace(sentence=f"at least 0.4-DP {NASTY} | [a](b)"))
    assert section(card, "Three").rows[0][2].startswith("at least 0.4-DP")
    assert NASTY not in card.html()
    assert "\\| \\[a\\](b)" in card.markdown()


def test_a_saved_policy_has_a_card(tmp_path):
    policy = dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(0.5), seed=1)
    play(policy, 20)
    path = policy.save(tmp_path / "trial.dpb")
    play(policy, 20)
    saved, living = dpb.inspect(path).card, policy.card_page()
    for title in ("Three", "Enforcement", "Ledger"):
        assert section(saved, title) == section(living, title)
    assert rows(saved)["rounds recorded"] == rows(living)["rounds recorded"] == "40"
    assert "trial.dpb" in rows(saved)["crashes"]


def returning(policy):
    points = section(policy.card_page(), "Not protected").points
    return next(point for point in points if point.startswith("A person who returns"))


def test_a_returning_person_is_told_of_in_the_notion_of_the_budget():
    merged, central = dpb.algorithms.MergedIMED, dpb.algorithms.LinearIMEDJDP
    assert "k rounds cost k times the budget" in returning(merged(2, budget=dpb.PureDP(1.0)))
    separate = "k rounds in k separate releases cost k times the budget"
    assert f"{separate}." in returning(merged(2, budget=dpb.ZCDP(1.0)))
    approx = dpb.ApproxDP(1.0, 1e-6)
    for budget in (dpb.GDP(1.0), approx):
        assert f"{separate} (measured by mu^2 of Gaussian DP)." in returning(
            merged(2, budget=budget)
        )
    # In a running sum a person's rounds are in common partial sums: more than k times the budget.
    summed = central(3, 2, horizon=1000, budget=dpb.ZCDP(1.0))
    assert summed.statistic.counter.growth(4) ** 2 > 4.0
    assert "k rounds cost up to k^2 times the budget" in returning(summed)
    report = dpb.algorithms.LDPIMED(2, budget=dpb.ZCDP(1.0), reports=True)
    assert returning(report).endswith(
        ": k reports cost k times the budget. The argument max_rounds limits the rounds of a person"
    )
    messages = dpb.algorithms.MergedIMEDSDP(2, budget=dpb.PureDP(1.0), messages=True)
    assert "max_rounds" not in returning(messages)  # which it does not take
    shuffled = dpb.algorithms.LinearIMEDSDP(
        3, 2, horizon=1000, batch=50, budget=approx, messages=True
    )
    assert "the proof covers one round of each person" in returning(shuffled)


def test_the_noise_scale_is_explained_and_says_how_it_was_rounded():
    policy = dpb.algorithms.LinearIMEDJDP(3, 2, horizon=1000, budget=dpb.ZCDP(0.5), seed=1)
    facts = rows(policy.card_page())
    factor = policy.statistic.counter.column_norm()
    assert f"the sensitivity times the multiplier times {factor:.6g}. This" in facts["noise scale"]
    assert "(rounded down): " in facts["noise scale"]
    assert "(rounded up)" in facts["sensitivity"]
    assert facts["noise multiplier"] == (
        "1: the standard deviation of a noise variable, divided by the sensitivity and by the factor"
        f" {factor:.6g} of the running sum (see 'noise scale')"
    )
    play(policy, 30)
    said = section(policy.card_page(), "Ledger").points
    assert f"The column 'scale' omits the factor {factor:.6g} of the running sum." in said


def test_noise_of_a_law_of_its_own_has_no_scale_and_no_count():
    certified = registered()["WishartLinUCBJDP"]
    policy = certified(**certified.example, budget=dpb.ApproxDP(1.0, 1e-5), seed=1)
    play(policy, 30)
    said = section(policy.card_page(), "Ledger").points
    assert any(point.startswith("'certified' means") for point in said)
    assert not any("'scale'" in point for point in said)
    assert "variables" not in rows(policy.card_page())["releases so far"]
    tree = dpb.algorithms.LinearIMED(3, 2, horizon=1000, budget=dpb.PureDP(1.0), seed=1)
    play(tree, 30)
    drawn = f"{tree.ledger.draws:,} noise variables were drawn (a running sum may need several"
    assert drawn in rows(tree.card_page())["releases so far"]
    assert any("'pure' means" in point for point in section(tree.card_page(), "Ledger").points)


def test_a_simulated_guarantee_says_so_first():
    def starts(noise):
        policy = dpb.bandit(2, budget=dpb.PureDP(1.0), noise=noise)
        said = str(policy.guarantee)
        return said, rows(policy.card_page())["in a sentence"]

    for said in starts("simulation"):
        assert said.startswith("The noise is simulated and protects nobody. With secure noise, the")
    for said in starts("secure"):
        assert said.startswith("The rewards of one round are protected with 1-DP from anyone")


def _asked():
    """Every policy and budget, and arguments that secure noise does not suit."""
    for name, cls in registered().items():
        for budget in cls.example_budgets():
            yield pytest.param(name, {**cls.example, "budget": budget}, id=f"{name}-{budget}")
    experts = {**dpb.algorithms.EXP4.example, "budget": dpb.ZCDP(0.5)}
    yield "BatchedEXP4", {**experts, "variant": "improved"}
    linear = {**dpb.algorithms.PrivateLinUCB.example, "budget": dpb.ZCDP(0.5)}
    yield "PrivateLinUCB", {**linear, "counter": "honaker"}
    yield "DPTS", {"n_arms": 3, "horizon": 99, "counter": "buffered", "budget": dpb.ZCDP(0.5)}


@pytest.mark.parametrize(("name", "arguments"), list(_asked()))
def test_a_simulation_says_what_secure_noise_needs(name, arguments):
    cls, needs = registered()[name], ""
    promise = cls(**arguments, seed=1).guarantee
    try:
        cls(**arguments, noise="secure")
    except ArgumentError as error:
        needs = re.match("noise='secure' needs (.+?): ", str(error))[1]
        if "=" in needs:
            word, value = needs.split("=")
            cls(**{**arguments, word: ast.literal_eval(value)}, noise="secure")
        else:
            assert needs in registered()
        needs += " and "
    if promise.holds is not None:
        assert f"nobody. With {needs}secure noise, the" in str(promise)
        assert f"; use {needs}noise='secure' for real people" in str(promise)


def test_links_to_errata_are_made_for_sites_alone():
    card = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(1.0), seed=1).card_page()
    assert "(docs/errata.md#adac-ucb)" in card.markdown()
    assert "([errata](../errata.md#adac-ucb))" in card.markdown("../errata.md")


def test_a_release_with_less_noise_is_explained():
    policy = dpb.algorithms.EXP4(3, 4, horizon=2000, budget=dpb.ZCDP(0.5), seed=1)
    play(policy, 50)
    said = section(policy.card_page(), "Ledger").points
    assert any("has less noise" in point for point in said)
    equal = dpb.algorithms.MergedIMED(3, budget=dpb.ZCDP(0.5), seed=1)
    play(equal, 50)
    assert not any("have less noise" in one for one in section(equal.card_page(), "Ledger").points)


def test_open_arms_are_private_where_contexts_are():
    hidden = dpb.algorithms.LinearIMEDJDP(3, 2, horizon=1000, budget=dpb.ZCDP(0.5), seed=1)
    assert "part of their private contexts" in rows(hidden.card_page())["arms that are not offered"]
    shown = dpb.algorithms.MergedIMED(3, budget=dpb.ZCDP(0.5), seed=1)
    assert "Everyone may see" in rows(shown.card_page())["arms that are not offered"]


# Errata ---------------------------------------------------------------------------------------


def plain(words):
    return " ".join(re.sub(r"[*`]", "", words).split())


def errata_page():
    parts = re.split(r"^## (.*)$", ERRATA.read_text(), flags=re.MULTILINE)
    return {title: plain(text) for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_cards_and_the_page_of_errata_say_the_same():
    page, told = errata_page(), set()
    for cls in registered().values():
        for erratum in cls.card.errata:
            told.add(erratum.section)
            missing = [point for point in erratum.points if point not in page[erratum.section]]
            assert missing == [], (cls.__name__, erratum.section)
    # What is on no card has to be put there; lower bounds concern no policy.
    assert told == set(page) - {"Lower bounds under zCDP"}


def test_what_is_refuted_has_an_erratum():
    for cls in registered().values():
        assert cls.card.errata or not cls.card.refuted_because


# Files ----------------------------------------------------------------------------------------


def test_modest_audits_are_kept_until_the_code_changes(tmp_path, monkeypatch):
    """Each attack is played, its card says what was attacked, and other code attacks again."""
    few = {name: registered()[name] for name in ("AdaCUCB", "UCB1")}
    monkeypatch.setattr(modest_audits, "registered", lambda: few)
    monkeypatch.setattr(modest_audits, "RUNS", 100)
    monkeypatch.setattr(modest_audits, "_played", lambda names, _: dict(map(attacked, names)))
    attacks = []

    def attacked(name):
        attacks.append(name)
        return name, modest_audits.finding(name)

    found = modest_audits.modest_audits(tmp_path)
    assert list(found) == attacks == ["AdaCUCB"]  # the other claims nothing
    sentence = found["AdaCUCB"].sentence
    assert re.match(r"In 200 attacked runs of [\d,]+ rounds, with simulated noise, the", sentence)
    assert sentence.endswith("not refuted")
    assert modest_audits.modest_audits(tmp_path) == found
    assert attacks == ["AdaCUCB"]
    monkeypatch.setattr(modest_audits, "code_digest", lambda: "other code")
    assert modest_audits.modest_audits(tmp_path) == found  # of the same seed
    assert attacks == ["AdaCUCB", "AdaCUCB"]
    assert len(list(tmp_path.iterdir())) == 1  # what belongs to other code is gone
    monkeypatch.setattr("dpbandits.policies.registered", lambda: few)
    promises.write_cards(tmp_path / "cards", found)
    assert sentence in (tmp_path / "cards" / "AdaCUCB.md").read_text()
    assert "not audited" in (tmp_path / "cards" / "UCB1.md").read_text()


def test_a_policy_that_cannot_be_attacked_says_why():
    """A claim that no release within reach tells of, for one."""
    assert modest_audits.finding("AdaCUCB").startswith("In ")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpbandits.auditing.audit", refuses)
        assert modest_audits.finding("AdaCUCB") == "not audited: horizon must be longer"


def refuses(*_, **__):
    raise dpb.ArgumentError("horizon must be longer", "horizon")


@pytest.mark.long
def test_all_cards_are_written(tmp_path):
    audits = modest_audits.modest_audits(tmp_path / "kept")
    names = write_cards(tmp_path / "cards", audits)
    assert names == list(registered())
    index = (tmp_path / "cards" / "index.md").read_text()
    for name in names:
        text = (tmp_path / "cards" / f"{name}.md").read_text()
        assert text.startswith(f"# {name}\n")
        private = bool(registered()[name].example_budgets())
        assert ("attacked runs" in text) == private, name
        assert ("not audited" in text) == (not private)
        assert f"({name}.md)" in index
        widths = {
            len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line[:1] == "|"
        }
        assert widths <= {3, 4, 7}
        assert (tmp_path / "cards" / f"{name}.html").read_text().endswith("</html>")


def test_trust_that_was_not_asked_for_and_costs_of_a_user_are_told():
    shuffled = dpb.bandit(2, budget=dpb.PureDP(1.0), trust="shuffle", seed=1)
    assert "(shuffle trust needs messages=True)" in rows(shuffled.card_page())["privacy notion"]
    assert str(shuffled.card).endswith("Use policy.card_page() for the full card.")
    served = dpb.bandit(2, budget=dpb.PureDP(1.0), trust="shuffle", messages=True, seed=1)
    assert "needs" not in rows(served.card_page())["privacy notion"]
    policy = dpb.bandit(2, budget=dpb.ZCDP(0.5), max_rounds=3, seed=1)
    for person in range(20):
        policy.update(1.0, policy.pull(user=person))
    said = section(policy.card_page(), "Ledger").points[1]
    assert said.startswith("The cost of a line is that of 3 releases with rounds of one user.")
    assert said.endswith("a user pays at most the largest of these totals.")
