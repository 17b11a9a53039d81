'use strict';
// first_hour.test.js - what newcomers hit: reasons, options, many waits, outages, long times.
const assert = require('node:assert/strict');
const { getEventListeners } = require('node:events');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');
const os = require('node:os');
const path = require('node:path');
const { after, before, test } = require('node:test');
const util = require('node:util');
const { connect, BusyError, ClaveError, DeniedError, UnreachableError } = require('..');
const { Rig, TOKEN, freePort, start, stop } = require('./rig.js');

const rig = new Rig();
before(() => rig.begin(1));
after(() => rig.end());
const client = (...words) => rig.client(...words);

test('two hundred waits cost one session, one place each and few connections', async () => {
  const [a, b] = [client(), client()];
  const blocker = await a.lock('/hour/many');
  const order = [];
  const files = () => fs.readdirSync('/proc/self/fd').length;
  const before = files();
  const waits = Array.from({ length: 200 }, (_, i) => b.lock('/hour/many').then((hold) => (order.push(i), hold.release())));
  for (;;) {
    const lock = await a.look('/hour/many', { fresh: true });
    assert.ok(lock.nwaiters <= 200);
    if (lock.nwaiters === 200) break;
    await new Promise((r) => setTimeout(r, 20));
  }
  const sessions = await fetch(`${rig.url}/v1/sessions?limit=1000`, { headers: { authorization: `Bearer ${TOKEN}` } }).then((r) => r.json());
  assert.equal(sessions.sessions.filter((s) => s.claims.some((c) => c.state === 'waiting')).length, 1);
  assert.equal(b.toJSON().waits.length, 200);
  assert.ok(files() - before < 10, `${files() - before} connections more`);
  await blocker.release();
  await Promise.all(waits);
  assert.equal(order.length, 200);
  assert.equal(await a.look('/hour/many', { fresh: true }), null);
});

/** A gate whose certificate nobody knows: none without openssl. */
async function strange(t) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'clave-tls-'));
  t.after(() => fs.rmSync(dir, { recursive: true }));
  const [key, cert] = [path.join(dir, 'key'), path.join(dir, 'cert')];
  const made = spawnSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=localhost', '-keyout', key, '-out', cert]);
  if (made.status !== 0) return [];
  const server = https.createServer({ key: fs.readFileSync(key), cert: fs.readFileSync(cert) }, (_, answer) => answer.end());
  await new Promise((r) => server.listen(0, '127.0.0.1', r));
  t.after(() => (server.close(), server.closeAllConnections()));
  return [[`https://127.0.0.1:${server.address().port}`, {}, /self.signed certificate/]];
}

test('the reason says which gate it was, and why', async (t) => {
  const refused = `http://127.0.0.1:${await freePort()}`;
  const plain = rig.url.replace('http:', 'https:');
  const cases = [
    [refused, {}, /ECONNREFUSED/],
    ['http://no-such-host.invalid:8080', {}, /ENOTFOUND|EAI_AGAIN/],
    [plain, {}, /wrong version number|EPROTO|packet length/i],
    ...(await strange(t)),
    [rig.url, { token: () => { throw new Error('the vault is shut'); } }, /the vault is shut/],
  ];
  for (const [url, options, words] of cases)
    for (const wait of ['1s', undefined]) {
      if (wait === undefined && url !== refused) continue;
      await assert.rejects(connect(url, options).lock('/hour/why', { wait }), (error) => {
        assert.ok(error instanceof UnreachableError, String(error));
        assert.match(error.message, words);
        assert.ok(error.message.includes(url), error.message);
        assert.ok(error.cause instanceof Error);
        assert.equal(error.code, 'EUNREACHABLE');
        assert.equal(error.path, '/hour/why');
        return true;
      });
    }
});

test('a gate without servers tells what its connection says', async () => {
  const port = await freePort();
  const gate = await start(['gate', '--connect', `127.0.0.1:${await freePort()}`, '--http', `127.0.0.1:${port}`]);
  await assert.rejects(connect(`http://127.0.0.1:${port}`).lock('/hour/gate', { wait: '5s' }), (error) => {
    assert.match(error.message, /connection refused/i);
    return error.code === 'EUNREACHABLE' && error.cause.status === 503;
  });
  await stop(gate);
});

test('a server without tokens lets programs of its machine do the headline, and says what makes a token', async () => {
  const [zk, port] = [await freePort(), await freePort()];
  const data = fs.mkdtempSync(path.join(os.tmpdir(), 'clave-open-'));
  const server = await start(['serve', '--data', data, '--listen', `127.0.0.1:${zk}`, '--http', `127.0.0.1:${port}`]);
  const c = connect(`http://127.0.0.1:${port}`);
  assert.equal((await c.once('/jobs/report', { key: 'daily', for: '20h' }, () => 1)).ran, true);
  assert.equal((await c.once('/jobs/report', { key: 'daily', for: '20h' }, () => 1)).ran, false);
  await assert.rejects(c.once('/jobs/fails', () => Promise.reject(new Error('no luck'))), /no luck/);
  assert.equal((await c.once('/jobs/fails', () => 2)).result, 2);
  const { coordinator } = require('../node-cron.js');
  const time = `report:${new Date().toISOString()}`;
  const [one, other] = [coordinator(c), coordinator(c)];
  assert.deepEqual([await one.shouldRun(time, 1000), await other.shouldRun(time, 1000)], [true, false]);
  await one.onComplete(time);
  assert.equal(await other.shouldRun(time, 1000), false);
  const held = await c.lock('/jobs/report');
  for (const call of [() => held.create('/jobs/value', 'x'), () => held.set('/jobs/report', 'x'), () => held.create('/jobs/other-once/daily', 'x', { parents: true }), () => c.slots('/jobs/slots').setLimit(2)])
    await assert.rejects(call, (e) => e instanceof DeniedError && e.code === 'ENOAUTH' && /echo \$\(openssl rand -hex 16\) write >tokens/.test(e.message), String(call));
  await held.release();
  await c.close();
  await stop(server);
  fs.rmSync(data, { recursive: true });
});

test('each error has a code, and the path', async (t) => {
  const c = client();
  const held = await c.lock('/hour/code');
  await assert.rejects(c.lock('/hour/code', { wait: 0 }), { name: 'BusyError', code: 'EBUSY', path: '/hour/code' });
  await assert.rejects(c.lock('/hour/code', { wait: '200ms' }), { name: 'BusyError', code: 'EBUSY', path: '/hour/code' });
  await c.slots('/hour/slot').take('a', { limit: 1 });
  await assert.rejects(c.slots('/hour/slot').take('b', { wait: 0 }), { code: 'EBUSY', path: '/hour/slot' });
  await held.release();
  const odd = http.createServer((_, answer) => answer.writeHead(418).end('<html>')).listen(0, '127.0.0.1');
  await new Promise((r) => odd.once('listening', r));
  t.after(() => (odd.close(), odd.closeAllConnections()));
  await assert.rejects(connect(`http://127.0.0.1:${odd.address().port}`).lock('/hour/odd'), (e) => e instanceof ClaveError && e.code === 'EPROTO');
  await assert.rejects(client(rig.url, { token: 'wrong' }).lock('/hour/denied'), (e) => e instanceof DeniedError && e.code !== null);
});

test('what nobody knows, and values of another type, are TypeErrors', async () => {
  const c = client();
  const held = await c.lock('/hour/types');
  const bad = [
    () => c.lock('/x', 5000), () => c.lock('/x', { timeout: 1 }), () => c.lock('/x', null), () => c.lock('/x', { wait: '5 s' }), () => c.lock('/x', { wait: -1 }), () => c.lock('/x', { wait: NaN }),
    () => c.lock('/x', { signal: {} }), () => c.lock(7), () => c.lock('/x', { name: 5 }), () => c.semaphore('/s'), () => c.semaphore('/s', {}), () => c.semaphore('/s', { limit: '2' }),
    () => c.semaphore('/s', { limit: 0 }), () => c.withLock('/x', {}), () => c.withLock('/x', { wiat: 1 }, () => {}), () => c.once('/x', { fro: '1h' }, () => {}), () => c.once('/x', {}),
    () => c.once('/x', { key: 'a/b' }, () => {}), () => c.look('/x', { frish: true }), () => c.get('x'), () => c.slots('/x').take('', {}), () => c.slots('/x').take('a', { limits: 1 }), () => c.close({ withn: 1 }),
    () => held.release({ within: 'soon' }), () => held.set('/x', 'y', { version: 'one' }), () => held.create('/x', 'y', { parent: true }),
  ];
  for (const call of bad) await assert.rejects(async () => call(), TypeError, String(call));
  await assert.rejects(c.semaphore('/s'), /limit is missing/);
  await assert.rejects(c.lock('/x', { timeout: 1 }), /no option "timeout", only wait, /);
  for (const call of [() => c.lead('/x', { wait: 1 }), () => c.lead('x'), () => connect(rig.url, { tll: 1 }), () => connect(rig.url, { ca: '/etc/ssl/ca.pem' }), () => connect(7), () => c.watch('/x', { fresh: true })]) assert.throws(call, TypeError, String(call));
  await held.release();
});

test('numbers may be BigInts', async () => {
  const c = client(rig.url, { ttl: 8000n });
  const held = await c.lock('/hour/big', { wait: 1000n });
  await held.create('/hour-big', 'x');
  await held.set('/hour-big', 'y', { version: 0n });
  await held.multi([{ op: 'set', path: '/hour-big', data: 'z', version: 1n }]);
  await held.delete('/hour-big', { version: 2n });
  await held.release();
  await (await c.semaphore('/hour/leases', { limit: 2n, permits: 1n })).release();
  const slot = await c.slots('/hour/bigslot').take('a', { limit: 1n });
  assert.equal(await c.slots('/hour/bigslot').give('a', { token: BigInt(slot.token) }), true);
});

test('waits of months, and no end', async () => {
  for (const wait of [2 ** 31, '30d', '400d', Infinity]) {
    const c = client();
    const held = await c.lock('/hour/long', { wait });
    const next = c.lock('/hour/long', { wait });
    await new Promise((r) => setTimeout(r, 50));
    await held.release();
    await (await next).release();
  }
});

test('a ttl that the servers do not give is told', async (t) => {
  const warned = new Promise((resolve) => process.once('warning', resolve));
  await (await client(rig.url, { ttl: '1h' }).lock('/hour/ttl')).release();
  const warning = await warned;
  assert.equal(warning.code, 'CLAVE_TTL');
  assert.match(warning.message, /3600000 ms was asked for, and the servers give \d+ ms/);
});

test('an outage ends neither a leader nor a candidate', { timeout: 90_000 }, async (t) => {
  let down = false;
  const front = http.createServer((request, response) => {
    if (down) return response.destroy();
    const onward = http.request(rig.url + request.url, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  });
  await new Promise((r) => front.listen(0, '127.0.0.1', r));
  t.after(() => (front.close(), front.closeAllConnections()));
  const url = `http://127.0.0.1:${front.address().port}`;
  const terms = { a: 0, b: 0 };
  const ended = [];
  const stopIt = new AbortController();
  const lead = async (name) => {
    for await (const term of client(url, { ttl: '4s', name }).lead('/hour/lead', { signal: stopIt.signal })) {
      terms[name]++;
      await new Promise((r) => (term.signal.aborted ? r() : term.signal.addEventListener('abort', r)));
    }
  };
  const loops = ['a', 'b'].map((name) => lead(name).then(() => ended.push(name), (error) => ended.push(error)));
  while (terms.a + terms.b === 0) await new Promise((r) => setTimeout(r, 50));
  await new Promise((r) => setTimeout(r, 500));
  down = true;
  front.closeAllConnections();
  await new Promise((r) => setTimeout(r, 25_000));
  down = false;
  assert.deepEqual(ended, []);
  const before = terms.a + terms.b;
  while (terms.a + terms.b === before) await new Promise((r) => setTimeout(r, 50));
  assert.deepEqual(ended, []);
  stopIt.abort();
  front.closeAllConnections();
  down = true;
});

test('a client that has reached no gate is closed at once', async () => {
  const c = connect(`http://127.0.0.1:${await freePort()}`);
  await assert.rejects(c.lock('/hour/closed', { wait: '100ms' }), UnreachableError);
  const waits = assert.rejects(c.lock('/hour/closed'), { code: 'ECLOSED' });
  const begun = performance.now();
  await c.close();
  await waits;
  assert.ok(performance.now() - begun < 500);
});

test('release and close have a bound', async (t) => {
  let silent = false;
  const front = http.createServer((request, response) => {
    if (silent) return;
    request.pipe(http.request(rig.url + request.url, { method: request.method, headers: request.headers }, (answer) => (response.writeHead(answer.statusCode, answer.headers), answer.pipe(response))));
  });
  await new Promise((r) => front.listen(0, '127.0.0.1', r));
  t.after(() => (front.close(), front.closeAllConnections()));
  const c = connect(`http://127.0.0.1:${front.address().port}`, { token: TOKEN });
  const [x, y] = [await c.lock('/hour/x'), await c.lock('/hour/y')];
  silent = true;
  const begun = performance.now();
  await assert.rejects(x.release({ within: '500ms' }), UnreachableError);
  await assert.rejects(c.close({ within: '500ms' }), UnreachableError);
  assert.ok(performance.now() - begun < 3000);
  assert.ok(y.signal.aborted);
});

test('a lock and a client can be looked at, and disposed of', async () => {
  const c = client();
  const held = await c.lock('/hour/shown');
  assert.match(util.inspect(held), /^Hold \{\s+path: '\/hour\/shown',\s+kind: 'lock',\s+state: 'held',\s+token: '\d+',\s+remaining: \d+\s+\}$/);
  assert.match(util.inspect(c), /^Client \{\s+gates: \[\s*'http:.*holds: \[\s*'\/hour\/shown'\s*\]/s);
  await held.release();
  assert.equal(JSON.parse(JSON.stringify(held)).state, 'released');
  const dispose = Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose');
  const own = connect(rig.url, { token: TOKEN });
  const kept = await own.lock('/hour/shown');
  await own[dispose]();
  assert.ok(kept.signal.aborted);
  await (await c.lock('/hour/shown', { wait: '5s' })).release();
});

test('a signal that outlives its locks keeps nothing of them', async () => {
  const c = client();
  const { signal } = new AbortController();
  for (let i = 0; i < 20; i++) {
    const held = await c.lock('/hour/signal', { signal, wait: i % 2 ? '5s' : undefined });
    await assert.rejects(c.lock('/hour/signal', { signal, wait: i % 3 ? 0 : '20ms' }), BusyError);
    await held.release();
  }
  const slots = c.slots('/hour/signal-slots');
  for (let i = 0; i < 5; i++) await slots.take('a', { limit: 1, signal });
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('CLAVE_GATE names one gate or several', async () => {
  const { CLAVE_GATE: before } = process.env;
  process.env.CLAVE_GATE = `http://127.0.0.1:${await freePort()}, ${rig.url}`;
  try {
    const c = connect(undefined, { token: TOKEN });
    assert.deepEqual(c.toJSON().gates.length, 2);
    await (await c.lock('/hour/gates', { wait: '5s' })).release();
    await c.close();
  } finally {
    if (before === undefined) delete process.env.CLAVE_GATE;
    else process.env.CLAVE_GATE = before;
  }
});
