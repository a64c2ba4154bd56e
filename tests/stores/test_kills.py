"""Histories of kills (``kills.py``) on all three stores, and what they would notice."""

import kills
import pytest
from clinic import FORKING

from dpbandits.stores import FilePlace

pytest_plugins = ["tests.stores.postgresql_server"]
pytestmark = [FORKING, pytest.mark.compiled]
STORES = pytest.mark.parametrize("store", ["files", "sqlite", "postgresql"])


@pytest.fixture
def place(store, request):
    address = request.getfixturevalue("database") if store == "postgresql" else None
    kills.warm()
    return kills.places(address)[store]


@STORES
def test_a_few_kills_lose_nothing(place):
    assert kills.run(20, place) >= 20


@pytest.mark.long
@STORES
def test_many_kills_lose_nothing(place):
    assert kills.run(200, place, first_seed=100) >= 200


class Late(FilePlace):
    """It acknowledges a batch, and writes it with the next one."""

    last = None

    def commit(self, batch, life):
        if self.last is not None:
            super().commit(*self.last)
        self.last = None if batch.whole else (batch, life)
        if batch.whole:
            super().commit(batch, life)


class Forgetful(FilePlace):
    """It loses every fortieth row."""

    rows = 0

    def commit(self, batch, life):
        kept = []
        for row in batch.rows:
            self.rows += 1
            if self.rows % 40 or row.kind == "about":
                kept.append(row)
        super().commit(batch._replace(rows=kept), life)


@pytest.mark.long
@pytest.mark.parametrize("faulty", [Late, Forgetful])
def test_a_place_that_loses_something_is_noticed(faulty):
    kills.warm()
    with pytest.raises(AssertionError):
        kills.run(200, lambda folder: faulty(folder / "policy.dpb"))
