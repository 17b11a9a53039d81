'use strict';
// time.js - durations as users write them, and a clock for deadlines.

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const LONGEST_TIMER = 2 ** 31 - 1; // of setTimeout, which fires at once when it is given more

/** Whole milliseconds of a number (of milliseconds) or a text such as '1500ms', '10s', '1h30m'. */
function milliseconds(duration, name = 'a duration') {
  if (typeof duration === 'bigint' && duration >= 0n) return Number(duration);
  if (typeof duration === 'number' && duration >= 0) return Math.round(duration);
  if (typeof duration === 'string' && /^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(duration)) {
    let sum = 0;
    for (const [, n, , unit] of duration.matchAll(/(\d+(\.\d+)?)(ms|s|m|h|d)/g)) sum += Number(n) * UNITS[unit];
    return Math.round(sum); // 1.1 * 1000 is 1100.0000000000002
  }
  throw new TypeError(`${name} must be milliseconds or a text such as '10s', not ${typeof duration === 'string' ? JSON.stringify(duration) : String(duration)}`);
}

// The monotonic clock stops while the machine sleeps, and Date can be set. A deadline is judged by the one that has
// moved more.
const stamp = () => ({ monotonic: performance.now(), date: Date.now() });
const elapsed = (since) => Math.max(performance.now() - since.monotonic, Date.now() - since.date);

/** Calls `fn` after `ms`, however many they are. Returns what stops it. `keeps`: the process is kept alive until then. */
function after(ms, fn, keeps = true) {
  let timer;
  const begin = (left) => {
    const now = Math.min(left, LONGEST_TIMER);
    timer = setTimeout(() => (left > now ? begin(left - now) : fn()), now);
    if (!keeps) timer.unref();
  };
  begin(ms);
  return () => clearTimeout(timer);
}

/** Resolves after `ms`; rejects with the signal's reason when it is aborted before. */
function pause(ms, signal, keeps = true) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      cancel();
      reject(signal.reason);
    };
    const cancel = after(ms, () => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, keeps);
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

/** The promise, but rejects with the signal's reason when that is aborted before. */
function orAborted(promise, signal) {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    const end = (settle) => (value) => {
      signal.removeEventListener('abort', stop);
      settle(value);
    };
    promise.then(end(resolve), end(reject));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}

/** A controller that is aborted when one of the signals is; to be aborted at the end, so that they forget it. */
function abortedBy(...signals) {
  const given = new AbortController();
  for (const signal of signals) {
    if (signal?.aborted) given.abort(signal.reason);
    else signal?.addEventListener('abort', () => given.abort(signal.reason), { once: true, signal: given.signal });
  }
  return given;
}

/** Of several attempts: longer each time, and different in each process. */
const backoff = (attempt) => Math.min(2000, 50 * 2 ** Math.min(attempt, 6)) * (0.5 + Math.random() / 2);

module.exports = { milliseconds, stamp, elapsed, after, pause, orAborted, abortedBy, backoff };
