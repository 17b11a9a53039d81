'use strict';
// hold.js - what is held: its token, for how long it is certain, its release.
const { LostError, refused } = require('./errors.js');
const { Guarded } = require('./guarded.js');
const { znode } = require('./transport.js');

class Hold extends Guarded {
  #claim;
  #transport;
  #released = null;

  constructor(claim, transport) {
    super(transport, () => claim.session.headers);
    this.#claim = claim;
    this.#transport = transport;
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
    if (!this.validFor()) throw new LostError(`${this.path} is not certainly held any more`, { code: 'ELOST' });
  }

  /** Gives it back; resolves when it is. Rejects with a LostError when it had been lost before. Repeated, it is the
   * same promise. */
  release() {
    if (!this.#released) {
      this.#claim.judge();
      this.#released = this.signal.aborted ? Promise.reject(this.signal.reason) : this.#claim.session.release(this.#claim, this.#claim.session.ttl);
    }
    return this.#released;
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
    const answer = await this.#transport.ask('PUT', `/v1/elections${znode(this.path)}/value`, { body: value, headers: this.#claim.session.headers, what });
    if (answer.status >= 400) throw refused(answer.status, answer.told, what);
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
