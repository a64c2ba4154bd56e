// A device of a service: it stores what it will send before it sends it, and sends no other bytes.

const done = (asked) =>
  new Promise((resolve, reject) => {
    asked.onsuccess = asked.oncomplete = () => resolve(asked.result);
    asked.onerror = asked.onabort = ({ target }) => reject(target.error);
  });

const inDatabase = async (mode, act) => {
  const asked = indexedDB.open("dpbandits", 1);
  asked.onupgradeneeded = () => asked.result.createObjectStore("devices");
  const opened = await done(asked);
  try {
    const change = opened.transaction("devices", mode, { durability: "strict" });
    const found = act(change.objectStore("devices"));
    await done(change);
    return found.result;
  } finally {
    opened.close();
  }
};

// No localStorage: a page may still see there what another has changed in the meantime, in spite of
// locks.  Both would spend the same report.
const inThisBrowser = {
  get: (key) => inDatabase("readonly", (kept) => kept.get(key)),
  set: (key, text) => inDatabase("readwrite", (kept) => kept.put(text, key)),
};

// One at a time in all pages of an origin, where the browser has locks.
const alone = (name, act) =>
  globalThis.navigator?.locks ? navigator.locks.request(name, act) : act();

const FINAL = [409, 410, 413, 422]; // statuses of refusals after which a report is lost
const NOT_NOW = ["paused", "not-started"]; // types of others, that time or an operator ends
const ECHOED = ["report_id", "label"]; // by which a reply is that to a report
const UNKNOWN = "unknown-decision"; // type of the refusal of a report on a decision that is over

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

const digestOf = async (text) =>
  hex(new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(text))));

class Connection {
  constructor(given) {
    const { config, server, shuffler, tenant, take = systemBytes } = given;
    const { name, protocol, public_key: key, randomiser, sees } = JSON.parse(config);
    this._device = randomiser ? new RewardDevice(config, take) : new Device(config, take);
    if (protocol && !(protocol.class in parts))
      throw new Error(`messages of ${protocol.class} are not sent over HTTP: use "modular"`);
    if (protocol && shuffler === undefined) throw new Error("shuffler must be given: the address of the shuffler");
    Object.assign(this, { _given: given, _name: name, _protocol: protocol, _key: key, _take: take });
    this._storage = given.storage ?? inThisBrowser;
    const whose = [key && ` ${key}`, tenant && ` of ${tenant}`].map((part) => part ?? "").join("");
    this._place = `dpbandits ${name}${whose}`; // servers and tenants may share a name
    const at = (base, what) => `${base}/v1/experiments/${encodeURIComponent(name)}/${what}`;
    const asked = tenant === undefined ? "" : `?tenant=${encodeURIComponent(tenant)}`;
    const own = (what) => at(server, what) + asked;
    this._source = own(randomiser ? "decisions" : "randomiser");
    this._target = protocol ? at(shuffler, "messages") : own(randomiser ? "rewards" : "reports");
    Object.assign(this, { _isAsked: Boolean(randomiser), _sees: sees });
    this._current = false; // whether the device has the round that the server has
    this._last = Promise.resolve();
  }

  /* How many true reports are left of its person. */
  get left() {
    return this._device.left;
  }

  /* The arm for features of every arm, as Device.choose, by what the server has released by now.
   * Where the server decides, it is asked for an arm, and gets what it needs for that. */
  async choose(contexts) {
    if (this._isAsked) return this._ask(contexts);
    await this._refresh();
    return this._device.choose(contexts);
  }

  /* Make the report of the last choice, as Device.report, and store it; send() sends it.  Throws
   * where an earlier one waits to be sent.  Throws where the storage fails, too: then the report is
   * lost, and counts. */
  report(reward) {
    return this._turn(async ({ outbox }) => {
      if (outbox !== null) throw new Error("an earlier report waits: call send() first");
      await this._store(reward);
    });
  }

  /* Send the report that waits, always the same bytes; where none does, one of noise, or of a choice
   * that had no reward.  Throws where it has not arrived: send again later.  True if it arrived,
   * false if it was refused for good, as where its round was over: then it is lost, and counts. */
  send() {
    return this._turn(async ({ outbox }) => {
      const body = outbox ?? (await this._store());
      const arrived = await this._arrived(body);
      this._current = false;
      await this._keep(null);
      return arrived;
    });
  }

  // The reply may be that of something else, such as a page that asks for a password.
  async _arrived(body) {
    const reply = await this._fetch(this._target, { method: "POST", headers: this._headers, body });
    const told = (await reply.json().catch(() => null)) ?? {};
    const sent = JSON.parse(body);
    const isReply = this._isAsked ? "learned" in told : ECHOED.every((name) => told[name] === sent[name]);
    if (reply.ok && isReply) return true;
    if (told.type === UNKNOWN) return false;
    if (FINAL.includes(reply.status) && !NOT_NOW.includes(told.type)) return false;
    throw new Error(`the report has not arrived: status ${reply.status}`);
  }

  async _store(reward) {
    if (this._isAsked && !this._device.waits) throw new Error("call choose() first: the server decides");
    if (!this._device.waits) await this._refresh();
    const { decision } = this._device;
    const body = JSON.stringify(await this._body(this._device.report(reward), decision));
    await this._keep(body);
    return body;
  }

  async _ask(shown) {
    this._device.decision = null; // or an old choice would be reported with a new reward
    const { unit } = this._given;
    const decision = hex(taken(16, this._take));
    const body = { decision_id: decision, ...(this._sees && { [this._sees]: shown }), ...(unit && { unit }) };
    const options = { method: "POST", headers: this._headers, body: JSON.stringify(body) };
    const reply = await this._fetch(this._source, options);
    const told = (await reply.json().catch(() => null)) ?? {};
    if (!reply.ok || !Number.isInteger(told.arm)) throw new Error(`the server sent no arm: status ${reply.status}`);
    this._device.decision = decision;
    return told.arm;
  }

  async _body(made, decision) {
    if (this._isAsked) return { decision_id: decision, reward: made };
    const [protocol, key, name] = [this._protocol, this._key, this._name];
    if (protocol) return sealedMessages(made, { name, protocol, key }, this._take);
    const { unit } = this._given;
    return { report_id: hex(taken(16, this._take)), report: made, ...(unit && { unit }) };
  }

  get _headers() {
    const { ticket } = this._given;
    const known = ticket && { Authorization: `Bearer ${ticket}` };
    return { "Content-Type": "application/json", ...known };
  }

  _fetch(url, options) {
    return (this._given.fetch ?? globalThis.fetch)(url, options);
  }

  // Use the server's round.  Its label names all of it, so a person whom the server shows another
  // chooser, or another noise, is in no batch with others.
  async _refresh() {
    if (this._current) return;
    const reply = await this._fetch(this._source, { cache: "no-store" });
    if (!reply.ok) throw new Error(`the server sent no round: status ${reply.status}`);
    const { round } = await reply.json();
    const { chooser, protocol } = JSON.parse(round);
    if (this._protocol && canonical(protocol) !== canonical(this._protocol))
      throw new Error("the round must have the protocol of the device");
    const label = this._protocol && `${chooser.release}:${await digestOf(round)}`;
    this._device.use(chooser, label);
    this._current = true;
  }

  // Act on what is stored, after everything that was asked before.
  _turn(act) {
    const next = async () => alone(this._place, async () => act(await this._stored()));
    const turn = this._last.then(next);
    this._last = turn.catch(() => {});
    return turn;
  }

  async _stored() {
    const text = await this._storage.get(this._place);
    const kept = text == null ? { left: this.left, outbox: null } : JSON.parse(text);
    if (!Number.isInteger(kept.left) || kept.left < 0)
      throw new Error("the storage holds something else than the state of a device");
    this._device.left = Math.min(this.left, kept.left);
    return kept;
  }

  // Nothing is sent that the storage has lost.
  async _keep(outbox) {
    const text = JSON.stringify({ left: this.left, outbox });
    await this._storage.set(this._place, text);
    if ((await this._storage.get(this._place)) !== text) throw new Error("the storage has lost a report");
  }
}

/* The device of a person that a service has made: config is the text of its device, which comes with
 * the page and not from the server.  server and shuffler are addresses; under local trust there is
 * no shuffler.  ticket is the person's for the shuffler, or a key of the server.  tenant is that of
 * the experiment, where the server asks for no key.  storage has get(key) and set(key, text), which
 * may return promises; by default it is IndexedDB.
 * Another must show all pages of the origin each change at once. */
async function connect(given) {
  const made = new Connection(given);
  await made._turn(async () => {});
  return made;
}
