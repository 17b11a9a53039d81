'use strict';
// kept.js - a node that stays while this process lives: a member of a group, an instance of a service. It belongs to a
// session of the client. It is put again with each renewal, which costs the servers a create that fails and a read while it
// is there, and in another session when that one has ended.
//
// What must stay true: it takes the place of nobody else's node, but at its beginning and if that was asked for. Later
// `?replace` names a session in which this very node was put before, and nothing but that session's node goes.
const { LostError, UnknownOutcomeError, refused } = require('./errors.js');
const { after, backoff, elapsed, orAborted, stamp } = require('./time.js');

const BEGIN_MS = 10_000; // until it is there for the first time
const PUT_MS = 10_000;

class KeptNode {
  isRefed = true; // it keeps the process alive
  there = false; // as far as the gates have told
  error = null; // why it is not
  left = null; // the promise of leaving
  #transport;
  #terms;
  #client;
  #session = null;
  #sessions = new Set(); // the ids of those in which it was put
  #begun = false;
  #putting = null; // the request under way
  #again = false; // and another one after it
  #moving = null; // to another session
  #leaving = new AbortController(); // ends the pause between two attempts to move
  #entering = null; // the newest attempt to have a session
  #doubt = false; // the answer of a put was lost, so it may still arrive

  /** `terms`: path; target, its URL; query, as an object; request(), what is put; replace, the `?replace` of the
   * beginning, if there is one; onChange. `client`: place(node, signal) resolves to a session, which then tells it of
   * renewals and of its end; schedule() is called when what keeps the process alive has changed. */
  constructor(transport, terms, client) {
    this.#transport = transport;
    this.#terms = terms;
    this.#client = client;
  }

  get path() {
    return this.#terms.path;
  }

  /** Resolves when it is there for the first time. */
  async begin(signal) {
    const begun = stamp();
    try {
      for (;;) {
        await this.#enter(signal);
        try {
          return await orAborted(this.put(), signal);
        } catch (error) {
          const ended = error instanceof LostError && error.code !== 'ECLOSED'; // the session; the next one may have it
          if (!ended || elapsed(begun) >= BEGIN_MS) throw error;
        }
      }
    } catch (error) {
      this.leave(PUT_MS).catch(() => {}); // or it goes with its session
      throw error;
    }
  }

  async #enter(signal) {
    this.#entering = this.#client.place(this, signal);
    this.#session = await this.#entering;
    this.#doubt = false; // of a session that has ended, no request is done
  }

  // ---- putting it ------------------------------------------------------------------------------------------------

  /** Sends what is to be there: one request at a time, and another one if this was called meanwhile. */
  put() {
    this.#again = true;
    this.#putting ??= this.#puts().finally(() => (this.#putting = null));
    return this.#putting;
  }

  async #puts() {
    while (this.#again) {
      this.#again = false;
      await this.#put();
    }
  }

  async #put() {
    const session = this.#session;
    const what = `cannot keep ${this.path}`;
    if (!session || session.over) throw session?.over ?? new LostError(`${what}: it has no session`, { code: 'ELOST', path: this.path });
    this.#sessions.add(session.id);
    let answer = await this.#ask(session, this.#begun ? session.id : this.#terms.replace, what);
    const owner = answer.status === 409 && answer.told?.session;
    if (owner && owner !== session.id && this.#sessions.has(owner)) answer = await this.#ask(session, owner, what);
    if (answer.status === 200 || answer.status === 201) {
      this.#begun = true;
      this.#tell(true, null);
      return;
    }
    const told = owner && this.#terms.replace === undefined ? { ...answer.told, detail: `${this.path} is taken by session ${owner}: {replace: true} takes its place` } : answer.told;
    const error = refused(answer.status, told, what, this.path);
    if (session.isOver(answer)) throw new LostError(error.message, { code: 'ELOST', problem: error.problem, path: this.path });
    if (answer.status < 500) this.#tell(false, error); // otherwise nobody knows
    throw error;
  }

  async #ask(session, replace, what) {
    const { target, query, request } = this.#terms;
    const all = new URLSearchParams({ ...query, ...(replace === undefined ? {} : { replace }) }).toString();
    try {
      const answer = await this.#transport.ask('PUT', all ? `${target}?${all}` : target, { ...request(), headers: session.headers, within: PUT_MS, writes: true, what, path: this.path });
      this.#doubt ||= answer.lost;
      return answer;
    } catch (error) {
      this.#doubt ||= error instanceof UnknownOutcomeError;
      throw error;
    }
  }

  #tell(there, error) {
    const { onChange } = this.#terms;
    const isNews = there !== this.there || error?.code !== this.error?.code;
    Object.assign(this, { there, error });
    if (isNews && onChange && this.#begun) process.nextTick(onChange, there, error);
  }

  /** What is to be there has changed: resolves when it is. */
  async changed() {
    if (this.left) throw new LostError(`${this.path} was given up`, { code: 'ECLOSED', path: this.path });
    if (this.#moving) await this.#entering;
    await this.put();
  }

  // ---- what its session tells ------------------------------------------------------------------------------------

  ref(isRefed) {
    this.isRefed = isRefed;
    this.#client.schedule();
  }

  renewed() {
    if (this.#begun && !this.left && !this.#moving) this.put().catch(() => {}); // told, or with the next renewal
  }

  /** The session has ended, and the node with it (`error`); or no gate can read it, and the node is there until then. */
  moved(error) {
    this.#session = null;
    if (error) this.#tell(false, error);
    if (error?.code === 'ECLOSED') this.left ??= Promise.resolve();
    if (this.#begun && !this.left) this.#moving ??= this.#move().finally(() => (this.#moving = null));
  }

  async #move() {
    for (let failures = 0; ; failures++) {
      try {
        if (!this.#session || this.#session.over) await this.#enter();
        if (this.left) return this.#session.forget(this);
        return await this.put();
      } catch (error) {
        if (this.left || error.code === 'ECLOSED') return;
        if (this.#session && !this.#session.over) return; // with its next renewal
        await this.#transport.pause(backoff(failures), this.#leaving.signal, this.isRefed).catch(() => {});
      }
    }
  }

  // ---- its end ---------------------------------------------------------------------------------------------------

  /** Resolves when there is no node of it any more. */
  leave(within) {
    this.left ??= this.#leave(within);
    this.#leaving.abort();
    return this.left;
  }

  async #leave(within) {
    const begun = stamp();
    const late = new AbortController();
    const cancel = after(within, () => late.abort(this.#transport.unreachable(`cannot give up ${this.path}`, within, { path: this.path })));
    try {
      await orAborted(Promise.allSettled([this.#moving, this.#putting]), late.signal);
      if (this.#session && !this.#session.over) await this.remove(Math.max(1, within - elapsed(begun)));
    } catch (error) {
      this.#session?.haunt(this);
      throw error;
    } finally {
      cancel();
      this.#client.schedule();
    }
    if (this.#doubt) this.#session?.haunt(this);
    else this.#session?.forget(this);
  }

  /** Deletes the node of its session. Whether no request that is under way can bring it back. */
  async remove(within) {
    const what = `cannot give up ${this.path}`;
    const { target, query } = this.#terms;
    const all = new URLSearchParams(query).toString();
    const answer = await this.#transport.ask('DELETE', all ? `${target}?${all}` : target, { headers: this.#session.headers, within, what, path: this.path });
    const isGone = answer.status < 400 || answer.status === 404 || answer.status === 409 || answer.status === 410;
    if (!isGone) throw refused(answer.status, answer.told, what, this.path);
    this.there = false;
    return !this.#doubt;
  }
}

module.exports = { KeptNode };
