"""What leaves the shuffler, as a law; and what stays on its disk."""

import json
import os
import subprocess
import sys
import time
from base64 import b64decode
from collections import Counter
from math import factorial
from pathlib import Path

import numpy as np
import pytest
from parties import NAME, until
from scipy import stats

from dpbandits.shuffle import Analyzer, GaussianReports, Messages, ModularSum, Randomizer
from dpbandits.shuffle.sealing import ServerKey, open_batch, seal_record
from dpbandits.shuffler.batch import Pinned, Record, Round, noise, output
from dpbandits.shuffler.store import BatchStore

KEY, LABEL = ServerKey.make(), "0:ab"


def leaves(protocol, records):
    pinned = Pinned(NAME, KEY.public, None, 2, 50, None)
    found = Round(LABEL, protocol)
    padding = noise(pinned, found) if len(records) < protocol.batch else []
    return json.loads(output(found, padding, records))


@pytest.mark.parametrize("people", [4, 1])
def test_the_order_is_uniform(people):
    """Of four people, or of one among noise; at alpha 1e-8.  An order that keeps the first in its
    place in one of twenty cases would fail.
    """
    protocol = GaussianReports(batch=4, dimension=1, bound=1.0, levels=4, noise=4)
    records = [Record(b"", bytes([i])) for i in range(people)]
    seen = Counter()
    for _ in range(6000):
        sealed = [b64decode(one) for one in leaves(protocol, records)["sealed"]]
        seen[tuple(sealed.index(one.sealed) for one in records)] += 1
    possible = factorial(4) // factorial(4 - people)
    counts = [*seen.values(), *[0] * (possible - len(seen))]
    assert stats.chisquare(counts).pvalue > 1e-8
    places = np.bincount([order[0] for order in seen.elements()], minlength=4)
    assert stats.chisquare(places).pvalue > 1e-8
    assert stats.chisquare(places + np.array([300, -100, -100, -100])).pvalue < 1e-8


@pytest.mark.parametrize("people", [3, 1, 0])
def test_the_noise_of_a_batch_is_that_of_simulations(people):
    """Split, sealed, shuffled, filled up, opened and added: at alpha 1e-8 the law of
    ``simulate_sums``.  Noise of one person less or more would fail.
    """
    protocol = ModularSum(batch=4, dimension=500, bound=1.0, levels=1, noise=40)
    analyzer, randomizer, sums = Analyzer(protocol), Randomizer(protocol), []
    for _ in range(20):
        records = []
        for record in randomizer.encode_many(np.zeros((people, 500))).values:
            masked, sealed = seal_record(protocol, record, KEY.public, LABEL, NAME)
            records.append(Record(masked.astype("<i8").tobytes(), sealed))
        body = leaves(protocol, records)
        sealed = [b64decode(one) for one in body["sealed"]]
        values = open_batch(protocol, KEY, LABEL, NAME, np.array(body["sum"]), sealed)
        sums.append(analyzer.aggregate(Messages(values, 0)))

    def counts(noise):
        return np.bincount(np.clip(np.ravel(noise).astype(int), -12, 12) + 12, minlength=25)

    def differ(batch):
        law = ModularSum(**{**vars(protocol), "batch": batch})
        simulated = law.simulate_sums(np.zeros((20, batch, 500)), np.random.default_rng(1))
        return stats.chi2_contingency([counts(sums), counts(simulated)]).pvalue

    assert differ(4) > 1e-8
    assert differ(3) < 1e-8
    assert differ(5) < 1e-8


def test_ciphertexts_of_devices_and_of_padding_have_one_length():
    """For all protocols, and also of extreme vectors."""
    for protocol in (
        ModularSum(batch=4, dimension=3, bound=1.0, levels=9, noise=70),
        GaussianReports(batch=4, dimension=3, bound=1.0, levels=9, noise=70),
    ):
        records = []
        for record in Randomizer(protocol).encode_many([[1.0, 0, 0], [0, -1.0, 0]]).values:
            masked, sealed = seal_record(protocol, record, KEY.public, LABEL, NAME)
            clear = b"" if masked is None else masked.astype("<i8").tobytes()
            records.append(Record(clear, sealed))
        assert len({len(one) for one in leaves(protocol, records)["sealed"]}) == 1


@pytest.mark.parametrize("now", [0.0, 1800.0, 3599.9, 1.8e9 + 0.5])
def test_batches_close_at_times_that_do_not_depend_on_people(now):
    closes = Pinned(NAME, KEY.public, None, 2, 50, 3600).closing_after(now)
    assert closes % 3600 == 0.0
    assert now < closes <= now + 3600
    assert Pinned(NAME, KEY.public, None, 2, 50, None).closing_after(now) is None


# The disk -------------------------------------------------------------------------------------


def on_disk(folder):
    """All bytes of the database and its log, read by another process, as SQLite's locks ask."""
    files = sorted(str(file) for file in folder.glob("shuffler.db*"))
    assert files
    return subprocess.run(["cat", *files], capture_output=True, check=True).stdout


def traces(person):
    """Pairs of what could be left of a person and whether the open batch has it."""
    name, code = person.ticket.split(".")
    masked = np.array(person.body["masked"])
    return {
        person.user.encode(): False,
        name.encode(): False,
        code.encode(): False,
        b64decode(code + "=", altchars=b"-_"): False,
        masked.astype("<i8").tobytes(): True,
        json.dumps(person.body["masked"]).encode(): False,
        b64decode(person.body["sealed"]): True,
        person.body["sealed"].encode(): False,
    }


def test_nothing_of_a_person_is_left_on_disk_after_the_batch(start):
    shuffler = start()
    people = shuffler.people(4)
    for person in people:
        person.user += " the first of all"
        person.ticket = shuffler.tickets.issue(NAME, person.user)
    for person in people[:3]:
        shuffler.send(person)
    content = on_disk(shuffler.folder)
    for trace, there in [pair for one in people[:3] for pair in traces(one).items()]:
        assert (trace in content) == there, trace
    shuffler.batch(people[3:])
    until(lambda: shuffler.post(people[0]).told.get("type") == "stale")
    time.sleep(0.3)  # until the output is deleted, and the next batch is open
    content = on_disk(shuffler.folder)
    for trace in [trace for one in people for trace in traces(one)]:
        assert trace not in content, trace


def test_an_output_that_waits_has_no_masked_parts_and_no_order(start):
    """Only sums, and ciphertexts in the order in which they will leave."""
    shuffler = start()
    shuffler.server.fault = lambda method, *_: (503, {}) if method == "POST" else None
    people = shuffler.people(4)
    for person in people:
        shuffler.send(person)
    until(lambda: shuffler.server.bodies)
    time.sleep(0.2)
    content = on_disk(shuffler.folder)
    for person in people:
        assert np.array(person.body["masked"]).astype("<i8").tobytes() not in content
        assert b64decode(person.body["sealed"]) not in content
        assert content.count(person.body["sealed"].encode()) == 1


ENDS_EARLY = """
import os, sys
from dpbandits.shuffler.batch import Record
from dpbandits.shuffler.store import BatchStore, Sent
BatchStore._deleting = BatchStore._transaction
store = BatchStore(sys.argv[1])
store.begin("study", "0:ab", 2, "", None)
record = Record(b"the masked part", b"the sealed part")
store.take("study", lambda opened: [Sent(b"hash", opened.label, record)], 1)
store.close_batch("study", "0:ab", lambda records: b"output")
os._exit(0)
"""


def test_what_a_killed_process_has_left_in_the_log_goes_when_the_next_begins(tmp_path):
    path, source = tmp_path / "shuffler.db", str(Path(__file__).parents[2] / "src")
    command = [sys.executable, "-c", ENDS_EARLY, str(path)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": source})
    assert b"the masked part" in on_disk(tmp_path)
    store = BatchStore(path)
    assert store.output("study") == b"output"
    for trace in (b"the masked part", b"the sealed part"):
        assert trace not in on_disk(tmp_path)
    store.sent("study", b"output")
    assert b"output" not in on_disk(tmp_path).replace(b"outputs", b"")
    store.close()


READS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM records").fetchall()
print("reading", flush=True)
sys.stdin.read()
"""


def test_what_others_read_is_forgotten_when_they_end(start, capfd):
    shuffler = start()
    people = shuffler.people(4)
    for person in people[:3]:
        shuffler.send(person)
    command = [sys.executable, "-c", READS, str(shuffler.folder / "shuffler.db")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as reader:
        assert reader.stdout.readline() == b"reading\n"
        shuffler.batch(people[3:])
        said, trace = "", b64decode(people[0].body["sealed"])

        def told():
            nonlocal said
            said += capfd.readouterr().err
            return "another process reads the store" in said

        until(told)
        assert trace in on_disk(shuffler.folder)
        assert shuffler.send(shuffler.person("late").make())[0] == 202
    until(lambda: trace not in on_disk(shuffler.folder))


def test_files_are_their_owners_alone(start):
    shuffler = start()
    shuffler.batch(shuffler.people(4))
    for file in shuffler.folder.glob("shuffler.db*"):
        assert file.stat().st_mode & 0o077 == 0
    assert (shuffler.folder / "tickets").stat().st_mode & 0o777 == 0o600


def test_the_log_has_no_people(start, capfd):
    shuffler = start()
    people = shuffler.people(5)
    shuffler.batch(people[:4])
    shuffler.send(people[4])
    told = ""

    def taken():
        nonlocal told
        told += capfd.readouterr().err
        return "batch taken" in told

    until(taken)
    events = {json.loads(line)["event"] for line in told.splitlines()}
    assert events >= {"batch open", "batch closed", "batch taken"}
    for person in people:
        for trace in (person.user, person.ticket, person.body["sealed"]):
            assert trace not in told
