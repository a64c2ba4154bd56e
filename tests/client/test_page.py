"""The page of clients: its programs run against a service, its web page against a stub of one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from py_mini_racer import MiniRacer

from dpbandits.service.messages import DecisionRequest, RewardRequest

PAGE = (Path(__file__).parents[2] / "docs" / "serving" / "client.md").read_text()
PROGRAMS = re.findall(r'^```python title="(\w+).py"\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL)

# A page with one button, and a service that replies as it is told.
BROWSER = """
var sent = [], clicked = null;
var document = {getElementById: () => ({
    style: {set background(colour) { sent.push(["shown", colour]); }},
    addEventListener: (_, act) => { clicked = act; },
})};
var crypto = {randomUUID: () => "an-id"};
var setTimeout = (go, ms) => { sent.push(["waited", 100 <= ms && ms <= 7500]); go(); };
var fetch = async (url, {method, headers, body}) => {
    sent.push([method, url, headers.Authorization, body]);
    const status = statuses.length > 1 ? statuses.shift() : statuses[0];
    if (status === 0) throw new TypeError("not reached");
    return {ok: status < 300, status, json: async () => ({arm_name: "green"})};
};
"""


@pytest.mark.parametrize("name", [name for name, _ in PROGRAMS])
def test_its_programs_run(served, admin, monkeypatch, capsys, name):
    words = {"name": "shop", "arms": ["blue", "green"], "budget": None, "allow_simulation": True}
    admin.declare(words, wait=True)
    shop = admin.experiment("shop")
    before = shop.summary()["decisions"]
    monkeypatch.setenv("BANDITS_KEY", served.keys["decide+reward"])
    program = dict(PROGRAMS)[name]
    assert "http://127.0.0.1:8000" in program
    exec(program.replace("http://127.0.0.1:8000", served.url), {"__name__": "page"})
    made = {"shop": 1, "shop_soon": 3}[name]
    assert shop.summary()["decisions"] == before + made
    assert capsys.readouterr().out.endswith("True\n" if name == "shop" else "")


@pytest.mark.parametrize(
    ("statuses", "colour", "attempts"),
    [([200], "green", 1), ([503, 0, 200], "green", 3), ([429], "blue", 3), ([403], "blue", 1)],
)
def test_its_web_page_asks_shows_and_answers(statuses, colour, attempts):
    script = re.search(r'<script type="module">\n(.*?)</script>', PAGE, re.DOTALL)[1]
    engine = MiniRacer()
    engine.eval(f"var statuses = {statuses};{BROWSER}(async () => {{{script}}})()")
    engine.eval("statuses = [200]; clicked()")
    sent = json.loads(engine.eval("JSON.stringify(sent)"))
    posts = [one for one in sent if one[0] == "POST"]
    assert {(one[1].rpartition("/")[0], one[2]) for one in posts} == {
        ("/bandits/v1/experiments/shop", "Bearer dpb_...")
    }
    asked = [one[3] for one in posts if one[1].endswith("/decisions")]
    answered = [one[3] for one in posts if one[1].endswith("/rewards")]
    assert len(asked) == attempts
    assert len(set(asked)) == 1
    assert msgspec.json.decode(asked[0], type=DecisionRequest).decision_id == "an-id"
    assert ["shown", colour] in sent
    assert all(one[1] for one in sent if one[0] == "waited")
    rewards = [msgspec.json.decode(one, type=RewardRequest) for one in answered]
    assert rewards == ([RewardRequest(1.0, "an-id")] if colour == "green" else [])
