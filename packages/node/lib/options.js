'use strict';
// options.js - what callers give: a name that nobody knows, and a value of another type, are told at once. A misspelt
// "wait" would otherwise wait for ever.
const { milliseconds } = require('./time.js');

const fail = (what, name, wanted, value) => {
  const shown = typeof value === 'string' ? JSON.stringify(value) : typeof value === 'bigint' ? `${value}n` : Array.isArray(value) ? 'a list' : String(value);
  throw new TypeError(`${what}: ${name} must be ${wanted}, not ${shown}`);
};

/** A whole number of at least `least`, also as a BigInt. */
const whole = (least) => (value, what, name) => {
  const number = typeof value === 'bigint' ? Number(value) : value;
  return Number.isSafeInteger(number) && number >= least ? number : fail(what, name, `a whole number from ${least}`, value);
};
const type = (kind, words) => (value, what, name) => (typeof value === kind ? value : fail(what, name, words, value));

const KINDS = {
  duration: (value, what, name) => milliseconds(value, `${what}: ${name}`),
  text: type('string', 'a text'),
  flag: type('boolean', 'true or false'),
  call: type('function', 'a function'),
  count: whole(1),
  port: (value, what, name) => (whole(1)(value, what, name) <= 65535 ? Number(value) : fail(what, name, 'a port, 1 to 65535', value)),
  json: (value, what, name) => (JSON.stringify(value) === undefined ? fail(what, name, 'what JSON can say', value) : value),
  bytes: (value, what, name) => (typeof value === 'string' || value instanceof Uint8Array ? value : fail(what, name, 'a text or bytes', value)),
  version: whole(-1),
  token: (value, what, name) => (/^-?\d+$/.test(String(value)) ? String(value) : fail(what, name, 'a token, a decimal string', value)),
  signal: (value, what, name) => (typeof value?.addEventListener === 'function' && typeof value.aborted === 'boolean' ? value : fail(what, name, 'an AbortSignal', value)),
  bearer: (value, what, name) => (value === null || typeof value === 'string' || typeof value === 'function' ? value : fail(what, name, 'a text or a function', value)),
  pem: (value, what, name) => {
    const fits = typeof value === 'string' ? value.includes('-----BEGIN ') : value !== null && typeof value === 'object';
    return fits ? value : fail(what, name, 'PEM, a text or a Buffer, and no name of a file', value);
  },
};

/** `options`, whose names are those of `known`, {name: kind}, each checked and in one form. */
function take(options, known, what) {
  if (options === undefined) return {};
  const names = Object.keys(known);
  if (options === null || typeof options !== 'object' || Array.isArray(options)) fail(what, 'the options', names.length > 0 ? `an object, such as {${names[0]}: ...}` : 'left out', options);
  const taken = {};
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(known, name)) throw new TypeError(`${what}: there is no option "${name}"${names.length > 0 ? `, only ${names.join(', ')}` : ''}`);
    if (value !== undefined) taken[name] = KINDS[known[name]](value, what, name);
  }
  return taken;
}

function path(value, what) {
  if (typeof value !== 'string' || !value.startsWith('/')) throw new TypeError(`${what}: a path begins with "/", unlike ${typeof value === 'string' ? JSON.stringify(value) : String(value)}`);
  return value;
}

const call = (fn, what) => KINDS.call(fn, what, 'what it runs');

module.exports = { take, path, call };
