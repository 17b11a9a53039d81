'use strict';
// counter.js - a number that several programs change: `clave counter` and Curator's DistributedAtomicLong. Values are BigInts.
const { UnknownOutcomeError, refused } = require('./errors.js');
const { znode } = require('./transport.js');

/** A whole number of 64 bits, as the gate takes it. */
function whole(value, what) {
  const fits = (typeof value === 'number' && Number.isSafeInteger(value)) || (typeof value === 'bigint' && BigInt.asIntN(64, value) === value);
  if (!fits) throw new TypeError(`${what}: a whole number of 64 bits, or a BigInt, is needed, not ${String(value)}`);
  return String(value);
}

class Counter {
  #transport;

  constructor(transport, path) {
    this.#transport = transport;
    this.path = path;
  }

  async #ask(method, request, what) {
    const answer = await this.#transport.ask(method, `/v1/counters${znode(this.path)}`, { ...request, what, path: this.path });
    if (answer.status !== 200) throw refused(answer.status, answer.told, what, this.path);
    return BigInt(answer.told.value);
  }

  /** A change is not repeated when its answer was lost: an UnknownOutcomeError, and it may have been made. */
  #change(json, verb) {
    return this.#ask('POST', { json, repeatable: false, writes: true }, `cannot ${verb} ${this.path}`);
  }

  /** The value, as current as the leader. */
  async get() {
    return this.#ask('GET', {}, `cannot read ${this.path}`);
  }

  /** Adds `delta`, 1 by default: the new value. */
  async add(delta = 1) {
    return this.#change({ add: whole(delta, 'add') }, 'add to');
  }

  /** Sets it, whatever it is. */
  async set(value) {
    return this.#change({ set: whole(value, 'set') }, 'set');
  }

  /** Sets it if it is `expected`: true; false when it is another value. */
  async compareAndSet(expected, value) {
    try {
      await this.#change({ set: whole(value, 'compareAndSet'), expected: whole(expected, 'compareAndSet') }, 'set');
      return true;
    } catch (error) {
      if (error.code === 'EBADVERSION' && !(error instanceof UnknownOutcomeError)) return false;
      throw error;
    }
  }
}

module.exports = { Counter };
