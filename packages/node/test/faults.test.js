'use strict';
// Gates that answer late, wrongly or not at all, and holders that are told too late.
const assert = require('node:assert/strict');
const http = require('node:http');
const { after, before, test } = require('node:test');
const { BusyError, LostError, UnreachableError, UnknownOutcomeError } = require('..');
const { Rig, stop } = require('./rig.js');

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const rig = new Rig();
before(() => rig.begin(2));
after(() => rig.end());

const client = (...words) => rig.client(...words);

/** A gate before the gate: `decide(request, pass, response)` calls pass() or answers, or does not;
 * pass(false) loses the answer. `to` is the gate. Resolves to its URL. */
async function front(t, decide, to = rig.url) {
  const server = http.createServer((request, response) => {
    const pass = (answered = true) => {
      const onward = http.request(to + request.url, { method: request.method, headers: request.headers }, (answer) => {
        if (!answered) return answer.resume();
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      onward.on('error', () => response.destroy());
      request.pipe(onward);
    };
    decide(request, pass, response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

const answer = (response, status, headers = {}, body = '') => response.writeHead(status, headers).end(body);

test('a job that blocks the event loop for too long is told by its release', async () => {
  const held = await client(rig.url, { ttl: '4s' }).lock('/faults/blocked');
  await assert.rejects(
    held.run(() => {
      const until = performance.now() + held.remaining + 100;
      while (performance.now() < until); // nothing else runs meanwhile
    }),
    LostError,
  );
});

test('a hold whose time was over is told by its release', async () => {
  const [a, b] = [client(), client()];
  const asked = performance.now();
  const held = await a.lock('/faults/max-hold', { maxHold: '2s' });
  const next = b.lock('/faults/max-hold', { maxHold: '1s' }).then((hold) => ({ hold, at: performance.now() }));
  const at = await new Promise((resolve) => held.signal.addEventListener('abort', () => resolve(performance.now())));
  assert.ok(at - asked > 1900 && at - asked < 8000, `it ended after ${at - asked} ms`);
  assert.equal(held.signal.reason.code, 'EMAXHOLD');
  assert.match(held.signal.reason.message, /held for 2000 ms \(maxHold\)/);
  await assert.rejects(held.release(), LostError);
  const { hold, at: granted } = await next; // which had waited
  assert.ok(granted >= at, 'SAFETY VIOLATED: another had it before');
  const over = await new Promise((resolve) => hold.signal.addEventListener('abort', () => resolve(performance.now())));
  assert.ok(over - granted > 800 && over - granted < 7000, `it ended after ${over - granted} ms`);
  assert.equal(hold.signal.reason.code, 'EMAXHOLD');
});

test('a hold goes on by signs of life while a gate is stopped, and ends when the work is silent', async (t) => {
  const [a, b] = [client(rig.gates.map((g) => g.url), { ttl: '6s' }), client()];
  const held = await a.lock('/faults/alive', { alive: '4s' });
  const next = b.lock('/faults/alive').then(() => performance.now());
  let signed;
  for (const gate of rig.gates) {
    gate.process.kill('SIGSTOP');
    t.after(() => gate.process.kill('SIGCONT'));
    for (let i = 0; i < 8; i++) {
      signed = performance.now();
      await held.alive();
      await sleep(500); // of work
    }
    gate.process.kill('SIGCONT');
  }
  assert.ok(held.validFor());
  const at = await new Promise((resolve) => held.signal.addEventListener('abort', () => resolve(performance.now())));
  assert.ok(at - signed < 4000, `it ended ${at - signed} ms after its last sign of life`);
  assert.equal(held.signal.reason.code, 'ESILENT');
  assert.match(held.signal.reason.message, /no sign of life for 4000 ms \(alive\)/);
  await assert.rejects(held.alive(), LostError);
  await assert.rejects(held.release(), LostError);
  assert.ok((await next) >= at, 'SAFETY VIOLATED: another had it before');
});

test('signs of life that are not awaited', async (t) => {
  let signs = 0;
  const c = client(await front(t, (request, pass) => pass(!request.url.endsWith('/alive') || signs++ !== 1)));
  const held = await c.lock('/faults/unawaited', { alive: '2s' });
  held.alive();
  await new Promise(setImmediate); // it is sent
  for (let i = 0; i < 20; i++) held.alive(); // one for all of these
  await held.alive();
  assert.equal(signs, 3); // the answer to the second was lost
  await held.release();
  held.alive(); // nobody hears that it fails
  await assert.rejects(held.alive(), LostError);
  await (await c.lock('/faults/unawaited')).alive(); // does nothing
  assert.equal(signs, 3);
  for (const alive of [0, 0.4, '25d']) await assert.rejects(c.lock('/faults/unawaited', { alive }), { name: 'RangeError', message: /^alive must be from 1 ms/ });
  await (await c.lock('/faults/whole', { alive: '1.1s', maxHold: 60_000.5 })).release();
});

test('a sign of life that no gate answers is told with the end of the hold', async (t) => {
  const c = client(await front(t, (request, pass) => request.url.endsWith('/alive') || pass()));
  const held = await c.lock('/faults/unanswered', { alive: '3s' });
  let told = null;
  held.alive().catch((error) => (told = error));
  await new Promise((resolve) => held.signal.addEventListener('abort', resolve));
  await new Promise(setImmediate);
  assert.equal(told, held.signal.reason);
});

test('a lock that was over before its answer came leaves the others of its session alone', async (t) => {
  let lost = -1;
  const url = await front(t, (request, pass) => pass(request.url !== '/v1/claims' || lost < 0 || lost++ > 0));
  const c = client(url);
  const other = await c.lock('/faults/other');
  lost = 0;
  const brief = await c.lock('/faults/brief', { maxHold: '2s' });
  assert.ok(lost > 1);
  assert.equal(other.signal.aborted, false);
  await brief.release();
  await other.release();
});

test('the loss of one lock ends the wait for another that has its signal', async (t) => {
  let cut = false;
  const url = await front(t, (request, pass) => cut || pass());
  const outer = await client(url, { ttl: '2s' }).lock('/faults/outer');
  const blocker = await client().lock('/faults/inner');
  const inner = client().lock('/faults/inner', { signal: outer.signal });
  cut = true;
  await assert.rejects(inner, LostError);
  await blocker.release();
});

test('a gate that is cut off from the servers keeps no holder from the other gate', async (t) => {
  let down = false;
  const url = await front(t, (request, pass, response) => (down ? answer(response, 503) : pass()));
  const c = client([url, rig.url], { ttl: '3s' });
  const first = await c.lock('/faults/503');
  down = true;
  await new Promise((r) => setTimeout(r, 4000));
  assert.ok(first.validFor(), 'it was not renewed at the other gate');
  const second = await c.lock('/faults/503-other', { wait: '5s' });
  await first.release();
  await second.release();
});

test('a gate that says nothing is not a lock that is busy', async (t) => {
  const url = await front(t, (request, pass) => request.url !== '/v1/claims' && pass());
  for (const wait of ['300ms', '2s']) await assert.rejects(client(url).lock('/faults/silent', { wait }), UnreachableError);
});

test('a gate that says nothing keeps nobody from the other gate', async (t) => {
  const silent = await front(t, () => {});
  for (let i = 0; i < 2; i++) {
    const c = client([silent, rig.url]);
    const held = await c.lock('/faults/half', { wait: '20s' });
    await held.release();
  }
});

test('a redirect is no answer of a gate: nothing was written, published or given back', async (t) => {
  let portal = false;
  const url = await front(t, (request, pass, response) => (portal ? answer(response, 302, { location: '/login' }) : pass()));
  const c = client(url);
  const held = await c.lock('/faults/redirect');
  await held.create('/faults-redirect', 'x');
  portal = true;
  await assert.rejects(held.delete('/faults-redirect'));
  await assert.rejects(c.slots('/faults/slots').give('a'));
  await assert.rejects(held.release());
  await assert.rejects(client(url).lock('/faults/redirect-2', { wait: '1s' }));
});

test('an empty answer to a claim is not asked for again without a pause', async (t) => {
  let asked = 0;
  const url = await front(t, (request, pass, response) => (request.url === '/v1/claims' ? ++asked && answer(response, 204) : pass()));
  for (const wait of [0, '1s']) await assert.rejects(client(url).lock('/faults/empty', { wait }), UnreachableError);
  assert.ok(asked < 30, `${asked} requests`);
});

test('a gate in front that lost the answer of a write does not have it written twice', async (t) => {
  let writes = 0;
  const url = await front(t, (request, pass, response) => {
    if (request.method !== 'POST' || !request.url.startsWith('/v1/znodes')) return pass();
    writes++;
    answer(response, 502, { 'content-type': 'text/html' }, '<html>Bad Gateway</html>');
  });
  const held = await client(url).lock('/faults/502');
  await assert.rejects(held.create('/faults-502', 'x'), UnknownOutcomeError);
  assert.equal(writes, 1);
  await held.release();
});

test('a claim that a proxy delivers late, after it was given back, takes nothing', async (t) => {
  const [near, far] = rig.gates;
  let isAsked = false;
  let late = null; // sends it
  const first = await front(t, (request, pass, response) => (isAsked && !late && request.url === '/v1/claims' ? answer(response, 503) : pass()), near.url);
  const second = await front(
    t,
    async (request, pass, response) => {
      if (request.url !== '/v1/claims') return pass();
      if (!isAsked || late) return answer(response, 503);
      const { host, connection, ...headers } = request.headers;
      const pieces = [];
      late = () => fetch(far.url + request.url, { method: 'POST', headers, body: Buffer.concat(pieces) });
      for await (const piece of request) pieces.push(piece);
    },
    far.url,
  );
  const c = client([first, second], { ttl: '4s' });
  const old = await c.lock('/faults/old');
  isAsked = true;
  await (await c.lock('/faults/late')).release();
  assert.equal((await late()).status, 410);
  const recent = await c.lock('/faults/recent');
  await old.release();
  await (await client(near.url).lock('/faults/late', { wait: '15s' })).release();
  recent.check();
  await recent.release();
});

test('renewals do not wait for a place that cannot be given back', async (t) => {
  const url = await front(t, (request, pass) => request.method === 'DELETE' && request.url.startsWith('/v1/claims') ? undefined : pass());
  const c = client(url, { ttl: '4s' });
  const held = await c.lock('/faults/healthy');
  for (let i = 0; i < 2; i++) {
    const blocker = await client().lock(`/faults/stuck/${i}`);
    await assert.rejects(c.lock(`/faults/stuck/${i}`, { wait: '1500ms' }), BusyError);
    await blocker.release();
  }
  await new Promise((r) => setTimeout(r, 8000));
  assert.ok(held.validFor(), 'it was not renewed');
});

test('a gate that was restarted gives back what it does not remember', async () => {
  const [gate] = rig.gates;
  const held = await client(gate.url).lock('/faults/restarted');
  await stop(gate.process, 'SIGKILL');
  await gate.start();
  await held.release();
  const next = await client().lock('/faults/restarted', { wait: '3s' });
  await next.release();
});

test('an answer that does not end is cut off', async (t) => {
  let sent = 0;
  const url = await front(t, (request, pass, response) => {
    const piece = Buffer.alloc(2 ** 20);
    const more = () => {
      while (!response.destroyed && response.write(piece)) sent++;
      sent++;
    };
    response.on('drain', more).writeHead(200);
    more();
  });
  await assert.rejects(client(url).get('/faults/endless'), { code: 'ETOOBIG' });
  assert.ok(sent < 300, `${sent} MiB`); // two requests
});

test('a gate is left alone for as long as it asks, and another gate is asked at once', async (t) => {
  let refusals = 1;
  const asked = [];
  const url = await front(t, (request, pass, response) => {
    asked.push(performance.now());
    if (refusals-- > 0) answer(response, 503, { 'retry-after': refusals === 0 ? '1' : '60' });
    else pass();
  });
  await client(url).look('/faults/busy');
  assert.ok(asked[1] - asked[0] >= 900, `again after ${asked[1] - asked[0]} ms`);
  refusals = Infinity;
  const begun = performance.now();
  for (let i = 0; i < 4; i++) await client([url, rig.url]).look('/faults/busy');
  assert.ok(performance.now() - begun < 5000); // one that waits for the first gate has no answer before
});

test('a wait for a slot ends with its client, and its place with it', async () => {
  const [a, b] = [client(), client()];
  await a.slots('/faults/slot').take('a', { limit: 1 });
  const taken = b.slots('/faults/slot').take('b');
  while ((await a.slots('/faults/slot').list()).waiting.length === 0);
  await b.close();
  await assert.rejects(taken, { name: 'LostError', code: 'ECLOSED' });
  assert.deepEqual((await a.slots('/faults/slot').list()).waiting, []);
  await assert.rejects(b.slots('/faults/slot').take('b'), { code: 'ECLOSED' });
  await assert.rejects(b.slots('/faults/slot').list(), { code: 'ECLOSED' });
});

test('a write whose answer was lost is of unknown outcome, if its client is closed then, too', async (t) => {
  let lost;
  const seen = new Promise((resolve) => (lost = resolve));
  const url = await front(t, (request, pass, response) => {
    if (request.method !== 'DELETE') return pass();
    response.destroy();
    lost();
  });
  const c = client(url);
  const { token } = await c.slots('/faults/closed').take('a', { limit: 1 });
  const given = assert.rejects(c.slots('/faults/closed').give('a', { token }), UnknownOutcomeError);
  await seen;
  await new Promise((r) => setTimeout(r, 20)); // it pauses before it asks again
  await c.close();
  await given;
});

test('a watch ends with its client', async () => {
  const c = client();
  const watch = c.watch('/faults/watched');
  assert.equal((await watch.next()).value, null);
  const next = watch.next();
  await new Promise((r) => setTimeout(r, 100));
  await c.close();
  assert.equal((await next).done, true);
});

test('a hold that is lost before anybody has it is told so', async () => {
  const { Claim } = require('../lib/session.js');
  const { Hold } = require('../lib/hold.js');
  const { stamp } = require('../lib/time.js');
  const claim = new Claim({ ttl: 1000, leave() {} }, { path: '/x' });
  claim.told(stamp(), { id: '1', state: 'held', token: '1', valid_ms: 1000 });
  claim.lose(new LostError('lost'));
  const hold = new Hold(claim, null);
  assert.ok(hold.signal.aborted);
  await assert.rejects(hold.release(), LostError);
});
