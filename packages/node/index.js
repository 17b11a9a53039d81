'use strict';
// clave - locks, elections and run-once over HTTP. See README.md and index.d.ts.
const errors = require('./lib/errors.js');
const { Client } = require('./lib/client.js');

/** A client of the gates at `urls`: one URL, or a list of them. Contacts none yet. */
function connect(urls = process.env.CLAVE_GATE ?? 'http://127.0.0.1:8080', options = {}) {
  return new Client(Array.isArray(urls) ? urls : [urls], options);
}

const { ClaveError, BusyError, LostError, UnreachableError, UnknownOutcomeError, DeniedError } = errors;
module.exports = { connect, ClaveError, BusyError, LostError, UnreachableError, UnknownOutcomeError, DeniedError };
