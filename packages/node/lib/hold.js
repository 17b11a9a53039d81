'use strict';
// hold.js - what is held: its token, for how long it is certain, its release.
const node = require('./node.js');
const { LostError, refused } = require('./errors.js');
const { Guarded } = require('./guarded.js');
const { take } = require('./options.js');
const { znode } = require('./transport.js');

class Hold extends Guarded {
  #claim;
  #transport;
  #reschedule;
  #released = null;

  constructor(claim, transport, reschedule = () => {}) {
    super(transport, () => claim.session.headers);
    this.#claim = claim;
    this.#transport = transport;
    this.#reschedule = reschedule;
  }

  get path() {
    return this.#claim.terms.path;
  }

  /** The fencing token, a decimal string: larger than that of every grant before, of any client. */
  get token() {
    return this.#claim.token;
  }

  /** Aborted, with a LostError, before another may own it. A blocked event loop cannot be told: see validFor. */
  get signal() {
    return this.#claim.lost.signal;
  }

  /** Milliseconds for which nobody else can own it, by the clock of now; 0: nothing is certain. */
  get remaining() {
    return this.#released ? 0 : Math.max(0, this.#claim.remaining());
  }

  /** True when it is held and certainly will be for `ms` milliseconds. */
  validFor(ms = 0) {
    return this.remaining > ms;
  }

  /** Throws a LostError unless it is certainly held. */
  check() {
    this.#claim.judge();
    this.signal.throwIfAborted();
    if (!this.validFor()) throw new LostError(`${this.path} is not certainly held any more`, { path: this.path });
  }

  /** A sign of life from the work under it; of a hold that was taken with `alive`. Resolves when a gate has noted it, and
   * rejects with the LostError of the signal when that comes first; it need not be awaited. */
  alive() {
    if (this.#claim.terms.depend_ms === undefined) return Promise.resolve();
    const noted = this.#claim.session.alive(this.#claim).finally(this.#reschedule);
    noted.catch(() => {}); // the hold's signal tells, too
    return noted;
  }

  /** Gives it back; resolves when it is, and rejects after `within` at the latest (the ttl). Rejects with a LostError
   * when it had been lost before. Repeated, it is the same promise. */
  release(options) {
    const { within = this.#claim.session.ttl } = take(options, { within: 'duration' }, 'release');
    if (!this.#released) {
      this.#claim.judge();
      this.#released = this.signal.aborted ? Promise.reject(this.signal.reason) : this.#claim.session.release(this.#claim, within);
      this.#reschedule();
    }
    return this.#released;
  }

  /** It keeps the process alive no more. */
  unref() {
    this.#claim.isRefed = false;
    this.#reschedule();
    return this;
  }

  ref() {
    this.#claim.isRefed = true;
    this.#reschedule();
    return this;
  }

  /** Runs `fn` with the signal, and releases. An error of `fn` comes first; one of the release is not hidden by a
   * result. */
  async run(fn) {
    let result;
    try {
      result = await fn(this.signal, this);
    } catch (error) {
      await this.release().catch((late) => attach(error, late));
      throw error;
    }
    await this.release();
    return result;
  }

  /** Of an election: what the leader says to those who look. */
  async publish(value) {
    const what = `cannot publish at ${this.path}`;
    const answer = await this.#transport.ask('PUT', `/v1/elections${znode(this.path)}/value`, { body: value, headers: this.#claim.session.headers, what, path: this.path });
    if (answer.status >= 400) throw refused(answer.status, answer.told, what, this.path);
  }

  toJSON() {
    const state = this.#released ? 'released' : this.signal.aborted ? 'lost' : 'held';
    return { path: this.path, kind: this.#claim.terms.kind, state, token: this.token, remaining: Math.round(this.remaining) };
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth, options) {
    return `Hold ${node.util.inspect(this.toJSON(), options)}`;
  }
}

// `await using`, where Node has it.
Hold.prototype[Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')] = async function dispose() {
  await this.release();
};

function attach(error, late) {
  if (error instanceof Error && error.cause === undefined && late !== error) error.cause = late;
}

module.exports = { Hold };
