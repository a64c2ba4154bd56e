"""An operator without a browser: pages, read as a browser would, and forms that are sent."""

import base64
import time
from html.parser import HTMLParser

from dpbandits.service.access import Keys
from dpbandits.service.owner import Owner
from dpbandits.service.service import Service
from dpbandits.stores.addresses import store_at

SIMULATED = {"noise": "simulation", "allow_simulation": True, "answers_within": 5}
SHOP = {"name": "shop", "arms": ["red", "green", "blue"], "budget": {"zcdp": 0.5}, **SIMULATED}
PRIVATE = {
    "name": "hidden",
    "arms": ["red", "green"],
    "features": 2,
    "protects": "contexts and rewards",
    "horizon": 200,
    "budget": {"approx": [1.0, 1e-6]},
    **SIMULATED,
}


def service_in(folder, *, keys=True):
    """A service that compiles nothing beforehand."""

    async def warm(declaration):
        pass

    owner = Owner(store_at(f"sqlite:///{folder}/policies.db"))
    return Service(owner, Keys(folder / "keys.json") if keys else None, warm, ready=True)


def basic(secret):
    return {"authorization": f"Basic {base64.b64encode(f'me:{secret}'.encode()).decode()}"}


class Page(HTMLParser):
    """What a page has.

    Attributes:
        tags: names and attributes of all elements, in order.
        text: all words.
        forms: by action, the fields with their first values.
    """

    def __init__(self, html):
        super().__init__()
        self.tags, self.words, self.forms, self._form = [], [], {}, None
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag == "form":
            self._form = self.forms.setdefault(attributes["action"].rpartition("/")[2], {})
        elif tag in ("input", "select") and attributes.get("type") != "checkbox":
            self._form[attributes["name"]] = attributes.get("value", "")
        elif tag == "option":
            *_, last = self._form
            self._form[last] = self._form[last] or attributes["value"]

    def handle_endtag(self, tag):
        if tag == "form":
            self._form = None

    def handle_data(self, data):
        self.words.append(data)

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]


def play(client, secret, name="shop", decisions=40, contexts=None):
    """Make decisions with rewards."""
    bearer = {"authorization": f"Bearer {secret}"}
    url = f"/v1/experiments/{name}"
    shown = {} if contexts is None else {"contexts": contexts}
    for i in range(decisions):
        asked = {"decision_id": f"{name}-{i}", **shown}
        made = client.post(f"{url}/decisions", json=asked, headers=bearer).json()
        answer = {"decision_id": made["decision_id"], "reward": float(i % 2)}
        assert client.post(f"{url}/rewards", json=answer, headers=bearer).status_code == 202


def declare(client, secret, given):
    """Declare an experiment, and wait until it is there."""
    bearer = {"authorization": f"Bearer {secret}"}
    assert client.post("/v1/experiments", json=given, headers=bearer).status_code in (200, 202)
    for _ in range(1000):
        told = client.get(f"/v1/experiments/{given['name']}", headers=bearer).json()
        if told["status"] != "starting":
            break
        time.sleep(0.01)
    assert told["status"] == "running", told
