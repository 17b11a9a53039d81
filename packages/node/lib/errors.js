'use strict';
// errors.js - what can go wrong. `code` is a name of clave/err.h, `problem` the answer of the gate.

class ClaveError extends Error {
  constructor(message, { code = null, problem = null, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    this.problem = problem;
    this.status = problem?.status ?? null;
    this.path = problem?.path ?? null;
  }
}

/** Another holds it, and the time to wait is over. Nothing was done. */
class BusyError extends ClaveError {}
/** It was held and is not any more, or cannot be relied on. */
class LostError extends ClaveError {}
/** No gate answered in time. Nothing is held. */
class UnreachableError extends ClaveError {}
/** An answer was lost: the write may or may not have been done. */
class UnknownOutcomeError extends ClaveError {}
/** The gate does not let this client do it. */
class DeniedError extends ClaveError {}

/** The error for an answer that is a refusal. */
function refused(status, problem, what) {
  const told = problem && typeof problem === 'object' ? problem : { status };
  const message = told.detail ?? `${what}: the gate answered ${status}`;
  const more = { code: told.code ?? null, problem: { ...told, status } };
  if (status === 401 || status === 403) return new DeniedError(message, more);
  if (status === 410) return new LostError(message, more);
  if (status === 502 || status === 504 || told.class === 'unknown') return new UnknownOutcomeError(message, more);
  if (told.code === 'EBUSY') return new BusyError(message, more);
  if (status === 503) return new UnreachableError(message, more);
  return new ClaveError(message, more);
}

module.exports = { ClaveError, BusyError, LostError, UnreachableError, UnknownOutcomeError, DeniedError, refused };
