"""Sealed records: HPKE by its vectors, what shuffler and server see, and what does not open."""

import hashlib
import hmac
import itertools
import json
from collections import Counter

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from scipy import stats

from dpbandits import ApproxDP, ArgumentError, PureDP
from dpbandits.errors import SubmissionError
from dpbandits.shuffle import (
    Analyzer,
    BitSum,
    GaussianReports,
    LaplaceShares,
    Messages,
    ModularSum,
    Randomizer,
)
from dpbandits.shuffle.sealing import (
    ServerKey,
    label_of,
    open_batch,
    packed,
    refuse_unsealable,
    seal,
    seal_record,
    sealed_size,
    split,
    unpacked,
)

KEY = ServerKey.make()
AT = "7:0123456789abcdef0123456789abcdef", "shop"
SMALL = ModularSum(batch=3, dimension=2, bound=1.0, levels=8, noise=16)
REPORTS = GaussianReports(batch=3, dimension=2, bound=1.0, levels=8, noise=16)
LAPLACE = LaplaceShares.calibrated(PureDP(1.0), batch=5, dimension=1, bound=0.5)


# HPKE -----------------------------------------------------------------------------------------


def extract(salt, suite, label, content):
    return hmac.digest(salt, b"HPKE-v1" + suite + label + content, "sha256")


def expand(secret, suite, label, about, length):
    about = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + about
    blocks, block = b"", b""
    for i in range(1, -(-length // 32) + 1):
        block = hmac.digest(secret, block + about + bytes([i]), "sha256")
        blocks += block
    return blocks[:length]


def key_and_nonce(shared, sender, receiver, info):
    """RFC 9180, sections 4.1 and 5.1, for DHKEM(P-256), HKDF-SHA256 and AES-128-GCM."""
    kem, suite = b"KEM\0\x10", b"HPKE\0\x10\0\x01\0\x01"
    secret = extract(b"", kem, b"eae_prk", shared)
    secret = expand(secret, kem, b"shared_secret", sender + receiver, 32)
    context = b"\0" + extract(b"", suite, b"psk_id_hash", b"")
    context += extract(b"", suite, b"info_hash", info)
    secret = extract(secret, suite, b"secret", b"")
    sizes = (b"key", 16), (b"base_nonce", 12)
    return [expand(secret, suite, label, context, size) for label, size in sizes]


def sealed_by_the_rfc(ephemeral, public, info, content, aad):
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public)
    sender = ServerKey(ephemeral).public
    shared = ServerKey(ephemeral)._key.exchange(ec.ECDH(), point)
    key, nonce = key_and_nonce(shared, sender, public, info)
    return sender + AESGCM(key).encrypt(nonce, content, aad)


VECTOR = {  # RFC 9180, A.3.1
    "sender": "4995788ef4b9d6132b249ce59a77281493eb39af373d236a1fe415cb0c2d7beb",
    "receiver": "f3ce7fdae57e1a310d87f1ebbde6f328be0a99cdbcadf4d6589cf29de4b8ffd2",
    "public": "04fe8c19ce0905191ebc298a9245792531f26f0cece2460639e8bc39cb7f706a826a779b4cf969b8a0"
    "e539c7f62fb3d30ad6aa8f80e30f1d128aafd68a2ce72ea0",
    "info": "4f6465206f6e2061204772656369616e2055726e",
    "content": "4265617574792069732074727574682c20747275746820626561757479",
    "aad": "436f756e742d30",
    "sealed": "04a92719c6195d5085104f469a8b9814d5838ff72b60501e2c4466e5e67b325ac98536d7b61a1af4b7"
    "8e5b7f951c0900be863c403ce65c9bfcb9382657222d18c45ad590bb8baa577f8619db35a36311226a896e7342a6d8"
    "36d8b7bcd2f20b6c7f9076ac232e3ab2523f39513434",
}


def test_ciphertexts_are_those_of_the_rfc():
    """Its vectors have additional data, and records have none: so the vector tries a second
    implementation, and that one tries the key.
    """
    vector = {name: bytes.fromhex(text) for name, text in VECTOR.items()}
    key = ServerKey(vector["receiver"])
    assert key.public == vector["public"]
    given = vector["sender"], key.public
    made = sealed_by_the_rfc(*given, vector["info"], vector["content"], vector["aad"])
    assert made == vector["sealed"]
    info = b'dpbandits 1 {"experiment":"shop","label":"7:0123456789abcdef0123456789abcdef"}'
    assert key.open(*AT, sealed_by_the_rfc(*given, info, b"share", b"")) == b"share"


def test_a_key_is_the_same_after_it_was_kept():
    again = ServerKey(KEY.to_bytes())
    assert again.public == KEY.public
    assert again.open(*AT, seal(KEY.public, *AT, b"share")) == b"share"
    assert KEY.to_bytes().hex() not in repr(KEY)


@pytest.mark.parametrize(
    "elsewhere", [("8" + AT[0][1:], AT[1]), (AT[0][:-1] + "e", AT[1]), (AT[0], "shops")]
)
def test_a_ciphertext_opens_for_its_batch_only(elsewhere):
    sealed = seal(KEY.public, *AT, b"share")
    for key, at in [(KEY, elsewhere), (ServerKey.make(), AT)]:
        with pytest.raises(SubmissionError, match="another key, batch or experiment"):
            key.open(*at, sealed)


@pytest.mark.parametrize("cut", [slice(0), slice(1, None), slice(64), slice(65), slice(-1)])
def test_what_is_no_ciphertext_does_not_open(cut):
    sealed = seal(KEY.public, *AT, b"share")
    for bad in (sealed[cut], b"\4" + bytes(90), bytes([*sealed[:-1], sealed[-1] ^ 1])):
        with pytest.raises(SubmissionError):
            KEY.open(*AT, bad)


@pytest.mark.parametrize(
    "bad", [b"", bytes(65), b"\4" + bytes(64), KEY.public[:-1], b"\2" * 33], ids=range(5)
)
def test_bad_keys(bad):
    with pytest.raises(ArgumentError, match="public must be"):
        seal(bad, *AT, b"share")
    with pytest.raises(ArgumentError, match="secret must be"):
        ServerKey(bad)


def test_labels_have_a_digest_of_the_text_as_it_was_sent():
    text = json.dumps({"chooser": {"release": 7}, "batch": 3})
    assert label_of(7, text) == f"7:{hashlib.sha256(text.encode()).hexdigest()}"
    assert label_of(7, text) != label_of(7, text + " ")


# Views, for all that shares may be ------------------------------------------------------------


class Given:
    """A source that gives one vector."""

    def __init__(self, share):
        self.share = np.array(share)

    def below(self, ends):
        return self.share


def all_vectors(modulus, entries):
    return itertools.product(range(modulus), repeat=entries)


def parts_of(message, modulus):
    """The pairs of masked part and share, one for each share."""
    for share in all_vectors(modulus, len(message)):
        masked, kept = split(np.array(message), modulus, Given(share))
        yield tuple(masked.tolist()), tuple(kept.tolist())


@pytest.mark.parametrize("modulus", [2, 3, 7])
def test_the_masked_part_has_nothing_of_the_message(modulus):
    for message in all_vectors(modulus, 2):
        masked = Counter(masked for masked, _ in parts_of(message, modulus))
        assert masked == Counter(dict.fromkeys(all_vectors(modulus, 2), 1))


def view_of_the_server(people, modulus):
    """How many choices of all shares lead to each view: the shares, and the sum of the rest."""
    ways = Counter()
    for parts in itertools.product(*(parts_of(message, modulus) for message in people)):
        total = np.sum([masked for masked, _ in parts], axis=0) % modulus
        ways[tuple(share for _, share in parts), tuple(total.tolist())] += 1
    return ways


def test_the_view_of_the_server_depends_on_the_sum_alone():
    """Exactly: all data sets of three people modulo 3, with vectors of one entry; and some of two
    people with vectors of two.
    """
    seen = {}
    for people in itertools.product(range(3), repeat=3):
        view = view_of_the_server([(m,) for m in people], 3)
        assert seen.setdefault(sum(people) % 3, view) == view
    assert len({tuple(sorted(view)) for view in seen.values()}) == 3
    one = view_of_the_server([(0, 1), (2, 2)], 3)
    assert one == view_of_the_server([(2, 0), (0, 0)], 3) == view_of_the_server([(1, 2), (1, 1)], 3)
    assert one != view_of_the_server([(2, 0), (0, 1)], 3)


# Records --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [SMALL, LAPLACE, REPORTS])
def test_records_come_back(protocol):
    _, low, high = protocol.record
    record = np.resize([low, high], protocol.dimension)
    content = packed(protocol, record)
    assert unpacked(protocol, content).tolist() == record.tolist()
    sealed = seal_record(protocol, record, KEY.public, *AT).sealed
    assert len(sealed) == sealed_size(protocol) == 81 + len(content)


@pytest.mark.parametrize(
    ("most", "width"), [(254, 1), (255, 2), (65534, 2), (65535, 3), (2**32, 5)]
)
def test_entries_are_as_wide_as_the_modulus(most, width):
    protocol = ModularSum(batch=1, dimension=1, bound=1.0, levels=1, noise=most - 2)
    assert protocol.modulus == most + 1
    assert packed(protocol, np.array([most])) == most.to_bytes(width, "little")


def test_entries_of_reports_are_signed():
    expected = b"".join(x.to_bytes(8, "little", signed=True) for x in (-3, 300))
    assert packed(REPORTS, np.array([-3, 300])) == expected


@pytest.mark.parametrize("protocol", [SMALL, REPORTS])
def test_what_no_record_is(protocol):
    size = len(packed(protocol, np.zeros(2, np.int64)))
    for content in (b"", bytes(size - 1), bytes(size + 1), b"\x7f" * size):
        with pytest.raises(SubmissionError, match="record must"):
            unpacked(protocol, content)


def sent(protocol, people, at=AT):
    """What leaves the shuffler for records, and the sum of masked parts."""
    made = [seal_record(protocol, record, KEY.public, *at) for record in people]
    total = None
    if made[0].masked is not None:
        total = np.sum([one.masked for one in made], axis=0) % protocol.modulus
    return total, [one.sealed for one in made]


def test_the_server_opens_what_the_shuffler_would_output():
    for protocol in (SMALL, LAPLACE):
        records = Randomizer(protocol).encode_many(np.full((3, protocol.dimension), 0.4)).values
        opened = open_batch(protocol, KEY, *AT, *sent(protocol, records))
        assert opened.tolist() == (records.sum(axis=0) % protocol.modulus).tolist()
    records = Randomizer(REPORTS).encode_many(np.full((3, 2), 0.4)).values
    opened = open_batch(REPORTS, KEY, *AT, *sent(REPORTS, records))
    assert opened.tolist() == records.tolist()


@pytest.mark.parametrize(
    "bad",
    [b"", seal(KEY.public, "8", "shop", b"12"), seal(KEY.public, *AT, b"1")],
    ids=["empty", "of another batch", "short"],
)
def test_what_does_not_open_counts_as_zeros_and_aborts_nothing(bad):
    records = Randomizer(REPORTS).encode_many(np.full((3, 2), 0.4)).values
    _, sealed = sent(REPORTS, records)
    opened = open_batch(REPORTS, KEY, *AT, None, [sealed[0], bad, sealed[2]])
    assert opened.tolist() == [records[0].tolist(), [0, 0], records[2].tolist()]


def test_the_noise_of_a_batch_is_that_of_simulations():
    """The sum through splitting, sealing and opening has the law of ``simulate_sums``, at alpha
    1e-8; noise with a tenth more coins, or without one person's, would fail.
    """
    protocol = ModularSum(batch=4, dimension=500, bound=1.0, levels=1, noise=40)
    analyzer, sums = Analyzer(protocol), []
    for _ in range(20):
        records = Randomizer(protocol).encode_many(np.zeros((4, 500))).values
        opened = open_batch(protocol, KEY, *AT, *sent(protocol, records))
        sums.append(analyzer.aggregate(Messages(opened, 0)))
    noise = np.ravel(sums).astype(int) + 80
    simulated = protocol.simulate_sums(np.zeros((20, 4, 500)), np.random.default_rng(1))
    simulated = simulated.ravel().astype(int) + 80
    cells = [*range(70, 92)]

    def counts(values):
        return np.bincount(np.clip(values, 69, 91) - 69, minlength=23)

    table = np.array([counts(noise), counts(simulated)])
    assert stats.chi2_contingency(table).pvalue > 1e-8
    law = stats.binom(160, 0.5)

    def fit(law):
        edges = np.array([law.cdf(69), *law.pmf(cells[:-1]), law.sf(90)])
        return stats.chisquare(counts(noise), edges * noise.size).pvalue

    assert fit(law) > 1e-8
    assert fit(stats.binom(176, 0.5)) < 1e-8
    assert fit(stats.binom(120, 0.5)) < 1e-8


def test_protocols_that_cannot_be_sealed():
    shape = {"batch": 20, "dimension": 2, "bound": 1.0}
    with pytest.raises(ArgumentError, match="'modular' releases the same sums with less noise"):
        refuse_unsealable(BitSum.calibrated(ApproxDP(5.0, 1e-3), **shape))
    with pytest.raises(ArgumentError, match="JSON cannot hold sums modulo"):
        refuse_unsealable(ModularSum(**{**shape, "batch": 10**6}, levels=8, noise=2**40))
    for cls in (ModularSum, GaussianReports):
        refuse_unsealable(cls.calibrated(ApproxDP(1.0, 1e-3), **shape))
