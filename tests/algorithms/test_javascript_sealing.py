"""HPKE in JavaScript, by WebCrypto, against the standard's numbers and the one in Python."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hpke, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from scripts import ENGINES, Engine, source

import dpbandits as dpb
from dpbandits.algorithms.hidden.choosing_devices import Device
from dpbandits.privacy.exact import uniform
from dpbandits.shuffle import GaussianReports, ModularSum

SUITE = hpke.Suite(hpke.KEM.P256, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)
# RFC 9180, A.3.1 and A.3.1.1: the first message.
VECTOR = {
    "info": "4f6465206f6e2061204772656369616e2055726e",
    "skEm": "4995788ef4b9d6132b249ce59a77281493eb39af373d236a1fe415cb0c2d7beb",
    "pkEm": "04a92719c6195d5085104f469a8b9814d5838ff72b60501e2c4466e5e67b325ac9"
    "8536d7b61a1af4b78e5b7f951c0900be863c403ce65c9bfcb9382657222d18c4",
    "skRm": "f3ce7fdae57e1a310d87f1ebbde6f328be0a99cdbcadf4d6589cf29de4b8ffd2",
    "pkRm": "04fe8c19ce0905191ebc298a9245792531f26f0cece2460639e8bc39cb7f706a82"
    "6a779b4cf969b8a0e539c7f62fb3d30ad6aa8f80e30f1d128aafd68a2ce72ea0",
    "pt": "4265617574792069732074727574682c20747275746820626561757479",
    "aad": "436f756e742d30",
    "ct": "5ad590bb8baa577f8619db35a36311226a896e7342a6d836d8b7bcd2f20b6c7f"
    "9076ac232e3ab2523f39513434",
}
HELPERS = """
const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
const inHex = (given) => Array.from(given, (b) => b.toString(16).padStart(2, "0")).join("");
const curve = { name: "ECDH", namedCurve: "P-256" };
const encoded = (part) => btoa(String.fromCharCode(...part))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
async function pairOf(secret, point) {
    const [d, x, y] = [bytes(secret), bytes(point).slice(1, 33), bytes(point).slice(33)].map(encoded);
    const known = { kty: "EC", crv: "P-256", x, y, ext: true };
    return {
        publicKey: await crypto.subtle.importKey("jwk", known, curve, true, []),
        privateKey: await crypto.subtle.importKey("jwk", { ...known, d }, curve, true, ["deriveBits"]),
    };
}
const told = async (work) => { try { return inHex(await work()); } catch { return "refused"; } };
"""


@pytest.fixture(scope="module", params=ENGINES)
def js(request: Any) -> Iterator[Engine]:
    with ENGINES[request.param](Device.javascript() + HELPERS) as engine:
        yield engine


@pytest.fixture(scope="module")
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def point_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PublicFormat.UncompressedPoint
    return key.public_key().public_bytes(serialization.Encoding.X962, form)


def test_the_numbers_of_the_standard(js):
    sealed, opened = js(
        """const pair = await pairOf(given.skEm, given.pkEm);
        const aad = bytes(given.aad), info = bytes(given.info);
        const sealed = await dpbandits.seal(bytes(given.pkRm), info, bytes(given.pt), { aad, pair });
        const own = await pairOf(given.skRm, given.pkRm);
        return [inHex(sealed), inHex(await dpbandits.open(own, info, sealed, { aad }))];""",
        VECTOR,
    )
    assert sealed == VECTOR["pkEm"] + VECTOR["ct"]
    assert opened == VECTOR["pt"]


@pytest.mark.parametrize("size", [0, 1, 15, 16, 60, 5000])
def test_python_opens_what_javascript_seals_and_back(js, key, size):
    plain, info = np.random.default_rng(size).bytes(size), b"dpbandits 1 {}"
    numbers = key.private_numbers().private_value
    told = {
        "secret": f"{numbers:064x}",
        "point": point_of(key).hex(),
        "info": info.hex(),
        "plain": plain.hex(),
        "sealed": SUITE.encrypt(plain, key.public_key(), info=info).hex(),
    }
    sealed, again, opened, *refused = js(
        """const info = bytes(given.info), point = bytes(given.point), plain = bytes(given.plain);
        const own = await pairOf(given.secret, given.point), sealed = bytes(given.sealed);
        const other = await pairOf(given.secret, given.point);
        const changed = (i) => sealed.map((byte, k) => (k === i ? byte ^ 1 : byte));
        const seal = () => dpbandits.seal(point, info, plain), open = dpbandits.open;
        return [inHex(await seal()), inHex(await seal()), inHex(await open(own, info, sealed)),
            await told(() => open(own, bytes("00"), sealed)),
            await told(() => open(own, info, changed(sealed.length - 1))),
            await told(() => open(own, info, changed(40))),
            await told(() => open(own, info, sealed.slice(0, 70)))];""",
        told,
    )
    assert SUITE.decrypt(bytes.fromhex(sealed), key, info=info) == plain
    assert len(sealed) == 2 * (65 + size + 16)
    assert opened == plain.hex()
    assert sealed[:130] != again[:130]  # a key of every message alone
    assert refused == ["refused"] * 4
    with pytest.raises(InvalidTag):
        SUITE.decrypt(bytes.fromhex(sealed), key, info=b"of another experiment")


@pytest.mark.parametrize("protocol", ["modular", "reports"])
def test_what_two_parties_get_is_the_message_of_a_device(js, key, protocol):
    """The masked part, and the sealed one, add up to what the same bytes make in Python."""
    options = {"budget": dpb.ApproxDP(8.0, 1e-3), "horizon": 1000, "batch": 20, "noise": "secure"}
    server = dpb.HiddenLinearShuffled(3, 2, messages=True, protocol=protocol, **options)
    device, (stream, take) = server.device(), source(3)
    device.chooser.take = device._randomizer._source._take = take
    contexts, text = [[0.5, 0.1], [0.2, 0.9], [-0.3, 0.4]], json.dumps({"chooser": 1})
    public = base64.b64encode(point_of(key)).decode()
    config = {**json.loads(device.to_json()), "name": "shop", "public_key": public}
    told = {
        "config": json.dumps(config),
        "stream": stream.hex(),
        "contexts": contexts,
        "round": text,
    }
    arm, body = js(
        """let at = 0;
        const stream = bytes(given.stream), take = (n) => stream.slice(at, (at += n));
        const { chooser, protocol } = JSON.parse(given.config);
        const round = JSON.stringify({ chooser, protocol }), kept = {}, sent = [];
        const device = await dpbandits.connect({
            config: given.config, server: "", shuffler: "", take,
            storage: { get: (key) => kept[key] ?? null, set: (key, text) => { kept[key] = text; } },
            fetch: async (url, post) => post.body ? sent.push(post.body) && new Response(post.body)
                : { ok: true, json: async () => ({ round }) },
        });
        const arm = await device.choose(given.contexts);
        await device.report(0.7);
        await device.send();
        return [arm, { ...JSON.parse(sent[0]), round }];""",
        told,
    )
    assert arm == device.choose(contexts)
    ours, made = device.report(0.7).values[0], server.protocol
    info = f'dpbandits 1 {{"experiment":"shop","label":"{body["label"]}"}}'.encode()
    opened = SUITE.decrypt(base64.b64decode(body["sealed"]), key, info=info)
    if isinstance(made, ModularSum):
        width = (made.modulus.bit_length() + 7) // 8
        pieces = [opened[i : i + width] for i in range(0, len(opened), width)]
        mask = [int.from_bytes(piece, "little") for piece in pieces]
        assert mask == [uniform(made.modulus, take) for _ in ours]
        assert [(a + b) % made.modulus for a, b in zip(body["masked"], mask, strict=True)] == [
            *ours
        ]
        assert all(0 <= a < made.modulus for a in body["masked"])
    else:
        assert isinstance(made, GaussianReports)
        assert body["masked"] is None
        assert np.frombuffer(opened, "<i8").tolist() == ours.tolist()
