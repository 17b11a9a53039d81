'use strict';
// client.js - what a program has: locks, elections, run-once, who holds what. Its claims have one session, which one
// timer renews; what a lost answer may have left in a session is not added to, so there may be a second one.
const node = require('./node.js');
const { Counter } = require('./counter.js');
const { LostError, UnreachableError, refused } = require('./errors.js');
const { Hold } = require('./hold.js');
const { runOnce } = require('./once.js');
const { call, path: checked, take } = require('./options.js');
const { Membership, Registration } = require('./registration.js');
const { Claim, Session } = require('./session.js');
const { Slots } = require('./slots.js');
const { orAborted, backoff, after } = require('./time.js');
const { Transport, znode } = require('./transport.js');

const IDLE_MS = 2000; // a session without claims is kept for the next one
const CLAIMS_A_SESSION = 500;
const CLOSE_MS = 5000;
const OPEN_MS = 10_000; // for a session to begin

const CONNECT = { token: 'bearer', ttl: 'duration', name: 'text', ca: 'pem', cert: 'pem', key: 'pem' };
const HOLD = { wait: 'duration', signal: 'signal', name: 'text', command: 'text', maxHold: 'duration', alive: 'duration', lockDelay: 'duration' };
const { wait: _, ...LEAD } = HOLD;
const SEMAPHORE = { limit: 'count', permits: 'count', ...HOLD };

/** The URL of a list, with its query. */
function instancesOf(service, { base = '/services' }, what) {
  if (typeof service !== 'string' || service === '') throw new TypeError(`${what}: a service is a name, unlike ${typeof service === 'string' ? JSON.stringify(service) : String(service)}`);
  return `/v1/services/${encodeURIComponent(service)}?base=${encodeURIComponent(checked(base, `${what}: base`))}`;
}

class Client {
  #transport;
  #options;
  #sessions = new Set();
  #stop = () => {}; // the timer
  #closed = false;
  #closing = new AbortController();
  #takes = new Set(); // of slots, that wait

  constructor(urls, given) {
    const options = take(given, CONNECT, 'connect');
    this.#transport = new Transport(urls, options);
    const host = node.os.hostname();
    this.#options = { ttl: options.ttl ?? 10_000, host, name: options.name ?? `${host} ${process.pid}` };
  }

  // ---- what is held ------------------------------------------------------------------------------------------------

  /** Waits for the lock of `path`: a Hold. Rejects with BusyError after `wait` (without it: never). */
  async lock(path, options) {
    return this.#hold({ path, kind: 'lock' }, take(options, HOLD, 'lock'));
  }

  /** The shared side of a read-write lock. */
  async readLock(path, options) {
    return this.#hold({ path, kind: 'read' }, take(options, HOLD, 'readLock'));
  }

  /** The exclusive side of a read-write lock. */
  async writeLock(path, options) {
    return this.#hold({ path, kind: 'write' }, take(options, HOLD, 'writeLock'));
  }

  /** `permits` of `limit` leases, all or none. */
  async semaphore(path, options) {
    const { limit, permits = 1, ...rest } = take(options, SEMAPHORE, 'semaphore');
    if (limit === undefined) throw new TypeError('semaphore: limit is missing: how many leases there are, the same number everywhere');
    return this.#hold({ path, kind: 'semaphore', limit, permits }, rest);
  }

  /** Places that belong to an owner and outlive this process: see lib/slots.js. */
  slots(path) {
    return new Slots(this.#transport, checked(path, 'slots'), { signal: this.#closing.signal, pending: this.#takes });
  }

  /** A number that several programs change: see lib/counter.js. */
  counter(path) {
    return new Counter(this.#transport, checked(path, 'counter'));
  }

  /** Holds the lock while `fn(signal, hold)` runs. */
  async withLock(path, options, fn) {
    if (typeof options === 'function') [options, fn] = [undefined, options];
    call(fn, 'withLock');
    return (await this.#hold({ path, kind: 'lock' }, take(options, HOLD, 'withLock'))).run(fn);
  }

  /** Terms of leadership, one after the other: `for await (const term of client.lead('/svc'))`. The body of the loop
   * runs while this client leads. Its end resigns, and the next candidate leads; `break` stands no more. An outage ends
   * a term, and not the loop. */
  lead(path, options) {
    checked(path, 'lead');
    return this.#terms(path, take(options, LEAD, 'lead'));
  }

  async *#terms(path, { signal, ...options }) {
    for (let failures = 0; ; ) {
      let term;
      try {
        term = await this.#hold({ path, kind: 'election' }, { ...options, signal });
        failures = 0;
      } catch (error) {
        if (signal?.aborted) return;
        if (!(error instanceof LostError || error instanceof UnreachableError) || this.#closed) throw error;
        await this.#transport.pause(backoff(failures++), signal).catch(() => {});
        continue;
      }
      let goesOn = false;
      try {
        yield term;
        goesOn = true;
      } finally {
        await term.release().catch((error) => {
          // When no gate has answered, it is given back by a renewal, or with the session.
          if (!(error instanceof LostError || (goesOn && error instanceof UnreachableError))) throw error;
        });
      }
    }
  }

  /** Runs `fn(signal, hold)` unless it was run within `for`, by any client: see lib/once.js. */
  async once(path, options, fn) {
    if (typeof options === 'function') [options, fn] = [undefined, options];
    call(fn, 'once');
    const { key, for: period, atMostOnce, ...rest } = take(options, { key: 'text', for: 'duration', atMostOnce: 'flag', ...HOLD }, 'once');
    return runOnce(this, path, { key, period, atMostOnce }, rest, fn);
  }

  // ---- who holds what ----------------------------------------------------------------------------------------------

  /** The lock as the gate knows it: its holders and waiters. null: nobody holds it or waits. */
  async look(path, options) {
    const { fresh = false } = take(options, { fresh: 'flag' }, 'look');
    const what = `cannot look at ${checked(path, 'look')}`;
    const answer = await this.#transport.ask('GET', `/v1/locks${znode(path)}${fresh ? '?fresh' : ''}`, { what, path });
    if (answer.status === 404) return null;
    if (answer.status !== 200) throw refused(answer.status, answer.told, what, path);
    return answer.told;
  }

  /** Who is in a group: [{id, session, data, since, ...}]. */
  async members(path, options) {
    take(options, {}, 'members');
    return (await this.#list(`/v1/members${znode(checked(path, 'members'))}?fresh`, path)).members;
  }

  /** The instances of a service below `base` ('/services'): [{id, address, port, state, payload, ...}]. */
  async instances(service, options) {
    return (await this.#list(`${instancesOf(service, take(options, { base: 'text' }, 'instances'), 'instances')}&fresh`)).instances;
  }

  /** The members of a group now, and after every change. */
  watchMembers(path, options) {
    const { signal } = take(options, { signal: 'signal' }, 'watchMembers');
    return this.#changes(path, `/v1/members${znode(checked(path, 'watchMembers'))}`, (told) => told.members, signal);
  }

  /** The instances of a service now, and after every change. */
  watchInstances(service, options) {
    const { signal, ...rest } = take(options, { base: 'text', signal: 'signal' }, 'watchInstances');
    return this.#changes(service, instancesOf(service, rest, 'watchInstances'), (told) => told.instances, signal);
  }

  // ---- being found -------------------------------------------------------------------------------------------------

  /** Is a member of the group at `path` while this process lives, or until it leaves: see lib/registration.js. */
  async join(path, options) {
    return Membership.join(this.#transport, this.#keeper, path, options);
  }

  /** Is an instance of a service while this process lives, or until it is unregistered. */
  async register(service, options) {
    return Registration.register(this.#transport, this.#keeper, service, options);
  }

  #keeper = { place: (kept, signal) => this.#placeNode(kept, signal), schedule: () => this.#schedule() };

  async #list(target, path) {
    const what = `cannot list ${target}`;
    const answer = await this.#transport.ask('GET', target, { what, path });
    if (answer.status !== 200) throw refused(answer.status, answer.told, what, path);
    return answer.told;
  }

  /** The lock now, and after every change: `for await (const lock of client.watch('/jobs/x'))`. */
  watch(path, options) {
    const { signal } = take(options, { signal: 'signal' }, 'watch');
    return this.#changes(path, `/v1/locks${znode(checked(path, 'watch'))}`, (told) => told, signal);
  }

  async *#changes(what, target, tell, signal) {
    for (let etag = null, failures = 0; !this.#closed; ) {
      const headers = etag === null ? {} : { 'if-none-match': etag };
      let answer = null;
      try {
        answer = await this.#transport.attempt('GET', target, { headers, wait: etag === null ? 0 : 30, waits: true, signal });
      } catch {
        if (signal?.aborted) return;
      }
      if (answer?.status === 200 || answer?.status === 404) {
        etag = answer.headers.etag ?? '"none"';
        failures = 0;
        yield answer.status === 200 ? tell(answer.told) : null;
      } else if (answer && answer.status !== 304 && answer.status < 500 && answer.status !== 429) {
        throw refused(answer.status, answer.told, `cannot watch ${what}`);
      } else if (answer?.status !== 304) {
        await this.#transport.pause(backoff(failures++), signal).catch(() => {});
        if (signal?.aborted) return;
      }
    }
  }

  /** A node: {data, stat}, after everything that was committed before. null: there is none. */
  async get(path) {
    const what = `cannot get ${checked(path, 'get')}`;
    for (;;) {
      const [data, found] = await Promise.all(['?fresh', '?fresh&stat'].map((q) => this.#transport.ask('GET', `/v1/znodes${znode(path)}${q}`, { what, path })));
      for (const answer of [data, found]) if (answer.status !== 200 && answer.status !== 404) throw refused(answer.status, answer.told, what, path);
      if (data.status === 404 && found.status === 404) return null;
      const same = data.status === 200 && found.status === 200 && data.headers.etag === found.headers.etag;
      if (same) return { data: data.body, stat: found.told.stat };
    }
  }

  /** Ends all sessions, and so gives back all that is held, and all waits (LostError, ECLOSED), for `within` at most. A
   * slot stays its owner's. */
  async close(options) {
    const { within = CLOSE_MS } = take(options, { within: 'duration' }, 'close');
    this.#closed = true;
    this.#closing.abort(new LostError('the client is closed', { code: 'ECLOSED' }));
    this.#stop();
    const sessions = [...this.#sessions];
    this.#sessions.clear();
    const late = new AbortController();
    const cancel = after(within, () => late.abort(new UnreachableError(`the client is closed, and what it holds may stand for its ttl: no gate has answered in ${within} ms (${this.#transport.urls})`)));
    const end = async (s) => {
      await orAborted(s.opening, late.signal).catch(() => {});
      await s.close(within);
    };
    const ended = Promise.allSettled(sessions.map((s) => orAborted(end(s), late.signal)));
    await orAborted(Promise.allSettled(this.#takes), late.signal).catch(() => {});
    const ends = await ended;
    cancel();
    this.#transport.close();
    const failed = ends.find((e) => e.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** Nothing of it keeps the process alive any more: neither what it holds nor what waits. */
  unref() {
    this.#transport.unref();
    this.#schedule();
    return this;
  }

  toJSON() {
    const claims = [...this.#sessions].flatMap((s) => [...s.claims]);
    const paths = (state) => claims.filter((c) => c.state === state).map((c) => c.terms.path);
    return { gates: this.#transport.gates.map((g) => g.url), holds: paths('held'), waits: paths('waiting') };
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth, options) {
    return `Client ${node.util.inspect(this.toJSON(), options)}`;
  }

  // ---- sessions ----------------------------------------------------------------------------------------------------

  async #hold({ path, ...terms }, { wait, signal, name, command, maxHold, alive, lockDelay }) {
    checked(path, terms.kind === 'election' ? 'lead' : terms.kind);
    const limit = wait ?? Infinity;
    const more = { name: name ?? this.#options.name, command, host: this.#options.host, max_hold_ms: maxHold, depend_ms: alive, lock_delay_ms: lockDelay };
    for (const [option, ms] of Object.entries({ maxHold, alive }))
      if (ms !== undefined && !(ms >= 1 && ms < 2 ** 31)) throw new RangeError(`${option} must be from 1 ms to 24 days, not ${ms} ms`);
    signal?.throwIfAborted();
    const begun = performance.now();
    const left = () => Math.max(0, limit - (performance.now() - begun));
    for (;;) {
      const claim = this.#place({ path, ...terms, ...more });
      try {
        await this.#opened(claim.session, path, signal, limit, left());
        await claim.session.acquire(claim, left(), signal);
      } catch (error) {
        claim.session.drop(claim);
        this.#schedule();
        // The session ended while it waited, or cannot have the place: stand in line again, in a new session.
        if (!(error instanceof LostError) || signal?.aborted || this.#closed || left() === 0) throw error;
        continue;
      }
      this.#schedule();
      return new Hold(claim, this.#transport, () => this.#schedule());
    }
  }

  /** Waits until the session of the claim has begun, at most `ms`. */
  async #opened(session, path, signal, limit, ms) {
    if (session.id !== undefined) return;
    const given = new AbortController();
    const what = `cannot have ${path}`;
    const cancel = after(Math.max(1000, ms), () => given.abort(this.#transport.unreachable(what, limit, { path })), this.#transport.isRefed);
    const stop = () => given.abort(signal.reason);
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    try {
      await orAborted(session.opening, given.signal);
    } catch (error) {
      // One for all claims of the session: each tells its own path.
      if (!(error instanceof UnreachableError) || error.path) throw error;
      throw new UnreachableError(`${what}: ${error.message}`, { cause: error.cause, problem: error.problem, path });
    } finally {
      cancel();
      signal?.removeEventListener('abort', stop);
    }
  }

  /** A claim in a session that may have more, or a new one. */
  #place(terms) {
    const session = this.#session();
    const claim = new Claim(session, terms);
    session.claims.add(claim);
    return claim;
  }

  /** The same of a node that stays, when the session has begun. */
  async #placeNode(kept, signal) {
    const session = this.#session();
    session.nodes.add(kept);
    try {
      await this.#opened(session, kept.path, signal, OPEN_MS, OPEN_MS);
    } catch (error) {
      session.forget(kept);
      throw error;
    } finally {
      this.#schedule();
    }
    return session;
  }

  #session() {
    if (this.#closed) throw new LostError('the client is closed', { code: 'ECLOSED' });
    let session = [...this.#sessions].find((s) => !s.over && !s.haunted && s.claims.size + s.nodes.size < CLAIMS_A_SESSION);
    if (!session) {
      session = new Session(this.#transport, this.#options);
      this.#sessions.add(session);
      session.opening = session.open(this.#closing.signal).then(
        () => {
          this.#tell(session.ttl);
          this.#schedule();
        },
        (error) => {
          this.#sessions.delete(session);
          throw error;
        },
      );
      session.opening.catch(() => {}); // each of its claims tells
    }
    return session;
  }

  /** The servers bound a session's time. */
  #tell(ttl) {
    if (ttl >= this.#options.ttl) return;
    process.emitWarning(`a ttl of ${this.#options.ttl} ms was asked for, and the servers give ${ttl} ms at most: after so long without a renewal what is held passes on`, { type: 'ClaveWarning', code: 'CLAVE_TTL' });
    this.#options.ttl = ttl;
  }

  /** One timer for all renewals. It keeps the process alive while there are claims. */
  #schedule() {
    this.#stop();
    let ms = Infinity;
    for (const session of this.#sessions) if (session.id) ms = Math.min(ms, session.renewing ? 50 : session.next());
    if (ms === Infinity || this.#closed) return;
    const keeps = this.#transport.isRefed && [...this.#sessions].some((s) => s.isRefed);
    this.#stop = after(Math.max(1, ms), () => this.#tick(), keeps);
  }

  #tick() {
    for (const session of this.#sessions) {
      if (!session.id) continue;
      const idle = session.idle >= IDLE_MS;
      if (session.over || idle) {
        this.#sessions.delete(session);
        if (idle) session.close(1000).catch(() => {}); // or it ends by itself
      } else session.tick()?.then(() => this.#schedule());
    }
    this.#schedule();
  }
}

Client.prototype[Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')] = async function dispose() {
  await this.close();
};

module.exports = { Client };
