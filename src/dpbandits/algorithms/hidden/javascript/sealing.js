// Sealing for a server, past the shuffler: HPKE (RFC 9180) in base mode, one message per key, of
// the suite DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, by WebCrypto.

const CURVE = { name: "ECDH", namedCurve: "P-256" };
const POINT = 65; // bytes of an uncompressed point
const HASH = 32; // bytes of a digest
const KEM = [..."KEM"].map((c) => c.charCodeAt(0)).concat(0, 0x10);
const SUITE = [..."HPKE"].map((c) => c.charCodeAt(0)).concat(0, 0x10, 0, 1, 0, 1);

const utf8 = (text) => new TextEncoder().encode(text);
const joined = (...parts) => Uint8Array.from(parts.flatMap((part) => Array.from(part)));
const toBase64 = (bytes) => btoa(Array.from(bytes, (c) => String.fromCharCode(c)).join(""));
const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

async function hmac(key, data) {
  const given = key.length ? key : new Uint8Array(HASH); // the same, and no key may be empty
  const hash = { name: "HMAC", hash: "SHA-256" };
  const made = await crypto.subtle.importKey("raw", given, hash, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", made, data));
}

const extracted = (suite, salt, label, secret) =>
  hmac(salt, joined(utf8("HPKE-v1"), suite, utf8(label), secret));

// At most one digest long.
const expanded = async (suite, key, label, info, length) =>
  (await hmac(key, joined([0, length], utf8("HPKE-v1"), suite, utf8(label), info, [1])))
    .slice(0, length);

const pointOf = async (key) => new Uint8Array(await crypto.subtle.exportKey("raw", key));
const publicKeyOf = (point) => crypto.subtle.importKey("raw", point, CURVE, true, []);

// The key of AES, and the nonce: of one's own private key, and the public key of the other.
async function opener(own, other, sender, receiver, info) {
  const shared = await crypto.subtle.deriveBits({ name: "ECDH", public: other }, own, 8 * HASH);
  const secret = await extracted(KEM, [], "eae_prk", new Uint8Array(shared));
  const both = joined(sender, receiver);
  const agreed = await expanded(KEM, secret, "shared_secret", both, HASH);
  const context = joined(
    [0], // base mode
    await extracted(SUITE, [], "psk_id_hash", []),
    await extracted(SUITE, [], "info_hash", info),
  );
  const schedule = await extracted(SUITE, agreed, "secret", []);
  const key = await expanded(SUITE, schedule, "key", context, 16);
  const iv = await expanded(SUITE, schedule, "base_nonce", context, 12);
  const usages = ["encrypt", "decrypt"];
  return [await crypto.subtle.importKey("raw", key, "AES-GCM", false, usages), iv];
}

/* Bytes that the owner of a public key can open, and nobody else: the point of a key of this
 * message alone, and the ciphertext.  publicKey is an uncompressed point, 65 bytes; info has to be
 * the same when it is opened.  Of aad and pair nobody but tests of the standard needs others. */
async function seal(publicKey, info, plaintext, { aad = [], pair } = {}) {
  const { privateKey, publicKey: own } =
    pair ?? (await crypto.subtle.generateKey(CURVE, true, ["deriveBits"]));
  const [sender, receiver] = [await pointOf(own), Uint8Array.from(publicKey)];
  const other = await publicKeyOf(receiver);
  const [key, iv] = await opener(privateKey, other, sender, receiver, info);
  const how = { name: "AES-GCM", iv, additionalData: Uint8Array.from(aad) };
  const sealed = await crypto.subtle.encrypt(how, key, Uint8Array.from(plaintext));
  return joined(sender, new Uint8Array(sealed));
}

/* What was sealed for the public key of this pair of WebCrypto; throws for anything else. */
async function open({ publicKey, privateKey }, info, sealed, { aad = [] } = {}) {
  const sender = Uint8Array.from(sealed.slice(0, POINT));
  const [receiver, other] = [await pointOf(publicKey), await publicKeyOf(sender)];
  const [key, iv] = await opener(privateKey, other, sender, receiver, info);
  const how = { name: "AES-GCM", iv, additionalData: Uint8Array.from(aad) };
  const opened = await crypto.subtle.decrypt(how, key, Uint8Array.from(sealed.slice(POINT)));
  return new Uint8Array(opened);
}

// Two parts of a record, which say nothing of it apart: a sum of many masked parts is for the
// server, which opens the sealed ones.  Only a record that adds up modulo a number has a mask.
const parts = {
  ModularSum: (record, { batch, levels, noise }, take) => {
    const modulus = batch * (2 * levels + noise) + 1;
    const mask = record.map(() => Number(uniform(BigInt(modulus), take)));
    const width = Math.ceil(modulus.toString(2).length / 8);
    return {
      masked: record.map((value, i) => (value - mask[i] + modulus) % modulus),
      opened: mask.flatMap((value) => littleEndian(value, width)),
    };
  },
  GaussianReports: (record) => ({
    masked: null,
    opened: record.flatMap((value) => littleEndian(value, 8)),
  }),
};

// Of an integer, negative ones as complements.
const littleEndian = (value, width) =>
  Array.from({ length: width }, (_, i) => Number((BigInt(value) >> BigInt(8 * i)) & 255n));

// What goes to the shuffler of an experiment: { label, masked, sealed }.
async function sealedMessages({ values: [record], version }, { name, protocol, key }, take) {
  const { masked, opened } = parts[protocol.class](record, protocol, take);
  const info = utf8(`dpbandits 1 ${canonical({ experiment: name, label: version })}`);
  const sealed = await seal(fromBase64(key), info, opened);
  return { label: version, masked, sealed: toBase64(sealed) };
}
