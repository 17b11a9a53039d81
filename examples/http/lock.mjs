#!/usr/bin/env node
// lock.mjs PATH COMMAND [ARG]...   runs a command while it holds a lock of a gate; or, imported:
//
//     const lock = await acquire('http://127.0.0.1:8080', '/jobs/nightly');
//     try { await write(data, lock.token); } finally { await lock.release(); }
//
// For https with an authority of your own, `ca` (CLAVE_GATE_CA: the file of it) is its certificate.
//
// Node 18, without packages. The rule that makes it safe: valid_ms counts from when the request was SENT, by a clock
// that goes on while the machine sleeps (performance.now() does not); and only an answer to our own question moves
// the deadline.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { uptime } from 'node:os';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';

const now = () => uptime() * 1000; // milliseconds since the start of the machine, its sleep included

export class Lost extends Error {}

// fetch() cannot be given a certificate.
const send = (url, { body, ...options }) =>
  new Promise((done, fail) => {
    const from = url.startsWith('https:') ? https : http;
    const q = from.request(url, { ...options, agent: false }, (r) => {
      let text = '';
      r.setEncoding('utf8').on('error', fail);
      r.on('data', (piece) => (text += piece)).on('end', () => done({ status: r.statusCode, text }));
    });
    q.on('error', fail).end(body);
  });

export async function acquire(gate, path, { kind = 'lock', ttl = 10000, bearer, ca } = {}) {
  const headers = bearer ? { Authorization: `Bearer ${bearer}` } : {};

  // Throws when nobody knows what happened.
  async function ask(method, target, { body, timeout = 10000, more = {} } = {}) {
    const sent = now();
    const { status, text } = await send(gate.replace(/\/$/, '') + target, {
      method,
      ca,
      headers: { ...headers, ...more, ...(body ? { 'Content-Type': 'application/json' } : {}) },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(Math.max(1, Math.floor(timeout))),
    });
    return { status, told: text ? JSON.parse(text) : null, sent };
  }

  const made = await ask('POST', '/v1/sessions', { body: { ttl_ms: ttl, name: 'lock.mjs' } });
  if (made.status !== 201) throw new Lost(JSON.stringify(made.told));
  const { id } = made.told;
  ttl = made.told.ttl_ms;
  headers['Clave-Session'] = made.told.secret;

  // A repeated request with the same key finds the same place in the queue, at whichever gate it arrives.
  const key = randomUUID();
  const claim = (timeout, wait) =>
    ask('POST', '/v1/claims', {
      body: { session: id, path, kind }, timeout, more: { 'Idempotency-Key': key, Prefer: `wait=${wait}` },
    });
  let a;
  for (;;) {
    try {
      a = await claim(60000, 30);
    } catch {
      a = { status: 503 };
    }
    if ((a.status === 200 || a.status === 201) && a.told.state === 'held') break;
    if ([429, 502, 503, 504].includes(a.status)) await sleep(1000); // nobody knows, or too many wait
    else if (a.status !== 202) throw new Lost(JSON.stringify(a.told));
  }

  let deadline = a.sent + a.told.valid_ms;
  const over = new AbortController();
  // Milliseconds in which nobody else can hold it; a tenth of the session's time is kept for clocks that run at
  // different rates, and to stop in.
  const validFor = () => deadline - now() - ttl / 10;

  (async () => {
    let every = ttl / 3;
    while (!over.signal.aborted && validFor() > 0) {
      try {
        await sleep(Math.max(0, Math.min(every, validFor())), null, { signal: over.signal, ref: false });
        if (validFor() <= 0) return;
        every = ttl / 20; // sooner when it is not answered
        let r = await ask('POST', `/v1/sessions/${id}/renew`, { timeout: validFor() / 2 });
        let mine = r.status === 200 && r.told.claims[0];
        // By a gate that does not know the claim yet.
        if (r.status === 200 && !mine) ({ told: mine } = r = await claim(validFor() / 2, 1));
        const held = (r.status === 200 || r.status === 201) && mine.state === 'held' && mine.token === a.told.token;
        if (held) [deadline, every] = [r.sent + mine.valid_ms, ttl / 3];
        else if ([200, 201, 410].includes(r.status)) deadline = 0; // it has ended, or the session has
      } catch {
        // no answer: the deadline stays
      }
    }
  })();

  return {
    token: BigInt(a.told.token),
    ttl,
    validFor,
    async release() {
      over.abort();
      await ask('DELETE', `/v1/sessions/${id}`, { timeout: 2000 }).catch(() => {}); // or it ends by itself
    },
  };
}

async function main([path, ...command]) {
  if (command.length === 0) {
    console.error('usage: lock.mjs PATH COMMAND [ARG]...');
    process.exit(64);
  }
  const lock = await acquire(process.env.CLAVE_GATE ?? 'http://127.0.0.1:8080', path, {
    ttl: Number(process.env.CLAVE_TTL_MS ?? 10000),
    bearer: process.env.CLAVE_GATE_TOKEN,
    ca: process.env.CLAVE_GATE_CA && readFileSync(process.env.CLAVE_GATE_CA),
  });
  const child = spawn(command[0], command.slice(1), {
    stdio: 'inherit',
    env: { ...process.env, CLAVE_TOKEN: String(lock.token) },
  });
  const ended = new Promise((done) => {
    child.on('exit', (code, signal) => done(code ?? (signal ? 128 : 1)));
    child.on('error', () => done(127));
  });
  for (const s of ['SIGTERM', 'SIGINT']) process.on(s, () => child.kill(s));
  let code = null;
  while (code === null && lock.validFor() > 0)
    code = await Promise.race([ended, sleep(Math.min(500, Math.max(1, lock.validFor())), null)]);
  if (code === null) {
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), lock.ttl / 20);
    await ended;
    clearTimeout(late);
    console.error('lock.mjs: the lock is lost: not renewed in time');
    code = 75;
  }
  await lock.release();
  process.exit(code);
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  main(process.argv.slice(2)).catch((e) => {
    console.error(`lock.mjs: no lock: ${e.message}${e.cause ? `: ${e.cause.message}` : ''}`);
    process.exit(75);
  });
