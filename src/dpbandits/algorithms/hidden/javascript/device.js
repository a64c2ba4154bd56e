const checked = (x) => (typeof x === "number" && Math.abs(x) < 1e100 ? x : 0);

// The same text for equal data, whatever the order of its keys.
const canonical = (data) =>
  JSON.stringify(data, (_, value) =>
    value !== null && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort())
      : value);

// A reward that was clipped to its range; what is no number counts as none.
function within([low, high], nothing, reward) {
  const given = typeof reward === "boolean" ? Number(reward) : reward;
  const isNone = typeof given !== "number" || Number.isNaN(given);
  return isNone ? nothing : Math.min(Math.max(given, low), high);
}

const isOf = (size, ...lists) => lists.every((x) => Array.isArray(x) && x.length === size);

// What a server of linear models knows.
function regressed(shown, { dimension: d, n_models: models }) {
  const estimates = shown["public.estimate"];
  const inverses = shown["public.inverse"];
  const factors = shown["public.factor"];
  const facts = shown["public.facts"];
  const [radii, gaps, biases, longest, spreads] = facts;
  const tables = [inverses, factors];
  if (!isOf(models, ...tables, ...facts) || !isOf(models * d, estimates)
      || !isOf(d, ...tables.flat(), ...tables.flat(2)))
    throw new Error("chooser must have the dimension of the device");
  const [rounds] = shown["public.clock"];
  return { rounds, models: inverses.map((inverse, m) => ({
    estimate: estimates.slice(m * d, (m + 1) * d),
    inverse, factor: factors[m],
    radius: radii[m], gap: gaps[m], bias: biases[m], longest: longest[m], spread: spreads[m],
  })) };
}

// What a server of generalised linear models knows.
function scored(shown, { dimension }) {
  const estimate = shown["public.estimate"];
  if (!isOf(dimension, estimate)) throw new Error("chooser must have the dimension of the device");
  return { models: [{ estimate }] };
}

class Device {
  /* config: the text of Device.to_json(), from a policy that the device's owner trusts; all of
   * the guarantee rests on it.  take: the source of random bytes; of the operating system. */
  constructor(config, take = systemBytes) {
    this._config = JSON.parse(config);
    this._arguments = canonical(this._config.chooser.arguments);
    this._take = take;
    this.left = this._config.reports; // of its person: to be kept where the device may start anew
    this._chosen = null; // arm, features, and the version of the chooser
    this.use(this._config.chooser);
  }

  /* Choose with this chooser from now on: the text of Chooser.to_json(), or what it parses to.
   * Throws where it is of another policy.  version labels the messages of its choices, by default
   * its release. */
  use(chooser, version) {
    const given = typeof chooser === "string" ? JSON.parse(chooser) : chooser;
    if (canonical(given.arguments) !== this._arguments)
      throw new Error("chooser must come from the policy that made the device");
    this._known = (this._config.gradient ? scored : regressed)(given.public, this._config);
    this._retired = new Set(given.retired);
    this._version = version ?? given.release;
    this.release = given.release;
  }

  /* Whether a choice waits for its report. */
  get waits() {
    return this._chosen !== null;
  }

  /* The arm for features of every arm: an array of n_arms arrays of `dimension` numbers, or where
   * every arm has a model of its own, one that holds for all.  What is no number, not finite, or
   * above 1e100 counts as 0.  Throws where the shape is another. */
  choose(contexts) {
    this._chosen = null; // or an old choice would be reported with a new reward
    const { n_arms: arms, dimension } = this._config;
    const given = Array.from(contexts);
    const table = given.some((x) => Array.isArray(x) || ArrayBuffer.isView(x)) ? given : [given];
    const alike = table.length === 1 && this._known.models.length > 1;
    const rows = (alike ? Array(arms).fill(table[0]) : table).map((x) => Array.from(x, checked));
    if (rows.length !== arms || !rows.every((row) => row.length === dimension))
      throw new Error(`contexts must have shape (${arms}, ${dimension})`);
    const seen = rows.map((row) => this._withinBound(row));
    const arm = this._best(seen);
    this._chosen = { arm, features: this._withinBound(seen[arm]), version: this._version };
    return arm;
  }

  /* The report of what was chosen and came of it, for LinUCBLDP.receive or, in the shuffle model,
   * for Messages.from_json; of nobody if nothing was chosen since the last report, or all
   * reports of its person have been sent, hence there always is something to send.  What
   * is no number counts as no reward: an error would tell of it. */
  report(reward) {
    const { dimension, reward_range: range, default_reward: nothing } = this._config;
    const r = within(range, nothing, reward);
    if (this._chosen && this.left <= 0) this._chosen = null;
    if (this._chosen) this.left -= 1;
    const nobody = { arm: 0, features: Array(dimension).fill(0), version: this._version };
    const { arm, features, version } = this._chosen || nobody;
    this._chosen = null;
    const record = this._record(arm, features, r);
    return this._config.protocol ? this._messages(record, version) : this._noisy(record);
  }

  // Of the open arms.  A retired one shows the features of the first open one: to choose it is to
  // choose that.
  _best(rows) {
    const { class: kind, ...facts } = this._config.explore;
    const first = rows.findIndex((_, a) => !this._retired.has(a));
    const shown = rows.map((row, a) => (this._retired.has(a) ? rows[first] : row));
    const arm = explorations[kind](this._known, shown, facts, atOnce(this._take));
    return this._retired.has(arm) ? first : arm;
  }

  // What goes to the server.
  _noisy(record) {
    const { grid, sigma_squared: parameter, hemisphere: sphere } = this._config;
    const take = atOnce(this._take);
    if (sphere) return onSphere(record, sphere, take);
    const [p, q] = parameter.map(BigInt);
    return record.map((value) =>
      Number(BigInt(value / grid) + discreteGaussian(p, q, take)) * grid);
  }

  // What goes to the shuffler, labelled by the chooser that was used.
  _messages(record, version) {
    const { diagonal, protocol } = this._config;
    const vector = record.map((value) => value / diagonal);
    return { values: [encode(protocol, vector, atOnce(this._take))], version };
  }

  // [weight x r ; svec(x x^T)] on the grid, and zeros for the models of other arms.
  _record(arm, x, r) {
    const { weight, diagonal, grid, gradient } = this._config;
    if (gradient) return gradientAt(this._known.models[0].estimate, x, r, gradient);
    const rewards = x.map((a) => weight * a * r);
    const squares = x.map((a) => diagonal * a * a);
    const products = x.flatMap((a, i) => x.slice(i + 1).map((b) => Math.SQRT2 * a * b));
    const record = [...rewards, ...squares, ...products].map((a) => rounded(a / grid) * grid);
    const none = record.map(() => 0);
    const own = this._known.models.length > 1 ? arm : 0;
    return this._known.models.flatMap((_, m) => (m === own ? record : none));
  }

  // Scaled to the device's own bound, on which its noise rests; rounded down.
  _withinBound(x) {
    const bound = this._config.context_bound;
    const squared = x.reduce((sum, a) => sum + a * a, 0);
    const scale = squared > bound * bound ? (bound / Math.sqrt(squared)) * (1 - 1e-15) : 1;
    return x.map((a) => a * scale);
  }
}
