'use strict';
// client.js - what a program has: locks, elections, run-once, who holds what. Sessions are shared by claims on
// different paths, and one timer renews them all.
const os = require('node:os');
const { LostError, UnreachableError, refused } = require('./errors.js');
const { Hold } = require('./hold.js');
const { runOnce } = require('./once.js');
const { Claim, Session } = require('./session.js');
const { Slots } = require('./slots.js');
const { milliseconds, elapsed, pause, backoff } = require('./time.js');
const { Transport, znode } = require('./transport.js');

const IDLE_MS = 2000; // a session without claims is kept for the next one
const CLAIMS_A_SESSION = 500;

class Client {
  #transport;
  #options;
  #sessions = new Set();
  #timer = null;
  #closed = false;
  #closing = new AbortController();
  #takes = new Set(); // of slots, that wait

  constructor(urls, options) {
    this.#transport = new Transport(urls, options);
    this.#options = {
      ttl: milliseconds(options.ttl ?? '10s', 'ttl'),
      name: options.name ?? `${os.hostname()} ${process.pid}`,
    };
  }

  // ---- what is held ------------------------------------------------------------------------------------------------

  /** Waits for the lock of `path`: a Hold. Rejects with BusyError after `wait` (without it: never). */
  lock(path, options = {}) {
    return this.#hold({ path, kind: 'lock' }, options);
  }

  /** The shared side of a read-write lock. */
  readLock(path, options = {}) {
    return this.#hold({ path, kind: 'read' }, options);
  }

  /** The exclusive side of a read-write lock. */
  writeLock(path, options = {}) {
    return this.#hold({ path, kind: 'write' }, options);
  }

  /** `permits` of `limit` leases, all or none. */
  semaphore(path, { limit, permits = 1, ...options }) {
    return this.#hold({ path, kind: 'semaphore', limit, permits }, options);
  }

  /** Places that belong to an owner and outlive this process: see lib/slots.js. */
  slots(path) {
    return new Slots(this.#transport, path, { signal: this.#closing.signal, pending: this.#takes });
  }

  /** Holds the lock while `fn(signal, hold)` runs. */
  async withLock(path, options, fn) {
    if (typeof options === 'function') [options, fn] = [{}, options];
    return (await this.lock(path, options)).run(fn);
  }

  /** Terms of leadership, one after the other: `for await (const term of client.lead('/svc'))`. The body of the loop
   * runs while this client leads. Its end resigns, and the next candidate leads; `break` stands no more. */
  async *lead(path, { signal, ...options } = {}) {
    for (let failures = 0; ; ) {
      let term;
      try {
        term = await this.#hold({ path, kind: 'election' }, { ...options, signal });
        failures = 0;
      } catch (error) {
        if (signal?.aborted) return;
        if (!(error instanceof LostError) || this.#closed) throw error; // a session that ended in the queue: again
        await pause(backoff(failures++), signal).catch(() => {});
        continue;
      }
      try {
        yield term;
      } finally {
        await term.release().catch((error) => {
          if (!(error instanceof LostError)) throw error;
        });
      }
    }
  }

  /** Runs `fn(signal, hold)` unless it was run within `for`, by any client: see lib/once.js. */
  once(path, options, fn) {
    return runOnce(this, path, options, fn);
  }

  // ---- who holds what ----------------------------------------------------------------------------------------------

  /** The lock as the gate knows it: its holders and waiters. null: nobody holds it or waits. */
  async look(path, { fresh = false } = {}) {
    const answer = await this.#transport.ask('GET', `/v1/locks${znode(path)}${fresh ? '?fresh' : ''}`, { what: `cannot look at ${path}` });
    if (answer.status === 404) return null;
    if (answer.status !== 200) throw refused(answer.status, answer.told, `cannot look at ${path}`);
    return answer.told;
  }

  /** The lock now, and after every change: `for await (const lock of client.watch('/jobs/x'))`. */
  async *watch(path, { signal } = {}) {
    for (let etag = null, failures = 0; !this.#closed; ) {
      const headers = etag === null ? {} : { 'if-none-match': etag };
      let answer = null;
      try {
        answer = await this.#transport.attempt('GET', `/v1/locks${znode(path)}`, { headers, wait: etag === null ? 0 : 30, signal });
      } catch {
        if (signal?.aborted) return;
      }
      if (answer?.status === 200 || answer?.status === 404) {
        etag = answer.headers.etag ?? '"none"';
        failures = 0;
        yield answer.status === 200 ? answer.told : null;
      } else if (answer && answer.status !== 304 && answer.status < 500 && answer.status !== 429) {
        throw refused(answer.status, answer.told, `cannot watch ${path}`);
      } else if (answer?.status !== 304) {
        await pause(backoff(failures++), signal).catch(() => {});
        if (signal?.aborted) return;
      }
    }
  }

  /** A node: {data, stat}, after everything that was committed before. null: there is none. */
  async get(path) {
    const what = `cannot get ${path}`;
    for (;;) {
      const [data, node] = await Promise.all(['?fresh', '?fresh&stat'].map((q) => this.#transport.ask('GET', `/v1/znodes${znode(path)}${q}`, { what })));
      for (const answer of [data, node]) if (answer.status !== 200 && answer.status !== 404) throw refused(answer.status, answer.told, what);
      if (data.status === 404 && node.status === 404) return null;
      const same = data.status === 200 && node.status === 200 && data.headers.etag === node.headers.etag;
      if (same) return { data: data.body, stat: node.told.stat };
    }
  }

  /** Ends all sessions, and so gives back all that is held, and all waits (LostError, ECLOSED). A slot stays its owner's. */
  async close() {
    this.#closed = true;
    this.#closing.abort(new LostError('the client is closed', { code: 'ECLOSED' }));
    clearTimeout(this.#timer);
    const sessions = [...this.#sessions];
    this.#sessions.clear();
    const ended = Promise.allSettled(sessions.map((s) => s.opening.then(() => s.close(5000), () => {})));
    await Promise.allSettled(this.#takes);
    const ends = await ended;
    this.#transport.close();
    const failed = ends.find((e) => e.status === 'rejected');
    if (failed) throw failed.reason;
  }

  // ---- sessions ----------------------------------------------------------------------------------------------------

  async #hold(terms, { wait, signal, name, command, maxHold, lockDelay } = {}) {
    if (typeof terms.path !== 'string' || !terms.path.startsWith('/')) throw new TypeError(`a path begins with "/", unlike ${JSON.stringify(terms.path)}`);
    const limit = wait === undefined ? Infinity : milliseconds(wait, 'wait');
    const more = { name: name ?? this.#options.name, command, host: os.hostname() };
    if (maxHold !== undefined) more.max_hold_ms = milliseconds(maxHold, 'maxHold');
    if (more.max_hold_ms <= this.#options.ttl / 10) throw new RangeError('maxHold must be more than a tenth of the ttl, which is kept back');
    if (lockDelay !== undefined) more.lock_delay_ms = milliseconds(lockDelay, 'lockDelay');
    signal?.throwIfAborted();
    const begun = performance.now();
    const left = () => Math.max(0, limit - (performance.now() - begun));
    for (;;) {
      const claim = this.#place({ ...terms, ...more });
      try {
        await opened(claim.session, signal, limit, left());
        await claim.session.acquire(claim, left(), signal);
      } catch (error) {
        claim.session.drop(claim);
        // The session ended while it waited, or cannot have the place: stand in line again, in a new session.
        if (!(error instanceof LostError) || signal?.aborted || this.#closed || left() === 0) throw error;
        continue;
      }
      this.#schedule();
      return new Hold(claim, this.#transport);
    }
  }

  /** A claim in a session that has none on its path: one that is there, or a new one. */
  #place(terms) {
    if (this.#closed) throw new LostError('the client is closed', { code: 'ECLOSED' });
    let session = [...this.#sessions].find((s) => !s.over && !s.haunted && s.claims.size < CLAIMS_A_SESSION && !s.has(terms.path));
    if (!session) {
      session = new Session(this.#transport, this.#options);
      this.#sessions.add(session);
      session.opening = session.open().then(
        () => this.#schedule(),
        (error) => {
          this.#sessions.delete(session);
          throw error;
        },
      );
      session.opening.catch(() => {}); // each of its claims tells
    }
    const claim = new Claim(session, terms);
    session.claims.add(claim);
    return claim;
  }

  /** One timer for all renewals; it keeps no process alive. */
  #schedule() {
    clearTimeout(this.#timer);
    let ms = Infinity;
    for (const session of this.#sessions) if (session.id) ms = Math.min(ms, session.renewing ? 50 : session.next());
    if (ms === Infinity || this.#closed) return;
    this.#timer = setTimeout(() => this.#tick(), Math.max(1, Math.min(ms, 2 ** 31 - 1)));
    this.#timer.unref();
  }

  #tick() {
    for (const session of this.#sessions) {
      if (!session.id) continue;
      const idle = session.claims.size === 0 && session.left.size === 0 && elapsed(session.idleSince) >= IDLE_MS;
      if (session.over || idle) {
        this.#sessions.delete(session);
        if (idle) session.close(1000).catch(() => {}); // or it ends by itself
      } else session.tick()?.then(() => this.#schedule());
    }
    this.#schedule();
  }
}

/** Waits until the session has begun, at most `ms`. */
async function opened(session, signal, limit, ms) {
  if (!signal && limit === Infinity) return session.opening;
  const given = new AbortController();
  const stop = () => given.abort(signal.reason);
  signal?.addEventListener('abort', stop, { once: true });
  const late = limit === Infinity ? null : setTimeout(() => given.abort(new UnreachableError(`no gate has answered in ${limit} ms`, { code: 'EUNREACHABLE' })), Math.max(1000, ms));
  const ended = new Promise((_, reject) => given.signal.addEventListener('abort', () => reject(given.signal.reason), { once: true }));
  try {
    await Promise.race([session.opening, ended]);
  } finally {
    clearTimeout(late);
    signal?.removeEventListener('abort', stop);
  }
}

module.exports = { Client };
