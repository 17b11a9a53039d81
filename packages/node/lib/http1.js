'use strict';
// http1.js - connections to one gate, which are kept, and requests on them: HTTP/1.1 as a gate or a proxy in front of it
// answers it, over TCP, TLS or a Unix socket. A lock and its release are two small requests: what Node's own client adds
// to each costs several times what the gate does.
//
// A connection has one request at a time. One that fails in any way, or whose answer is not understood to its last byte,
// is never used again: what would follow could be taken for the answer to another request.
const node = require('./node.js');
const { ClaveError } = require('./errors.js');
const { after } = require('./time.js');

const LONGEST_HEAD = 64 * 2 ** 10; // bytes
const LONGEST_ANSWER = 64 * 2 ** 20;
const KEEP_ALIVE_MS = 30_000; // probes of TCP
const SPARE_MS = 1000; // an idle connection is closed so long before the other side says that it will
const END_OF_HEAD = Buffer.from('\r\n\r\n');
const NOT_IN_A_HEADER = /[^\t\x20-\x7e\x80-\xff]/;

/** The head of a request; `headers` are texts of bytes. */
function head(method, target, headers) {
  let text = `${method} ${target} HTTP/1.1\r\n`;
  for (const name of Object.keys(headers)) {
    const value = String(headers[name]);
    if (NOT_IN_A_HEADER.test(value)) throw new TypeError(`a character that cannot be sent in the header ${name}`);
    text += `${name}: ${value}\r\n`;
  }
  return Buffer.from(`${text}\r\n`, 'latin1');
}

/** {status, headers}, the names in lower case; of several of one name the values are one list. */
function parseHead(text) {
  const [first, ...lines] = text.split('\r\n');
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(first)?.[1]);
  if (!status) throw new Error('the answer is no HTTP/1.1');
  const headers = Object.create(null);
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon <= 0) throw new Error('the answer has a malformed header');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  return { status, headers };
}

/** The bytes of one answer. `take(bytes)`: true when it is complete, and nothing came after it. */
class Answer {
  #method;
  #rest = Buffer.alloc(0); // not yet understood
  #pieces = [];
  #length = 0;
  #left = 0; // of the body, or of the present chunk; Infinity: to the end of the connection
  #state = 'head'; // body, size, data, gap, trailer, done

  constructor(method) {
    this.#method = method;
    this.status = 0;
    this.headers = null;
  }

  get body() {
    return Buffer.concat(this.#pieces);
  }

  get hasBegun() {
    return this.headers !== null || this.#rest.length > 0;
  }

  /** The other side has ended the connection. Whether that is the end of the answer. */
  end() {
    return this.#state === 'body' && this.#left === Infinity;
  }

  take(bytes) {
    this.#rest = this.#rest.length ? Buffer.concat([this.#rest, bytes]) : bytes;
    while (this.#state !== 'done' && this.#step());
    if (this.#state === 'done' && this.#rest.length) throw new Error('there is more than one answer');
    return this.#state === 'done';
  }

  /** Understands some more. false: more bytes are needed. */
  #step() {
    if (this.#state === 'head') return this.#head();
    if (this.#state === 'body' || this.#state === 'data') return this.#data();
    const line = this.#line();
    if (line === null) return false;
    if (this.#state === 'size') {
      if (!/^[0-9a-f]+[ \t]*(;.*)?$/i.test(line)) throw new Error('the answer has a malformed chunk');
      this.#left = parseInt(line, 16);
      this.#state = this.#left > 0 ? 'data' : 'trailer';
    } else if (this.#state === 'gap') {
      if (line !== '') throw new Error('the answer has a malformed chunk');
      this.#state = 'size';
    } else if (line === '') this.#state = 'done'; // of the trailer
    return true;
  }

  #line() {
    const end = this.#rest.indexOf('\r\n');
    if (end < 0 && this.#rest.length > LONGEST_HEAD) throw new Error('the answer has a line without an end');
    if (end < 0) return null;
    const line = this.#rest.toString('latin1', 0, end);
    this.#rest = this.#rest.subarray(end + 2);
    return line;
  }

  #head() {
    const end = this.#rest.indexOf(END_OF_HEAD);
    if (end < 0 && this.#rest.length > LONGEST_HEAD) throw new Error('the answer has a head without an end');
    if (end < 0) return false;
    const { status, headers } = parseHead(this.#rest.toString('latin1', 0, end));
    this.#rest = this.#rest.subarray(end + 4);
    if (status < 200 && status !== 101) return true; // another one follows
    Object.assign(this, { status, headers });
    const length = headers['content-length'];
    const coding = headers['transfer-encoding'];
    if (this.#method === 'HEAD' || status === 204 || status === 304) this.#state = 'done';
    else if (coding !== undefined) {
      if (coding.toLowerCase() !== 'chunked' || length !== undefined) throw new Error(`the answer is in ${coding}`);
      this.#state = 'size';
    } else {
      if (length !== undefined && !/^\d+$/.test(length)) throw new Error('the answer has no length');
      this.#left = length === undefined ? Infinity : Number(length);
      this.#state = this.#left > 0 ? 'body' : 'done';
    }
    return true;
  }

  #data() {
    const piece = this.#rest.subarray(0, this.#left);
    if (piece.length === 0) return false;
    this.#rest = this.#rest.subarray(piece.length);
    this.#pieces.push(piece);
    this.#length += piece.length;
    if (this.#length > LONGEST_ANSWER) throw new ClaveError(`answers with more than ${LONGEST_ANSWER} bytes`, { code: 'ETOOBIG' });
    this.#left -= piece.length;
    if (this.#left === 0) this.#state = this.#state === 'data' ? 'gap' : 'done';
    return true;
  }
}

class Connection {
  #socket;
  #answer = null;
  #settle = null; // {resolve, reject} of the request
  #ended; // the pool is told

  constructor(socket, ended) {
    this.#socket = socket;
    this.#ended = ended;
    this.isOver = false;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('data', (bytes) => this.#read(bytes));
    socket.on('error', (error) => this.fail(error));
    socket.on('end', () => this.#onEnd());
    socket.on('close', () => this.fail(new Error(this.#answer?.hasBegun ? 'the answer was cut off' : 'the connection was closed before an answer')));
    socket.on('timeout', () => this.fail(new Error('it was idle')));
  }

  ref(isRefed) {
    if (isRefed) this.#socket.ref();
    else this.#socket.unref();
  }

  /** Resolves to the answer. */
  send(method, bytes, body, isRefed) {
    return new Promise((resolve, reject) => {
      this.#answer = new Answer(method);
      this.#settle = { resolve, reject };
      this.#socket.setTimeout(0);
      this.ref(isRefed);
      this.#socket.write(body?.length ? Buffer.concat([bytes, body]) : bytes);
    });
  }

  #read(bytes) {
    if (!this.#answer) return this.fail(new Error('an answer that nobody has asked for'));
    try {
      if (this.#answer.take(bytes)) this.#done();
    } catch (error) {
      this.fail(error);
    }
  }

  #onEnd() {
    if (this.#answer?.end()) {
      this.isOver = true;
      this.#done();
    }
    this.fail(new Error(this.#answer?.hasBegun ? 'the answer was cut off' : 'the connection was closed before an answer'));
  }

  #done() {
    const { status, headers, body } = this.#answer;
    const { resolve } = this.#settle;
    this.#answer = this.#settle = null;
    const closes = /\bclose\b/i.test(headers.connection ?? '') || status === 101;
    const idle = Number(/timeout=(\d+)/.exec(headers['keep-alive'] ?? '')?.[1] ?? Infinity) * 1000 - SPARE_MS;
    if (closes || idle <= 0) this.fail(new Error('the gate ends the connection'));
    else if (idle < 2 ** 31) this.#socket.setTimeout(idle);
    resolve({ status, headers, body });
  }

  /** It is over, and so is its request. */
  fail(error) {
    const settle = this.#settle;
    this.#settle = null;
    if (!this.isOver || !this.#socket.destroyed) this.#socket.destroy();
    this.isOver = true;
    this.#ended(this);
    settle?.reject(error);
  }
}

/** Connections to one place, `most` at most; further requests wait for one. */
class Pool {
  #connect; // () => a socket
  #most;
  #spare;
  #free = [];
  #all = new Set();
  #queue = [];

  constructor(connect, most, spare) {
    this.#connect = connect;
    this.#most = most;
    this.#spare = spare;
  }

  /** {status, headers, body}; rejects when there was no whole answer, after `timeout` ms at the latest. */
  async request(method, target, { headers, body, timeout, signal, isRefed }) {
    const bytes = head(method, target, headers);
    let connection = null;
    let cancel;
    const given = new Promise((_, reject) => {
      const end = (error) => (connection ? connection.fail(error) : reject(error));
      const abort = () => end(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
      const stop = after(timeout, () => end(new Error(`no answer within ${Math.round(timeout)} ms`)), false);
      signal?.addEventListener('abort', abort, { once: true });
      cancel = () => {
        stop();
        signal?.removeEventListener('abort', abort);
      };
    });
    given.catch(() => {});
    try {
      connection = this.#take() ?? (await this.#turn(given));
      return await connection.send(method, bytes, body, isRefed());
    } finally {
      cancel();
      if (connection) this.#give(connection);
    }
  }

  #take() {
    while (this.#free.length) {
      const connection = this.#free.pop();
      if (!connection.isOver) return connection;
    }
    if (this.#all.size >= this.#most) return null;
    const connection = new Connection(this.#connect(), (c) => this.#drop(c));
    this.#all.add(connection);
    return connection;
  }

  /** Waits for a connection, until `given` rejects. */
  async #turn(given) {
    let called;
    const turn = new Promise((resolve) => (called = resolve));
    this.#queue.push(called);
    try {
      return await Promise.race([turn, given]);
    } catch (error) {
      const at = this.#queue.indexOf(called);
      if (at >= 0) this.#queue.splice(at, 1);
      else turn.then((connection) => this.#give(connection));
      throw error;
    }
  }

  #give(connection) {
    if (connection.isOver) return this.#next();
    connection.ref(false);
    if (this.#queue.length) this.#queue.shift()(connection);
    else if (this.#free.length < this.#spare) this.#free.push(connection);
    else connection.fail(new Error('it is not needed'));
  }

  #drop(connection) {
    this.#all.delete(connection);
    const at = this.#free.indexOf(connection);
    if (at >= 0) this.#free.splice(at, 1);
  }

  /** Those who wait have a connection of their own in place of one that is over. */
  #next() {
    if (!this.#queue.length) return;
    const connection = this.#take();
    if (connection) this.#queue.shift()(connection);
  }

  unref() {
    for (const connection of this.#all) connection.ref(false);
  }

  close() {
    for (const connection of [...this.#all]) connection.fail(new Error('the client is closed'));
  }
}

module.exports = { Pool };
