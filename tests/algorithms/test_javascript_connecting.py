"""The connected device of pages: what it stores, sends, sends again, and never sends."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from scripts import Engine, chromium, in_node, opened

import dpbandits as dpb
from dpbandits.algorithms.hidden.choosing_devices import Device

# A server, a shuffler and a storage; ``fates`` are the statuses of coming messages.
WORLD = """
function world(config, { fates = [], more = {} } = {}) {
    const { chooser, protocol } = JSON.parse(config);
    const w = { kept: {}, posts: [], gets: [], fates, broken: null };
    w.round = (release) => { w.shown = JSON.stringify({ chooser: { ...chooser, release }, protocol }); };
    w.round(0);
    w.storage = {
        get: async (key) => { if (w.broken === "get") throw new Error("disk"); return w.kept[key]; },
        set: async (key, text) => {
            if (w.broken === "set") throw new Error("disk");
            if (w.broken !== "lost") w.kept[key] = text;
        },
    };
    w.stored = () => JSON.parse(Object.values(w.kept)[0]);
    w.fetch = async (url, { body, headers, method }) => {
        if (method !== "POST") {
            w.gets.push(url);
            return { ok: true, json: async () => ({ round: w.shown }) };
        }
        w.posts.push({ url, body, headers, stored: w.stored() });
        const fate = w.fates.shift() ?? 202;
        if (fate === "cut") throw new TypeError("fetch failed");
        const { report_id, label } = JSON.parse(body);
        const [status, told] = Array.isArray(fate) ? fate : [fate, { report_id, label }];
        const text = typeof told === "string" ? told : JSON.stringify(told);
        return new Response(text, { status });
    };
    const parties = { server: "https://server", shuffler: "https://shuffler", ticket: "Ann.secret" };
    w.connect = () => dpbandits.connect({
        config, ...parties, storage: w.storage, fetch: w.fetch, ...more });
    return w;
}
const contexts = [[0.5, 0.1], [0.2, 0.9], [-0.3, 0.4]];
const told = async (work) => { try { await work(); return ""; } catch (e) { return e.message; } };
"""


@pytest.fixture(scope="module")
def js() -> Iterator[Engine]:
    with in_node(Device.javascript() + WORLD) as engine:
        yield engine


def config(kind: type[Any] = dpb.HiddenLinearShuffled, **options: Any) -> str:
    """Of the device of an experiment."""
    if kind is dpb.HiddenLinearShuffled:
        options = {"budget": dpb.ApproxDP(8.0, 1e-3), "batch": 20, "messages": True} | options
    else:
        options = {"budget": dpb.ZCDP(0.5), "reports": True} | options
    device = kind(3, 2, horizon=1000, noise="secure", **options).device()
    form = serialization.PublicFormat.UncompressedPoint
    key = ec.derive_private_key(7, ec.SECP256R1()).public_key()
    point = key.public_bytes(serialization.Encoding.X962, form)
    public = {"name": "shop", "public_key": base64.b64encode(point).decode()}
    return json.dumps({**json.loads(device.to_json()), **public})


# Replies that are none to a report, or not the last one.
STRANGE = [
    404,
    [200, "<html>"],
    [200, {}],
    [200, "null"],
    [200, {"report_id": "another", "label": "another"}],
    [409, {"type": "paused"}],
    [409, {"type": "not-started"}],
]
PARTIES = [
    (dpb.HiddenLinearShuffled, "https://shuffler/v1/experiments/shop/messages"),
    (dpb.HiddenLinearLocal, "https://server/v1/experiments/shop/reports"),
]


@pytest.mark.parametrize(("kind", "address"), PARTIES)
def test_what_is_sent_was_stored_before(js, kind, address):
    lefts, posts, gets, stored, shown = js(
        """const w = world(given), device = await w.connect(), lefts = [device.left];
        await device.choose(contexts);
        await device.report(1);
        lefts.push(device.left, w.posts.length);
        lefts.push(await device.send());
        return [lefts, w.posts, w.gets, w.stored(), w.shown];""",
        config(kind),
    )
    assert lefts == [1, 0, 0, True]
    [post] = posts
    assert post["url"] == address
    assert post["headers"]["Authorization"] == "Bearer Ann.secret"
    assert post["stored"] == {"left": 0, "outbox": post["body"]}
    assert stored == {"left": 0, "outbox": None}
    assert gets == ["https://server/v1/experiments/shop/randomiser"]
    body = json.loads(post["body"])
    if kind is dpb.HiddenLinearLocal:
        assert body.keys() == {"report_id", "report"}
        assert len(body["report"]) == 5
    else:
        assert body.keys() == {"label", "masked", "sealed"}
        assert body["label"] == "0:" + hashlib.sha256(shown.encode()).hexdigest()


@pytest.mark.parametrize(("kind", "_"), PARTIES)
@pytest.mark.parametrize("fates", [[], ["cut"], [503, "cut", 401], [429], STRANGE], ids=len)
def test_a_page_that_dies_leaves_bytes_that_alone_are_sent(js, kind, fates, _):
    """Before they are sent, after they were taken, or while they are refused."""
    before, refused, posts, left, stored = js(
        """const { config, fates } = given, w = world(config, { fates });
        let device = await w.connect();
        await device.choose(contexts);
        await device.report(1);
        const before = w.stored(), refused = [];
        while (fates.length) refused.push(await told(() => device.send()));
        device = await w.connect();
        const left = [device.left];
        await device.choose(contexts);
        refused.push(await told(() => device.report(0)));
        await device.send();
        left.push(device.left);
        return [before, refused, w.posts, left, w.stored()];""",
        {"config": config(kind, max_rounds=2), "fates": fates},
    )
    assert before["left"] == 1
    assert [post["body"] for post in posts] == [before["outbox"]] * (len(fates) + 1)
    assert all(refused)
    assert refused[-1] == "an earlier report waits: call send() first"
    assert left == [1, 1]
    assert stored == {"left": 1, "outbox": None}


@pytest.mark.parametrize("broken", ["set", "lost", "get"])
def test_nothing_is_sent_that_the_storage_has_not_kept(js, broken):
    refused, posts, lefts, length = js(
        """const { config, broken } = given, w = world(config), device = await w.connect();
        await device.choose(contexts);
        w.broken = broken;
        const refused = [await told(() => device.report(1)), await told(() => device.send())];
        refused.push(await told(w.connect));
        const posts = w.posts.length, lefts = [device.left];
        w.broken = null;
        await device.send();
        lefts.push((await w.connect()).left);
        return [refused, posts, lefts, w.posts.length];""",
        {"config": config(), "broken": broken},
    )
    assert [bool(text) for text in refused] == [True, True, broken == "get"]
    assert posts == 0
    assert length == 1
    # One that failed to be stored counts; where the storage could not be read nothing was made.
    assert lefts == ([1, 0] if broken == "get" else [0, 0])


def test_a_report_of_an_earlier_round_is_lost_and_counts(js):
    arrived, labels, bodies, left, gets = js(
        """const w = world(given, { fates: [409] }), device = await w.connect();
        await device.choose(contexts);
        await device.report(1);
        w.round(1);
        const arrived = [await device.send()];
        const stored = w.stored();
        arrived.push(stored.outbox, stored.left);
        await device.choose(contexts);
        await device.report(1);
        arrived.push(await device.send());
        const bodies = w.posts.map((post) => post.body);
        const labels = bodies.map((body) => JSON.parse(body).label);
        return [arrived, labels, bodies, device.left, w.gets.length];""",
        config(max_rounds=2),
    )
    assert arrived == [False, None, 1, True]
    assert [label.split(":")[0] for label in labels] == ["0", "1"]
    assert bodies[0] != bodies[1]
    assert left == 0
    assert gets == 2


@pytest.mark.parametrize("status", [409, 410, 413, 422])
@pytest.mark.parametrize("told", [{"type": "spent"}, "<html>"], ids=["problem", "page"])
@pytest.mark.parametrize(("kind", "_"), PARTIES)
def test_a_report_that_is_refused_for_good_makes_room(js, kind, _, status, told):
    arrived, left, posts = js(
        """const { config, fate } = given, w = world(config, { fates: [fate] });
        const device = await w.connect();
        await device.choose(contexts);
        await device.report(1);
        const arrived = [await device.send()];
        await device.report();
        arrived.push(await device.send());
        return [arrived, device.left, w.posts.map((post) => post.body)];""",
        {"config": config(kind), "fate": [status, told]},
    )
    assert (arrived, left) == ([False, True], 0)
    assert len(set(posts)) == 2


def test_choices_are_labelled_by_the_round_that_they_used(js):
    """Even if noise of a later round was sent in between by another page."""
    labels = js(
        """const w = world(given), device = await w.connect();
        await device.choose(contexts);
        w.round(1);
        const other = await w.connect();
        await other.send();
        await device.report(1);
        await device.send();
        await device.send();
        return w.posts.map((post) => JSON.parse(post.body).label.split(":")[0]);""",
        config(),
    )
    assert labels == ["1", "0", "1"]


def test_a_device_with_nothing_to_say_sends_noise(js):
    sums, lefts = js(
        """const w = world(given), device = await w.connect(), lefts = [];
        for (let i = 0; i < 3; i++) {
            await device.send(); // of nobody
            lefts.push(device.left);
        }
        for (let i = 0; i < 3; i++) {
            await device.choose(contexts);
            if (i) await device.report(1); // and without a reward
            await device.send();
            lefts.push(device.left);
        }
        return [w.posts.map((post) => Math.max(...JSON.parse(post.body).report)), lefts];""",
        config(dpb.HiddenLinearLocal, budget=dpb.ZCDP(1e9), max_rounds=2),
    )
    assert lefts == [2, 2, 2, 1, 0, 0]
    assert [total > 1e-2 for total in sums] == [False, False, False, True, True, False]


def test_rounds_of_another_policy_or_with_other_noise_are_refused(js):
    refused, posts = js(
        """const w = world(given), device = await w.connect(), refused = [];
        const { chooser, protocol } = JSON.parse(given);
        const less = { ...protocol, noise: protocol.noise - 1 };
        const other = { ...chooser, arguments: { ...chooser.arguments, context_bound: 9 } };
        for (const round of [{ chooser, protocol: less }, { chooser }, { chooser: other, protocol }]) {
            w.shown = JSON.stringify(round);
            refused.push(await told(() => device.choose(contexts)), await told(() => device.send()));
        }
        return [refused, w.posts.length];""",
        config(),
    )
    assert refused[:4] == ["the round must have the protocol of the device"] * 4
    assert refused[4:] == ["chooser must come from the policy that made the device"] * 2
    assert posts == 0


def test_less_than_no_report_left_is_none(js):
    told = config(dpb.HiddenLinearLocal, budget=dpb.ZCDP(1e9))
    total, left = js(
        """const device = new dpbandits.Device(given);
        device.left = -1;
        device.choose(contexts);
        return [Math.max(...device.report(1)), device.left];""",
        told,
    )
    assert total < 1e-2
    assert left == -1


def test_servers_that_share_a_name_share_no_state(js):
    """The reports of one would be sent to the other, and count there."""
    places = js(
        """const w = world(given), other = JSON.parse(given);
        other.public_key = btoa(String.fromCharCode(4, ...Array(64).fill(1)));
        const parties = { server: "", shuffler: "", storage: w.storage, fetch: w.fetch };
        const made = [await w.connect()];
        made.push(await dpbandits.connect({ ...parties, config: JSON.stringify(other) }));
        for (const device of made) await device.choose(contexts);
        await made[0].report(1);
        await told(() => made[1].report(1));
        return [made.map((device) => device._place), Object.keys(w.kept)];""",
        config(),
    )
    names, kept = places
    assert len(set(names)) == 2
    assert kept == names[:1]


def test_bits_are_refused(js):
    refused = js("return told(world(given).connect);", config(protocol="bits"))
    assert "BitSum" in refused


def test_messages_go_to_a_shuffler_alone(js):
    more = "{ more: { shuffler: undefined } }"
    refused = js(f"return told(world(given, {more}).connect);", config())
    assert refused == "shuffler must be given: the address of the shuffler"


@pytest.mark.parametrize(
    "text", ["{}", '{"left": -1, "outbox": null}', '{"left": null}', '{"left": "many"}', "left"]
)
def test_a_storage_with_something_else_is_no_new_device(js, text):
    refused, posts = js(
        """const w = world(given.config), device = await w.connect();
        await device.choose(contexts);
        await device.report(1);
        w.kept[Object.keys(w.kept)[0]] = given.text;
        return [[await told(w.connect), await told(() => device.send())], w.posts.length];""",
        {"config": config(), "text": text},
    )
    assert all(refused)
    assert posts == 0


def test_units_of_local_trust_are_named(js):
    body = js(
        """const w = world(given, { more: { unit: "Ann" } }), device = await w.connect();
        await device.send();
        return JSON.parse(w.posts[0].body);""",
        config(dpb.HiddenLinearLocal),
    )
    assert body["unit"] == "Ann"
    assert len(bytes.fromhex(body["report_id"])) == 16


def test_calls_at_once_take_turns(js):
    done, posts, left = js(
        """const w = world(given), device = await w.connect();
        await device.choose(contexts);
        const calls = [device.report(1), device.send(), device.report(1), device.send()];
        const done = await Promise.all(calls);
        const stored = w.posts.map((post) => post.stored.outbox === post.body);
        return [done.slice(1, 2), stored, device.left];""",
        config(),
    )
    assert done == [True]
    assert posts == [True, True]
    assert left == 0


def test_two_tabs_of_a_browser_share_what_is_left_of_a_person():
    """With the storage and the locks of a browser: localStorage fails here."""
    made = config(dpb.HiddenLinearLocal, budget=dpb.ZCDP(1e9), max_rounds=60)
    play = """async (config) => {
        const { chooser } = JSON.parse(config), posts = [];
        const fetch = async (url, { body }) => {
            if (body === undefined) return Response.json({ round: JSON.stringify({ chooser }) });
            posts.push([url, JSON.parse(body)]);
            return Response.json({ report_id: posts.at(-1)[1].report_id }, { status: 202 });
        };
        const device = await dpbandits.connect({ config, server: "/bandits", fetch });
        for (let i = 0; i < 50; i++) {
            await device.choose([[0.5, 0.1], [0.2, 0.9], [-0.3, 0.4]]);
            await device.report(1).catch(() => {}); // one of the other tab may wait
            await device.send();
        }
        return posts;
    }"""
    with chromium() as browser:
        context = browser.new_context()
        pages = [opened(context, Device.javascript()) for _ in range(2)]
        for page in pages:
            page.evaluate(f"config => {{ window.done = ({play})(config); }}", made)
        played = [page.evaluate("window.done") for page in pages]
        again = opened(context, Device.javascript())
        connect = "async (config) => (await dpbandits.connect({ config, server: '' })).left"
        assert again.evaluate(connect, made) == 0
    sent = [post for posts in played for post in posts]
    assert {url for url, _ in sent} == {"/bandits/v1/experiments/shop/reports"}
    reports = {body["report_id"]: body["report"] for _, body in sent}
    assert len(sent) == len(reports) == 100
    assert sum(max(report) > 1e-2 for report in reports.values()) == 60


@pytest.mark.parametrize(("kind", "address"), PARTIES)
def test_a_tenant_is_named_to_its_server(js, kind, address):
    posts, gets, kept = js(
        """const w = world(given, { more: { tenant: "a&b" } }), device = await w.connect();
        await device.choose(contexts);
        await device.send();
        return [w.posts.map((post) => post.url), w.gets, Object.keys(w.kept)];""",
        config(kind),
    )
    assert gets == ["https://server/v1/experiments/shop/randomiser?tenant=a%26b"]
    assert posts == [address if "shuffler" in address else f"{address}?tenant=a%26b"]
    assert kept[0].endswith("of a&b")


# Where the server decides ------------------------------------------------------------------------

DECIDING = """
const parties = (replies, kept, posts) => ({
    server: "https://server", ticket: "dpb_1", unit: "Ann",
    storage: { get: async (key) => kept[key], set: async (key, text) => { kept[key] = text; } },
    fetch: async (url, { body }) => {
        posts.push([url, JSON.parse(body)]);
        const [status, told] = replies.shift();
        return new Response(JSON.stringify(told), { status });
    },
});
"""


def decided(**options: Any) -> str:
    """The config of an experiment of arms."""
    made = dpb.bandit(3, budget=dpb.PureDP(1e6), trust="local", reports=True, noise="secure")
    told = {"name": "shop", "public_key": None, "reports": 1, "sees": None}
    return json.dumps({**told, **made._round()[1], **options})


def test_the_server_is_asked_and_gets_the_reward_with_noise(js):
    arm, refused, arrived, posts, kept, left = js(
        f"""{DECIDING} const replies = [[200, {{ arm: 2 }}], [503, {{}}], [202, {{ learned: true }}]];
        const kept = {{}}, posts = [], more = parties(replies, kept, posts);
        let device = await dpbandits.connect({{ config: given, ...more }});
        const refused = [await told(() => device.send())];
        const arm = await device.choose();
        await device.report(1);
        refused.push(await told(() => device.send()));
        device = await dpbandits.connect({{ config: given, ...more }});
        const arrived = await device.send();
        return [arm, refused, arrived, posts, Object.values(kept), device.left];""",
        decided(),
    )
    (asked, decision), (first, body), (second, again) = posts
    assert asked == "https://server/v1/experiments/shop/decisions"
    assert first == second == "https://server/v1/experiments/shop/rewards"
    assert decision.keys() == {"decision_id", "unit"}
    assert body == again == {"decision_id": decision["decision_id"], "reward": body["reward"]}
    assert abs(body["reward"] - 1.0) < 1e-3
    assert (arm, arrived, left) == (2, True, 0)
    assert refused == [
        "call choose() first: the server decides",
        "the report has not arrived: status 503",
    ]
    assert json.loads(kept[0]) == {"left": 0, "outbox": None}


@pytest.mark.parametrize(
    ("reply", "ends"),
    [
        ([202, {"learned": False, "why": "late"}], True),
        ([404, {"type": "unknown-decision"}], False),
        ([410, {"type": "too-late"}], False),
        ([404, {"type": "unknown-experiment"}], "status 404"),
        ([202, {"page": "Log in"}], "status 202"),
    ],
)
def test_rewards_end_as_the_server_says(js, reply, ends):
    found = js(
        f"""{DECIDING} const posts = [], replies = [[200, {{ arm: 0 }}], given.reply];
        const more = parties(replies, {{}}, posts);
        const device = await dpbandits.connect({{ config: given.config, ...more }});
        await device.choose([[0.5, 0.5], [0.1, 0.9]]);
        await device.report();
        let found;
        const said = await told(async () => {{ found = await device.send(); }});
        return [said || found, posts[0][1].advice];""",
        {"config": decided(sees="advice"), "reply": reply},
    )
    assert found[1] == [[0.5, 0.5], [0.1, 0.9]]
    assert found[0] == ends or str(ends) in str(found[0])


@pytest.mark.parametrize("reply", [[409, {}], [200, {"arm": None}], [200, "page"]])
def test_without_an_arm_there_is_no_report(js, reply):
    said = js(
        f"""{DECIDING} const more = parties([[200, {{ arm: 0 }}], given.reply], {{}}, []);
        const device = await dpbandits.connect({{ config: given.config, ...more }});
        await device.choose();
        return [await told(() => device.choose()), await told(() => device.report(1))];""",
        {"config": decided(), "reply": reply},
    )
    assert said == [
        f"the server sent no arm: status {reply[0]}",
        "call choose() first: the server decides",
    ]
