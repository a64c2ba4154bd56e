"""Sealed rows open under the keys of their file, whoever else writes it."""

import random
from contextlib import suppress
from functools import partial

import pytest

from dpbandits.stores.sealing import Sealer

pytestmark = pytest.mark.interpreted
POLICY = "0" * 32


class Holder:
    """A holder of the policy, with the rows that it has sealed."""

    def __init__(self):
        self.sealer, self.rows, self.made = Sealer(POLICY), {}, 0

    def seal(self, kind="sum"):
        key = self.made.to_bytes(8, "big")
        self.made += 1
        self.rows[kind, key] = self.sealer.seal(kind, key, b"secret", lasting=kind == "reply")

    def forget(self):
        if self.rows:
            self.sealer.forget(*self.rows.popitem()[0])

    def check(self):
        """All rows open, and no key is left without one but the newest."""
        self.sealer.destroy()
        read = Sealer(POLICY)
        for (kind, key), sealed in self.rows.items():
            assert read.open(kind, key, sealed) == b"secret"
        assert len(self.sealer._keys) <= len(read._rows) + 2
        assert self.sealer._keys.items() <= read._keys.items()


def test_holders_of_one_policy_leave_the_keys_of_each_other_alone():
    rng, (former, heir) = random.Random(1), (Holder() for _ in range(2))
    for _ in range(400):
        one = rng.choice((former, heir))
        rng.choice((one.seal, partial(one.seal, "reply"), one.forget, one.sealer.rotate))()
        former.check()
        heir.check()
    for one in (former, heir):
        while one.rows:
            one.forget()
        one.sealer.begin()
        one.sealer.destroy()
    assert not Sealer(POLICY)._keys
    assert former.sealer.path.stat().st_size < 40 * 200  # slots are used again


def test_a_batch_that_fails_leaves_rows_the_keys_they_had():
    one = Holder()
    for _ in range(3):
        one.seal()
        one.sealer.rotate()
    rows = dict(one.rows)
    with suppress(RuntimeError), one.sealer.undone():
        one.forget()
        one.sealer.rotate()
        one.sealer.begin()
        one.sealer.seal("sum", bytes(8), b"other")
        raise RuntimeError
    one.rows = rows
    one.check()
    assert len(one.sealer._keys) == 4  # one for each row, and the newest
