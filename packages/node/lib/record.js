'use strict';
// record.js - nodes beside a lock that outlive its holders, in the form that `clave lock --once` reads and writes:
// lines "key=value" after "clave/1", with control characters and % as %XX.
const node = require('./node.js');

const escape = (text) => String(text).replace(/[\x00-\x1f\x7f%]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
const unescape = (text) => text.replace(/%([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));

function format(fields) {
  const all = { ...fields, host: node.os.hostname(), pid: process.pid };
  return `clave/1\n${Object.entries(all).map(([k, v]) => `${k}=${escape(v)}\n`).join('')}`;
}

function parse(text) {
  const [form, ...lines] = text.split('\n');
  const fields = {};
  if (form !== 'clave/1') return fields;
  for (const line of lines) {
    const at = line.indexOf('=');
    if (at > 0) fields[line.slice(0, at)] ??= unescape(line.slice(at + 1));
  }
  return fields;
}

/** {fields, data, stat}, or null when there is none. */
async function read(client, path) {
  const found = await client.get(path);
  return found && { ...found, fields: parse(found.data.toString()) };
}

module.exports = { format, read };
