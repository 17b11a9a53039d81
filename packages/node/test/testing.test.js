'use strict';
// testing.test.js - the gate in memory does as the real one: each scenario has one outcome at both. Then its faults.
const assert = require('node:assert/strict');
const { after, before, test } = require('node:test');
const { connect, LostError, UnreachableError, UnknownOutcomeError } = require('..');
const { startGate } = require('../testing.js');
const { Rig, TOKEN } = require('./rig.js');

const rig = new Rig();
let gate;
before(async () => {
  await rig.begin();
  gate = await startGate();
});
after(() => Promise.all([rig.end(), gate.close()]));

/** What a call comes to: its result, or the name and code of its error. */
const outcome = (call) => call.then((v) => v ?? 'done', (e) => `${e.name} ${e.code} ${e.path}`);
const settled = (ms) => new Promise((r) => setTimeout(r, ms));

/** Resolves when so many wait. */
async function waiters(c, path, n) {
  while (((await c.look(path, { fresh: true }))?.nwaiters ?? 0) !== n) await settled(10);
}

const SCENARIOS = {
  async 'a lock'(c, other) {
    const held = await c.lock('/t/lock');
    const said = [held.validFor(1000), held.signal.aborted, await outcome(other.lock('/t/lock', { wait: 0 })), await outcome(other.lock('/t/lock', { wait: '50ms' }))];
    const order = [];
    const waits = [];
    for (const [i, who] of [c, other, c].entries()) {
      waits.push(who.lock('/t/lock').then((h) => (order.push(i), h.release())));
      await waiters(c, '/t/lock', i + 1);
    }
    await held.release();
    await Promise.all(waits);
    return [...said, order, await c.look('/t/lock', { fresh: true }), await outcome(held.set('/t/lock', 'x'))];
  },
  async 'read, write and leases'(c, other) {
    const readers = [await c.readLock('/t/rw'), await other.readLock('/t/rw')];
    const said = [await outcome(c.writeLock('/t/rw', { wait: 0 }))];
    await Promise.all(readers.map((r) => r.release()));
    const writer = await c.writeLock('/t/rw');
    said.push(await outcome(other.readLock('/t/rw', { wait: 0 })));
    await writer.release();
    const leases = [await c.semaphore('/t/s', { limit: 3, permits: 2 }), await other.semaphore('/t/s', { limit: 3 })];
    said.push(await outcome(c.semaphore('/t/s', { limit: 3, wait: 0 })));
    await Promise.all(leases.map((l) => l.release()));
    return said;
  },
  async 'terms'(c, other) {
    const said = [];
    for await (const term of c.lead('/t/svc')) {
      await term.publish('me');
      said.push((await other.look('/t/svc', { fresh: true })).nholders, term.validFor(10));
      break;
    }
    for await (const term of other.lead('/t/svc')) {
      said.push(term.path);
      break;
    }
    return said;
  },
  async 'once'(c, other) {
    const said = [await c.once('/t/job', { key: 'k', for: '20h' }, () => 7), (await other.once('/t/job', { key: 'k', for: '20h' }, () => 8)).ran];
    said.push(await outcome(c.once('/t/fails', () => Promise.reject(new TypeError('no luck')))), (await other.once('/t/fails', () => 9)).result);
    return said;
  },
  async 'guarded writes'(c) {
    const held = await c.lock('/t/guard');
    const said = [await held.create('/t-data/a', 'one', { parents: true }), (await held.set('/t-data/a', 'two', { version: 0 })).version];
    said.push(await outcome(held.set('/t-data/a', 'x', { version: 7 })), await outcome(held.create('/t-data/a')), await outcome(held.delete('/t-data/none')), await outcome(held.create('/t-none/a')));
    said.push((await held.multi([{ op: 'check', path: '/t-data/a', version: 1 }, { op: 'set', path: '/t-data/a', data: 'three' }])).length, String((await c.get('/t-data/a')).data));
    said.push(await outcome(held.multi([{ op: 'delete', path: '/t-data/a' }, { op: 'create', path: '/t-none/x' }])), (await c.get('/t-data/a')).stat.version);
    await held.delete('/t-data/a');
    await held.release();
    return [...said, await c.get('/t-data/a'), await outcome(held.create('/t-data/b'))];
  },
  async 'slots'(c, other) {
    const [a, b] = [c.slots('/t/slots'), other.slots('/t/slots')];
    await a.setLimit(1);
    const first = await a.take('one', { reason: 'kernel', host: 'h' });
    const again = await b.take('one', { wait: 0 });
    const said = [first.taken, again.taken, again.token === first.token, first.reason, await outcome(b.take('two', { wait: 0 })), await outcome(b.take('two', { wait: '100ms' }))];
    const next = b.take('two');
    while ((await a.list()).waiting.length === 0) await settled(10);
    said.push(await a.give('one', { token: '1' }), await a.give('one', { token: first.token }), await a.give('one'), (await next).owner);
    await a.break('two', { reason: 'gone' });
    const { limit, owners, broken } = await b.list();
    return [...said, limit, owners, broken.owner, broken.reason];
  },
  async 'a look and a watch'(c, other) {
    const seen = [];
    const watch = c.watch('/t/seen');
    seen.push((await watch.next()).value);
    const held = await other.lock('/t/seen', { command: 'x' });
    for await (const lock of watch) {
      seen.push(lock && [lock.kind, lock.nholders, lock.nwaiters, lock.holders[0]?.command]);
      if (lock?.nholders === 1) await held.release();
      if (lock === null) break;
    }
    return seen;
  },
  async 'a counter'(c, other) {
    const [a, b] = [c.counter('/t/counter'), other.counter('/t/counter')];
    const said = [await a.get(), await outcome(a.compareAndSet(0, 1)), await a.add(), await b.add(-3n), await a.set(2n ** 63n - 1n), await outcome(b.add(1))];
    said.push(await b.compareAndSet(1, 2), await b.compareAndSet(2n ** 63n - 1n, 7), await a.get());
    return [...said, await outcome(c.counter('/t').get()), await outcome(c.counter('/t/none').compareAndSet(0, 1))].map(String);
  },
  async 'members'(c, other) {
    const told = [];
    const group = other.watchMembers('/t/group');
    const said = [(await group.next()).value];
    const seen = async () => (await group.next()).value.map(({ id, data, data_base64: coded }) => [id, data, coded]);
    const member = await c.join('/t/group', { id: 'a', data: 'one', onChange: (...news) => told.push(news) });
    said.push(await seen(), await outcome(other.join('/t/group', { id: 'a' })));
    await member.set(new Uint8Array([0xff]));
    said.push(await seen());
    const next = await other.join('/t/group', { id: 'a', data: 'two', replace: true });
    said.push(await seen(), member.present);
    await next.leave();
    said.push(await seen());
    await group.return();
    await member.leave(); // it is gone already
    return [...said, told, (await c.members('/t/group')).length];
  },
  async 'instances'(c, other) {
    const web = other.watchInstances('t-web', { base: '/t/s' });
    const said = [(await web.next()).value];
    const seen = async () => (await web.next()).value.map(({ registered, ...more }) => ({ ...more, isDated: registered > 0 }));
    const it = await c.register('t-web', { id: 'a', base: '/t/s', address: 'h', port: 80, payload: { zone: 3 }, uri: '{scheme}://{address}:{port}{[}{name}{none}{]}' });
    said.push(await seen());
    await it.disable();
    said.push(await seen());
    const again = await other.register('t-web', { id: 'a', base: '/t/s', address: 'again', sslPort: 443, uri: '{scheme}://{id}' });
    said.push(await seen());
    await it.unregister(); // not the one that has taken its place
    said.push((await c.instances('t-web', { base: '/t/s' })).length);
    await other.close();
    return [...said, again.present, again.error.code, await c.instances('t-web', { base: '/t/s' })];
  },
  async 'who leads, for a balancer'(c, other, url) {
    const ask = async (target) => {
      const answer = await fetch(url + target, { headers: { authorization: `Bearer ${TOKEN}` } });
      const { code, role, term, led_ms: led, holder } = await answer.json();
      return [answer.status, code, role, typeof term, typeof led, holder?.text];
    };
    const all = async () => Promise.all(['/v1/leader/t/leads?id=one', '/v1/leader/t/leads?id=two', '/v1/replica/t/leads?id=two', '/v1/replica/t/leads?id=one', '/v1/replica/t/leads?id=x', '/v1/elections/t/leads?leads=one', '/v1/leader/t/leads?id=one&min_term=1h', '/v1/leader/t/leads'].map(ask));
    await c.look('/t/leads', { fresh: true }); // the copy is loaded
    const said = [await all()];
    for await (const term of c.lead('/t/leads', { name: 'one' })) {
      const terms = other.lead('/t/leads', { name: 'two' });
      const second = terms.next();
      await waiters(c, '/t/leads', 1);
      said.push(await all());
      await term.release();
      await second;
      await c.look('/t/leads', { fresh: true });
      said.push(await all());
      await terms.return();
      break;
    }
    return said;
  },
  async 'a maxHold'(c) {
    const held = await c.lock('/t/max', { maxHold: '300ms' });
    await new Promise((r) => held.signal.addEventListener('abort', r));
    return held.signal.reason.code;
  },
  async 'signs of life'(c) {
    const held = await c.lock('/t/alive', { alive: '500ms' });
    for (let i = 0; i < 6; i++) {
      await settled(150);
      await held.alive();
    }
    const lived = held.validFor();
    await new Promise((r) => held.signal.addEventListener('abort', r));
    const [late, given] = [await outcome(held.alive()), await outcome(held.release())];
    return [lived, held.signal.reason.code, late, given];
  },
  async 'an abort'(c, other) {
    const held = await c.lock('/t/abort');
    const stopIt = new AbortController();
    const waits = outcome(other.lock('/t/abort', { signal: stopIt.signal }));
    await waiters(c, '/t/abort', 1);
    stopIt.abort(Object.assign(new Error('enough'), { code: 'E', path: 'p' }));
    await held.release();
    await (await c.lock('/t/abort', { wait: '2s' })).release();
    return waits;
  },
};

for (const [name, scenario] of Object.entries(SCENARIOS))
  test(`${name}: as at the real gate`, async () => {
    const outcomes = [];
    for (const url of [rig.url, gate.url]) {
      const clients = [0, 1].map(() => connect(url, { token: TOKEN }));
      outcomes.push(await scenario(...clients, url));
      await Promise.all(clients.map((c) => c.close()));
    }
    assert.deepEqual(outcomes[1], outcomes[0]);
  });

test('faults', async () => {
  const c = connect(gate.url, { ttl: '2s' });
  gate.fault({ status: 503, times: 2 });
  const held = await c.lock('/f/x'); // it was tried again
  gate.fault({ lose: true, method: 'POST', path: '/v1/znodes' });
  await assert.rejects(held.create('/f-node', 'x'), UnknownOutcomeError);
  assert.equal(String((await c.get('/f-node')).data), 'x');
  gate.fault({ cut: true, method: 'PUT' });
  await assert.rejects(held.set('/f-node', 'y'), UnknownOutcomeError);
  assert.equal(String((await c.get('/f-node')).data), 'x');
  gate.fault({ silent: true, times: 1000 });
  await assert.rejects(c.lock('/f/silent', { wait: '100ms' }), UnreachableError);
  await assert.rejects(held.release({ within: '200ms' }), UnreachableError);
  gate.heal();
  gate.fault({ delay: '200ms', path: '/v1/locks' });
  const begun = performance.now();
  await c.look('/f/none');
  assert.ok(performance.now() - begun >= 199);
  const other = await c.lock('/f/y');
  const lost = new Promise((r) => other.signal.addEventListener('abort', () => r(other.signal.reason)));
  gate.expire('/f/y');
  assert.deepEqual(gate.places('/f/y'), []);
  assert.ok((await lost) instanceof LostError);
  await (await c.lock('/f/y', { wait: '1s' })).release();
  assert.throws(() => gate.fault({}), TypeError);
  assert.throws(() => gate.fault({ satus: 503 }), TypeError);
  await c.close();
});

test('whose process is silent loses what it holds', async () => {
  const [c, other] = [connect(gate.url, { ttl: 400, name: 'silent' }), connect(gate.url)];
  const held = await c.lock('/f/ttl');
  assert.deepEqual(gate.places('/f/ttl').map(({ name, state }) => [name, state]), [['silent', 'held']]);
  gate.fault({ silent: true, method: 'POST', path: `/v1/sessions/`, times: 1000 });
  await (await other.lock('/f/ttl', { wait: '2s' })).release();
  assert.ok(held.signal.aborted);
  gate.heal();
  await Promise.all([c.close(), other.close()]);
});

test('a registration whose session was lost is made again', async () => {
  const c = connect(gate.url, { ttl: 600 });
  const told = [];
  const web = await c.register('f-web', { id: 'a', address: 'h', onChange: (present, error) => told.push([present, error?.code]) });
  gate.expire();
  assert.deepEqual(await c.instances('f-web'), []);
  for await (const [one] of c.watchInstances('f-web')) if (one) break;
  while (!web.present) await settled(10);
  assert.deepEqual(told, [[true, undefined], [false, 'ELOST'], [true, undefined]]);
  await c.close();
  const other = connect(gate.url);
  assert.deepEqual(await other.instances('f-web'), []);
  await other.close();
});
