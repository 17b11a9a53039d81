'use strict';
// testing.js - a gate in memory, for the tests of programs that use this package: HTTP on a free port of this machine,
// answered as `clave serve --http` does, and faults where a test wants them. Nothing is stored, and everybody may do
// everything. What is held is decided here as the recipes of clave decide it: in the order of the queue.
const node = require('./node.js');
const { take } = require('./options.js');
const { milliseconds } = require('./time.js');

const FAULT = { status: 'count', silent: 'flag', lose: 'flag', cut: 'flag', delay: 'duration', times: 'count', method: 'text', path: 'text' };
const KINDS = ['lock', 'read', 'write', 'semaphore', 'election'];
const TERMS = ['limit', 'permits', 'max_hold_ms', 'depend_ms', 'lock_delay_ms', 'revocable'];
const MEMBERS = ['name', 'id', 'address', 'port', 'sslPort', 'payload', 'registrationTimeUTC', 'serviceType', 'uriSpec', 'enabled'];
const PERSISTENT = 3; // of 4: the part of a session's time that is promised

class Refusal extends Error {
  constructor(status, code, detail, more = {}) {
    super(detail);
    const kind = status === 503 || status === 429 || (status === 409 && code === 'EBUSY') ? 'retry' : status === 504 ? 'unknown' : 'final';
    Object.assign(this, { status, problem: { title: node.http.STATUS_CODES[status], status, detail, code, class: kind, ...more } });
  }
}

const held = (place) => place.state === 'held';

/** The node of an instance, as a gate tells it. */
function instance(path, data) {
  const [service, id] = path.split('/').slice(-2);
  let i;
  try {
    i = JSON.parse(data.toString());
  } catch {
    return { service, path, state: 'unreadable', fault: 'is not JSON', id: null, address: null, port: null, ssl_port: null, payload: null, registered: null, type: null, uri_spec: null, uri: null };
  }
  const variables = { scheme: i.sslPort ? 'https' : 'http', name: i.name, id: i.id, address: i.address, port: i.port, 'ssl-port': i.sslPort, 'registration-time-utc': i.registrationTimeUTC, 'service-type': 'dynamic', '[': '{', ']': '}' };
  const uri = i.uriSpec?.parts.map(({ value, variable }) => (variable ? (variables[value] ?? '') : value)).join('') || null;
  return { service, path, state: i.enabled === false ? 'disabled' : 'up', fault: null, id: i.id ?? id, address: i.address, port: i.port, ssl_port: i.sslPort, payload: i.payload, registered: i.registrationTimeUTC, type: i.serviceType, uri_spec: i.uriSpec, uri };
}

class Gate {
  #server;
  #faults = [];
  #sessions = new Map(); // by secret
  #queues = new Map(); // by path: places, in their order
  #nodes = new Map([['/', { data: Buffer.alloc(0), czxid: 0n, mzxid: 0n, version: 0, ctime: 0, mtime: 0 }]]);
  #slots = new Map();
  #zxid = 0n;
  #waiting = new Set(); // those who are told of each change
  #timers = new Set();
  /** How many requests there have been. */
  requests = 0;

  constructor(port) {
    this.#server = node.http.createServer((request, response) => this.#serve(request, response));
    this.#server.on('clientError', (_, socket) => socket.destroy());
    this.ready = new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, '127.0.0.1', () => resolve(this));
    });
  }

  get url() {
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  // ---- what a test does ------------------------------------------------------------------------------------------

  /** What happens to the next request, or the next `times`: `status`: it is refused, and nothing is done. `silent`: it is
   * never answered, and nothing is done. `lose`: it is done, and its answer is lost. `cut`: the connection ends before
   * it. `delay`: it is answered so much later. `method`, `path`: only to such requests; the path is that of the URL, or
   * its beginning. */
  fault(given) {
    const fault = take(given, FAULT, 'fault');
    if (!fault.status && !fault.silent && !fault.lose && !fault.cut && fault.delay === undefined) throw new TypeError('fault: what happens? status, silent, lose, cut or delay');
    this.#faults.push({ times: 1, ...fault });
  }

  /** There are no faults any more. */
  heal() {
    this.#faults = [];
  }

  /** The sessions that hold `path` end, as when the servers have not heard of them for too long; without it all do. */
  expire(path) {
    for (const session of [...this.#sessions.values()]) {
      const places = [...session.places.values()];
      if (path === undefined || places.some((p) => p.path === path && held(p))) this.#end(session, 'expired');
    }
  }

  /** Who holds `path`, and who waits: [{token, name, state}]. */
  places(path) {
    return this.#queue(path).map(({ token, terms, state }) => ({ token: String(token), name: terms.name ?? null, state }));
  }

  async close() {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const session of [...this.#sessions.values()]) this.#end(session, 'closed');
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  // ---- requests --------------------------------------------------------------------------------------------------

  #fault(request) {
    const found = this.#faults.find((f) => (!f.method || f.method === request.method) && (!f.path || request.url.startsWith(f.path)));
    if (found && --found.times <= 0) this.#faults.splice(this.#faults.indexOf(found), 1);
    return found ?? {};
  }

  async #serve(request, response) {
    this.requests++;
    const arrived = performance.now();
    const fault = this.#fault(request);
    const pieces = [];
    try {
      for await (const piece of request) pieces.push(piece);
    } catch {
      return;
    }
    if (fault.cut) return void response.destroy();
    if (fault.silent) return;
    if (fault.delay) await this.#sleep(fault.delay);
    let answer;
    try {
      if (fault.status) throw new Refusal(fault.status, 'EUNREACHABLE', 'a fault of the test');
      answer = await this.#answer(request, response, Buffer.concat(pieces), arrived);
    } catch (error) {
      const refusal = error instanceof Refusal ? error : new Refusal(500, 'EPROTO', String(error.stack ?? error));
      answer = { status: refusal.status, type: 'application/problem+json', body: JSON.stringify(refusal.problem) };
    }
    if (fault.lose || response.destroyed) return void response.destroy();
    const { status, json, body = json === undefined ? '' : JSON.stringify(json), type = json === undefined ? 'application/octet-stream' : 'application/json', headers = {} } = answer;
    response.writeHead(status, status === 304 || status === 204 ? headers : { 'content-type': type, ...headers }).end(status === 304 || status === 204 ? undefined : body);
  }

  #sleep(ms) {
    return new Promise((resolve) => this.#later(ms, resolve));
  }

  #later(ms, fn) {
    const timer = setTimeout(() => (this.#timers.delete(timer), fn()), Math.min(ms, 2 ** 31 - 1));
    timer.unref();
    this.#timers.add(timer);
    return timer;
  }

  async #answer(request, response, body, arrived) {
    const { pathname, searchParams: query } = new URL(request.url, 'http://gate');
    const header = (name) => (request.headers[name] === undefined ? undefined : Buffer.from(request.headers[name], 'latin1').toString());
    const wait = Number(/wait=(\d+)/.exec(request.headers.prefer ?? '')?.[1] ?? -1);
    const x = { method: request.method, query, header, wait, arrived, body, response, none: header('if-none-match') };
    x.json = () => JSON.parse(body.toString() || '{}');
    const [, , family, ...rest] = pathname.split('/');
    const path = `/${rest.map(decodeURIComponent).join('/')}`;
    const families = { sessions: this.#ofSession, claims: this.#ofClaim, locks: this.#ofLock, znodes: this.#ofNode, multi: this.#ofMulti, slots: this.#ofSlots, elections: this.#ofElection, leader: this.#ofLeader, replica: this.#ofLeader, counters: this.#ofCounter, members: this.#ofMember, services: this.#ofService };
    const handler = pathname.startsWith('/v1/') && Object.hasOwn(families, family) ? families[family] : null;
    if (!handler) throw new Refusal(404, 'EINVAL', `there is nothing at ${pathname}`);
    return handler.call(this, x, path, rest, family);
  }

  /** Resolves at the next change, when the time is up, or when its client is gone. */
  #change(x, until) {
    return new Promise((resolve) => {
      const done = () => {
        this.#waiting.delete(done);
        clearTimeout(timer);
        this.#timers.delete(timer);
        resolve();
      };
      const timer = this.#later(Math.max(0, until - performance.now()), done);
      this.#waiting.add(done);
      x.response.once('close', done);
    });
  }

  #changed() {
    for (const done of [...this.#waiting]) done();
  }

  /** `make()` is {etag, ...answer}: now, or when its tag is another than the client has, if that waits. */
  async #unlessKnown(x, make) {
    const until = x.arrived + 1000 * Math.max(0, x.wait);
    for (;;) {
      const { etag, ...answer } = make();
      if (x.none !== etag) return { ...answer, headers: { etag, ...answer.headers } };
      if (performance.now() >= until || x.response.destroyed) return { status: 304, headers: { etag } };
      await this.#change(x, until);
    }
  }

  // ---- sessions --------------------------------------------------------------------------------------------------

  #session(x) {
    const session = this.#sessions.get(x.header('clave-session'));
    if (!session) throw new Refusal(410, 'ELOST', 'the session has ended: expired', { cause: 'expired' });
    this.#heard(session);
    return session;
  }

  #heard(session) {
    clearTimeout(session.timer);
    this.#timers.delete(session.timer);
    session.timer = this.#later(session.ttl, () => this.#end(session, 'expired'));
    session.heard = performance.now();
  }

  #end(session, why) {
    this.#sessions.delete(session.secret);
    clearTimeout(session.timer);
    for (const place of session.places.values()) this.#leave(place, 'lost', why);
    for (const [path, { owner }] of this.#nodes) if (owner === session.id) this.#nodes.delete(path);
    this.#changed();
  }

  #valid(place, arrived) {
    const until = Math.min(place.session.heard + (place.session.ttl * PERSISTENT) / 4, place.ends ?? Infinity, place.silent ?? Infinity);
    return Math.max(0, Math.floor(until - arrived));
  }

  #claim(place, arrived) {
    const { id, path, kind, token, state } = place;
    const told = { id, path, kind, state };
    if (state === 'held') Object.assign(told, { token: String(token), valid_ms: this.#valid(place, arrived), node: place.node });
    if (state === 'waiting') told.position = this.#queue(path).indexOf(place) + 1;
    if (state === 'lost') told.cause = place.cause;
    return told;
  }

  #claims(session, arrived) {
    return [...session.places.values()].filter((p) => p.state !== 'released').map((p) => this.#claim(p, arrived));
  }

  #ofSession(x, _path, [id, verb]) {
    if (id === undefined) {
      const { ttl_ms: ttl = 10_000, name } = x.json();
      const session = { id: String(++this.#zxid), secret: node.crypto.randomUUID(), ttl, name, places: new Map() };
      this.#sessions.set(session.secret, session);
      this.#heard(session);
      return { status: 201, json: { id: session.id, secret: session.secret, ttl_ms: ttl } };
    }
    const session = this.#session(x);
    if (x.method === 'DELETE') {
      this.#end(session, 'closed');
      return { status: 204 };
    }
    const { ttl } = session;
    if (verb === 'renew') return { status: 200, json: { id, ttl_ms: ttl, valid_ms: (ttl * PERSISTENT) / 4, claims: this.#claims(session, x.arrived) } };
    return this.#unlessKnown(x, () => {
      const claims = this.#claims(session, x.arrived);
      const over = !this.#sessions.has(session.secret);
      if (over) throw new Refusal(410, 'ELOST', 'the session has ended: expired', { cause: 'expired' });
      return { status: 200, etag: `"${claims.map((c) => `${c.id}${c.state}`).join()}"`, json: { id, ttl_ms: ttl, state: 'live', claims } };
    });
  }

  // ---- queues ----------------------------------------------------------------------------------------------------

  #queue(path) {
    return this.#queues.get(path) ?? [];
  }

  /** Gives to those whose turn it is. */
  #grant(path) {
    let [readers, writers, taken, stuck] = [0, 0, 0, false];
    for (const [i, place] of this.#queue(path).entries()) {
      const { kind, terms } = place;
      const permits = Number(terms.permits ?? 1);
      const has = kind === 'read' ? writers === 0 : kind === 'semaphore' ? !stuck && taken + permits <= terms.limit : i === 0;
      if (kind === 'read') readers++;
      else writers++;
      taken += permits;
      stuck ||= !has;
      if (!has || place.state !== 'waiting') continue;
      place.state = 'held';
      place.from = performance.now();
      if (terms.max_hold_ms) {
        place.ends = performance.now() + terms.max_hold_ms;
        this.#later(terms.max_hold_ms, () => held(place) && this.#leave(place, 'lost', 'max_hold'));
      }
      this.#sign(place);
    }
    this.#changed();
  }

  /** A sign of life, or the grant. */
  #sign(place) {
    const { depend_ms: ms } = place.terms;
    if (!ms) return;
    const silent = (place.silent = performance.now() + ms);
    this.#later(ms, () => held(place) && place.silent === silent && this.#leave(place, 'lost', 'work_silent'));
  }

  #leave(place, state, why) {
    if (place.state === 'lost' || place.state === 'released') return;
    Object.assign(place, { state, cause: why });
    const queue = this.#queue(place.path).filter((p) => p !== place);
    if (queue.length) this.#queues.set(place.path, queue);
    else this.#queues.delete(place.path);
    this.#grant(place.path);
  }

  #over(place) {
    const { path, id, cause: why = 'released' } = place;
    return new Refusal(410, why === 'work_silent' ? 'ESILENT' : 'ELOST', `${path} is not held: ${why}`, { path, cause: why, claim: id });
  }

  async #ofClaim(x, _path, [id, verb]) {
    if (x.header('clave-owner') !== undefined) return this.#ofSlot(x, id);
    const session = this.#session(x);
    if (x.method === 'POST' && verb !== 'alive') return this.#take(x, session);
    const place = session.places.get(id);
    if (!place) throw new Refusal(404, 'ENOTHELD', 'the session has no such claim');
    if (x.method === 'DELETE') {
      if (place.state === 'lost') throw this.#over(place);
      this.#leave(place, 'released', 'released');
      return { status: 204 };
    }
    if (verb === 'alive') {
      if (place.state === 'lost' || place.state === 'released') throw this.#over(place);
      if (!place.terms.depend_ms) throw new Refusal(400, 'EINVAL', `${place.path} was claimed without "depend_ms"`);
      if (place.state === 'waiting') throw new Refusal(409, 'EBUSY', `${place.path} is not held yet`, { path: place.path });
      this.#sign(place);
    }
    return { status: place.state === 'waiting' ? 202 : 200, json: this.#claim(place, x.arrived) };
  }

  async #take(x, session) {
    const { path, kind = 'lock', ...terms } = x.json();
    const id = x.header('idempotency-key') ?? node.crypto.randomUUID();
    if (!KINDS.includes(kind)) throw new Refusal(400, 'EINVAL', `"kind" is none of ${KINDS.join(', ')}`);
    let place = session.places.get(id);
    const differs = place && TERMS.find((name) => (place.terms[name] || 0) !== (terms[name] || 0));
    if (place && (differs || place.path !== path || place.kind !== kind)) {
      const text = `the claim ${id} of this Idempotency-Key was made with another "${differs ?? (place.path === path ? 'kind' : 'path')}"`;
      throw new Refusal(409, 'ENODEEXISTS', text, { path, claim: id });
    }
    if (!place) {
      const token = ++this.#zxid;
      place = { session, id, path, kind, terms, token, node: `_c_${id}-lock-${String(token).padStart(10, '0')}`, state: 'waiting', since: Date.now() };
      const queue = this.#queue(path);
      this.#queues.set(path, [...queue, place]);
      this.#grant(path);
      if (place.state === 'waiting' && x.wait === 0) {
        this.#leave(place, 'released', 'busy');
        const [{ token: of, terms: who }] = queue;
        throw new Refusal(409, 'EBUSY', `${path} is held by another`, { path, holder: { token: String(of), name: who.name ?? null, host: who.host ?? null } });
      }
      session.places.set(id, place);
    }
    for (const until = x.arrived + 1000 * x.wait; place.state === 'waiting' && performance.now() < until && !x.response.destroyed; ) await this.#change(x, until);
    if (place.state === 'lost' || place.state === 'released') throw this.#over(place);
    return { status: held(place) ? 201 : 202, json: this.#claim(place, x.arrived) };
  }

  // ---- who holds what --------------------------------------------------------------------------------------------

  #ofLock(x, path) {
    const role = { held: 'holder', waiting: 'waiter' };
    const tell = (p) => ({ node: p.node, token: String(p.token), session: p.session.id, role: role[p.state], client: null, host: p.terms.host ?? null, pid: null, name: p.terms.name ?? null, command: p.terms.command ?? null, text: p.value ?? null, since: p.since });
    return this.#unlessKnown(x, () => {
      const queue = this.#queue(path);
      if (queue.length === 0) {
        if (x.none === undefined && x.wait <= 0) throw new Refusal(404, 'ENONODE', `nobody holds ${path}, and nobody waits`, { path });
        return { status: 404, etag: '"none"', type: 'application/problem+json', json: { status: 404, code: 'ENONODE' } };
      }
      const [holders, waiters] = [queue.filter(held), queue.filter((p) => !held(p))].map((list) => list.map(tell));
      const kinds = { read: 'rw', write: 'rw' };
      const { kind } = queue[0];
      return {
        status: 200,
        etag: `"${queue.map((p) => `${p.token}${p.state}`).join()}"`,
        json: { path, kind: kinds[kind] ?? kind, holders, waiters, left_over: [], nholders: holders.length, nwaiters: waiters.length, nleft_over: 0, held_since: holders[0]?.since ?? null, held_since_by: holders[0] ? 'gate' : null, oldest_wait_ms: waiters.length ? Date.now() - waiters[0].since : null },
      };
    });
  }

  #ofElection(x, path) {
    if (x.query.has('leads')) return this.#ofLeader(x, path, undefined, 'leader');
    const session = this.#session(x);
    const place = this.#queue(path.replace(/\/value$/, '')).find((p) => p.session === session && held(p));
    if (!place) throw new Refusal(409, 'ENOTHELD', `the session does not lead ${path}`);
    place.value = x.body.toString();
    return { status: 204 };
  }

  /** Of a balancer: 200, or 503 and why. */
  #ofLeader(x, path, _rest, family) {
    const id = x.query.get('leads') ?? x.query.get('id');
    const least = milliseconds(x.query.get('min_term') ?? 0, 'min_term');
    if (!id) throw new Refusal(400, 'EINVAL', "id is missing: the name, the host or the claim's id of a candidate");
    const queue = this.#queue(path).filter(({ kind }) => kind === 'election');
    const isNamed = ({ id: claim, terms: { name, host } }) => [claim, name, host].includes(id);
    const leader = queue.find(held);
    const holder = leader && { node: leader.node, token: String(leader.token), session: leader.session.id, role: 'leader', name: null, host: null, text: leader.terms.name ?? null, since: new Date(leader.since).toISOString() };
    const who = leader ? { path, holder, term: holder.token, led_ms: Math.floor(x.arrived - leader.from) } : { path, holder: null };
    const yes = (role) => ({ status: 200, json: { id, role, ...who } });
    const no = (text) => new Refusal(503, 'EBUSY', text, who);
    const leads = leader && isNamed(leader);
    if (family === 'replica') {
      const place = queue.find((p) => p !== leader && isNamed(p));
      if (leads || !place) throw no(leads ? `${id} leads at ${path}` : `${id} is no candidate at ${path}`);
      return yes('replica');
    }
    if (!leads) throw no(leader ? `${id} does not lead at ${path}` : `nobody leads at ${path}`);
    if (x.arrived - leader.from < least) throw no(`${id} leads at ${path} for less than min_term`);
    return yes('leader');
  }

  // ---- counters, members and services ----------------------------------------------------------------------------

  #ofCounter(x, path) {
    const found = this.#nodes.get(path);
    const wrong = (detail) => new Refusal(400, 'EINVAL', detail, { path });
    if (found && found.data.length !== 0 && found.data.length !== 8) throw wrong(`${path} is no counter: its data are not eight bytes`);
    const before = found?.data.length ? found.data.readBigInt64BE() : 0n;
    if (x.method === 'GET') return { status: 200, json: { path, value: String(before) } };
    const { add, set, expected } = x.json();
    if ((add === undefined) === (set === undefined) || (expected !== undefined && set === undefined)) throw wrong('the body is {"add": N}, {"set": N} or {"set": N, "expected": M}');
    if (expected !== undefined && !found) throw new Refusal(404, 'ENONODE', `cannot change ${path}: no such node`, { path });
    if (expected !== undefined && BigInt(expected) !== before) throw new Refusal(409, 'EBADVERSION', `${path} is ${before} and not ${expected}`, { path, value: String(before) });
    const value = add === undefined ? BigInt(set) : before + BigInt(add);
    if (BigInt.asIntN(64, value) !== value) throw wrong(`cannot change ${path}: the sum has more than 64 bits`);
    const data = Buffer.alloc(8);
    data.writeBigInt64BE(value);
    this.#transact([{ op: found ? 'set' : 'create', path, data_base64: data.toString('base64'), parents: true }]);
    return { status: 200, json: { path, before: String(before), value: String(value) } };
  }

  /** The nodes so far below `path`, in their order: [[path, node]]. */
  #below(path, depth) {
    const prefix = path === '/' ? '/' : `${path}/`;
    return [...this.#nodes].filter(([p]) => p !== '/' && p.startsWith(prefix) && p.slice(prefix.length).split('/').length === depth).sort(([a], [b]) => (a < b ? -1 : 1));
  }

  #listed(x, path, depth, tell) {
    return this.#unlessKnown(x, () => {
      const nodes = this.#below(path, depth);
      return { status: 200, etag: `"${nodes.map(([p, n]) => `${p}:${n.mzxid}`).join()}"`, json: tell(nodes) };
    });
  }

  /** An ephemeral node of the session of the request. `replaces`: that of another session; or one session's, an id. */
  #own(x, path, data, replaces) {
    const session = this.#session(x);
    const found = this.#nodes.get(path);
    const isOwn = found?.owner === session.id;
    const of = x.query.get('replace');
    const mayGo = x.method === 'PUT' && found?.owner && (/^\d\d+$/.test(of ?? '') ? of === found.owner : replaces);
    if (found && !isOwn && !mayGo) throw new Refusal(409, 'ENODEEXISTS', `the node of session ${found.owner ?? 'none'} is at ${path}`, { path, session: found.owner });
    if (x.method === 'DELETE' && !found) throw new Refusal(404, 'ENONODE', `cannot leave ${path}: no such node`, { path });
    if (x.method === 'DELETE') this.#transact([{ op: 'delete', path }]);
    else if (!isOwn || !found.data.equals(data)) {
      if (found && !isOwn) this.#nodes.delete(path);
      this.#transact([{ op: isOwn ? 'set' : 'create', path, data_base64: data.toString('base64'), parents: true }]);
      this.#nodes.get(path).owner = session.id;
    }
    this.#changed();
    if (x.method === 'DELETE') return { status: 204 };
    return { status: isOwn ? 200 : 201, json: { path, session: session.id, stat: this.#stat(path, this.#nodes.get(path)) } };
  }

  #ofMember(x, path) {
    if (x.method !== 'GET') return this.#own(x, path, x.body, x.query.has('replace'));
    const tell = ([p, { owner, czxid, ctime, data }]) => {
      const isText = Buffer.from(data.toString()).equals(data) && !data.includes(0);
      return { id: p.slice(p.lastIndexOf('/') + 1), session: owner ?? null, czxid: String(czxid), since: new Date(ctime).toISOString(), data: isText ? data.toString() : null, ...(isText ? {} : { data_base64: data.toString('base64') }) };
    };
    return this.#listed(x, path, 1, (nodes) => ({ path, members: nodes.map(tell) }));
  }

  #ofService(x, path, [service, id]) {
    const base = x.query.get('base') ?? '/services';
    const at = `${base === '/' ? '' : base}${path === '/' ? '' : path}` || '/';
    if (x.method === 'GET') {
      if (x.query.has('format')) throw new Refusal(501, 'EINVAL', 'the gate in memory has no http_sd');
      const all = (nodes) => nodes.map(([p, { data }]) => instance(p, data)).filter(({ state }) => state === 'up' || !x.query.has('ready'));
      return this.#listed(x, at, service ? 1 : 2, (nodes) => {
        const instances = all(nodes);
        if (x.query.has('ready') && instances.length === 0) throw new Refusal(503, 'ENONODE', `no instance at ${at} is up`, { path: at });
        return { path: at, instances, unreadable: instances.filter(({ state }) => state === 'unreadable').length };
      });
    }
    const given = x.method === 'PUT' ? x.json() : {};
    const unknown = Object.keys(given).find((name) => !MEMBERS.includes(name));
    if (unknown) throw new Refusal(400, 'EINVAL', `unknown member "${unknown}": see /v1/openapi.json`);
    if (x.method === 'PUT' && !given.address) throw new Refusal(400, 'EINVAL', 'the instance has no "address", where it can be reached');
    const registered = given.registrationTimeUTC ?? Date.now();
    const told = { name: decodeURIComponent(service), id: decodeURIComponent(id), address: given.address, port: given.port ?? null, sslPort: given.sslPort ?? null, payload: given.payload ?? null, registrationTimeUTC: registered, serviceType: 'DYNAMIC', uriSpec: given.uriSpec ?? null, ...(given.enabled === false ? { enabled: false } : {}) };
    return this.#own(x, at, Buffer.from(JSON.stringify(told)), true);
  }

  // ---- nodes -----------------------------------------------------------------------------------------------------

  #stat(path, n) {
    const children = [...this.#nodes.keys()].filter((p) => p !== '/' && p.startsWith(path === '/' ? '/' : `${path}/`) && !p.slice(path.length + 1).includes('/')).length;
    return { czxid: String(n.czxid), mzxid: String(n.mzxid), pzxid: String(n.czxid), ctime: n.ctime, mtime: n.mtime, version: n.version, cversion: 0, aversion: 0, ephemeral_owner: n.owner ?? '0', data_length: n.data.length, num_children: children };
  }

  /** Each lock of Clave-Guard is held with its token. */
  #guarded(x) {
    for (const [, path, token] of (x.header('clave-guard') ?? '').matchAll(/(\/.*?);token=(-?\d+)(?:, *|$)/g)) {
      const holds = this.#queue(path).some((p) => held(p) && String(p.token) === token) || [...(this.#slots.get(path)?.owners.values() ?? [])].some((o) => o.token === token);
      if (!holds) throw new Refusal(410, 'ELOST', `not done: the lock ${path} is not held with token ${token} any more`, { path });
    }
  }

  #do({ op, path, data = '', data_base64: coded, version = -1, mode = 'persistent', parents = false }, zxid) {
    const found = this.#nodes.get(path);
    const bytes = coded === undefined ? Buffer.from(data) : Buffer.from(coded, 'base64');
    const now = Date.now();
    const above = path.slice(0, path.lastIndexOf('/')) || '/';
    if (op === 'create') {
      if (mode.endsWith('sequential')) path += String(zxid).padStart(10, '0');
      if (this.#nodes.has(path)) throw new Refusal(409, 'ENODEEXISTS', `cannot create ${path}: it exists`, { path });
      if (!this.#nodes.has(above) && !parents) throw new Refusal(404, 'ENONODE', `cannot create ${path}: its parent does not exist`, { path });
      if (!this.#nodes.has(above)) this.#do({ op, path: above, parents }, zxid);
      const made = { data: bytes, czxid: zxid, mzxid: zxid, version: 0, ctime: now, mtime: now };
      this.#nodes.set(path, made);
      return { op, path, stat: this.#stat(path, made) };
    }
    if (!found) throw new Refusal(404, 'ENONODE', `cannot ${op} ${path}: no such node`, { path });
    if (version >= 0 && version !== found.version) throw new Refusal(412, 'EBADVERSION', `cannot ${op} ${path}: it has another version`, { path });
    if (op === 'check') return { op };
    if (op === 'delete') {
      if ([...this.#nodes.keys()].some((p) => p.startsWith(`${path}/`))) throw new Refusal(409, 'ENOTEMPTY', `cannot delete ${path}: it has children`, { path });
      this.#nodes.delete(path);
      return { op };
    }
    Object.assign(found, { data: bytes, mzxid: zxid, mtime: now, version: found.version + 1 });
    return { op, path, stat: this.#stat(path, found) };
  }

  /** All or none. */
  #transact(ops) {
    const before = new Map([...this.#nodes].map(([path, n]) => [path, { ...n }]));
    const zxid = ++this.#zxid;
    try {
      return ops.map((op) => this.#do(op, zxid));
    } catch (error) {
      this.#nodes = before;
      throw error;
    }
  }

  #ofNode(x, path) {
    if (x.method === 'GET') {
      const found = this.#nodes.get(path);
      if (!found) throw new Refusal(404, 'ENONODE', `cannot get ${path}: no such node`, { path });
      const headers = { etag: `"${found.version}-${found.czxid}"` };
      return x.query.has('stat') ? { status: 200, headers, json: { path, stat: this.#stat(path, found) } } : { status: 200, headers, body: found.data };
    }
    this.#guarded(x);
    const version = Number(/^"?(\d+)/.exec(x.header('if-match') ?? '')?.[1] ?? -1);
    const op = { PUT: 'set', POST: 'create', DELETE: 'delete' }[x.method];
    const [{ path: made, stat }] = this.#transact([{ op, path, data_base64: x.body.toString('base64'), version, mode: x.query.get('mode') ?? undefined, parents: x.query.has('parents') }]);
    return op === 'delete' ? { status: 204 } : { status: op === 'create' ? 201 : 200, json: { path: made, stat } };
  }

  #ofMulti(x) {
    this.#guarded(x);
    return { status: 200, json: { results: this.#transact(x.json().ops) } };
  }

  // ---- slots -----------------------------------------------------------------------------------------------------

  #slotsAt(path) {
    if (!this.#slots.has(path)) this.#slots.set(path, { limit: null, owners: new Map(), waiting: new Map(), broken: undefined });
    return this.#slots.get(path);
  }

  #fill(slots) {
    for (const [owner, told] of slots.waiting) {
      if (slots.limit === null || slots.owners.size >= slots.limit) break;
      slots.waiting.delete(owner);
      slots.owners.set(owner, { ...told, token: String(++this.#zxid), since: new Date().toISOString() });
    }
    this.#changed();
  }

  async #ofSlot(x, id) {
    const owner = x.header('clave-owner');
    if (x.method === 'DELETE') {
      const [path] = Buffer.from(id.slice('slot.'.length), 'base64url').toString().split('\n');
      const slots = this.#slotsAt(path);
      const [mine, token] = [slots.owners.get(owner), x.query.get('token')];
      const waited = slots.waiting.delete(owner);
      const given = mine !== undefined && (token === null || token === mine.token);
      if (given) slots.owners.delete(owner);
      this.#fill(slots);
      if (!given && !waited && !mine) throw new Refusal(404, 'ENOTHELD', `${owner} has no slot of ${path}`, { path });
      return { status: 200, json: { given } };
    }
    const { path, limit, host = null, by = null, reason = null } = x.json();
    const slots = this.#slotsAt(path);
    slots.limit ??= limit ?? null;
    if (slots.limit === null) throw new Refusal(404, 'ENONODE', `${path} has no limit`, { path });
    const told = { owner, host, by, reason };
    const had = slots.owners.get(owner);
    if (had) return { status: 200, json: { path, ...had } };
    if (!slots.waiting.has(owner)) slots.waiting.set(owner, told);
    this.#fill(slots);
    for (const until = x.arrived + 1000 * Math.max(0, x.wait); slots.waiting.has(owner) && performance.now() < until && !x.response.destroyed; ) await this.#change(x, until);
    const mine = slots.owners.get(owner);
    if (mine) return { status: 201, json: { path, ...mine } };
    if (x.wait <= 0) {
      slots.waiting.delete(owner);
      throw new Refusal(409, 'EBUSY', `no slot of ${path} is free`, { path });
    }
    return { status: 202, json: { path, owner, state: 'waiting' } };
  }

  #ofSlots(x, path) {
    const isBreak = x.method === 'POST' && path.endsWith('/break');
    const at = isBreak ? path.slice(0, -'/break'.length) : path;
    const slots = this.#slotsAt(at);
    if (x.method === 'PUT') {
      slots.limit = x.json().limit;
      this.#fill(slots);
    } else if (isBreak) {
      const { owner, reason } = x.json();
      const mine = slots.owners.get(owner);
      if (!mine) throw new Refusal(404, 'ENOTHELD', `${owner} has no slot of ${at}`, { path: at });
      slots.broken = { owner, token: mine.token, at: new Date().toISOString(), by: null, reason };
      slots.owners.delete(owner);
      this.#fill(slots);
    }
    const owners = [...slots.owners.values()].map((o) => ({ ...o, node: o.owner }));
    return { status: 200, json: { path: at, limit: slots.limit, owners, waiting: [...slots.waiting.values()].map(({ owner, host }) => ({ owner, host, since: new Date().toISOString() })), ...(slots.broken ? { broken: slots.broken } : {}) } };
  }
}

/** A gate that answers, at `url`. */
async function startGate(options) {
  const { port = 0 } = options ?? {};
  return new Gate(port).ready;
}

module.exports = { startGate };
