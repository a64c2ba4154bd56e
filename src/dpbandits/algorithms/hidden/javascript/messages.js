// Messages for a shuffler, as dpbandits.shuffle makes them.

const UNIT = 2 ** 32; // parts of a step of the grid

function word(take) {
  const [a, b, c, d] = taken(4, take);
  return a + 2 ** 8 * b + 2 ** 16 * c + 2 ** 24 * d;
}

const ONES = Array.from({ length: 256 }, (_, byte) =>
  byte.toString(2).replaceAll("0", "").length);

// How many of so many fair coins show heads.
function heads(tosses, take) {
  const bytes = taken(Math.ceil(tosses / 8), take);
  const last = bytes.length - 1;
  bytes[last] >>= 8 * bytes.length - tosses;
  return bytes.reduce((sum, byte) => sum + ONES[byte], 0);
}

// Bits that are 1 with probability 1/4.
function quarters(n, take) {
  const size = Math.ceil(n / 8);
  const fair = taken(2 * size, take);
  return Array.from({ length: n }, (_, i) => {
    const byte = Math.floor(i / 8);
    return ((fair[byte] & fair[size + byte]) >> (7 - (i % 8))) & 1;
  });
}

// Rows of bits, each in a random order of its own: places for the ones, or for the zeros where
// those are fewer; places that are taken already are passed over.
function permuted(rows, take) {
  const n = rows[0].length;
  const size = n <= 2 ** 14 ? 2 : 4; // bytes of a word
  const even = Math.floor(2 ** (8 * size) / n) * n; // words below name all places equally often
  const ones = rows.map((row) => row.reduce((sum, bit) => sum + bit, 0));
  const rare = ones.map((count) => Number(2 * count <= n));
  const left = ones.map((count) => Math.min(count, n - count));
  const mixed = rows.map((_, i) => Array(n).fill(1 - rare[i]));
  while (left.some((count) => count > 0)) {
    const words = Math.floor(1.5 * Math.max(...left)) + 16;
    for (let i = 0; i < rows.length; i++) {
      const bytes = taken(words * size, take);
      for (let k = 0; k < words && left[i] > 0; k++) {
        let drawn = 0;
        for (let j = size - 1; j >= 0; j--) drawn = 2 ** 8 * drawn + bytes[size * k + j];
        if (drawn < even && mixed[i][drawn % n] !== rare[i]) {
          mixed[i][drawn % n] = rare[i];
          left[i]--;
        }
      }
    }
  }
  return mixed;
}

// Integers in [-levels, levels] whose means are the vector in steps of the grid.
function toSteps({ bound, largest, levels }, vector, take) {
  const longest = (x) => x.reduce((most, a) => Math.max(most, Math.abs(a)), 0);
  const length = (x) => Math.sqrt(x.reduce((sum, a) => sum + a * a, 0));
  let x = Array.from(vector, (a) => (Number.isFinite(a) ? a : 0));
  for (const norm of [longest, length]) {
    const scale = bound / Math.max(norm(x), bound);
    x = x.map((a) => a * scale);
  }
  const fineness = (levels / largest) * UNIT;
  return x.map((a) => {
    const fine = rounded(Math.min(Math.max(a, -largest), largest) * fineness);
    return Math.floor((fine + word(take)) / UNIT);
  });
}

const messages = {
  ModularSum: (integers, { levels, noise }, take) =>
    integers.map((n) => n + levels + heads(noise, take)),
  BitSum: (integers, { levels, noise }, take) => {
    const bits = quarters(integers.length * noise, take);
    const rows = integers.map((n, i) => [
      ...Array.from({ length: 2 * levels }, (_, j) => Number(j < n + levels)),
      ...bits.slice(i * noise, (i + 1) * noise),
    ]);
    return permuted(rows, take);
  },
  GaussianReports: (integers, { sigma_squared: parameter }, take) => {
    const [p, q] = parameter.map(BigInt);
    return integers.map((n) => Number(BigInt(n) + discreteGaussian(p, q, take)));
  },
};

/* The record of one person: what she adds to Messages.values.  protocol: Randomizer.to_dict() of
 * the Python package.  Throws where the vector has another length, never for its numbers. */
function encode(protocol, vector, take = systemBytes) {
  if (vector.length !== protocol.dimension)
    throw new Error(`vector must have length ${protocol.dimension}`);
  return messages[protocol.class](toSteps(protocol, vector, take), protocol, take);
}
