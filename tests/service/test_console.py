"""Pages of the console: what they show, who may see them, and which forms they take."""

import re
from types import SimpleNamespace

import pytest
from operators import PRIVATE, SHOP, Page, basic, declare, play, service_in
from starlette.testclient import TestClient

from dpbandits.service.access import EVERYONE, Key
from dpbandits.service.app import make_app
from dpbandits.service.console.forms import Tokens
from dpbandits.service.problems import Problem
from dpbandits.service.results import Traffic

OWN = {"sec-fetch-site": "same-origin"}
ADDRESS = "http://console.example"


@pytest.fixture
def console(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    service = service_in(tmp_path)
    secrets = {role: service.keys.add(roles=[role])[1] for role in ("admin", "read", "decide")}
    secrets["other"] = service.keys.add(tenant="others")[1]
    secrets["some"] = service.keys.add(experiments=["other-*"])[1]
    with TestClient(make_app(service), base_url=ADDRESS) as client:

        def get(path="", who="admin", status=200):
            reply = client.get(f"/console{path}", headers=basic(secrets[who]))
            assert reply.status_code == status, reply.text
            return Page(reply.text)

        def send(action, path="/shop", headers=OWN, status=200, **fields):
            whole = {**get(path).forms[action], **fields}
            headers = {**basic(secrets["admin"]), **headers}
            reply = client.post(f"/console{path}/{action}", data=whole, headers=headers)
            assert reply.status_code == status, reply.text
            return Page(reply.text)

        yield SimpleNamespace(
            service=service,
            client=client,
            admin=secrets["admin"],
            secrets=secrets,
            get=get,
            send=send,
            declare=lambda given: declare(client, secrets["admin"], given),
            play=lambda *args, **more: play(client, secrets["admin"], *args, **more),
        )


# What pages show ------------------------------------------------------------------------------


def test_an_empty_service_says_how_to_begin(console):
    page = console.get()
    assert "There are no experiments yet" in page.text
    assert f"curl {ADDRESS}/v1/experiments" in page.text
    body = re.search(r"-d '(.*)'", page.text)[1]
    bearer = {"authorization": f"Bearer {console.admin}", "content-type": "application/json"}
    reply = console.client.post("/v1/experiments", content=body, headers=bearer)
    # The words are right; that noise must be secure is a matter of what is installed.
    assert reply.status_code == 202 or reply.json()["errors"][0]["word"] == "noise"


def test_the_list_has_status_budget_releases_and_decisions(console):
    console.declare({**SHOP, "title": "The shop"})
    console.play()
    page = console.get()
    assert {"href": "/console/shop"} in page.all("a")
    summary = console.client.get(
        "/v1/experiments/shop", headers={"authorization": f"Bearer {console.admin}"}
    ).json()
    assert summary["releases"] > 0
    assert f"The shop shop running 100 % {summary['releases']} 40" in page.text


def test_failed_experiments_are_listed_with_the_reason(console):
    console.service.owner.missing["default.old"] = "the page is damaged"
    console.service.owner.missing["others.theirs"] = "secret"
    console.service.making["default", "young"] = None
    console.service.failed["default", "wrong"] = Problem(422, "invalid", "arms must be given")
    page = console.get()
    for said in (
        "old unavailable the page is damaged",
        "young starting",
        "wrong failed arms must be",
    ):
        assert said in page.text
    assert "theirs" not in page.text
    assert "arms must be given" in console.get("/wrong").text
    assert "starting" in console.get("/young").text


def test_a_page_has_all_that_is_public_and_marks_the_rest(console):
    dates = {"starts": "2020-01-01T00:00:00Z", "ends": "2999-12-31T00:00:00Z"}
    breaker = {"breaker": {"floor": -1.0, "releases": 2}, "baseline": "red"}
    console.declare({**SHOP, **dates, **breaker})
    console.play()
    page = console.get("/shop")
    for said in (
        "Requests get the arms that the policy chooses.",
        "2020-01-01 00:00:00 UTC",
        "2999-12-31 00:00:00 UTC",
        "trips below a mean of -1, from 2 releases on; has not tripped",
        "0.5-zCDP of at most 0.5-zCDP",
        "With secure noise, the rewards of one round would be protected with 0.5-zCDP",
        "Assumptions A person contributes one round.",
        "Simulated noise protects nobody",
        "They are computed from the noisy values of",
    ):
        assert said in page.text, said
    for arm in SHOP["arms"]:
        assert re.search(rf"{arm} -?[\d.e-]+ [\d.e-]+ to [\d.e-]+ \d+", page.text), arm
    private = page.text.index("For the operator only: not public")
    for count in ("decisions that wait for a reward", "repeated rewards", "too late"):
        assert page.text.index(count) > private
    (shown,) = [one for one in page.all("svg") if one.get("class") == "chart"]
    assert re.fullmatch(r"0.5-zCDP is spent after \d+ releases.", shown["aria-label"])


def test_repeated_rewards_are_counted_for_the_operator(console):
    console.declare(SHOP)
    console.play(decisions=1)
    again = {"decision_id": "shop-0", "reward": 1.0}
    bearer = {"authorization": f"Bearer {console.admin}"}
    for _ in range(3):
        console.client.post("/v1/experiments/shop/rewards", json=again, headers=bearer)
    assert "repeated rewards, since the service began 3" in console.get("/shop").text
    assert "decisions that wait for a reward 0" in console.get("/shop").text


def test_traffic_is_drawn_from_two_minutes_on(console):
    console.declare(SHOP)
    one = console.service.owner.experiments["default", "shop"]
    one.traffic.clear()
    one.traffic.extend([Traffic(600, 0, 0), Traffic(601, 30, 20), Traffic(603, 50, 20)])
    page = console.get("/shop")
    (shown,) = [one for one in page.all("svg") if one.get("class") == "chart"]
    assert shown["aria-label"] == "50 decisions from 10:00 to 10:03 UTC."
    whole, recorded = (
        [float(one["height"]) for one in page.all("rect") if one["class"] == kind and "y" in one]
        for kind in ("all", "fill")
    )
    # 30 in one minute, then 20 in two: a third of the height.  Marks of the legend come last.
    assert whole[1] == pytest.approx(whole[0] / 3, abs=0.01)
    assert recorded[:2] == pytest.approx([whole[0] * 2 / 3, 0.0], abs=0.01)


def test_each_minute_of_traffic_is_counted_once(console):
    console.declare(SHOP)
    one = console.service.owner.experiments["default", "shop"]
    start = one.traffic[-1].minute + 10 if one.traffic else 10**7
    for second in range(180):
        one._count_traffic(60.0 * start + second)
    assert [each.minute - start for each in list(one.traffic)[-3:]] == [0, 1, 2]


def test_ledger_trail_and_card_have_pages(console):
    console.declare(SHOP)
    assert "Nothing has been released yet." in console.get("/shop/ledger").text
    console.play()
    ledger = console.get("/shop/ledger").text
    assert "rounds part releases noise scale cost" in ledger
    assert "Gaussian" in ledger
    console.send("pause", reason="holidays")
    trail = console.get("/shop/trail").text
    assert trail.index("paused holidays") < trail.index("created")
    card = console.get("/shop/card")
    assert "Not protected" in card.text
    assert [tag for tag, _ in card.tags].count("h1") == 1


def test_texts_are_escaped_everywhere(console):
    evil = "<script>alert(1)</script>"
    console.declare({**SHOP, "title": evil, "arms": [evil, '"><b>x', "c"], "baseline": evil})
    console.play()
    console.send("retire", arm='"><b>x', reason="<img src=x>")
    for path in ("", "/shop", "/shop/ledger", "/shop/trail", "/shop/card"):
        page = console.get(path)
        assert not {tag for tag, _ in page.tags} & {"script", "b", "img"}, path
    assert evil in console.get("/shop").text
    assert "<img src=x>" in console.get("/shop/trail").text


def test_with_private_contexts_no_page_tells_arms(console):
    console.declare(PRIVATE)
    console.play("hidden", contexts=[[0.5, 0.1], [0.1, 0.5]], decisions=120)
    page = console.get("/hidden")
    assert "coefficient 0 coefficient 1" in page.text
    assert "leader" not in page.text
    for path in ("", "/hidden", "/hidden/ledger"):
        for word in (*PRIVATE["arms"], "propensity"):
            assert not re.search(rf"\b{word}\b", console.get(path).text), (path, word)
    assert "part" not in console.get("/hidden/ledger").text.split()
    assert not page.all("option")  # the arm is typed
    console.send("retire", "/hidden", arm="red", reason="sold out")
    assert console.service.owner.experiments["default", "hidden"].policy.retired == (0,)


def test_exact_estimates_are_marked_as_the_operators(console):
    console.declare({**SHOP, "budget": None})
    console.play()
    page = console.get("/shop")
    assert "No guarantee holds: nothing on this page may be shown to others." in page.text
    assert "are for the operator only" in page.text
    assert "Costs are not computed" in page.text
    assert "not counted" in console.get().text


def test_a_breaker_that_has_tripped_is_shown_and_set_back(console):
    console.declare({**SHOP, "baseline": "red", "breaker": {"floor": 99.0}})
    console.play()
    page = console.get("/shop")
    assert "running breaker tripped All requests get the baseline, red." in page.text
    assert "from 1 release on; tripped 2" in page.text
    assert {"pause", "resume"} <= page.forms.keys()
    assert "breaker tripped" in console.get().text
    page = console.send("resume", reason="looked at it")
    assert "Requests get the arms that the policy chooses." in page.text
    assert "resume" not in page.forms


# What an operator does ------------------------------------------------------------------------


def test_pause_and_resume_with_a_notice(console):
    console.declare(SHOP)
    page = console.send("pause", reason="holidays")
    assert "The experiment is paused." in page.text
    assert "paused Requests are refused: The experiment is paused, and has no base" in page.text
    assert page.forms.keys() == {"resume", "retire", "erase", "archive"}
    assert "The experiment is paused." not in console.get("/shop").text.replace("paused,", "")
    page = console.send("resume", reason="back")
    assert "The experiment runs again." in page.text
    assert "pause" in page.forms


def test_a_form_is_answered_by_a_redirect(console):
    console.declare(SHOP)
    fields = {**console.get("/shop").forms["pause"], "reason": "x"}
    headers = {**basic(console.admin), **OWN}
    reply = console.client.post(
        "/console/shop/pause", data=fields, headers=headers, follow_redirects=False
    )
    assert reply.status_code == 303
    assert reply.headers["location"].startswith("/console/shop?done=pause&token=")


def test_a_notice_cannot_be_made_up(console):
    console.declare(SHOP)
    token = console.get("/shop").forms["archive"]["token"]
    for query in ("done=archive", f"done=archive&token={token}", "done=nothing&token=é"):
        assert not [one for one in console.get(f"/shop?{query}").all("p") if "role" in one]


def test_arms_are_retired_and_added(console):
    console.declare({**SHOP, "baseline": "red"})
    page = console.get("/shop")
    assert [one["value"] for one in page.all("option")] == ["green", "blue"]
    assert "add" not in page.forms
    page = console.send("retire", arm="blue", reason="sold out")
    assert "The arm is retired." in page.text
    assert "retired an arm blue sold out" in page.text
    assert page.forms["add"]["arm"] == "blue"
    page = console.send("add", arm="blue", reason="there again")
    assert "add" not in page.forms
    assert console.service.owner.experiments["default", "shop"].policy.retired == ()


def test_arms_without_names_are_numbers(console):
    console.declare({**SHOP, "arms": 3})
    console.send("retire", arm="2", reason="sold out")
    assert console.service.owner.experiments["default", "shop"].policy.retired == (2,)


def test_policies_that_need_all_arms_have_no_form_for_arms(console):
    console.declare({**SHOP, "goal": "best arm", "horizon": 300})
    assert console.get("/shop").forms.keys() == {"pause", "erase", "archive"}


def test_pending_data_of_a_person_are_erased(console):
    console.declare(SHOP)
    bearer = {"authorization": f"Bearer {console.admin}"}
    for unit in ("anna", "7", 7, 7):
        console.client.post("/v1/experiments/shop/decisions", json={"unit": unit}, headers=bearer)
    told = "Decisions that were erased: "
    assert f"{told}1." in console.send("erase", unit="anna", reason="asked").text
    assert f"{told}0." in console.send("erase", unit="anna", reason="again").text
    assert f"{told}2." in console.send("erase", unit="7", is_number="yes", reason="asked").text
    assert f"{told}1." in console.send("erase", unit="7", reason="asked").text
    assert "anna" not in console.get("/shop/trail").text
    page = console.send("erase", unit="anna", is_number="yes", reason="asked", status=422)
    assert "unit must be a whole number." in page.text


def test_an_archived_experiment_says_until_when_it_takes_rewards(console):
    console.declare({**SHOP, "answers_within": "1h"})
    bearer = {"authorization": f"Bearer {console.admin}"}
    console.client.post("/v1/experiments/shop/decisions", json={"unit": "anna"}, headers=bearer)
    page = console.send("archive", confirmation="shop", reason="over")
    assert re.search(
        r"archived It makes no more decisions, and takes rewards until 2\d\d\d-", page.text
    )
    assert page.forms.keys() == {"erase"}


def test_to_archive_the_name_must_be_typed(console):
    console.declare(SHOP)
    page = console.send("archive", confirmation="shopp", reason="over", status=422)
    assert "Type the name of the experiment to archive it." in page.text
    page = console.send("archive", confirmation="shop", reason="over")
    assert "archived It is finished. Nothing private is left, and these pages stay." in page.text
    assert not page.forms
    assert "archived" in console.get().text


@pytest.mark.parametrize(
    ("action", "fields", "said"),
    [
        ("pause", {"reason": ""}, "Expected `string` of length >= 1 - at `$.reason`"),
        ("pause", {"reason": "x" * 501}, "Expected `string` of length <= 500 - at `$.reason`"),
        ("retire", {"reason": "x", "arm": "gold"}, "arm must"),
    ],
)
def test_what_cannot_be_done_is_said_as_by_the_api(console, action, fields, said):
    console.declare(SHOP)
    page = console.send(action, **fields, status=422)
    assert said in page.text
    assert {"href": "/console/shop"} in page.all("a")
    url = f"/v1/experiments/shop/{action}"
    bearer = {"authorization": f"Bearer {console.admin}"}
    detail = console.client.post(url, json=fields, headers=bearer).json()["detail"]
    assert " ".join(detail.split()) in page.text
    assert "created" in console.get("/shop/trail").text  # and nothing else
    assert len(console.service.owner.experiments["default", "shop"].trail.lines) == 1


def test_what_is_true_no_more_is_refused(console):
    console.declare(SHOP)
    fields = {**console.get("/shop").forms["pause"], "reason": "x"}
    console.send("archive", confirmation="shop", reason="over")
    headers = {**basic(console.admin), **OWN}
    reply = console.client.post("/console/shop/pause", data=fields, headers=headers)
    assert reply.status_code == 410
    assert "The experiment is archived." in Page(reply.text).text


# Who may do so --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "cross-site", "origin": ADDRESS},
        {"origin": "https://evil.example"},
        {"origin": f"{ADDRESS}.evil.example"},
        {"origin": f"{ADDRESS}:8080"},
        {"origin": "null"},
    ],
)
def test_forms_of_other_sites_are_refused(console, headers):
    console.declare(SHOP)
    page = console.send("pause", headers=headers, reason="x", status=403)
    assert "The form was not sent from a page of this service." in page.text
    assert len(console.service.owner.experiments["default", "shop"].trail.lines) == 1


def test_an_origin_will_do_in_browsers_that_say_no_more(console):
    console.declare(SHOP)
    console.send("pause", headers={"origin": ADDRESS}, reason="x")


@pytest.mark.parametrize("source", ["none", "empty", "action", "experiment", "cut"])
def test_forms_without_the_right_token_are_refused(console, source):
    console.declare(SHOP)
    console.declare({**SHOP, "name": "market"})
    forms = console.get("/shop").forms
    right = forms["pause"]["token"]
    token = {
        "none": {},
        "empty": {"token": ""},
        "action": {"token": forms["retire"]["token"]},
        "experiment": {"token": console.get("/market").forms["pause"]["token"]},
        "cut": {"token": right[:-1]},
    }[source]
    headers = {**basic(console.admin), **OWN}
    sent = {"data": {"reason": "x", **token}, "headers": headers}
    reply = console.client.post("/console/shop/pause", **sent)
    assert reply.status_code == 403
    assert "The form is no longer valid." in Page(reply.text).text
    sent["data"] = {"reason": "x", "token": right}
    assert console.client.post("/console/shop/pause", **sent).status_code == 200


def test_tokens_are_of_a_key_a_process_and_two_days():
    now = [0.0]
    tokens, key = Tokens(lambda: now[0]), Key("a", "digest")
    made = tokens.make(key, "shop", "pause")
    assert tokens.fits(made, key, "shop", "pause")
    assert not tokens.fits(made, Key("b", "other"), "shop", "pause")
    assert not tokens.fits(made, EVERYONE, "shop", "pause")
    assert not Tokens(lambda: 0.0).fits(made, key, "shop", "pause")
    now[0] = 2 * 86_400.0 - 1.0
    assert tokens.fits(made, key, "shop", "pause")
    now[0] += 1.0
    assert not tokens.fits(made, key, "shop", "pause")


def test_browsers_are_asked_for_a_key(console):
    bearer = {"authorization": f"Bearer {console.admin}"}
    for headers in ({}, bearer, basic("wrong"), {"authorization": "Basic %%%"}):
        for path in ("/console", "/console/shop", "/console/shop/pause"):
            method = "POST" if path.endswith("pause") else "GET"
            reply = console.client.request(method, path, headers=headers)
            assert reply.status_code == 401, (headers, path)
            assert reply.headers["www-authenticate"].startswith('Basic realm="dpbandits"')
            assert "key" in Page(reply.text).text


def test_the_api_takes_no_credentials_that_browsers_send_by_themselves(console):
    reply = console.client.get("/v1/experiments", headers=basic(console.admin))
    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("who", ["read", "decide"])
def test_other_roles_are_refused(console, who):
    console.declare(SHOP)
    for path in ("", "/shop", "/shop/card", "/shop/ledger", "/shop/trail"):
        assert "does not have the role admin" in console.get(path, who, 403).text


@pytest.mark.parametrize("who", ["other", "some"])
def test_experiments_of_others_are_not_there(console, who):
    console.declare(SHOP)
    for path in ("/shop", "/shop/card", "/shop/ledger", "/shop/trail"):
        assert "There is no such experiment." in console.get(path, who, 404).text
    assert "There are no experiments yet" in console.get("", who).text
    headers = {**basic(console.secrets[who]), **OWN}
    reply = console.client.post("/console/shop/pause", data={"reason": "x"}, headers=headers)
    assert reply.status_code in (403, 404)
    assert console.get("/nothing", who, 404)


def test_there_is_no_other_action(console):
    console.declare(SHOP)
    headers = {**basic(console.admin), **OWN}
    assert console.client.post("/console/shop/delete", data={}, headers=headers).status_code == 404


def test_all_replies_forbid_scripts_frames_and_copies(console):
    console.declare(SHOP)
    admin = basic(console.admin)
    replies = [
        console.client.get(f"/console{path}", headers=admin)
        for path in ("", "/shop", "/shop/card", "/shop/ledger", "/shop/trail", "/nothing")
    ]
    replies += [console.client.get(path) for path in ("/console", "/console/style.css")]
    fields = {**console.get("/shop").forms["pause"], "reason": "x"}
    post = {"data": fields, "headers": {**admin, **OWN}, "follow_redirects": False}
    replies.append(console.client.post("/console/shop/pause", **post))
    for reply in replies:
        assert reply.headers["content-security-policy"] == (
            "default-src 'none'; style-src 'self'; img-src data:; form-action 'self';"
            " frame-ancestors 'none'; base-uri 'none'"
        )
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["cache-control"] == "no-store"
        assert "set-cookie" not in reply.headers


def test_pages_need_nothing_that_the_policy_blocks(console):
    console.declare(SHOP)
    console.play()
    for path in ("", "/shop", "/shop/card", "/shop/ledger", "/shop/trail"):
        page = console.get(path)
        assert not {tag for tag, _ in page.tags} & {"script", "style", "iframe"}
        assert not [name for _, found in page.tags for name in found if name.startswith("on")]
        assert not [found for _, found in page.tags if "style" in found]
        links = [one["href"] for one in page.all("link")]
        assert links == ["/console/style.css", "data:,"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_enough_contrast(console, scheme):
    style = console.client.get("/console/style.css").text
    light, dark = re.findall(r":root \{(.*?)\}", style)
    found = dict(re.findall(r"--([\w-]+): (#\w{6})", light))
    found |= dict(re.findall(r"--([\w-]+): (#\w{6})", dark)) if scheme == "dark" else {}
    texts = {
        "paper": ("ink", "soft", "accent", "warn", "good", "bad"),
        "wash": ("ink", "soft", "accent"),
        "warn-wash": ("ink", "warn"),
        "accent": ("on-accent",),
    }
    for ground, words in texts.items():
        for word in words:
            assert contrast(found[word], found[ground]) >= 4.5, (word, ground)
    for drawn in ("bar", "edge", "accent", "bad"):
        assert contrast(found[drawn], found["paper"]) >= 3.0, drawn


def contrast(one, other):
    """The ratio of WCAG 2."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
