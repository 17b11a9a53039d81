'use strict';
// session.js - one session at the gates: the claims that it has, and the renewals that keep them. A claim is
// 'waiting', 'held', 'left' (given back, or being given back) or 'lost'.
const { randomUUID } = require('node:crypto');
const { BusyError, LostError, UnreachableError, refused } = require('./errors.js');
const { stamp, elapsed, pause, backoff } = require('./time.js');

const LONGEST_POLL_S = 30;
const TRY_MS = 10_000; // for an answer, after the time that the gate is asked to wait
const LAST_MS = 1000; // when the time to wait is over
const FIRST_MS = 3000; // for the first one, until another gate is asked
const AGAIN = new Set([429, 502, 503, 504]); // nobody knows, or too many wait

/** The gate was restarted without its key, perhaps: another one may read it, and what is held is held until its deadline. */
const isUnreadable = (answer) => answer.status === 403 && answer.told?.code === 'EOTHERKEY';

/** A place in a queue. `hold` is told when it is lost. */
class Claim {
  constructor(session, terms) {
    this.session = session;
    this.terms = terms;
    this.key = randomUUID(); // a repeated request finds the same place, at whichever gate it arrives
    this.state = 'waiting';
    this.id = null;
    this.token = null;
    this.sent = null; // valid for so long after this request was sent
    this.valid = 0;
    this.lost = null; // an AbortController, from when it is held
    this.removing = null; // the promise of giving it back
    this.rest = 0; // milliseconds, before it is
  }

  /** Milliseconds in which nobody else can own it. A tenth of the session's time is kept back, for clocks that run at
   * different rates and for the time that it takes to stop. */
  remaining() {
    return this.state === 'held' ? this.valid - elapsed(this.sent) - this.session.ttl / 10 : 0;
  }

  /** What the gate has told of it in an answer to a request that was sent then. */
  told(sent, told) {
    this.id = told.id;
    if (told.state === 'lost' || told.state === 'released')
      this.lose(new LostError(`${this.terms.path} is lost: ${told.cause ?? told.state}`, { code: 'ELOST' }));
    else if (told.state === 'held' && this.state === 'waiting') {
      [this.state, this.token, this.sent, this.valid] = ['held', told.token, sent, told.valid_ms ?? 0];
      this.lost = new AbortController();
    } else if (told.state === 'held' && this.state === 'held') {
      if (told.token !== this.token)
        this.lose(new LostError(`${this.terms.path} was lost: it was granted anew`, { code: 'ELOST' }));
      else if (told.valid_ms - elapsed(sent) > this.valid - elapsed(this.sent)) [this.sent, this.valid] = [sent, told.valid_ms];
    } else if (told.state === 'waiting' && this.state === 'held')
      this.lose(new LostError(`${this.terms.path} is lost: it waits again`, { code: 'ELOST' }));
  }

  lose(error) {
    if (this.state !== 'held') return;
    // Whoever is told of it now needs the time that was kept back to stop: it is given back after that.
    this.rest = Math.min(this.session.ttl / 10, this.valid - elapsed(this.sent));
    this.state = 'lost';
    this.session.leave(this);
    this.lost.abort(error);
  }

  /** Loses it when its time is over, whether or not a timer has come to say so. */
  judge() {
    if (this.remaining() <= 0) this.lose(new LostError(`${this.terms.path} is lost: it was not renewed in time`, { code: 'ELOST' }));
  }
}

class Session {
  constructor(transport, { ttl, name }) {
    this.transport = transport;
    this.wanted = { ttl_ms: ttl, name };
    this.ttl = ttl;
    this.claims = new Set(); // waiting or held
    this.left = new Set(); // given up, and perhaps still at the gates
    this.over = null; // the error that ended it
    this.idleSince = stamp();
    this.dueIn = 0; // of the next renewal, after `renewed`
    this.renewed = stamp();
    this.renewing = false;
    this.tidying = false;
    this.haunted = false; // has, had, or may get a place that is nobody's: it is given no other claims
  }

  async open() {
    const answer = await this.transport.ask('POST', '/v1/sessions', { json: this.wanted, what: 'cannot begin a session' });
    if (answer.status !== 201) throw refused(answer.status, answer.told, 'cannot begin a session');
    ({ id: this.id, ttl_ms: this.ttl } = answer.told);
    this.headers = { 'clave-session': answer.told.secret };
    this.renewed = answer.sent;
    this.dueIn = this.ttl / 3;
  }

  /** One place a path: another claim on it belongs into another session. */
  has(path) {
    for (const set of [this.claims, this.left]) for (const claim of set) if (claim.terms.path === path) return true;
    return false;
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
    try {
      // An answer that took longer than it is valid gives nothing: it is asked for again.
      for (let failures = 0; claim.remaining() <= 0; ) {
        const left = wait - elapsed(begun);
        const answer = await this.#poll(claim, left, signal);
        if (claim.remaining() > 0) break;
        if (this.over) throw this.over;
        if (claim.state === 'lost') throw new LostError(`${claim.terms.path} was lost as soon as it was held`, { code: 'ELOST' });
        if (answer?.status === 409 && answer.told?.claim) {
          this.haunted = true;
          await this.#disown(answer.told.claim);
          throw new LostError(`${claim.terms.path}: the session has another place there`, { code: 'ELOST' });
        }
        if (answer && isUnreadable(answer)) {
          this.haunted = true; // what it holds is held until its deadline; this place is asked for in another session
          throw new LostError(`${claim.terms.path}: no gate can read the session`, { code: 'ELOST', problem: answer.told });
        }
        if (answer && !AGAIN.has(answer.status) && answer.status >= 400) throw refused(answer.status, answer.told, `cannot have ${claim.terms.path}`);
        failures = answer?.status < 400 && claim.state === 'waiting' ? 0 : failures + 1;
        const late = wait - elapsed(begun) <= 0;
        // A gate tells a position while its servers tell it: without one nobody knows whether another is before us. A poll
        // that we cut off has told nothing, so the gate is asked once more.
        if (late && answer?.told?.position > 0) throw new BusyError(`${claim.terms.path} was not free in time`, { code: 'EBUSY' });
        if (late && left > 0 && claim.id !== null && failures === 0) continue;
        // When no gate has said anything yet, each is asked once more, without a wait.
        if (late && (claim.id !== null || (left <= 0 && failures >= this.transport.gates.length)))
          throw new UnreachableError(`${claim.terms.path}: no gate has told in time who holds it`, { code: 'EUNREACHABLE' });
        if (failures > 0 && !late) await pause(this.transport.rest(failures, left / 2), signal);
      }
    } catch (error) {
      if (claim.state !== 'lost') this.leave(claim);
      claim.state = 'left';
      throw error;
    }
  }

  async #poll(claim, left, signal) {
    const first = claim.id === null;
    const seconds = Math.min(first ? 1 : LONGEST_POLL_S, Math.max(0, Math.ceil(left / 1000)));
    // A longer wait than the caller's is cut off here: the place is kept, and the answer would come too late.
    const most = 1000 * seconds + (first ? FIRST_MS : left > 0 ? TRY_MS : LAST_MS);
    const begun = stamp();
    try {
      const answer = await this.post(claim, seconds, { signal, timeout: (left > 0 ? Math.min(left, most) : most) - 1000 * seconds });
      if (answer.status === 200 || answer.status === 201 || answer.status === 202) claim.told(answer.sent, answer.told);
      else if (answer.status < 400) return null; // of no gate
      if (answer.status === 410 && !answer.told?.path) this.#end(refused(410, answer.told, 'the session')); // with a path, it is the claim's end
      return answer;
    } catch (error) {
      const isCut = !first && elapsed(begun) >= left; // by us
      // Delivered late to a gate that is not asked to renew, it makes a place that ends only with the session.
      if (!isCut && error.code !== 'ECONNREFUSED') this.haunted = true;
      if (signal?.aborted) throw signal.reason;
      return isCut ? { status: 202 } : null;
    }
  }

  /** Forgets a place. */
  drop(claim) {
    this.claims.delete(claim);
    if (this.claims.size === 0) this.idleSince = stamp();
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
    if (rest > 0) await new Promise((done) => setTimeout(done, rest).unref());
  }

  async #giveBack(claim, within) {
    const what = `cannot give back ${claim.terms.path}`;
    const begun = stamp();
    const ask = (method, target, request) => this.transport.ask(method, target, { headers: this.headers, ...request, within: Math.max(1, within - elapsed(begun)), what });
    let id = claim.id ?? claim.key; // which is what the gates name it by
    while (elapsed(begun) < within) {
      const answer = await ask('DELETE', `/v1/claims/${id}`);
      if (answer.status < 400 || answer.status === 410) this.left.delete(claim);
      if (answer.status < 400) return;
      if (answer.status !== 404) throw refused(answer.status, answer.told, what); // 410: it was over before
      // A gate that does not know it, or not since its restart: asked for by its key, the place is found.
      const found = await ask('POST', '/v1/claims', this.#order(claim, 0));
      if (!['held', 'waiting', 'suspended'].includes(found.told?.state)) return void this.left.delete(claim); // it was tried, and is not there
      id = found.told.id;
    }
    throw new UnreachableError(`${what}: no gate has known it in time`, { code: 'EUNREACHABLE' });
  }

  /** A place of this session that is nobody's: a request for a claim arrived late, when that had been given back by
   * another gate. Each gate is asked, since only the one that made it knows. */
  async #disown(id) {
    for (const _ of this.transport.gates) {
      await this.transport.ask('DELETE', `/v1/claims/${id}`, { headers: this.headers, within: 1000 }).catch(() => {});
      this.transport.next();
    }
  }

  // ---- renewal ---------------------------------------------------------------------------------------------------

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
      const answer = await this.transport.attempt('POST', `/v1/sessions/${this.id}/renew`, { headers: this.headers, timeout });
      if (answer.status === 200) {
        done = true;
        await this.#confirm(answer, timeout);
      } else if (isUnreadable(answer)) {
        this.haunted = true;
        if (this.claims.size === 0) this.#end(refused(403, answer.told, 'the session'));
      } else if (answer.status === 410 || answer.status === 403 || answer.status === 404)
        this.#end(refused(answer.status, answer.told, 'the session'));
    } catch {
      // no answer: the deadlines stay
    } finally {
      this.renewed = stamp();
      this.dueIn = done ? this.ttl / 3 : this.ttl / 20;
      this.renewing = false;
    }
  }

  async #confirm(answer, timeout) {
    const told = new Map(answer.told.claims.map((c) => [c.id, c]));
    for (const claim of [...this.claims]) {
      if (claim.state !== 'held') continue;
      const mine = told.get(claim.id);
      if (mine && (mine.state === 'suspended' || (mine.state === 'held' && mine.token === claim.token))) claim.told(answer.sent, mine);
      else {
        // A loss is believed when it is told twice, and a gate on old servers may not know the claim yet.
        const found = await this.post(claim, 0, { timeout });
        if (found.status === 200 || found.status === 201 || found.status === 202) claim.told(found.sent, found.told);
        else if (found.status === 410 || found.status === 409) claim.lose(refused(410, found.told, claim.terms.path));
      }
    }
    for (const claim of this.left) this.#remove(claim).catch(() => {}); // renewals do not wait for it
    this.#tidy(answer.told.claims);
  }

  /** Gives back what is nobody's. */
  async #tidy(told) {
    if (this.tidying) return;
    this.tidying = true;
    for (const { id, path, state } of told)
      if ((state === 'held' || state === 'waiting') && !this.has(path)) await this.#disown(id);
    this.tidying = false;
  }

  #end(error) {
    this.over = error instanceof LostError ? error : new LostError(error.message, { code: 'ELOST', problem: error.problem, cause: error });
    for (const claim of [...this.claims]) claim.lose(this.over);
    this.claims.clear();
    this.left.clear();
  }

  /** Ends the session, and with it all that it holds. */
  async close(within) {
    const error = new LostError('the client was closed', { code: 'ECLOSED' });
    const begun = this.id !== undefined && !this.over;
    this.over = this.over ?? error;
    for (const claim of [...this.claims]) claim.lose(error);
    this.claims.clear();
    this.left.clear();
    if (begun) await this.transport.ask('DELETE', `/v1/sessions/${this.id}`, { headers: this.headers, within, what: 'cannot end the session' });
  }
}

module.exports = { Session, Claim };
