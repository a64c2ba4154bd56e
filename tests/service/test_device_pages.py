"""People's devices as pages of another origin, in a browser, with a service at an address."""

import json

import httpx
import pytest
from people import LOCAL, REWARDS
from test_clicks import serving

from dpbandits.algorithms import Device
from dpbandits.service.access import Keys
from dpbandits.service.owner import Owner
from dpbandits.service.service import Service
from dpbandits.stores.addresses import store_at
from tests.algorithms.scripts import chromium

LINUCB = {
    "name": "trial",
    "kind": "LinUCBLDP",
    "n_arms": 2,
    "dimension": 2,
    "horizon": 1000,
    "reports": True,
    "budget": {"zcdp": 1.0},
    "public": True,
}
GRADIENTS = {
    "name": "trial",
    "kind": "HiddenGLMLocal",
    "n_arms": 2,
    "dimension": 2,
    "reports": True,
    "budget": {"pure": 1.0},
    "public": True,
}
SEND = """
const device = await dpbandits.connect({ ...given, storage: {
    get: async (key) => window.kept?.[key] ?? null,
    set: async (key, text) => { window.kept = { ...window.kept, [key]: text }; } } });
const arm = await device.choose([[0.6, 0], [0, 0.6]]);
await device.report(1);
const arrived = await device.send();
return [arm, device.left, arrived];
"""


@pytest.fixture
def address(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))

    async def compiled(_):
        """Nothing has to be compiled."""

    keys = Keys(tmp_path / "keys.json")
    service = Service(Owner(store_at(f"sqlite:///{tmp_path}/policies.db")), keys, compiled)
    with serving(service) as found:
        yield found, keys


def bearer(keys, **words):
    return {"authorization": f"Bearer {keys.add(**words)[1]}"}


DEFAULT = {**LOCAL, "name": "trial", "public": True}


@pytest.mark.parametrize(
    ("words", "allowed"), [(LINUCB, True), (DEFAULT, True), (GRADIENTS, True), (LINUCB, False)]
)
def test_a_page_of_a_declared_origin_chooses_and_reports(address, words, allowed):
    at, keys = address
    admin, device = bearer(keys), keys.add(roles=["report"])[1]
    here = at.replace("127.0.0.1", "localhost")  # of another origin, and of this machine, too
    origins = [here] if allowed else []
    with httpx.Client(base_url=at, headers=admin) as client:
        reply = client.post("/v1/experiments", json={**words, "origins": origins})
        assert reply.status_code == 202, reply.text
        one = "/v1/experiments/trial"
        while client.get(one).json()["status"] == "starting":
            pass
        config = client.get(f"{one}/config").text
        given = {"config": config, "server": at, "ticket": device}
        with chromium() as browser:
            page = browser.new_page()
            page.goto(f"{here}/healthz")
            page.add_script_tag(content=Device.javascript())
            run = f"async (given) => {{ {SEND} }}"
            if not allowed:
                with pytest.raises(Exception, match="Failed to fetch"):
                    page.evaluate(run, given)
            else:
                arm, left, arrived = page.evaluate(run, given)
                assert arm in (0, 1)
                assert (left, arrived) == (0, True)
                assert json.loads(page.evaluate("Object.values(kept)[0]"))["outbox"] is None
        assert client.get(one).json()["recorded"] == allowed


def test_a_page_of_the_service_asks_for_arms_and_reports_rewards(address):
    at, keys = address
    admin, device = bearer(keys), keys.add(roles=["decide", "reward"])[1]
    with httpx.Client(base_url=at, headers=admin) as client:
        reply = client.post("/v1/experiments", json={**REWARDS, "name": "trial"})
        assert reply.status_code == 202, reply.text
        one = "/v1/experiments/trial"
        while client.get(one).json()["status"] == "starting":
            pass
        given = {"config": client.get(f"{one}/config").text, "server": at, "ticket": device}
        with chromium() as browser:
            page = browser.new_page()
            page.goto(f"{at}/healthz")
            page.add_script_tag(content=Device.javascript())
            arm, left, arrived = page.evaluate(f"async (given) => {{ {SEND} }}", given)
        assert arm in (0, 1)
        assert (left, arrived) == (0, True)
        assert client.get(one).json()["decisions"] == 1
