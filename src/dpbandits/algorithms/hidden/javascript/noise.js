// Exact noise, as privacy/exact.py has it, with its proofs: integers are BigInts.  A source of
// bytes is a function: take(n) gives the next n.

const MOST_AT_ONCE = 65536; // bytes that getRandomValues gives

function systemBytes(n) {
  const bytes = new Uint8Array(n);
  for (let i = 0; i < n; i += MOST_AT_ONCE)
    globalThis.crypto.getRandomValues(bytes.subarray(i, i + MOST_AT_ONCE));
  return bytes;
}

function taken(size, take) {
  const bytes = take(size);
  if (bytes.length !== size)
    throw new Error(`the source of random bytes gave ${bytes.length} of ${size}`);
  return bytes;
}

const integer = (size, take) =>
  taken(size, take).reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);

function uniform(n, take) {
  const bits = n > 1n ? (n - 1n).toString(2).length : 0;
  const size = (bits + 7) >> 3;
  for (;;) {
    const value = integer(size, take) >> BigInt(8 * size - bits);
    if (value < n) return value;
  }
}

function bernoulli(n, d, take) {
  for (;;) {
    const digit = (256n * n) / d;
    n = (256n * n) % d;
    const given = integer(1, take);
    if (given !== digit) return given < digit;
  }
}

function bernoulliExp(n, d, take) {
  for (; n > d; n -= d) if (!bernoulliExp(1n, 1n, take)) return false;
  let k = 1n;
  while (bernoulli(n, d * k, take)) k += 1n;
  return k % 2n === 1n;
}

function discreteLaplace(t, s, take) {
  for (;;) {
    const u = uniform(t, take);
    if (!bernoulliExp(u, t, take)) continue;
    let v = 0n;
    while (bernoulliExp(1n, 1n, take)) v += 1n;
    const y = (u + t * v) / s;
    const negative = uniform(2n, take) === 1n;
    if (!(negative && y === 0n)) return negative ? -y : y;
  }
}

function discreteGaussian(p, q, take) {
  const t = rootOf(p / q) + 1n;
  for (;;) {
    const y = discreteLaplace(t, 1n, take);
    const off = (y < 0n ? -y : y) * q * t - p;
    if (bernoulliExp(off * off, 2n * p * q * t * t, take)) return y;
  }
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
