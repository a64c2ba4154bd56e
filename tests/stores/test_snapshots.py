"""Snapshots: bytes that are whole and ours, or refused before anything is claimed."""

import io
import json

import numpy as np
import pytest
from clinic import Clinic, ada, claims, rewritten, signed

import dpbandits as dpb
from dpbandits.stores import decode, encode


def test_what_was_encoded_is_decoded():
    arrays = {"a": np.array([[1.5, np.nan]]), "b": np.zeros(0, np.int64)}
    header, decoded = decode(encode({"budget": dpb.ZCDP(0.5), "n": np.int64(3)}, arrays), "here")
    assert (header["format"], header["version"], header["n"]) == ("dpbandits-state", 5, 3)
    assert header["budget"] == dpb.ZCDP(0.5).to_dict()
    assert list(decoded) == ["a", "b"]
    for name, array in arrays.items():
        assert decoded[name].dtype == array.dtype
        np.testing.assert_array_equal(decoded[name], array)


def test_only_plain_data_is_encoded():
    with pytest.raises(TypeError, match="cannot be saved"):
        encode({"strange": object()}, {})
    with pytest.raises(ValueError, match="allow_pickle"):
        encode({}, {"strange": np.array([object()])})


def test_every_truncation_is_refused_and_nothing_is_claimed(tmp_path):
    path = Clinic(ada()).play(40).policy.save(tmp_path / "a")
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(dpb.errors.StateFileError, match="checksum"):
            dpb.load(path)
    path.write_bytes(content + b"\n")
    with pytest.raises(dpb.errors.StateFileError):
        dpb.load(path)
    assert not claims(tmp_path)
    path.write_bytes(content)
    dpb.load(path)


def test_every_flipped_bit_is_refused(tmp_path):
    path = Clinic(ada()).play(40).policy.save(tmp_path / "a")
    content = path.read_bytes()
    rng = np.random.default_rng(5)
    for place in [0, len(content) - 1, len(content) - 65, *rng.integers(len(content), size=200)]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        with pytest.raises(dpb.errors.StateFileError):
            dpb.load(path)
    assert not claims(tmp_path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda header: header.update(version=2), "has format dpbandits-state 2; .* reads 5"),
        (lambda header: header.update(format="other"), "has format other"),
        (lambda header: header.pop("format"), "not a saved policy"),
        (lambda header: header.update({"class": "Policy"}), "does not hold a policy"),
        (lambda header: header["config"].update(n_arms=0), "does not hold a policy"),
        (lambda header: header["config"].update(n_arms=4), "should be float64"),
        (lambda header: header["config"].update(surprise=1), "does not hold a policy"),
        (
            lambda header: header["config"]["budget"].update(notion="TrustMe"),
            "does not hold a policy",
        ),
        (lambda header: header["arrays"].popitem(), "arrays that its header lists"),
        (lambda header: header["rounds"].update(surprise=1), "does not hold a policy"),
        (
            lambda header: header["streams"]["noise_rng"].update(bit_generator="MT19937"),
            "does not hold a policy",
        ),
        (lambda header: header.pop("life"), "does not hold a policy"),
        (lambda header: header.update(life=["name"]), "does not hold a policy"),
    ],
)
def test_a_file_with_a_fitting_checksum_and_a_wrong_header_is_refused(change, complaint, tmp_path):
    path = ada().save(tmp_path / "a")
    rewritten(path, change)
    with pytest.raises(dpb.errors.StateFileError, match=complaint):
        dpb.load(path)
    assert not claims(tmp_path)


@pytest.mark.parametrize("name", ["raw.total", "surprise"])
def test_arrays_of_another_policy_are_refused(name, tmp_path):
    path = ada().save(tmp_path / "a")
    header, arrays = decode(path.read_bytes(), path)
    arrays[name] = np.zeros(7)
    path.write_bytes(encode(header, arrays))
    with pytest.raises(dpb.errors.StateFileError, match="does not hold a policy"):
        dpb.load(path)
    assert not claims(tmp_path)


def test_foreign_files_are_refused_and_nothing_is_executed(tmp_path):
    path = tmp_path / "a"
    buffer = io.BytesIO()
    np.savez(buffer, header=np.array([{"format": "dpbandits-state"}], dtype=object))
    signed(path, buffer.getvalue())
    with pytest.raises(dpb.errors.StateFileError, match="not a saved policy"):
        dpb.load(path)
    signed(path, b"not even an archive")
    with pytest.raises(dpb.errors.StateFileError, match="not a saved policy"):
        dpb.load(path)
    with pytest.raises(FileNotFoundError):
        dpb.load(tmp_path / "nothing")


@pytest.mark.parametrize("rounds", [0, 50])
def test_no_generator_of_secure_noise_is_saved(rounds, tmp_path):
    path = Clinic(ada(noise="secure", seed=None)).play(rounds).policy.save(tmp_path / "a")
    header, _ = decode(path.read_bytes(), path)
    assert header["streams"] == {}
    assert b"PCG64" not in path.read_bytes()
    simulated, _ = decode(ada().save(tmp_path / "b").read_bytes(), "b")
    assert "PCG64" in json.dumps(simulated["streams"])
