'use strict';
// registration.js - what a program has of a node that stays (kept.js): it is a member of a group, as `clave member` and
// Curator's GroupMember are, or an instance of a service, as with `clave register` and Curator's ServiceDiscovery.
const node = require('./node.js');
const { KeptNode } = require('./kept.js');
const { path: checked, take } = require('./options.js');
const { znode } = require('./transport.js');

const MEMBER = { id: 'text', data: 'bytes', replace: 'flag', onChange: 'call', signal: 'signal' };
const INSTANCE = { address: 'text', port: 'port', sslPort: 'port', payload: 'json', uri: 'text', enabled: 'flag' };
const REGISTER = { id: 'text', base: 'text', onChange: 'call', signal: 'signal', ...INSTANCE };
const WITHIN_MS = 5000;

/** A name that can be part of a path. */
function segment(value, what, name) {
  if (typeof value === 'string' && value !== '' && !value.includes('/')) return value;
  throw new TypeError(`${what}: ${name} is a name without "/", unlike ${typeof value === 'string' ? JSON.stringify(value) : String(value)}`);
}

/** Curator's UriSpec of a text such as '{scheme}://{address}:{port}/v1'. */
function uriSpec(text) {
  const wrong = /[{}]/.exec(text.replace(/\{[^{}]*\}/g, ''));
  if (wrong) throw new TypeError(`register: uri has a "${wrong[0]}" without its other half: write {[} and {]} for braces`);
  const parts = text.split(/(\{[^{}]*\})/).map((part) => (part.startsWith('{') ? { value: part.slice(1, -1).trim(), variable: true } : { value: part, variable: false }));
  return { parts: parts.filter((part) => part.value !== '') };
}

class Kept {
  #node;

  constructor(kept) {
    this.#node = kept;
  }

  get path() {
    return this.#node.path;
  }

  get id() {
    return this.path.slice(this.path.lastIndexOf('/') + 1);
  }

  /** It is there, as far as the gates have told. */
  get present() {
    return this.#node.there;
  }

  /** Why it is not present, or null. */
  get error() {
    return this.#node.error;
  }

  /** It keeps the process alive no more. */
  unref() {
    this.#node.ref(false);
    return this;
  }

  ref() {
    this.#node.ref(true);
    return this;
  }

  toJSON() {
    return { path: this.path, present: this.present };
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth, options) {
    return `${this.constructor.name} ${node.util.inspect(this.toJSON(), options)}`;
  }
}

class Membership extends Kept {
  #node;
  #data;

  constructor(kept, data) {
    super(kept);
    this.#node = kept;
    this.#data = data;
  }

  /** Resolves to a member of the group at `path`. */
  static async join(transport, client, path, given) {
    const { id = node.crypto.randomUUID(), data = '', replace, onChange, signal } = take(given, MEMBER, 'join');
    const own = `${checked(path, 'join') === '/' ? '' : path}/${segment(id, 'join', 'id')}`;
    const what = { body: data };
    const kept = new KeptNode(transport, { path: own, target: `/v1/members${znode(own)}`, request: () => what, replace: replace ? '' : undefined, onChange }, client);
    await kept.begin(signal);
    return new Membership(kept, what);
  }

  /** Sets its data, now and whenever it is made anew. Rejects when no gate has done it in time: then it is done later. */
  async set(data) {
    this.#data.body = take({ data }, { data: 'bytes' }, 'set').data ?? '';
    await this.#node.changed();
  }

  /** Resolves when it is no member any more. */
  async leave(options) {
    const { within = WITHIN_MS } = take(options, { within: 'duration' }, 'leave');
    await this.#node.leave(within);
  }
}

class Registration extends Kept {
  #node;
  #instance;

  constructor(kept, instance) {
    super(kept);
    this.#node = kept;
    this.#instance = instance;
  }

  /** Resolves to a registration as an instance of `service`. */
  static async register(transport, client, service, given) {
    const { id = node.crypto.randomUUID(), base = '/services', onChange, signal, ...instance } = take(given, REGISTER, 'register');
    const path = `${checked(base, 'register: base') === '/' ? '' : base}/${segment(service, 'register', 'a service')}/${segment(id, 'register', 'id')}`;
    if (!instance.address) throw new TypeError('register: address is missing: the host or IP at which others reach this instance');
    const all = { ...instance, registered: Date.now() };
    body(all);
    const kept = new KeptNode(transport, { path, target: `/v1/services${znode(`/${service}/${id}`)}`, query: { base }, request: () => ({ json: body(all) }), onChange }, client);
    await kept.begin(signal);
    return new Registration(kept, all);
  }

  get service() {
    return this.path.split('/').at(-2);
  }

  /** Changes what is given. Rejects when no gate has done it in time: then it is done later. */
  async update(changes) {
    const given = take(changes, INSTANCE, 'update');
    body({ ...this.#instance, ...given });
    Object.assign(this.#instance, given);
    await this.#node.changed();
  }

  /** It is to be used: what it was registered as, unless `enabled` was false. */
  enable() {
    return this.update({ enabled: true });
  }

  /** It stays registered, and others do not use it. Curator before 4.1 does not know this and goes on using it. */
  disable() {
    return this.update({ enabled: false });
  }

  /** Resolves when it is not registered any more. */
  async unregister(options) {
    const { within = WITHIN_MS } = take(options, { within: 'duration' }, 'unregister');
    await this.#node.leave(within);
  }
}

/** An instance as the gate takes it, with Curator's names. */
function body({ address, port, sslPort, payload, uri, enabled, registered }) {
  return { address, port, sslPort, payload, uriSpec: uri === undefined ? undefined : uriSpec(uri), enabled: enabled === false ? false : undefined, registrationTimeUTC: registered };
}

// `await using`, where Node has it.
const dispose = Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose');
Membership.prototype[dispose] = async function leave() {
  await this.leave();
};
Registration.prototype[dispose] = async function unregister() {
  await this.unregister();
};

module.exports = { Membership, Registration };
