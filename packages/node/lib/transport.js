'use strict';
// transport.js - requests to one of several gates. A request that got no answer goes to the next gate only when the
// caller says that it may be repeated.
const node = require('./node.js');
const { ClaveError, LostError, UnreachableError, UnknownOutcomeError, refused, reason } = require('./errors.js');
const { Pool } = require('./http1.js');
const { stamp, elapsed, pause, abortedBy, backoff } = require('./time.js');

const TRY_MS = 10_000; // for one answer, beside the time that the gate is asked to wait
const PASSING = new Set([429, 502, 503, 504]); // another gate, or a later attempt, may do it
const NOT_DONE = new Set([429, 503]); // of these, nothing was done
const SOCKETS = 16; // for the brief requests of one client: the others wait for their turn

class Gate {
  constructor(url, options) {
    if (typeof url !== 'string') throw new TypeError(`a gate is http://HOST:PORT, https://HOST:PORT or unix:/PATH, not ${String(url)}`);
    const unix = /^unix:(\/.*)$/.exec(url);
    const parsed = new URL(unix ? 'http://localhost' : url);
    if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
      throw new TypeError(`a gate is http://HOST:PORT, https://HOST:PORT or unix:/PATH, not ${url}`);
    const secure = parsed.protocol === 'https:';
    const host = parsed.hostname.replace(/^\[|\]$/g, '');
    const where = unix ? { path: unix[1] } : { host, port: Number(parsed.port) || (secure ? 443 : 80) };
    const { ca, cert, key } = options;
    const name = node.net.isIP(host) ? '' : host;
    const connect = secure ? () => node.tls.connect({ ...where, ca, cert, key, servername: name, ALPNProtocols: ['http/1.1'] }) : () => node.net.connect(where);
    this.url = url;
    this.host = parsed.host;
    this.address = unix ? unix[1] : `${host}:${where.port}`;
    this.prefix = parsed.pathname.replace(/\/$/, '');
    this.brief = new Pool(connect, SOCKETS, 2);
    this.patient = new Pool(connect, Infinity, 2); // renewals, and what waits
    this.busyUntil = 0; // on the monotonic clock, by its own word
  }

  /** {status, headers, body (bytes)}; rejects when there was no whole answer. `waits`: it has a connection at once. */
  send(method, target, { headers, waits, ...request }) {
    return (waits ? this.patient : this.brief).request(method, this.prefix + target, { headers: { host: this.host, ...headers }, ...request });
  }

  unref() {
    this.brief.unref();
    this.patient.unref();
  }

  close() {
    this.brief.close();
    this.patient.close();
  }
}

class Transport {
  #closing = new AbortController();
  isRefed = true; // requests under way keep the process alive

  constructor(urls, options) {
    if (urls.length === 0) throw new TypeError('there is no gate');
    this.gates = urls.map((url) => new Gate(url, options));
    this.at = Math.floor(Math.random() * this.gates.length);
    this.token = options.token ?? process.env.CLAVE_GATE_TOKEN ?? null;
    this.fault = null; // why the last attempt that failed did, an error that names the gate
  }

  get urls() {
    return this.gates.map((gate) => gate.url).join(', ');
  }

  /** One attempt at the present gate: {status, headers, told, body, sent}. Rejects when there was no answer. */
  async attempt(method, target, { headers = {}, json, body, wait = null, timeout = TRY_MS, signal, waits = wait > 0 } = {}) {
    const gate = this.gates[this.at];
    let sent;
    try {
      const all = { ...headers };
      if (this.token !== null) all.authorization = `Bearer ${await this.#bearer()}`;
      if (json !== undefined) {
        all['content-type'] = 'application/json';
        body = JSON.stringify(json);
      }
      if (body === undefined && method !== 'GET') all['content-length'] = 0;
      if (body !== undefined) {
        body = Buffer.from(body);
        all['content-type'] ??= 'application/octet-stream';
        all['content-length'] = body.length;
      }
      if (wait !== null) all.prefer = `wait=${wait}`;
      signal?.throwIfAborted();
      sent = stamp();
      const answer = await gate.send(method, target, { headers: all, body, timeout: timeout + (wait ?? 0) * 1000, signal, waits, isRefed: () => this.isRefed });
      if (answer.status >= 300 && answer.status < 400 && answer.status !== 304) throw new Error(`answered ${answer.status}, which no gate does`);
      const isJson = /[/+]json/.test(answer.headers['content-type'] ?? '');
      const told = isJson ? JSON.parse(answer.body.toString()) : null;
      if (PASSING.has(answer.status)) {
        gate.busyUntil = performance.now() + 1000 * (Number(answer.headers['retry-after']) || 0);
        this.fault = refused(answer.status, told, gate.url);
        this.#leave(gate);
      }
      return { ...answer, told, sent };
    } catch (error) {
      if (signal?.aborted) throw error;
      this.#leave(gate);
      const { code } = error;
      const text = `${gate.url}: ${reason(error).replace(` ${gate.address}`, '')}`; // connect ECONNREFUSED 127.0.0.1:8080
      this.fault = error instanceof ClaveError ? new ClaveError(text, { code }) : Object.assign(new Error(text, { cause: error }), { code });
      throw this.fault;
    }
  }

  async #bearer() {
    if (typeof this.token !== 'function') return this.token;
    try {
      return await this.token();
    } catch (error) {
      throw new Error(`the function \`token\` threw: ${reason(error)}`, { cause: error });
    }
  }

  /** The next request goes to another gate. */
  #leave(gate) {
    if (this.gates[this.at] === gate) this.next();
  }

  /** Attempts until there is an answer that is no passing refusal, for `within` ms; `lost` of it: that of an earlier
   * attempt was lost, which may still arrive at a gate. `repeatable`: a request whose answer was lost may be sent again. `writes`: such a one may have been done when there is no answer in the end. */
  async ask(method, target, { repeatable = true, writes = false, within = TRY_MS, what = `${method} ${target}`, path, ...request } = {}) {
    const begun = stamp();
    const most = Math.min(TRY_MS, repeatable ? within / this.gates.length : within); // a silent gate leaves time for the others
    let lost = false; // an answer, that might have said that it was done
    const unknown = (cause) => new UnknownOutcomeError(`${what}: the answer was lost, and it may have been done: ${reason(cause)}`, { cause, path });
    for (let attempt = 0, last; ; attempt++) {
      if (this.#closing.signal.aborted) throw writes && lost ? unknown(last) : new LostError(`${what}: the client is closed`, { code: 'ECLOSED', path });
      try {
        const left = Math.max(1, within - elapsed(begun));
        const answer = await this.attempt(method, target, { timeout: Math.min(most, left), ...request });
        const done = !NOT_DONE.has(answer.status); // perhaps
        if (!PASSING.has(answer.status) || (done && !repeatable)) return { ...answer, lost };
        last = this.fault;
        lost ||= done;
      } catch (error) {
        if (request.signal?.aborted) throw request.signal.reason;
        last = error;
        lost ||= error.code !== 'ECONNREFUSED';
        if (lost && !repeatable) throw unknown(error);
        if (error.code === 'ETOOBIG') throw writes ? unknown(error) : error;
      }
      const rest = this.rest(attempt, (within - elapsed(begun)) / 2);
      if (elapsed(begun) + rest >= within) throw writes && lost ? unknown(last) : this.unreachable(what, within, { cause: last, path });
      await this.pause(rest, request.signal);
    }
  }

  /** The pause before another attempt: it is over when this transport is closed, and the attempt then says so. */
  async pause(ms, signal, keeps = true) {
    const over = abortedBy(signal, this.#closing.signal);
    try {
      await pause(ms, over.signal, keeps && this.isRefed);
    } catch {
      signal?.throwIfAborted();
    } finally {
      over.abort();
    }
  }

  /** What is under way keeps the process alive no more, nor does what follows. */
  unref() {
    this.isRefed = false;
    for (const gate of this.gates) gate.unref();
  }

  /** No gate has answered in `ms`: which they are, and why. */
  unreachable(what, ms, { cause = this.fault, path } = {}) {
    const why = cause ? `: ${reason(cause)}` : '';
    const where = why.includes(this.urls) ? '' : ` (${this.urls})`;
    return new UnreachableError(`${what}: no gate has answered in ${Math.round(ms)} ms${where}${why}`, { cause: cause ?? undefined, path });
  }

  /** The pause before the next attempt, in ms: longer when the present gate has asked for it, up to `most`. */
  rest(attempt, most) {
    return Math.max(backoff(attempt), Math.min(this.gates[this.at].busyUntil - performance.now(), most));
  }

  /** What follows is asked of the next gate. */
  next() {
    this.at = (this.at + 1) % this.gates.length;
  }

  close() {
    this.#closing.abort();
    for (const gate of this.gates) gate.close();
  }
}

const znode = (path) => path.split('/').map(encodeURIComponent).join('/');

module.exports = { Transport, znode };
