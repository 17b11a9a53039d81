'use strict';
// session.js - one session at the gates: the claims that it has, the one request that waits for all of them, and the
// renewals that keep them. A claim is 'waiting', 'held', 'left' (given back, or being given back) or 'lost'.
const node = require('./node.js');
const { BusyError, LostError, UnreachableError, refused, reason } = require('./errors.js');
const { stamp, elapsed, pause } = require('./time.js');

const LONGEST_POLL_S = 30;
const LAST_MS = 1000; // when the time to wait is over
const FIRST_MS = 3000; // for an answer, until another gate is asked
const MARGIN = 10; // of the session's time, a part is kept back: for clocks that run at different rates, and to stop
const MARGIN_OF_LIMIT = 32; // of maxHold: whoever sets it counts on it
const TRIES_OF_SIGN = 4; // in that time, of one sign of life that is not answered
const AGAIN = new Set([429, 502, 503, 504]); // nobody knows, or too many wait

/** The gate was restarted without its key, perhaps: another one may read it, and what is held is held until its deadline. */
const isUnreadable = (answer) => answer.status === 403 && answer.told?.code === 'EOTHERKEY';

/** A key that a repeated request finds the same place by, at whichever gate it arrives, and the gates' id of the claim. As
 * a UUID of version 8 it names an owner: each claim is its own, so many of one session stand in one queue. */
function ownKey() {
  const uuid = node.crypto.randomUUID();
  return `${uuid.slice(0, 14)}8${uuid.slice(15)}`;
}

/** A place in a queue. `hold` is told when it is lost. */
class Claim {
  constructor(session, terms) {
    this.session = session;
    this.terms = terms;
    this.key = ownKey();
    this.state = 'waiting';
    this.token = null;
    this.asked = false; // a gate has told of it
    this.sent = null; // valid for so long after this request was sent
    this.valid = 0;
    this.since = stamp(); // it was not held before this
    this.alive = null; // when the newest sign of life was sent that a gate has noted
    this.sign = null; // the promise of the newest one, and of one that is not sent yet
    this.nextSign = null;
    this.lost = null; // an AbortController, from when it is held
    this.removing = null; // the promise of giving it back
    this.rest = 0; // milliseconds, before it is
    this.isRefed = true; // it keeps the process alive
    this.wake = null; // while it waits: there is news
  }

  /** Milliseconds in which nobody else can own it. */
  remaining() {
    return this.state === 'held' ? this.valid - elapsed(this.sent) - this.#margin() : 0;
  }

  #margin() {
    const { max_hold_ms: most, depend_ms: silence } = this.terms;
    const least = { EMAXHOLD: most / MARGIN_OF_LIMIT, ESILENT: silence / MARGIN }[this.#limit()] ?? Infinity;
    return Math.min(least, this.session.ttl / MARGIN);
  }

  /** What was told as its end is that of maxHold or of `alive`, or after it: which. */
  #limit() {
    const { max_hold_ms: most, depend_ms: silence } = this.terms;
    const end = this.sent.monotonic + this.valid;
    const isAfter = (from, ms) => ms !== undefined && end >= from.monotonic + ms * (1 - 1 / 64) - 5;
    if (isAfter(this.since, most)) return 'EMAXHOLD';
    return isAfter(this.alive ?? this.since, silence) ? 'ESILENT' : null;
  }

  /** What the gate has told of it in an answer to a request that was sent then. */
  told(sent, told) {
    this.asked = true;
    const { path } = this.terms;
    const code = told.cause === 'work_silent' ? 'ESILENT' : 'ELOST';
    const lost = (text) => this.lose(new LostError(`${path} ${text}`, { code, path }));
    if (told.state === 'lost' || told.state === 'released') lost(`is lost: ${told.cause ?? told.state}`);
    else if (told.state === 'held' && this.state === 'waiting') {
      [this.state, this.token, this.sent, this.valid] = ['held', told.token, sent, told.valid_ms ?? 0];
      this.lost = new AbortController();
    } else if (told.state === 'held' && this.state === 'held') {
      if (told.token !== this.token) lost('was lost: it was granted anew');
      else if (told.valid_ms - elapsed(sent) > this.valid - elapsed(this.sent)) [this.sent, this.valid] = [sent, told.valid_ms];
    } else if (told.state === 'waiting' && this.state === 'held') lost('is lost: it waits again');
    else if (told.state === 'waiting' && this.state === 'waiting') this.since = sent;
  }

  lose(error) {
    if (this.state !== 'held') return;
    // Whoever is told of it now needs the time that was kept back to stop: it is given back after that.
    this.rest = Math.min(this.#margin(), this.valid - elapsed(this.sent));
    this.state = 'lost';
    this.session.leave(this);
    this.lost.abort(error);
  }

  /** Loses it when its time is over, whether or not a timer has come to say so. */
  judge() {
    if (this.state !== 'held' || this.remaining() > 0) return;
    const { path, max_hold_ms: most, depend_ms: silence } = this.terms;
    const code = this.#limit() ?? 'ELOST';
    const what = {
      EMAXHOLD: `was given back: it was held for ${most} ms (maxHold)`,
      ESILENT: `is lost: its work gave no sign of life for ${silence} ms (alive)`,
      ELOST: 'is lost: it was not renewed in time',
    };
    this.lose(new LostError(`${path} ${what[code]}`, { code, path }));
  }
}

class Session {
  constructor(transport, { ttl, name }) {
    this.transport = transport;
    this.wanted = { ttl_ms: ttl, name };
    this.ttl = ttl;
    this.claims = new Set(); // waiting or held
    this.left = new Set(); // given up, and perhaps still at the gates
    this.nodes = new Set(); // that stay: of members and instances (kept.js)
    this.ghosts = new Set(); // of those, given up, and perhaps still there
    this.over = null; // the error that ended it
    this.idleSince = stamp();
    this.dueIn = 0; // of the next renewal, after `renewed`
    this.renewed = stamp();
    this.renewing = false;
    this.tidying = false;
    this.haunted = false; // has, had, or may get a place that is nobody's: it is given no other claims
    this.watching = null; // aborts the request that waits
  }

  /** Of one that was aborted nobody has learnt the secret, and the gate ends it. */
  async open(signal) {
    const what = 'cannot begin a session';
    const answer = await this.transport.ask('POST', '/v1/sessions', { json: this.wanted, what, signal });
    if (answer.status !== 201) throw refused(answer.status, answer.told, what);
    ({ id: this.id, ttl_ms: this.ttl } = answer.told);
    this.headers = { 'clave-session': answer.told.secret };
    this.renewed = answer.sent;
    this.dueIn = this.ttl / 3;
  }

  // ---- claims ----------------------------------------------------------------------------------------------------

  #order(claim, wait) {
    return { json: { session: this.id, ...claim.terms }, headers: { ...this.headers, 'idempotency-key': claim.key }, wait };
  }

  post(claim, wait, request = {}) {
    return this.transport.attempt('POST', '/v1/claims', { ...this.#order(claim, wait), ...request });
  }

  /** Waits until the claim is held. Rejects with BusyError when it is not in `wait` ms. */
  async acquire(claim, wait, signal) {
    const begun = stamp();
    const { path } = claim.terms;
    try {
      // An answer that took longer than it is valid gives nothing: it is asked for again.
      for (let failures = 0; claim.remaining() <= 0; ) {
        if (this.over) throw this.over;
        const left = wait - elapsed(begun);
        const answer = await this.#ask(claim, wait <= 0, left, signal);
        if (claim.remaining() > 0) break;
        if (this.over) throw this.over;
        if (claim.state === 'lost') throw new LostError(`${path} was lost as soon as it was held`, { code: 'ELOST', path });
        if (answer && isUnreadable(answer)) {
          this.haunted = true; // what it holds is held until its deadline; this place is asked for in another session
          throw new LostError(`${path}: no gate can read the session`, { code: 'ELOST', problem: answer.told, path });
        }
        if (answer && !AGAIN.has(answer.status) && answer.status >= 400) throw refused(answer.status, answer.told, `cannot have ${path}`, path);
        failures = answer?.status < 400 && claim.state === 'waiting' ? 0 : failures + 1;
        const late = wait - elapsed(begun) <= 0;
        // A gate tells a position while its servers tell it: without one nobody knows whether another is before us.
        if (late && answer?.told?.position > 0) throw new BusyError(`${path} was not free in time`, { path });
        // When no gate has said anything yet, each is asked once more, without a wait.
        if (late && (claim.asked || (left <= 0 && failures >= this.transport.gates.length))) {
          const cause = answer ? undefined : this.transport.fault;
          throw new UnreachableError(`${path}: no gate has told in time who holds it${cause ? `: ${reason(cause)}` : ''}`, { cause, path });
        }
        if (failures > 0 && !late) await this.transport.pause(this.transport.rest(failures, left / 2), signal);
        else if (!late && claim.state === 'waiting') await this.#news(claim, wait - elapsed(begun), signal);
      }
    } catch (error) {
      if (claim.state !== 'lost') this.leave(claim);
      claim.state = 'left';
      throw error;
    }
  }

  /** Asks for the place, or what has become of it. `tries`: only if it is free. null: no answer. */
  async #ask(claim, tries, left, signal) {
    const begun = stamp();
    const most = Math.max(claim.asked ? LAST_MS : 0, left > 0 ? Math.min(left, FIRST_MS) : LAST_MS);
    try {
      const answer = await this.post(claim, tries ? 0 : null, { signal, timeout: most });
      if (answer.status === 200 || answer.status === 201 || answer.status === 202) claim.told(answer.sent, answer.told);
      else if (answer.status < 400) return null; // of no gate
      if (answer.status === 410 && !answer.told?.path) this.#end(refused(410, answer.told, 'the session')); // with a path, it is the claim's end
      return answer;
    } catch (error) {
      const isCut = claim.asked && elapsed(begun) >= left; // by us
      // Delivered late to a gate that is not asked to renew, it makes a place that ends only with the session.
      if (!isCut && error.code !== 'ECONNREFUSED') this.haunted = true;
      if (signal?.aborted) throw signal.reason;
      return null;
    }
  }

  /** Whether it has nothing, and for how long: milliseconds. */
  get idle() {
    return this.claims.size + this.left.size + this.nodes.size === 0 ? elapsed(this.idleSince) : 0;
  }

  /** Forgets a place. */
  drop(claim) {
    this.claims.delete(claim);
    if (this.claims.size === 0) this.idleSince = stamp();
  }

  /** Forgets a node that was given up. */
  forget(kept) {
    this.nodes.delete(kept);
    if (this.nodes.size === 0) this.idleSince = stamp();
  }

  /** The same, but it may still be there, or come back: a request for it may arrive late. */
  haunt(kept) {
    this.forget(kept);
    this.haunted = true;
    if (!this.over) this.ghosts.add(kept);
  }

  /** Gives up a place, whatever is known of it. */
  leave(claim) {
    this.drop(claim);
    if (this.over) return;
    this.left.add(claim);
    this.#remove(claim).catch(() => {}); // the next renewal tries again
  }

  /** Resolves when the gates have given it back. */
  async release(claim, within) {
    claim.state = 'left';
    this.drop(claim);
    if (this.over) return;
    this.left.add(claim);
    await this.#remove(claim, within);
  }

  #remove(claim, within = 5000) {
    claim.removing ??= this.#rest(claim)
      .then(() => this.#giveBack(claim, within))
      .finally(() => (claim.removing = null));
    return claim.removing;
  }

  async #rest(claim) {
    const { rest } = claim;
    claim.rest = 0;
    if (rest > 0) await pause(rest);
  }

  async #giveBack(claim, within) {
    const { path } = claim.terms;
    const what = `cannot give back ${path}`;
    const begun = stamp();
    const ask = (method, target, request) => this.transport.ask(method, target, { headers: this.headers, ...request, within: Math.max(1, within - elapsed(begun)), what, path });
    while (elapsed(begun) < within) {
      const answer = await ask('DELETE', `/v1/claims/${claim.key}`);
      if (answer.status < 400 || answer.status === 410) this.left.delete(claim);
      if (answer.status < 400) return;
      if (answer.status !== 404) throw refused(answer.status, answer.told, what, path); // 410: it was over before
      // A gate that does not know it, or not since its restart: asked for by its key, the place is found.
      const found = await ask('POST', '/v1/claims', this.#order(claim, 0));
      if (!['held', 'waiting', 'suspended'].includes(found.told?.state)) return void this.left.delete(claim); // it was tried, and is not there
    }
    throw new UnreachableError(`${what}: no gate has known it in time`, { path });
  }

  /** A place of this session that is nobody's: a request for a claim arrived late, when that had been given back by
   * another gate. Each gate is asked, since only the one that made it knows. */
  async #disown(id) {
    for (const _ of this.transport.gates) {
      await this.transport.ask('DELETE', `/v1/claims/${id}`, { headers: this.headers, within: 1000 }).catch(() => {});
      this.transport.next();
    }
  }

  /** A sign of life of the work under a claim: resolves when a gate has noted one that was sent after this call. It is
   * repeated until the claim is lost. Those that come while one is on its way share the next. */
  alive(claim) {
    claim.nextSign ??= Promise.resolve(claim.sign)
      .catch(() => {})
      .then(() => {
        [claim.sign, claim.nextSign] = [claim.nextSign, null];
        return this.#sign(claim);
      });
    return claim.nextSign;
  }

  async #sign(claim) {
    const { path, depend_ms: silence } = claim.terms;
    const { signal } = claim.lost;
    for (let failures = 0; ; failures++) {
      claim.judge();
      if (claim.state !== 'held') throw signal.reason ?? new LostError(`${path} was released`, { code: 'ELOST', path });
      const timeout = Math.max(100, silence / TRIES_OF_SIGN);
      const answer = await this.transport.attempt('POST', `/v1/claims/${claim.key}/alive`, { headers: this.headers, timeout, waits: true, signal }).catch(() => null);
      if (answer?.status === 200) {
        claim.alive = answer.sent;
        claim.told(answer.sent, answer.told);
        if (claim.state === 'held') return;
      } else if (answer?.status === 410 && answer.told?.path) claim.lose(refused(410, answer.told, path, path));
      else if (answer?.status === 404) await this.post(claim, 0, { timeout, waits: true, signal }).catch(() => null); // the gate looks for it
      else if (answer && !this.isOver(answer) && !AGAIN.has(answer.status)) throw refused(answer.status, answer.told, `cannot tell that the work under ${path} is alive`, path);
      if (claim.state === 'held') await this.transport.pause(this.transport.rest(failures, silence / MARGIN), signal).catch(() => {});
    }
  }

  // ---- waiting ---------------------------------------------------------------------------------------------------

  /** Resolves when there is something to ask about the claim, after `ms` at the latest. */
  async #news(claim, ms, signal) {
    if (ms <= 0) return;
    const begun = new AbortController();
    const abort = () => begun.abort();
    signal?.addEventListener('abort', abort, { once: true });
    claim.wake = abort;
    this.#watch().catch(() => (this.watching = null)); // renewals tell, too
    try {
      await pause(ms, begun.signal, false).catch(() => {}); // the request that waits keeps the process alive
    } finally {
      claim.wake = null;
      signal?.removeEventListener('abort', abort);
      if (!this.#waits()) this.watching?.abort();
    }
    signal?.throwIfAborted();
  }

  #waits() {
    for (const claim of this.claims) if (claim.wake) return true;
    return false;
  }

  /** One request waits for all claims, as long as there are such. */
  async #watch() {
    if (this.watching || this.over) return;
    this.watching = new AbortController();
    for (let tag = null, failures = 0; this.#waits() && !this.over; ) {
      const { signal } = this.watching;
      const headers = { ...this.headers, ...(tag === null ? {} : { 'if-none-match': tag }) };
      let answer = null;
      try {
        answer = await this.transport.attempt('GET', `/v1/sessions/${this.id}`, { headers, wait: tag === null ? null : LONGEST_POLL_S, waits: true, signal });
      } catch {
        if (signal.aborted) {
          this.watching = new AbortController(); // perhaps others wait by now
          continue;
        }
      }
      tag = answer?.headers.etag ?? null;
      failures = tag !== null && answer.status < 400 ? 0 : failures + 1;
      if (answer?.status === 200 && this.#heard(answer)) failures = 0;
      else if (answer?.status === 410) this.#end(refused(410, answer.told, 'the session'));
      else if (answer && isUnreadable(answer)) for (const claim of this.claims) claim.wake?.();
      if (failures > 0) await this.transport.pause(this.transport.rest(failures, 2000), this.watching.signal).catch(() => {});
      if (this.watching.signal.aborted) this.watching = new AbortController();
    }
    this.watching = null;
  }

  /** What an answer has told of those that wait. Whether it was news to one of them. */
  #heard({ sent, told }) {
    const known = new Map(told.claims.map((c) => [c.id, c]));
    let news = false;
    for (const claim of [...this.claims]) {
      if (!claim.wake) continue;
      const mine = known.get(claim.key);
      if (mine?.state === 'waiting' || mine?.state === 'suspended') {
        claim.told(sent, mine);
        continue;
      }
      if (mine?.state === 'held') claim.told(sent, mine);
      news = true;
      claim.wake();
    }
    return news;
  }

  // ---- renewal ---------------------------------------------------------------------------------------------------

  /** Whether it keeps the process alive. */
  get isRefed() {
    for (const all of [this.claims, this.nodes]) for (const { isRefed } of all) if (isRefed) return true;
    return false;
  }

  /** Milliseconds until something is to be done: a renewal, or the end of a hold. */
  next() {
    let ms = this.dueIn - elapsed(this.renewed);
    for (const claim of this.claims) if (claim.state === 'held') ms = Math.min(ms, claim.remaining());
    return ms;
  }

  tick() {
    for (const claim of [...this.claims]) claim.judge();
    if (!this.over && !this.renewing && this.dueIn - elapsed(this.renewed) <= 0) return this.renew();
    return null;
  }

  async renew() {
    this.renewing = true;
    let done = false;
    try {
      const timeout = Math.max(100, this.ttl / 4);
      const answer = await this.transport.attempt('POST', `/v1/sessions/${this.id}/renew`, { headers: this.headers, timeout, waits: true });
      if (answer.status === 200) {
        done = true;
        this.#heard(answer);
        for (const kept of this.nodes) kept.renewed();
        for (const kept of this.ghosts) this.#lay(kept);
        await this.#confirm(answer, timeout);
      } else if (!this.isOver(answer) && [403, 404, 410].includes(answer.status)) this.#end(refused(answer.status, answer.told, 'the session'));
    } catch {
      // no answer: the deadlines stay
    } finally {
      this.renewed = stamp();
      this.dueIn = done ? this.ttl / 3 : this.ttl / 20;
      this.renewing = false;
    }
  }

  /** Whether the answer to a request of the session says that it has ended, or that no gate can read it: then what it
   * holds is held until its deadline, and nodes go to another session. */
  isOver(answer) {
    if (isUnreadable(answer)) {
      this.haunted = true;
      const moved = [...this.nodes];
      this.nodes.clear();
      for (const kept of moved) kept.moved(null);
      if (this.claims.size === 0) this.#end(refused(403, answer.told, 'the session'));
      return true;
    }
    if (answer.status !== 410 || answer.told?.path) return false; // with a path, it is the claim's end
    this.#end(refused(410, answer.told, 'the session'));
    return true;
  }

  async #lay(kept) {
    const within = this.ttl / 4;
    if (await kept.remove(within).catch(() => false)) this.ghosts.delete(kept);
  }

  async #confirm(answer, timeout) {
    const told = new Map(answer.told.claims.map((c) => [c.id, c]));
    for (const claim of [...this.claims]) {
      if (claim.state !== 'held') continue;
      const mine = told.get(claim.key);
      if (mine && (mine.state === 'suspended' || (mine.state === 'held' && mine.token === claim.token))) claim.told(answer.sent, mine);
      else {
        // A loss is believed when it is told twice, and a gate on old servers may not know the claim yet.
        const found = await this.post(claim, 0, { timeout, waits: true });
        if (found.status === 200 || found.status === 201 || found.status === 202) claim.told(found.sent, found.told);
        else if (found.status === 410 || found.status === 409) claim.lose(refused(410, found.told, claim.terms.path, claim.terms.path));
      }
    }
    for (const claim of this.left) this.#remove(claim).catch(() => {}); // renewals do not wait for it
    this.#tidy(answer.told.claims);
  }

  /** Gives back what is nobody's. */
  async #tidy(told) {
    if (this.tidying) return;
    this.tidying = true;
    const own = (id) => [...this.claims, ...this.left].some((claim) => claim.key === id);
    for (const { id, state } of told) if ((state === 'held' || state === 'waiting') && !own(id)) await this.#disown(id);
    this.tidying = false;
  }

  #end(error) {
    const over = error instanceof LostError ? error : new LostError(error.message, { code: 'ELOST', problem: error.problem, cause: error });
    this.#finish(over);
  }

  #finish(over) {
    this.over = over;
    for (const claim of [...this.claims]) {
      claim.wake?.();
      claim.lose(over);
    }
    const ended = [...this.nodes];
    for (const set of [this.claims, this.left, this.nodes, this.ghosts]) set.clear();
    for (const kept of ended) kept.moved(over);
    this.watching?.abort();
  }

  /** Ends the session, and with it all that it holds. */
  async close(within) {
    const begun = this.id !== undefined && !this.over;
    this.#finish(this.over ?? new LostError('the client was closed', { code: 'ECLOSED' }));
    if (begun) await this.transport.ask('DELETE', `/v1/sessions/${this.id}`, { headers: this.headers, within, what: 'cannot end the session' });
  }
}

module.exports = { Session, Claim };
