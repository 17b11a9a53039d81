'use strict';
// clave.js - all names of the package.
const errors = require('./errors.js');
const { Client } = require('./client.js');

const DEFAULT_GATE = 'http://127.0.0.1:8080';

/** A client of the gates at `urls`: one URL, or a list of them. Contacts none yet. */
function connect(urls = (process.env.CLAVE_GATE ?? DEFAULT_GATE).split(/[\s,]+/).filter(Boolean), options = undefined) {
  return new Client(Array.isArray(urls) ? urls : [urls], options);
}

const { ClaveError, BusyError, LostError, UnreachableError, UnknownOutcomeError, DeniedError } = errors;
module.exports = { connect, ClaveError, BusyError, LostError, UnreachableError, UnknownOutcomeError, DeniedError };
