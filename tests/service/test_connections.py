"""Connections over sockets: slow, silent and idle ones are closed, and others are served."""

import select
import socket
import threading
import time
from contextlib import ExitStack

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpbandits.service import connections
from dpbandits.service.server import server_of

GET = b"GET /quick HTTP/1.1\r\nhost: x\r\n"


async def quick(request):
    return Response(b"done")


async def slow(request):
    return Response(await request.body())


@pytest.fixture(params=["auto", "h11"])
def address(request, monkeypatch):
    monkeypatch.setattr(connections, "SLOWEST_HEADERS", 0.5)
    routes = [Route("/quick", quick), Route("/slow", slow, methods=["POST"])]
    config = server_of(Starlette(routes=routes), "127.0.0.1", 0)
    if request.param == "h11":  # where httptools is not installed
        config.http = type("Connection", (connections.Bounded, H11Protocol), {})
    server = uvicorn.Server(config)
    bound = config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.001)
    yield bound.getsockname()
    server.should_exit = True
    thread.join(30.0)


@pytest.fixture
def open_one(address):
    with ExitStack() as stack:
        yield lambda: stack.enter_context(socket.create_connection(address, timeout=10.0))


def is_closed(one, within):
    """Whether the service closes a connection in time."""
    until = time.monotonic() + within
    while (left := until - time.monotonic()) > 0:
        if select.select([one], [], [], left)[0]:
            try:
                if not one.recv(2**16):
                    return True
            except ConnectionError:
                return True
    return False


def drips(one, within, letter=b"a"):
    """As ``is_closed``, while a letter is sent now and then."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        if is_closed(one, 0.05):
            return True
        try:
            one.sendall(letter)
        except ConnectionError:
            return True
    return False


def served(one):
    one.sendall(GET + b"\r\n")
    told = b""
    while b"done" not in told and (more := one.recv(2**16)):  # head and body may come apart
        told += more
    return b"done" in told


def test_slow_headers_are_not_waited_for(open_one):
    one = open_one()
    one.sendall(GET + b"x: ")
    assert drips(one, 3.0)


def test_a_connection_that_sends_nothing_is_closed(open_one):
    assert is_closed(open_one(), 3.0)


def test_a_connection_may_rest_between_requests_and_then_not_be_slow(open_one):
    one = open_one()
    assert served(one)
    assert not is_closed(one, 1.0)
    assert served(one)
    one.sendall(GET)
    assert drips(one, 3.0, b"x: y\r\n")


def test_headers_that_never_end_are_not_kept(open_one, monkeypatch):
    monkeypatch.setattr(connections, "SLOWEST_HEADERS", 60.0)
    for had_another in (False, True):
        one = open_one()
        assert not had_another or served(one)
        one.sendall(GET)
        assert drips(one, 10.0, (b"x: " + b"y" * 1000 + b"\r\n") * 10)


def test_the_body_of_a_refused_request_is_not_waited_for(open_one):
    one = open_one()
    one.sendall(b"POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n")
    assert b"404" in one.recv(2**16)
    assert drips(one, 3.0)


def test_of_many_idle_connections_the_oldest_make_room(open_one, monkeypatch):
    monkeypatch.setattr(connections, "SLOWEST_HEADERS", 60.0)
    monkeypatch.setattr(connections, "MOST_IDLE", 3)
    busy = open_one()
    busy.sendall(b"POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nab")
    idle = [open_one() for _ in range(2)]
    assert served(idle[0])  # and so idle for a shorter time than the other one
    idle += [open_one() for _ in range(3)]
    assert is_closed(idle[1], 3.0)
    assert is_closed(idle[0], 3.0)
    assert all(served(one) for one in idle[2:])
    busy.sendall(b"cd")
    assert b"abcd" in busy.recv(2**16)


def test_many_connections_may_be_open():
    resource = pytest.importorskip("resource")
    from dpbandits.service.server import _FILES, allow_files

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _FILES:
        pytest.skip("the system does not allow it")
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        allow_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == _FILES
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
