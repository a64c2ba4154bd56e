import contextlib
import json

import pytest
from parties import NAME, Person, Server, linear, until, written

from dpbandits.client.exchange import Retries
from dpbandits.shuffler import experiment, sending
from dpbandits.shuffler.app import make_app
from tests.service.services import Http


@pytest.fixture(autouse=True)
def in_a_hurry(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(experiment, "PAUSE", 0.02)
    monkeypatch.setattr(experiment, "LOOK", 0.1)
    monkeypatch.setattr(sending, "SLOWEST", 0.5)
    monkeypatch.setattr(sending, "RETRIES", Retries(limit=0.5, attempt=0.5, first=0.01, most=0.02))


class Shuffler:
    """A shuffler in this process, its server, and people."""

    def __init__(self, folder, server, **words):
        self.folder, self.server = folder, server
        self.file, self.tickets, self.config = written(folder, server, **words)

    def __enter__(self):
        self.app = make_app(self.config, self.server.transport())
        self._stack = contextlib.ExitStack()
        self.http = self._stack.enter_context(Http(self.app))
        return self

    def __exit__(self, *_):
        self._stack.close()

    def person(self, user):
        return Person(self.server, self.tickets, user)

    def people(self, count, first=0):
        return [self.person(f"user-{first + i}").make() for i in range(count)]

    def post(self, person, body=None, headers=None, name=NAME):
        reply = self.http.post(
            f"/v1/experiments/{name}/messages",
            content=json.dumps(body or person.body),
            headers=headers or person.headers(),
        )
        reply.told = json.loads(reply.content)
        return reply

    def send(self, person):
        """Send until the shuffler says yes or no; status and kind."""

        def answered():
            reply = self.post(person)
            return None if reply.status_code == 503 else reply

        reply = until(answered)
        return reply.status_code, reply.told.get("type")

    def batch(self, people):
        """Let people send, and wait until the server has what leaves."""
        before = len(self.server.taken)
        for person in people:
            assert self.send(person)[0] == 202
        until(lambda: len(self.server.taken) > before)


@pytest.fixture
def start(tmp_path):
    """Makes shufflers, which end with the test."""
    with contextlib.ExitStack() as stack:

        def begin(server=None, **words):
            server = server or Server(linear())
            return stack.enter_context(Shuffler(tmp_path, server, **words))

        yield begin
