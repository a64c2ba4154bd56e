"""Snapshots: bytes that are whole and ours, or refused before anything is claimed."""

import json

import numpy as np
import pytest
from clinic import Clinic, ada, contents, journal, known, rewritten, whole

import dpbandits as dpb
from dpbandits.errors import StateFileError
from dpbandits.session import saved_head
from dpbandits.session.packing import joined, parted
from dpbandits.stores import Row
from dpbandits.stores.arguments import arguments, as_json


def saved(tmp_path, rounds=40, **options):
    """A file without the policy that has written it."""
    return Clinic(ada(**options)).play(rounds).policy.save(tmp_path / "a")


def test_arguments_come_back_as_they_were():
    given = {"budget": dpb.ZCDP(0.5), "n": np.int64(3), "range": (0, 1.5), "names": ("a", ("b",))}
    told = json.loads(json.dumps(given, default=as_json))
    assert told["budget"] == dpb.ZCDP(0.5).to_dict()
    assert arguments(told) == given
    with pytest.raises(TypeError, match="cannot be saved"):
        as_json(object())


def test_pieces_come_back_as_they_were():
    for parts in ((), (b"",), (b"a", b"", b"\0" * 9), (bytes(range(256)),)):
        assert parted(joined(*parts)) == list(parts)
    content = joined(b"one", b"two")
    for length in set(range(len(content))) - {11}:
        if length:
            with pytest.raises(ValueError, match="the bytes end in the middle of a"):
                parted(content[:length])


def test_every_truncation_is_refused_and_nothing_is_claimed(tmp_path):
    path = saved(tmp_path)
    content, before = path.read_bytes(), known(tmp_path)
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(StateFileError, match=r"checksum|its first bytes are not"):
            dpb.load(path)
    path.write_bytes(content + b"\n")
    with pytest.raises(StateFileError, match="checksum"):
        dpb.load(path)
    assert known(tmp_path) == before
    path.write_bytes(content)
    dpb.load(path)


def test_every_flipped_bit_is_refused(tmp_path):
    path = saved(tmp_path)
    content, before = path.read_bytes(), known(tmp_path)
    rng = np.random.default_rng(5)
    for place in [0, len(content) - 1, 18, 30, *rng.integers(len(content), size=200)]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        for action in (dpb.load, dpb.inspect):
            with pytest.raises(StateFileError):
                action(path)
    assert known(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            lambda about: about.update(version=7),
            "has format 7; this version of dpbandits reads formats 5 and 6",
        ),
        (lambda about: about.pop("version"), "does not hold a policy"),
        (lambda about: about.update({"class": "Policy"}), "does not hold a policy"),
        (lambda about: about["config"].update(n_arms=0), "does not hold a policy"),
        (lambda about: about["config"].update(n_arms=4), "should be float64"),
        (lambda about: about["config"].update(surprise=1), "does not hold a policy"),
        (lambda about: about["config"]["budget"].update(notion="TrustMe"), "does not hold a"),
        (lambda about: about["layout"]["private"].pop(0), "a block has"),
        (lambda about: about["layout"]["public"][0].__setitem__(0, "public.x"), "unknown arrays"),
        (lambda about: about["layout"]["public"][0].__setitem__(1, "|O"), "no array of numbers"),
        (lambda about: about["layout"]["numbers"].append("surprise"), "does not hold a policy"),
        (lambda about: about.pop("layout"), "does not hold a policy"),
        (lambda about: about["layout"].update(surprise=1), "does not hold a policy"),
        (lambda about: about.pop("policy"), "does not hold a policy"),
        (lambda about: about.update(policy="name"), "its entry .life. must be"),
    ],
)
def test_a_file_with_a_fitting_checksum_and_wrong_words_is_refused(change, complaint, tmp_path):
    path = saved(tmp_path, 0)
    before = known(tmp_path)
    rewritten(path, change)
    with pytest.raises(StateFileError, match=complaint):
        dpb.load(path)
    assert known(tmp_path) == before


ODD_ROWS = [
    [Row("surprise", b"", b"")],
    [Row("line", b"short", b"\0" * 56)],
    [Row("line", b"\0" * 8, b"short")],
    [Row("pull", b"\0" * 8, b"")],
    [Row("user", b"\0" * 16, b"odd")],
    [Row("user", b"\0" * 16, b"\0" * 16)],  # half a pair
    [Row("booked", b"\0" * 8, b"\0" * 7)],
    [Row("flight", b"\0" * 16, b"\0" * 7)],
    [Row("release", b"\0" * 8, b"\xff")],
    [Row("answer", b"\0" * 8, b"")],
]


@pytest.mark.parametrize("rows", ODD_ROWS, ids=lambda rows: f"{rows[0].kind} {rows[0].content}")
def test_odd_rows_are_refused(rows, tmp_path):
    path = saved(tmp_path, 0)
    before, held = known(tmp_path), contents(path)
    whole(path, held, [next(held.rows), *rows])
    with pytest.raises(StateFileError, match="does not hold a policy"):
        dpb.load(path)
    assert known(tmp_path) == before


def test_odd_heads_are_refused(tmp_path):
    path = saved(tmp_path, 0)
    held = contents(path)
    rows, (public, private) = list(held.rows), parted(held.head)
    for head in (
        b"",
        public,
        joined(public),
        joined(public, private, b""),
        joined(private, public),
        joined(b"", b""),
        joined(public[:-8], private),
        joined(public, private[:-8]),
    ):
        whole(path, held, rows, head)
        with pytest.raises(StateFileError, match="does not hold a policy"):
            dpb.load(path)
    whole(path, held, rows)
    dpb.load(path)


def test_a_file_without_words_is_refused(tmp_path):
    path = saved(tmp_path)
    held = contents(path)
    whole(path, held, list(held.rows)[1:])
    for action in (dpb.load, dpb.inspect):
        with pytest.raises(StateFileError, match="does not name the policy"):
            action(path)


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "a"
    for content in (b"", b"PK\x03\x04 something", b"not even an archive", b"dpbandits place 7\n"):
        path.write_bytes(content)
        for action in (dpb.load, dpb.inspect):
            with pytest.raises(StateFileError, match="no saved policy"):
                action(path)
    for action in (dpb.load, dpb.inspect):
        with pytest.raises(FileNotFoundError):
            action(tmp_path / "nothing")
    assert not journal(tmp_path / "nothing").exists()


@pytest.mark.parametrize("rounds", [0, 50])
def test_no_generator_of_secure_noise_is_saved(rounds, tmp_path):
    def streams(path):
        told, _, _, states, _ = parted(parted(contents(path).head)[1])
        return json.loads(told)["streams"], len(states)

    assert streams(saved(tmp_path, rounds, noise="secure", seed=None)) == ([], 0)
    assert streams(ada().save(tmp_path / "b")) == (["noise_rng"], 37)


def test_a_file_of_a_version_with_fewer_numbers_goes_on(tmp_path, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr(saved_head, "NUMBERS", saved_head.NUMBERS[:-1])
        policy = ada()
        path = policy.save(tmp_path / "a")
        policy.update(1.0, policy.pull())
        policy.close()
    for number in range(1, 6):
        policy = dpb.load(path)
        decision = policy.pull()  # a part, unless the file is of another layout
        assert decision.number == number
        policy.update(1.0, decision)
        policy.close()
        assert dpb.inspect(path).rounds == number + 1
