// holder.mjs - a holder or a candidate of the npm package, over gates: logs what it believes as holder.c does.
//
//   holder.mjs lock|latch GATE,... PATH LOG NAME STOP SESSION_MS HOLD_MS BLOCK OFFSET_NS
//
// While the file BLOCK exists its event loop is blocked. OFFSET_NS: from CLOCK_MONOTONIC to CLOCK_BOOTTIME.
import { existsSync, openSync, writeSync } from 'node:fs';
import { setTimeout as nap } from 'node:timers/promises';
import { ClaveError, LostError, UnknownOutcomeError, UnreachableError, connect } from '../../packages/node/index.mjs';

const [STEP_MS, LATE_NS, STEPS_A_WRITE] = [5, 100_000_000n, 5];
const [what, gates, path, logged, name, stop, sessionMs, holdMs, block, offset] = process.argv.slice(2);
const log = openSync(logged, 'a');
const clave = connect(gates.split(','), { ttl: Number(sessionMs), name });
let writes = 0;

const now = () => process.hrtime.bigint() + BigInt(offset);
const note = (ns, event, token, detail = '-') => writeSync(log, `${ns} ${event} ${name} ${token} ${detail}\n`);
const isOver = () => existsSync(stop);

/** Tells when the loop did not run, so that no loss was heard; and blocks it. */
function watchTheLoop() {
  const moment = new Int32Array(new SharedArrayBuffer(4));
  let before = now();
  setInterval(() => {
    const ns = now();
    if (ns - before > LATE_NS) note(ns, 'late', 0, before);
    while (existsSync(block)) Atomics.wait(moment, 0, 0, STEP_MS);
    before = ns;
  }, STEP_MS).unref();
}

async function write(hold) {
  const number = writes++;
  const node = `${path}-writes/${name}.${hold.token}.${number}-`;
  let done = 'wrote';
  note(now(), 'write', hold.token, number);
  try {
    await hold.multi([{ op: 'create', path: node, mode: 'persistent_sequential' }]);
  } catch (error) {
    if (!(error instanceof ClaveError)) throw error;
    done = error instanceof UnknownOutcomeError ? 'unsure' : 'refused';
  }
  note(now(), done, hold.token, number);
}

/** One hold, from its grant to its end. Writes are begun and not waited for. */
async function keep(hold) {
  const { token, signal } = hold;
  const begin = now();
  if (hold.validFor()) note(begin, 'grant', token, what); // not lost by now
  const lost = () => note(now(), 'lost', token, signal.reason.code);
  if (signal.aborted) lost();
  else signal.addEventListener('abort', lost, { once: true });
  let over = false;
  let writing = false;
  for (let i = 0, ns = begin; !over && hold.validFor(); i++, ns = now()) {
    over = isOver() || ns - begin >= BigInt(holdMs) * 1_000_000n;
    note(ns, over ? 'release' : 'held', token, now());
    if (!over && !writing && i % STEPS_A_WRITE === 0) {
      writing = true;
      write(hold).finally(() => (writing = false));
    }
    if (!over) await nap(STEP_MS);
  }
  if (over) return;
  note(now(), 'gone', token);
  write(hold); // which must not be done
}

async function lock() {
  note(now(), 'ask', 0, 'acquire');
  const hold = await clave.lock(path);
  await keep(hold);
  await hold.release();
  note(now(), 'released', hold.token, 'ok');
}

async function lead() {
  for await (const term of clave.lead(path)) {
    await keep(term);
    if (isOver()) break;
  }
}

watchTheLoop();
while (!isOver()) {
  try {
    await (what === 'lock' ? lock() : lead());
  } catch (error) {
    if (!(error instanceof LostError || error instanceof UnreachableError)) throw error;
  }
}
await clave.close();
