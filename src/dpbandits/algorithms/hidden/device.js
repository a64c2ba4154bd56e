/* What a person's device runs, in JavaScript: it chooses for her, and reports.
 *
 *   const device = new dpbandits.Device(config);   // server.device().to_json() in Python
 *   device.use(chooser);                           // whenever the server has published a newer one
 *   const arm = device.choose(contexts);           // a row of features for every arm
 *   send(device.report(reward));                   // as JSON; report() where no reward came
 *
 * Under local trust a report are numbers for the server, in the shuffle model messages for the
 * shuffler: config says which.  Features, arm and reward stay here, and are forgotten with the
 * report.  A device always sends, at a time that owes nothing to the reward, and report() where
 * there is nothing to tell: silence would tell.  Arms are those of the Python package, and so are
 * reports where both are given the same random bytes: both do the same operations on 64-bit floats,
 * and on integers, in the same order.  ES2020, for browsers, Node 20 and workers; nothing else is
 * needed.
 */
"use strict";

const dpbandits = (() => {
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

  // Messages for a shuffler, as dpbandits.shuffle makes them.

  const UNIT = 2 ** 32; // parts of a step of the grid

  function word(take) {
    const [a, b, c, d] = taken(4, take);
    return a + 2 ** 8 * b + 2 ** 16 * c + 2 ** 24 * d;
  }

  // How many of so many fair coins show heads.
  function heads(tosses, take) {
    const bytes = taken(Math.ceil(tosses / 8), take);
    const last = bytes.length - 1;
    const ones = (byte) => (byte ? (byte & 1) + ones(byte >> 1) : 0);
    const spare = 8 * bytes.length - tosses;
    return bytes.reduce((sum, byte, i) => sum + ones(i < last ? byte : byte >> spare), 0);
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

  const checked = (x) => (typeof x === "number" && Math.abs(x) < 1e100 ? x : 0);

  // The same text for equal data, whatever the order of its keys.
  const canonical = (data) =>
    JSON.stringify(data, (_, value) =>
      value !== null && typeof value === "object" && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).sort())
        : value);

  class Device {
    /* config: the text of Device.to_json(), from a policy that the device's owner trusts; all of
     * the guarantee rests on it.  take: the source of random bytes; of the operating system. */
    constructor(config, take = systemBytes) {
      this._config = JSON.parse(config);
      this._arguments = canonical(this._config.chooser.arguments);
      this._take = take;
      this.left = this._config.reports; // of its person: to be kept where the device may start anew
      this._chosen = null; // arm, features, and the release of the chooser
      this.use(this._config.chooser);
    }

    /* Choose with this chooser from now on: the text of Chooser.to_json(), or what it parses to.
     * Throws where it is of another policy. */
    use(chooser) {
      const given = typeof chooser === "string" ? JSON.parse(chooser) : chooser;
      if (canonical(given.arguments) !== this._arguments)
        throw new Error("chooser must be of the policy that made the device");
      const { dimension: d, n_models: models } = this._config;
      const estimates = given.public["public.estimate"];
      const inverses = given.public["public.inverse"];
      const [radii, gaps, biases, longest] = given.public["public.facts"];
      const isOf = (size, ...lists) => lists.every((x) => Array.isArray(x) && x.length === size);
      if (!isOf(models, inverses, radii, gaps, biases, longest) || !isOf(models * d, estimates)
          || !isOf(d, ...inverses, ...inverses.flat()))
        throw new Error("chooser must have the dimension of the device");
      this._models = inverses.map((inverse, m) => ({
        estimate: estimates.slice(m * d, (m + 1) * d),
        inverse, radius: radii[m], gap: gaps[m], bias: biases[m], longest: longest[m],
      }));
      this.release = given.release;
    }

    /* The arm for features of every arm: an array of n_arms arrays of `dimension` numbers, or where
     * every arm has a model of its own, one that holds for all.  What is no number, not finite, or
     * above 1e100 counts as 0.  Throws where the shape is another. */
    choose(contexts) {
      this._chosen = null; // or an old choice would be reported with a new reward
      const { n_arms: arms, dimension } = this._config;
      const given = Array.from(contexts);
      const table = given.some((x) => Array.isArray(x) || ArrayBuffer.isView(x)) ? given : [given];
      const alike = table.length === 1 && this._models.length > 1;
      const rows = (alike ? Array(arms).fill(table[0]) : table).map((x) => Array.from(x, checked));
      if (rows.length !== arms || !rows.every((row) => row.length === dimension))
        throw new Error(`contexts must have shape (${arms}, ${dimension})`);
      const seen = rows.map((row) => this._withinBound(row));
      const arm = this._mostOptimistic(seen);
      this._chosen = { arm, features: this._withinBound(seen[arm]), release: this.release };
      return arm;
    }

    /* The report of what was chosen and came of it, for LinUCBLDP.receive or, in the shuffle model,
     * for Messages.from_json; of nobody if nothing was chosen since the last report, or all
     * reports of its person have been sent, so that there always is something to send.  What
     * is no number counts as no reward: an error would tell of it. */
    report(reward) {
      const given = typeof reward === "boolean" ? Number(reward) : reward;
      const { dimension, reward_range: range, default_reward: nothing } = this._config;
      const r = typeof given !== "number" || Number.isNaN(given) ? nothing : Math.min(Math.max(given, range[0]), range[1]);
      if (this._chosen && this.left === 0) this._chosen = null;
      if (this._chosen) this.left -= 1;
      const nobody = { arm: 0, features: Array(dimension).fill(0), release: this.release };
      const { arm, features, release } = this._chosen || nobody;
      this._chosen = null;
      const record = this._record(arm, features, r);
      return this._config.protocol ? this._messages(record, release) : this._noisy(record);
    }

    // What goes to the server.
    _noisy(record) {
      const { grid, sigma_squared: parameter } = this._config;
      const [p, q] = parameter.map(BigInt);
      return record.map((value) =>
        Number(BigInt(value / grid) + discreteGaussian(p, q, this._take)) * grid);
    }

    // What goes to the shuffler, labelled by the chooser that was used.
    _messages(record, version) {
      const { diagonal, protocol } = this._config;
      const vector = record.map((value) => value / diagonal);
      return { values: [encode(protocol, vector, this._take)], version };
    }

    // [weight x r ; svec(x x^T)] on the grid, and zeros for the models of other arms.
    _record(arm, x, r) {
      const { weight, diagonal, grid } = this._config;
      const rewards = x.map((a) => weight * a * r);
      const squares = x.map((a) => diagonal * a * a);
      const products = x.flatMap((a, i) => x.slice(i + 1).map((b) => Math.SQRT2 * a * b));
      const record = [...rewards, ...squares, ...products].map((a) => rounded(a / grid) * grid);
      const none = record.map(() => 0);
      const own = this._models.length > 1 ? arm : 0;
      return this._models.flatMap((_, m) => (m === own ? record : none));
    }

    // Scaled to the device's own bound, on which its noise rests; rounded down.
    _withinBound(x) {
      const bound = this._config.context_bound;
      const squared = x.reduce((sum, a) => sum + a * a, 0);
      const scale = squared > bound * bound ? (bound / Math.sqrt(squared)) * (1 - 1e-15) : 1;
      return x.map((a) => a * scale);
    }

    // The arm of highest <x, estimate> + radius sqrt(x^T y + gap y^T y) + bias sqrt(y^T y), where
    // y = inverse x; of equals the first.
    _mostOptimistic(rows) {
      const dot = (x, y) => x.reduce((sum, a, i) => sum + a * y[i], 0);
      let [arm, best] = [0, -Infinity];
      rows.forEach((x, a) => {
        const model = this._models[this._models.length > 1 ? a : 0];
        const { estimate, inverse, radius, gap, bias, longest } = model;
        const reach = (radius * Math.sqrt(1 + gap * longest * longest) + bias * longest) * longest;
        const mean = dot(x, estimate);
        if (mean + reach * Math.sqrt(dot(x, x)) < best) return;
        const turned = inverse.map((row) => dot(row, x));
        const form = Math.max(dot(turned, x), 0);
        const length = dot(turned, turned);
        const index = mean + radius * Math.sqrt(form + gap * length) + bias * Math.sqrt(length);
        if (index > best) [arm, best] = [a, index];
      });
      return arm;
    }
  }

  return { Device, encode, discreteLaplace, discreteGaussian, rootOf };
})();

if (typeof module === "object") module.exports = dpbandits;
