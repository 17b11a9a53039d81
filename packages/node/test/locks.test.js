'use strict';
const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const http = require('node:http');
const path = require('node:path');
const { after, before, test } = require('node:test');
const { connect, BusyError, LostError, UnreachableError, UnknownOutcomeError, DeniedError } = require('..');
const { Rig, TOKEN, CLAVE, stop } = require('./rig.js');

const rig = new Rig();
before(() => rig.begin(2));
after(() => rig.end());

const client = (...words) => rig.client(...words);

/** Resolves when the lock has so many waiters, as the gate tells. */
async function waiters(c, where, n) {
  for await (const lock of c.watch(where, { signal: AbortSignal.timeout(20_000) })) if (lock?.nwaiters === n) return;
  assert.fail(`${where} has not had ${n} waiters`);
}

test('a lock excludes, within a client and between clients', async () => {
  const [a, b] = [client(), client()];
  const first = await a.lock('/locks/x');
  assert.match(first.token, /^\d+$/);
  assert.ok(first.validFor(1000));
  for (const c of [a, b]) await assert.rejects(c.lock('/locks/x', { wait: 0 }), BusyError);
  const others = [a, b].map((c) => c.lock('/locks/x'));
  await waiters(a, '/locks/x', 2);
  await first.release();
  const second = await Promise.race(others);
  assert.ok(BigInt(second.token) > BigInt(first.token));
  await second.release();
  const [x, y] = await Promise.all(others);
  await (x === second ? y : x).release();
});

test('a slot belongs to its owner, whoever asks', async () => {
  const [a, b] = [client().slots('/slots/x'), client(rig.gates[0].url).slots('/slots/x')];
  await a.setLimit(1);
  const first = await a.take('web1', { reason: 'kernel', by: 'ann' });
  assert.deepEqual([first.taken, first.owner, first.reason, first.by], [true, 'web1', 'kernel', 'ann']);
  const again = await b.take('web1', { wait: 0 });
  assert.deepEqual([again.taken, again.token], [false, first.token]);
  await first.create('/slots-guarded', 'x');
  await assert.rejects(b.take('web2', { wait: 0 }), BusyError);
  await assert.rejects(b.take('web2', { wait: '300ms' }), BusyError);
  const stopIt = new AbortController();
  const aborted = b.take('web2', { signal: stopIt.signal });
  while ((await a.list()).waiting.length === 0);
  stopIt.abort(new Error('enough'));
  await assert.rejects(aborted, /enough/);
  assert.deepEqual((await a.list()).waiting, []);
  const next = b.take('ä/2');
  while ((await a.list()).waiting.length === 0);
  assert.equal(await a.give('web1', { token: '1' }), false);
  assert.equal(await a.give('web1', { token: first.token }), true);
  assert.equal(await a.give('web1'), false);
  const second = await next;
  assert.ok(BigInt(second.token) > BigInt(first.token));
  await assert.rejects(first.set('/slots-guarded', 'late'), LostError);
  assert.equal(second.owner, 'ä/2');
  assert.equal((await a.list()).owners[0].owner, 'ä/2');
  await a.break('ä/2', { reason: 'gone' });
  const left = await b.list();
  assert.deepEqual([left.limit, left.owners, left.broken.owner, left.broken.reason], [1, [], 'ä/2', 'gone']);
});

test('a take whose answers are lost is found again; a give without a token is not repeated', async () => {
  const real = client().slots('/slots/lost');
  await real.setLimit(1);
  let done = 0; // requests that the gate has answered, and whose answers were lost
  const proxy = http.createServer((request, response) => {
    const onward = http.request(rig.url + request.url, { method: request.method, headers: request.headers }, (answer) => {
      answer.resume();
      answer.on('end', () => {
        done++;
        response.destroy();
      });
    });
    request.pipe(onward);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${proxy.address().port}`;
  const both = client([url, rig.url]);
  for (let i = 0; i < 4; i++) assert.equal((await both.slots('/slots/lost').take('a')).owner, 'a'); // whichever gate is asked first
  const lossy = client(url).slots('/slots/lost');
  const before = done;
  await assert.rejects(lossy.give('a'), UnknownOutcomeError);
  assert.equal(done, before + 1);
  assert.deepEqual((await real.list()).owners, []);
  proxy.close();
  proxy.closeAllConnections();
});

test('it waits no longer than it was told', async () => {
  const [a, b] = [client(), client()];
  const held = await a.lock('/locks/wait');
  const begun = performance.now();
  await assert.rejects(b.lock('/locks/wait', { wait: '400ms' }), BusyError);
  assert.ok(performance.now() - begun < 5000);
  await held.release();
  await (await b.lock('/locks/wait', { wait: '10s' })).release(); // and left no place behind
});

test('an abort gives up the place', async () => {
  const [a, b] = [client(), client()];
  const held = await a.lock('/locks/abort');
  const stopIt = new AbortController();
  const waiting = b.lock('/locks/abort', { signal: stopIt.signal });
  await waiters(a, '/locks/abort', 1);
  stopIt.abort(new Error('enough'));
  await assert.rejects(waiting, /enough/);
  await waiters(a, '/locks/abort', 0);
  await held.release();
});

test('in one queue with clave lock', async () => {
  const c = client();
  const held = await c.lock('/locks/shell');
  const shell = spawn(CLAVE, ['lock', '-c', rig.connect, '/locks/shell', '--', 'sh', '-c', 'echo $CLAVE_TOKEN'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const said = new Promise((resolve) => shell.stdout.once('data', resolve));
  await waiters(c, '/locks/shell', 1);
  await held.release();
  assert.ok(BigInt(String(await said).trim()) > BigInt(held.token));
});

test('read and write locks, semaphores', async () => {
  const [a, b] = [client(), client()];
  const readers = await Promise.all([a.readLock('/locks/rw'), b.readLock('/locks/rw')]);
  await assert.rejects(a.writeLock('/locks/rw', { wait: 0 }), BusyError);
  await Promise.all(readers.map((r) => r.release()));
  await (await b.writeLock('/locks/rw')).release();
  const leases = [await a.semaphore('/locks/s', { limit: 2 }), await b.semaphore('/locks/s', { limit: 2 })];
  await assert.rejects(a.semaphore('/locks/s', { limit: 2, wait: 0 }), BusyError);
  await Promise.all(leases.map((l) => l.release()));
});

test('guarded writes are done only while it is held', async () => {
  const [a, b] = [client(), client()];
  const first = await a.lock('/locks/guard');
  assert.equal(await first.create('/data/guard', 'one', { parents: true }), '/data/guard');
  assert.equal((await first.set('/data/guard', 'two', { version: 0 })).version, 1);
  await assert.rejects(first.set('/data/guard', 'three', { version: 0 }), { code: 'EBADVERSION' });
  await first.release();
  const second = await b.lock('/locks/guard');
  await assert.rejects(first.set('/data/guard', 'late'), LostError);
  await second.multi([{ op: 'check', path: '/data/guard', version: 1 }, { op: 'set', path: '/data/guard', data: 'four' }]);
  assert.equal(String((await a.get('/data/guard')).data), 'four');
  await second.delete('/data/guard');
  assert.equal(await a.get('/data/guard'), null);
  await second.release();
});

test('run hides no error: neither of the work nor of the release', async () => {
  const c = client();
  const held = await c.lock('/locks/run');
  await assert.rejects(held.run(() => Promise.reject(new Error('work'))), /work/);
  const lost = await c.lock('/locks/run');
  await assert.rejects(
    lost.run(async (signal) => {
      const told = new Promise((resolve) => signal.addEventListener('abort', resolve));
      await c.close();
      await told;
    }),
    LostError,
  );
});

test('terms of leadership', async () => {
  const [a, b] = [client(), client()];
  const terms = [];
  const leader = a.lead('/svc')[Symbol.asyncIterator]();
  const { value: first } = await leader.next();
  await first.publish('a');
  const other = (async () => {
    for await (const term of b.lead('/svc')) {
      terms.push(term);
      break;
    }
  })();
  await leader.return();
  await other;
  assert.equal(terms.length, 1);
  assert.ok(BigInt(terms[0].token) > BigInt(first.token));
});

test('once, in one with clave lock --once', async () => {
  const [a, b] = [client(), client()];
  const done = await a.once('/jobs/report', { key: 'daily', for: '20h' }, (signal) => signal.aborted);
  assert.deepEqual(done, { ran: true, result: false });
  const again = await b.once('/jobs/report', { key: 'daily', for: '20h' }, () => assert.fail('it ran twice'));
  assert.equal(again.ran, false);
  assert.equal(again.former.state, 'done');
  const shell = spawn(CLAVE, ['lock', '-c', rig.connect, '--once', 'daily', '--for', '20h', '/jobs/report', '--', 'false'], { stdio: 'ignore' });
  assert.equal(await new Promise((resolve) => shell.once('exit', resolve)), 0); // done already: not run
  await assert.rejects(a.once('/jobs/fails', {}, () => Promise.reject(new Error('no luck'))), /no luck/);
  assert.equal((await b.once('/jobs/fails', {}, () => 'now')).result, 'now');
});

test('a hold goes on when its gate is killed, at another gate', async () => {
  const urls = rig.gates.map((g) => g.url);
  const c = client(urls, { ttl: '6s' });
  const held = await c.lock('/locks/gates');
  for (const gate of rig.gates) {
    await stop(gate.process, 'SIGKILL');
    const until = performance.now() + 4000;
    while (performance.now() < until && held.validFor()) await new Promise((r) => setTimeout(r, 50));
    assert.ok(held.validFor(), 'the hold was not renewed at the other gate');
    await gate.start();
  }
  await held.release();
  const next = await client(urls).lock('/locks/gates', { wait: '10s' });
  assert.ok(BigInt(next.token) > BigInt(held.token));
  await next.release();
});

test('the signal fires before another owns it, when no gate answers', async () => {
  const gate = rig.gates[0];
  const c = client(gate.url, { ttl: '4s' });
  const held = await c.lock('/locks/cut');
  gate.process.kill('SIGSTOP');
  const other = client().lock('/locks/cut').then((next) => ({ next, at: performance.now() }));
  const lost = await new Promise((resolve) => held.signal.addEventListener('abort', () => resolve(performance.now())));
  assert.ok(!held.validFor());
  const { next, at } = await other;
  assert.ok(lost < at, 'SAFETY VIOLATED: the signal came after another owned it');
  gate.process.kill('SIGCONT');
  await assert.rejects(held.release(), LostError);
  await assert.rejects(held.set('/locks', 'late'), /./);
  await next.release();
});

test('a blocked event loop is judged by validFor', async () => {
  const c = client(rig.url, { ttl: '2s' });
  const held = await c.lock('/locks/blocked');
  const next = spawn(CLAVE, ['lock', '-c', rig.connect, '/locks/blocked', '--', 'true'], { stdio: 'ignore' });
  const passed = new Promise((resolve) => next.once('exit', resolve));
  const until = performance.now() + held.remaining + 2000;
  while (performance.now() < until); // nothing runs meanwhile
  assert.equal(held.validFor(), false);
  assert.equal(await passed, 0);
  await assert.rejects(held.release(), LostError);
});

/** A proxy in front of a gate that can send the requests for claims once more, to any gate: `late[i](url)`. What
 * `intercepts` answers itself, or leaves without an answer, does not pass. */
async function recorder(t, onward, intercepts = () => false) {
  const late = [];
  const proxy = http.createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    if (intercepts(request, response)) return;
    const { method, headers } = request;
    const send = (url, answered) => http.request(url + request.url, { method, headers: { ...headers, host: 'localhost' } }, answered).end(Buffer.concat(pieces));
    if (request.url === '/v1/claims') late.push((url) => new Promise((resolve) => send(url, (answer) => answer.resume().on('end', () => resolve(answer.statusCode)))));
    send(onward, (answer) => response.writeHead(answer.statusCode, answer.headers) && answer.pipe(response));
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${proxy.address().port}`, late };
}

test('a request for a claim that was given back arrives late, at another gate', async (t) => {
  const [first, second] = rig.gates.map((gate) => gate.url);
  const { url, late } = await recorder(t, first);
  t.mock.method(Math, 'random', () => 0); // begins with the first gate
  const c = client([url, second], { ttl: '4s' });
  t.mock.restoreAll();
  const kept = await c.lock('/locks/kept'); // and with it the session
  await (await c.lock('/locks/late-claim')).release();
  assert.equal(await late[1](second), 410);
  const again = await c.lock('/locks/late-claim', { wait: '10s' });
  await again.release();
  await (await client().lock('/locks/late-claim', { wait: '10s' })).release();
  await kept.release();
});

test('a request for a claim that was given back arrives late, at a gate that was restarted', async (t) => {
  const gate = rig.gates[0];
  const { url, late } = await recorder(t, gate.url);
  const c = client(url, { ttl: '4s' });
  const kept = await c.lock('/locks/kept');
  await (await c.lock('/locks/late-claim')).release();
  await stop(gate.process);
  await gate.start();
  assert.equal(await late[1](gate.url), 410);
  await (await client().lock('/locks/late-claim', { wait: '10s' })).release();
  await kept.release();
});

test('a place that cannot be given back keeps no other from being renewed', async (t) => {
  let silent = false;
  const { url } = await recorder(t, rig.url, (request) => silent && request.method === 'DELETE');
  const c = client(url, { ttl: '4s' });
  const kept = await c.lock('/locks/kept');
  const stuck = await c.lock('/locks/stuck');
  silent = true;
  await assert.rejects(stuck.release(), UnreachableError);
  for (const until = performance.now() + 5000; performance.now() < until; await new Promise((r) => setTimeout(r, 50))) kept.check();
  silent = false;
  await kept.release();
});

test('a release without an answer says that no gate was reached', async (t) => {
  let silent = false;
  const { url } = await recorder(t, rig.url, (request, response) => {
    if (silent && request.method === 'DELETE') response.writeHead(404).end(); // a gate that does not know the claim
    return silent;
  });
  const c = client([url, url], { ttl: '4s' });
  const held = await c.lock('/locks/silent');
  silent = true;
  await assert.rejects(held.release(), UnreachableError);
  silent = false;
});

test('a grant whose answer was longer on its way than it is valid is asked for again', async (t) => {
  let late = 1; // answers that say "held", and come when that is over
  const proxy = http.createServer((request, response) => {
    const onward = http.request(rig.url + request.url, { method: request.method, headers: request.headers }, (answer) => {
      const pass = () => response.writeHead(answer.statusCode, answer.headers) && answer.pipe(response);
      setTimeout(pass, request.url === '/v1/claims' && late-- > 0 ? 4500 : 0);
    });
    request.pipe(onward);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  const held = await client(`http://127.0.0.1:${proxy.address().port}`, { ttl: '4s' }).lock('/locks/late', { wait: '20s' });
  assert.ok(held.validFor());
  assert.equal(held.signal.aborted, false);
  assert.ok(late < 0);
  await held.release();
});

test('no gate, a wrong token, wrong arguments', async () => {
  await assert.rejects(client('http://127.0.0.1:1').lock('/x', { wait: '1s' }), { name: 'UnreachableError', message: 'cannot have /x: no gate has answered in 1000 ms: http://127.0.0.1:1: connect ECONNREFUSED' });
  await assert.rejects(client(rig.url, { token: 'wrong' }).lock('/x'), DeniedError);
  await assert.rejects(client().lock('x'), TypeError);
  await assert.rejects(client().lock('/x', { wait: 'soon' }), TypeError);
  assert.throws(() => connect('ftp://x'), TypeError);
});

test('many locks are few sessions, and leave nothing behind', async () => {
  const c = client();
  const holds = await Promise.all(Array.from({ length: 100 }, (_, i) => c.lock(`/many/${i}`)));
  assert.equal(new Set(holds.map((h) => h.token)).size, 100);
  await Promise.all(holds.map((h) => h.release()));
  assert.equal(await c.look('/many/7', { fresh: true }), null);
});

/** Runs a program with a client `c` of the rig; resolves to {code, said}. */
function program(text) {
  const source = `const c = require(${JSON.stringify(path.join(__dirname, '..'))}).connect(${JSON.stringify(rig.url)}, {token: ${JSON.stringify(TOKEN)}, ttl: '4s'});\n${text}`;
  const child = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (piece) => (said += piece));
  child.ended = new Promise((resolve) => child.once('exit', (code) => resolve({ code, said })));
  return child;
}

test('a hold that does not count for the process ends with it', async () => {
  const { code } = await program(`c.lock('/locks/forgotten').then((l) => console.log(l.unref().token));`).ended;
  assert.equal(code, 0);
  await (await client().lock('/locks/forgotten', { wait: '20s' })).release();
});

test('what is held, a term and what waits keep the process alive', async () => {
  const c = client();
  const blocker = await c.lock('/alive/waits');
  const programs = [
    program(`c.lock('/alive/held').then((l) => console.log(l.token));`),
    program(`(async () => { for await (const term of c.lead('/alive/led')) { console.log(term.token); await new Promise((r) => term.signal.addEventListener('abort', r)); } })();`),
    program(`c.lock('/alive/waits').then((l) => l.release()).then(() => { console.log('got'); return c.close(); });`),
  ];
  await new Promise((r) => setTimeout(r, 6000)); // longer than the ttl
  assert.deepEqual(programs.map((p) => p.exitCode), [null, null, null]);
  for (const where of ['/alive/held', '/alive/led']) assert.equal((await c.look(where, { fresh: true })).nholders, 1);
  await blocker.release();
  assert.deepEqual(await programs[2].ended, { code: 0, said: 'got\n' });
  for (const p of programs.slice(0, 2)) {
    p.kill();
    assert.equal((await p.ended).said.split('\n').length, 2); // one token
  }
  const unrefed = await program(`c.unref(); c.lock('/alive/x').then(() => c.lock('/alive/x')); setTimeout(() => console.log('over'), 700);`).ended;
  assert.deepEqual(unrefed, { code: 0, said: 'over\n' });
});
