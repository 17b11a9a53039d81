'use strict';
// errors.js - what can go wrong. `code` is a name of clave/err.h, `problem` the answer of the gate.

class ClaveError extends Error {
  constructor(message, { code, problem = null, cause, path } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code ?? new.target.code;
    this.problem = problem;
    this.status = problem?.status ?? null;
    this.path = path ?? problem?.path ?? null;
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

// Of an error that has no code of its own.
const CODES = [[ClaveError, 'EPROTO'], [BusyError, 'EBUSY'], [LostError, 'ELOST'], [UnreachableError, 'EUNREACHABLE'], [UnknownOutcomeError, 'EOPTIMEOUT'], [DeniedError, 'ENOAUTH']];
for (const [kind, value] of CODES) Object.defineProperty(kind, 'code', { value });

/** The error for an answer that is a refusal. */
function refused(status, problem, what, path) {
  const told = problem && typeof problem === 'object' ? problem : { status };
  const message = told.detail ?? `${what}: the gate answered ${status}`;
  const more = { code: told.code, problem: { ...told, status }, path: told.path ?? path };
  if (status === 401 || status === 403) return new DeniedError(message, more);
  if (status === 410) return new LostError(message, more);
  if (status === 502 || status === 504 || told.class === 'unknown') return new UnknownOutcomeError(message, more);
  if (told.code === 'EBUSY') return new BusyError(message, more);
  if (status === 503) return new UnreachableError(message, more);
  return new ClaveError(message, more);
}

/** What an error says. That of several addresses which were all refused says nothing by itself. */
const reason = (error) => error?.message || (error?.errors?.length ? reason(error.errors[0]) : (error?.code ?? String(error)));

module.exports = { ClaveError, BusyError, LostError, UnreachableError, UnknownOutcomeError, DeniedError, refused, reason };
