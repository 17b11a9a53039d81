'use strict';
// guarded.js - writes that are done only while something is held, in one transaction with the check.
const { refused } = require('./errors.js');
const { take, path: checked } = require('./options.js');
const { znode } = require('./transport.js');

/** What is held at `path`, with its fencing token `token`. */
class Guarded {
  #transport;
  #headers;

  /** `headers()`: of the session that holds it, if there is one. */
  constructor(transport, headers) {
    this.#transport = transport;
    this.#headers = headers;
  }

  async #write(method, target, request, what) {
    const guard = Buffer.from(`${this.path};token=${this.token}`).toString('latin1');
    const headers = { ...this.#headers(), ...request.headers, 'clave-guard': guard };
    const answer = await this.#transport.ask(method, target, { ...request, headers, repeatable: false, what });
    if (answer.status >= 400) throw refused(answer.status, answer.told, what);
    return answer;
  }

  /** Sets a node's data; `version`: only that one. Resolves to its stat. */
  async set(path, data, options) {
    const { version } = take(options, { version: 'version' }, 'set');
    checked(path, 'set');
    const headers = version === undefined ? {} : { 'if-match': `"${version}"` };
    return (await this.#write('PUT', `/v1/znodes${znode(path)}`, { body: data, headers }, `cannot set ${path}`)).told.stat;
  }

  /** Creates a node. Resolves to its path. */
  async create(path, data = '', options) {
    const { parents = false } = take(options, { parents: 'flag' }, 'create');
    checked(path, 'create');
    const target = `/v1/znodes${znode(path)}${parents ? '?parents' : ''}`;
    return (await this.#write('POST', target, { body: data }, `cannot create ${path}`)).told.path;
  }

  async delete(path, options) {
    const { version } = take(options, { version: 'version' }, 'delete');
    checked(path, 'delete');
    const headers = version === undefined ? {} : { 'if-match': `"${version}"` };
    await this.#write('DELETE', `/v1/znodes${znode(path)}`, { headers }, `cannot delete ${path}`);
  }

  /** All operations or none: [{op: 'create'|'set'|'delete'|'check', path, data, version}]. */
  async multi(ops) {
    const plain = ops.map((op) => (typeof op.version === 'bigint' ? { ...op, version: Number(op.version) } : op));
    return (await this.#write('POST', '/v1/multi', { json: { ops: plain } }, 'cannot do the transaction')).told.results;
  }
}

module.exports = { Guarded };
