'use strict';
// transport.js - requests to one of several gates. A request that got no answer goes to the next gate only when the
// caller says that it may be repeated.
const http = require('node:http');
const https = require('node:https');
const { ClaveError, LostError, UnreachableError, UnknownOutcomeError, refused } = require('./errors.js');
const { stamp, elapsed, pause, backoff } = require('./time.js');

const TRY_MS = 10_000; // for one answer, beside the time that the gate is asked to wait
const PASSING = new Set([429, 502, 503, 504]); // another gate, or a later attempt, may do it
const NOT_DONE = new Set([429, 503]); // of these, nothing was done
const LONGEST_ANSWER = 64 * 2 ** 20; // bytes

class Gate {
  constructor(url, options) {
    const unix = /^unix:(\/.*)$/.exec(url);
    const parsed = new URL(unix ? 'http://localhost' : url);
    if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
      throw new TypeError(`a gate is http://HOST:PORT, https://HOST:PORT or unix:/PATH, not ${url}`);
    const secure = parsed.protocol === 'https:';
    this.url = url;
    this.module = secure ? https : http;
    this.prefix = parsed.pathname.replace(/\/$/, '');
    this.where = unix ? { socketPath: unix[1] } : { host: parsed.hostname.replace(/^\[|\]$/g, ''), port: parsed.port || (secure ? 443 : 80) };
    const { ca, cert, key } = options;
    this.agent = new this.module.Agent({ keepAlive: true, ...(secure ? { ca, cert, key } : {}) });
    this.busyUntil = 0; // on the monotonic clock, by its own word
  }

  /** {status, headers, body (bytes)}; rejects when there was no whole answer. */
  send(method, target, { headers, body, timeout, signal }) {
    return new Promise((resolve, reject) => {
      const request = this.module.request({ ...this.where, method, path: this.prefix + target, headers, agent: this.agent, signal });
      const timer = setTimeout(() => request.destroy(new Error(`no answer within ${Math.round(timeout)} ms`)), timeout);
      const end = (settle) => (value) => {
        clearTimeout(timer);
        settle(value);
      };
      request.on('error', end(reject));
      request.on('response', (answer) => {
        const pieces = [];
        let length = 0;
        answer.on('data', (piece) => {
          pieces.push(piece);
          length += piece.length;
          if (length > LONGEST_ANSWER) request.destroy(new ClaveError(`${this.url} answers with more than ${LONGEST_ANSWER} bytes`, { code: 'ETOOBIG' }));
        });
        answer.on('error', end(reject));
        answer.on('aborted', () => end(reject)(new Error('the answer was cut off')));
        answer.on('end', () => end(resolve)({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(pieces) }));
      });
      request.end(body);
    });
  }
}

class Transport {
  #closed = false;

  constructor(urls, options) {
    if (urls.length === 0) throw new TypeError('there is no gate');
    this.gates = urls.map((url) => new Gate(url, options));
    this.at = Math.floor(Math.random() * this.gates.length);
    this.token = options.token ?? process.env.CLAVE_GATE_TOKEN ?? null;
  }

  /** One attempt at the present gate: {status, headers, told, body, sent}. Rejects when there was no answer. */
  async attempt(method, target, { headers = {}, json, body, wait = null, timeout = TRY_MS, signal } = {}) {
    const all = { ...headers };
    if (this.token !== null) all.authorization = `Bearer ${typeof this.token === 'function' ? await this.token() : this.token}`;
    if (json !== undefined) {
      all['content-type'] = 'application/json';
      body = JSON.stringify(json);
    }
    if (body !== undefined) {
      body = Buffer.from(body); // with a string Node writes the headers as UTF-8, too: ours are bytes
      all['content-type'] ??= 'application/octet-stream';
      all['content-length'] = Buffer.byteLength(body);
    }
    if (wait !== null) all.prefer = `wait=${wait}`;
    const gate = this.gates[this.at];
    const sent = stamp();
    try {
      const answer = await gate.send(method, target, { headers: all, body, timeout: timeout + (wait ?? 0) * 1000, signal });
      if (answer.status >= 300 && answer.status < 400 && answer.status !== 304) throw new Error(`${gate.url} answered ${answer.status}, which no gate does`);
      const isJson = /[/+]json/.test(answer.headers['content-type'] ?? '');
      const told = isJson ? JSON.parse(answer.body.toString()) : null;
      if (PASSING.has(answer.status)) {
        gate.busyUntil = performance.now() + 1000 * (Number(answer.headers['retry-after']) || 0);
        this.#leave(gate);
      }
      return { ...answer, told, sent };
    } catch (error) {
      if (!signal?.aborted) this.#leave(gate);
      throw error;
    }
  }

  /** The next request goes to another gate. */
  #leave(gate) {
    if (this.gates[this.at] === gate) this.next();
  }

  /** Attempts until there is an answer that is no passing refusal, for `within` ms. `repeatable`: a request whose
   * answer was lost may be sent again. `writes`: such a one may have been done when there is no answer in the end. */
  async ask(method, target, { repeatable = true, writes = false, within = TRY_MS, what = `${method} ${target}`, ...request } = {}) {
    const begun = stamp();
    const most = Math.min(TRY_MS, repeatable ? within / this.gates.length : within); // a silent gate leaves time for the others
    let lost = false; // an answer, that might have said that it was done
    const unknown = (cause) => new UnknownOutcomeError(`${what}: the answer was lost, and it may have been done`, { cause });
    for (let attempt = 0, last; ; attempt++) {
      if (this.#closed) throw writes && lost ? unknown(last) : new LostError(`${what}: the client is closed`, { code: 'ECLOSED' });
      try {
        const left = Math.max(1, within - elapsed(begun));
        const answer = await this.attempt(method, target, { timeout: Math.min(most, left), ...request });
        const done = !NOT_DONE.has(answer.status); // perhaps
        if (!PASSING.has(answer.status) || (done && !repeatable)) return answer;
        last = refused(answer.status, answer.told, what);
        lost ||= done;
      } catch (error) {
        if (request.signal?.aborted) throw request.signal.reason;
        last = error;
        lost ||= error.code !== 'ECONNREFUSED';
        if (lost && !repeatable) throw unknown(error);
        if (error.code === 'ETOOBIG') throw writes ? unknown(error) : error;
      }
      const rest = this.rest(attempt, (within - elapsed(begun)) / 2);
      if (elapsed(begun) + rest >= within)
        throw new (writes && lost ? UnknownOutcomeError : UnreachableError)(`${what}: no gate has answered in ${Math.round(within)} ms (${this.gates.map((g) => g.url).join(', ')}): ${last.message}`, { cause: last });
      await pause(rest, request.signal);
    }
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
    this.#closed = true;
    for (const gate of this.gates) gate.agent.destroy();
  }
}

const znode = (path) => path.split('/').map(encodeURIComponent).join('/');

module.exports = { Transport, znode };
