"""The parties around a shuffler: a server with a real policy, and devices."""

import asyncio
import json
import time
from base64 import b64decode, b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import httpx
import numpy as np

from dpbandits import ApproxDP, PureDP
from dpbandits.algorithms import HiddenLinearShuffled, MergedIMEDSDP
from dpbandits.shuffle import Messages
from dpbandits.shuffle.sealing import ServerKey, label_of, open_batch, seal_record
from dpbandits.shuffler.config import Config
from dpbandits.shuffler.tickets import Tickets

NAME, KEY = "study", "dpb_secret"
HANGS = object()  # instead of the content of a reply


def linear(batch=4, **options):
    given = {"horizon": 3000, "messages": True, "noise": "secure", **options}
    return HiddenLinearShuffled(2, 2, budget=ApproxDP(1.0, 1e-4), batch=batch, **given)


def arms(first=4, **options):
    return MergedIMEDSDP(
        2, budget=PureDP(1.0), first=first, messages=True, noise="secure", **options
    )


class Server:
    """A service with one experiment, which follows the wire format.

    Attributes:
        bodies: of all batches that were sent, in order, also those that were refused.
        fault: called with method, path and body before a request is answered; what it returns is
            the answer, unless that is None.
    """

    def __init__(self, policy, secret=None):
        self.policy = policy
        self.key = ServerKey.make() if secret is None else ServerKey(secret)
        self.bodies, self.taken, self.outputs, self.keys = [], {}, [], []
        self.extra, self.fault, self._lock = {}, None, Lock()

    def config(self):
        chooser = json.loads(self.policy.chooser().to_json())
        public = b64encode(self.key.public).decode()
        return {"name": NAME, "public_key": public, "chooser": chooser, "most": 50}

    def round(self):
        """The label of the present batch, and the text that describes it."""
        told = self.described()
        return label_of(self.version(), told), told

    def version(self):
        session = self.policy.session
        linear = isinstance(self.policy, HiddenLinearShuffled)
        return self.policy.ledger.releases if linear else session.rounds.recorded

    def described(self):
        protocol = self.policy.protocol
        told = {"protocol": protocol.to_dict(), "batch": protocol.batch, **self.extra}
        if isinstance(self.policy, HiddenLinearShuffled):
            told |= {"chooser": json.loads(self.policy.chooser().to_json())}
        else:
            told |= {"arm": self.policy.device().arm}
        return json.dumps(told)

    def answer(self, method, path, body, authorization):
        """Status and content of the reply to a request."""
        with self._lock:
            self.keys.append(authorization)
            if method == "POST":
                self.bodies.append(body)
            replied = self.fault(method, path, body) if self.fault else None
            if replied is None:
                replied = self._answer(method, path, body)
            return replied

    def _answer(self, method, path, body):
        label, text = self.round()
        if (method, path) == ("GET", f"/v1/experiments/{NAME}/randomiser"):
            return 200, {"label": label, "round": text}
        assert (method, path) == ("POST", f"/v1/experiments/{NAME}/batches")
        sent = json.loads(body)
        if sent["batch_id"] in self.taken:
            assert self.taken[sent["batch_id"]] == body, "other bytes under one id"
            return 200, {"batch_id": sent["batch_id"]}
        if sent["label"] != label:
            return 409, {"type": "stale", "detail": "Another batch was taken."}
        self.policy.receive(Messages(self.opened(sent), self.version()))
        self.taken[sent["batch_id"]] = body
        return 202, {"batch_id": sent["batch_id"]}

    def opened(self, sent):
        """The output of the protocol's shuffler."""
        sealed = [b64decode(one, validate=True) for one in sent["sealed"]]
        total = None if sent["sum"] is None else np.array(sent["sum"])
        protocol = self.policy.protocol
        assert len(sealed) == protocol.batch
        values = open_batch(protocol, self.key, sent["label"], NAME, total, sealed)
        self.outputs.append((sent["label"], values))
        return values

    def transport(self):
        """For clients in this process."""

        async def reply(request):
            given = request.method, request.url.path, request.content
            status, content = self.answer(*given, request.headers.get("authorization"))
            if content is HANGS:
                await asyncio.sleep(1000)
            if isinstance(content, httpx.AsyncByteStream):
                return httpx.Response(status, stream=content)
            if not isinstance(content, bytes):
                content = json.dumps(content).encode()
            headers = {"location": "/elsewhere"} if status == 307 else {}
            return httpx.Response(status, headers=headers, stream=httpx.ByteStream(content))

        return httpx.MockTransport(reply)


def listening(server):
    """A server at an address, for other processes, and the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            size = int(self.headers.get("content-length", 0))
            given = self.command, self.path, self.rfile.read(size)
            status, content = server.answer(*given, self.headers.get("authorization"))
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.handle_error = lambda *_: None  # a process was killed
    Thread(target=http.serve_forever, daemon=True).start()
    return http, f"http://127.0.0.1:{http.server_port}"


class Person:
    """A device with its ticket, and the body that it has made for the present batch."""

    def __init__(self, server, tickets, user):
        self.server, self.user = server, user
        self.ticket = tickets.issue(NAME, user)
        self.label = self.body = None

    def make(self, reward=1.0):
        """Choose and report, as the server's present round says."""
        policy = self.server.policy
        device = policy.device()
        if isinstance(policy, HiddenLinearShuffled):
            device.choose([[1.0, 0.0], [0.0, 1.0]])
        self.record = device.report(reward).values[0]
        self.label, _ = self.server.round()
        self.body = body_of(self.server, self.label, self.record)
        return self

    def headers(self):
        return {"authorization": f"Bearer {self.ticket}"}


def body_of(server, label, record, protocol=None):
    """What a device sends of a record."""
    protocol = protocol or server.policy.protocol
    masked, sealed = seal_record(protocol, record, server.key.public, label, NAME)
    return {
        "label": label,
        "masked": None if masked is None else masked.tolist(),
        "sealed": b64encode(sealed).decode(),
    }


def written(folder, server, address="http://server.example", closing='closes = "full"', least=4):
    """The shuffler's file and all that it names, in a folder."""
    (folder / "study.json").write_text(json.dumps(server.config()))
    (folder / "key").write_text(KEY + "\n")
    file = folder / "shuffler.toml"
    file.write_text(
        f"""server = "{address}"
key = {{ file = "key" }}
tickets = "tickets"
store = "shuffler.db"

[[experiments]]
name = "{NAME}"
config = "study.json"
least = {least}
{closing}
"""
    )
    return file, Tickets.at(folder / "tickets"), Config.read(file)


def until(condition, seconds=20.0):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it has not come"
        time.sleep(0.01)
    return found
