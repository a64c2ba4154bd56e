"""What the files of a store tell, and its log and backup: what docs/serving/stores.md says."""

import shutil
import struct
from base64 import urlsafe_b64decode

import pytest
from services import KINDS, NOISY

ANSWERS = (0.123456789, 0.987654321, 0.333333333)
PERSON, ID = "Ann-of-Green-Gables", "visit-4711-of-Ann"


def patterns_of(value):
    """The ways in which a number may be written."""
    yield struct.pack("<d", value)
    yield struct.pack(">d", value)
    yield struct.pack("<f", value)
    yield f"{value:.9f}"[1:].encode()


def content_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.fixture
def files(served, tmp_path):
    """Some decisions and rewards, and all bytes that the store has ever had, and its replies."""

    def play(kind):
        trial = served.declare(name="trial", **{**NOISY, **KINDS[kind]})
        told, seen, made = trial.get().told, {}, []
        vector = [0.0987654321, 0.0123456789]
        body = {"contexts": [vector, vector]} if told["takes"] else {}
        for i in range(9):
            asked = {"decision_id": f"{ID}{i}", "unit": PERSON, **body}
            made.append(trial.decide(**asked))
            trial.reward(ANSWERS[i % 3], decision_id=f"{ID}{i}")
            for name, content in content_of(tmp_path).items():
                seen[name, i] = content
            shutil.copytree(
                tmp_path, tmp_path / f"backup{i}", ignore=shutil.ignore_patterns("backup*", "state")
            )
        assert {name for name, _ in seen} >= {"policies.db", "policies.db-wal"}
        return b"".join(seen.values()), made, vector

    return play


@pytest.mark.parametrize("kind", ["arms", "best arm", "private contexts"])
def test_no_reward_and_no_name_is_in_clear(files, kind):
    found, _, _ = files(kind)
    for value in ANSWERS:
        for pattern in patterns_of(value):
            assert pattern not in found
    for name in (PERSON, ID):
        assert name.encode() not in found
    assert b"trial" in found  # the search finds what is there


def test_with_private_contexts_replies_and_features_are_sealed_too(files):
    found, made, vector = files("private contexts")
    for one in made:
        assert one["token"].encode() not in found
        assert urlsafe_b64decode(one["token"]) not in found
    for value in vector:
        for pattern in patterns_of(value):
            assert pattern not in found


def test_without_private_contexts_replies_are_in_clear(files):
    """So the test above would notice."""
    found, made, _ = files("arms")
    assert all(urlsafe_b64decode(one["token"]) in found for one in made)


def test_keys_of_seals_lie_elsewhere_for_the_owner_alone(files, tmp_path, state_folder):
    files("arms")
    keys = [path for path in (state_folder / "keys").iterdir() if path.is_file()]
    assert len(keys) == 1
    assert keys[0].stat().st_mode & 0o077 == 0
    slots = keys[0].read_bytes()
    found = b"".join(content_of(tmp_path).values())
    secrets = [slots[i + 8 : i + 40] for i in range(0, len(slots), 40)]
    assert any(map(any, secrets))
    assert not any(secret in found for secret in secrets if any(secret))
