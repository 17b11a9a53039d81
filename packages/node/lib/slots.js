'use strict';
// slots.js - places that belong to an owner, an id that outlives this process: no session, and no time that ends them.
const node = require('./node.js');
const { BusyError, refused } = require('./errors.js');
const { Guarded } = require('./guarded.js');
const { take } = require('./options.js');
const { abortedBy, elapsed, stamp } = require('./time.js');
const { znode } = require('./transport.js');

const TRY_MS = 10_000; // for an answer, after the time that the gate is asked to wait
const NO_TOKEN = '9223372036854775807'; // of no slot: ends takes that wait, at any gate
const POLL_S = 20; // the gate keeps a place for 30 s after the last poll
const TAKE = { wait: 'duration', signal: 'signal', limit: 'count', by: 'text', reason: 'text', host: 'text' };

function known(owner, what) {
  if (typeof owner !== 'string' || owner === '') throw new TypeError(`${what}: an owner is a text, unlike ${String(owner)}`);
}

/** What its owner was told when it was taken. */
class Slot extends Guarded {
  constructor(transport, path, told, taken) {
    super(transport, () => ({}));
    Object.assign(this, { path, owner: told.owner, token: told.token, taken, since: new Date(told.since) });
    this.host = told.host ?? null;
    this.by = told.by ?? null;
    this.reason = told.reason ?? null;
  }
}

class Slots {
  #transport;
  #life;

  /** `life`: the client's, {signal, pending}: what a wait ends with, and those that are to end before it is closed. */
  constructor(transport, path, life) {
    this.#transport = transport;
    this.#life = life;
    this.path = path;
  }

  /** The gate's name of a claim is its path and owner as one word, so that any process can name it. */
  #claim(owner) {
    return `/v1/claims/slot.${Buffer.from(`${this.path}\n${owner}`).toString('base64url')}`;
  }

  #headers(owner) {
    return { 'clave-owner': Buffer.from(owner).toString('latin1') };
  }

  /** Waits for a slot, and resolves to it: `taken` is false when the owner had it before. Repeated after a lost answer
   * it is the same slot. `limit`: what a missing limit is made with. */
  async take(owner, given) {
    const { signal: own, ...options } = take(given, TAKE, 'take');
    known(owner, 'take');
    const { pending, signal: closing } = this.#life;
    const both = abortedBy(own, closing);
    const taken = this.#take(owner, { ...options, signal: both.signal }).finally(() => {
      pending.delete(taken);
      both.abort();
    });
    pending.add(taken);
    return taken;
  }

  async #take(owner, { wait: most = Infinity, signal, limit, by, reason, host = node.os.hostname() }) {
    const what = `cannot take a slot of ${this.path}`;
    const json = { path: this.path, kind: 'slot', host, limit, by, reason };
    const begun = stamp();
    let waits = false;
    try {
      for (;;) {
        signal.throwIfAborted();
        const seconds = Math.min(POLL_S, Math.ceil(Math.max(0, most - elapsed(begun)) / 1000));
        waits ||= seconds > 0;
        const answer = await this.#transport.ask('POST', '/v1/claims', { json, headers: this.#headers(owner), wait: seconds, within: TRY_MS + 1000 * seconds, writes: true, signal, what, path: this.path });
        if (answer.status === 200 || answer.status === 201) return new Slot(this.#transport, this.path, answer.told, answer.status === 201);
        if (answer.status !== 202) throw refused(answer.status, answer.told, what, this.path);
        if (seconds === 0) throw new BusyError(`${what}: none was free in time`, { path: this.path });
      }
    } catch (error) {
      // It waits no more. What it got in this moment stays its own: an earlier take may have been answered with it.
      if (waits) await this.give(owner, { token: NO_TOKEN }).catch(() => {});
      throw error;
    }
  }

  /** Gives it back; `token`: only the slot of that token. Resolves to whether the owner had it. Without a token it is not
   * repeated when its answer is lost: it could give back a later take (UnknownOutcomeError). */
  async give(owner, given) {
    const { token } = take(given, { token: 'token' }, 'give');
    known(owner, 'give');
    const what = `cannot give back the slot of ${owner}`;
    const target = `${this.#claim(owner)}${token === undefined ? '' : `?token=${token}`}`;
    const answer = await this.#transport.ask('DELETE', target, { headers: this.#headers(owner), repeatable: token !== undefined, writes: true, what, path: this.path });
    if (answer.status === 404) return false;
    if (answer.status >= 400) throw refused(answer.status, answer.told, what, this.path);
    return answer.told?.given === true;
  }

  /** {limit, owners, waiting, broken}: the oldest owner first. */
  async list() {
    const what = `cannot list the slots of ${this.path}`;
    const answer = await this.#transport.ask('GET', `/v1/slots${znode(this.path)}`, { what });
    if (answer.status !== 200) throw refused(answer.status, answer.told, what, this.path);
    return answer.told;
  }

  /** Sets how many owners there may be. A lower limit takes nobody's slot. */
  async setLimit(given) {
    const { limit } = take({ limit: given }, { limit: 'count' }, 'setLimit');
    const what = `cannot set the limit of ${this.path}`;
    const answer = await this.#transport.ask('PUT', `/v1/slots${znode(this.path)}`, { json: { limit }, repeatable: false, what, path: this.path });
    if (answer.status !== 200) throw refused(answer.status, answer.told, what, this.path);
  }

  /** Takes the slot away from its owner, as an operator; the reason is recorded. */
  async break(owner, given) {
    const { reason, token } = take(given, { reason: 'text', token: 'token' }, 'break');
    known(owner, 'break');
    const what = `cannot break the slot of ${owner}`;
    const answer = await this.#transport.ask('POST', `/v1/slots${znode(this.path)}/break`, { json: { owner, reason, token }, repeatable: false, what, path: this.path });
    if (answer.status !== 200) throw refused(answer.status, answer.told, what, this.path);
  }
}

module.exports = { Slots, Slot };
