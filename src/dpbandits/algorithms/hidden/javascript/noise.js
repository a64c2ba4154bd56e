// Exact noise, as privacy/exact.py has it, with its proofs.  Integers are BigInts, and numbers where
// all that is computed of them is exact: those are faster.  A source of bytes is a function: take(n)
// gives the next n.

const MOST_AT_ONCE = 65536; // bytes that getRandomValues gives

function systemBytes(n) {
  const bytes = new Uint8Array(n);
  for (let i = 0; i < n; i += MOST_AT_ONCE)
    globalThis.crypto.getRandomValues(bytes.subarray(i, i + MOST_AT_ONCE));
  return bytes;
}

const FEW = 4096; // bytes that a choice or a report asks the system for at once

// The system's bytes with fewer calls, for one choice or report: what it leaves over is never used.
function atOnce(take) {
  if (take !== systemBytes) return take;
  let [bytes, at] = [[], 0];
  return (n) => {
    if (at + n > bytes.length) [bytes, at] = [take(Math.max(n, FEW)), 0];
    at += n;
    return bytes.subarray(at - n, at);
  };
}

function taken(size, take) {
  const bytes = take(size);
  if (bytes.length !== size)
    throw new Error(`the source of random bytes gave ${bytes.length} of ${size}`);
  return bytes;
}

const SMALL = 2 ** 44; // 256 n, and the digit 256 n / d, are exact for n <= d < SMALL

// A number in the place of a BigInt that is small.
const simple = (n) => (n < SMALL ? Number(n) : n);

const integer = (size, take) =>
  taken(size, take).reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);

function uniform(n, take) {
  const bits = n > 1 ? (BigInt(n) - 1n).toString(2).length : 0;
  const size = (bits + 7) >> 3;
  const small = size <= 6 && n < SMALL;
  for (;;) {
    const value = small
      ? Math.floor(taken(size, take).reduce((a, byte) => 256 * a + byte, 0) / 2 ** (8 * size - bits))
      : integer(size, take) >> BigInt(8 * size - bits);
    if (value < n) return value;
  }
}

function bernoulli(n, d, take) {
  const small = d < SMALL;
  if (small) [n, d] = [Number(n), Number(d)];
  for (;;) {
    const digit = small ? Math.floor((256 * n) / d) : Number((256n * n) / d);
    n = small ? (256 * n) % d : (256n * n) % d;
    const [given] = taken(1, take);
    if (given !== digit) return given < digit;
  }
}

function bernoulliExp(n, d, take) {
  for (; n > d; n -= d) if (!bernoulliExp(1, 1, take)) return false;
  const times = typeof d === "bigint" ? BigInt : Number;
  let k = 1;
  while (bernoulli(n, d * times(k), take)) k += 1;
  return k % 2 === 1;
}

function discreteLaplace(t, s, take) {
  const fine = simple(t);
  for (;;) {
    const u = uniform(fine, take);
    if (!bernoulliExp(u, fine, take)) continue;
    let v = 0n;
    while (bernoulliExp(1, 1, take)) v += 1n;
    const y = (BigInt(u) + t * v) / s;
    const negative = uniform(2, take) === 1;
    if (!(negative && y === 0n)) return negative ? -y : y;
  }
}

let drawn = {}; // the parameter of the last draw, and its root

function discreteGaussian(p, q, take) {
  if (drawn.p !== p || drawn.q !== q) drawn = { p, q, t: rootOf(p / q) + 1n };
  const { t } = drawn;
  for (;;) {
    const y = discreteLaplace(t, 1n, take);
    const off = (y < 0n ? -y : y) * q * t - p;
    if (bernoulliExp(off * off, 2n * p * q * t * t, take)) return y;
  }
}

function bernoulliLogistic(n, d, take) {
  while (uniform(2, take) === 0) if (bernoulliExp(n, d, take)) return false;
  return true;
}

// A number of at most 1, exactly: 2^1074 times it is an integer.
function exactly(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, Math.abs(value));
  const bits = view.getBigUint64(0);
  const [exponent, digits] = [bits >> 52n, bits & (2n ** 52n - 1n)];
  const size = exponent === 0n ? digits : (digits + 2n ** 52n) << (exponent - 1n);
  return value < 0 ? -size : size;
}

const SPREAD = 2n ** 32n; // the parameter of integers whose direction is all that matters
const FINE = 2 ** 40;

// Integers in about the direction of a vector of the unit ball; epsilon is n / d.
function hemisphere(vector, n, d, take) {
  let drawn;
  do drawn = vector.map(() => discreteGaussian(SPREAD, 1n, take));
  while (drawn.every((u) => u === 0n));
  const product = drawn.reduce((sum, u, i) => sum + u * exactly(vector[i]), 0n);
  const length = Math.min(Math.ceil(FINE * Math.hypot(...vector)), FINE);
  const toward = bernoulli(FINE + length, 2 * FINE, take);
  const kept = bernoulliLogistic(n, d, take);
  const positive =
    product === 0n ? uniform(2, take) === 1 : (product > 0n) === (toward === kept);
  return positive ? drawn : drawn.map((u) => -u);
}

// Such a vector, with its length.
function onSphere(vector, { epsilon, radius }, take) {
  const drawn = hemisphere(vector, ...epsilon.map(BigInt), take);
  const length = Math.sqrt(Number(drawn.reduce((sum, u) => sum + u * u, 0n)));
  return drawn.map((u) => Number(u) * (radius / length));
}

const STEPS = 2 ** 32 - 1; // of a standard deviation

// A standard normal variate, for choices.
const standardNormal = (take) =>
  Number(discreteGaussian(BigInt(STEPS) ** 2n, 1n, take)) / STEPS;

// The largest integer whose square is at most n, by Newton's method from above.
function rootOf(n) {
  let root = 1n << BigInt((n.toString(2).length + 1) >> 1);
  while (root * root > n) root = (root + n / root) >> 1n;
  return root;
}

// The nearest integer, of two the even one.
function rounded(value) {
  const low = Math.floor(value);
  const over = value - low;
  return over < 0.5 || (over === 0.5 && low % 2 === 0) ? low : low + 1;
}
