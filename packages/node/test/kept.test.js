'use strict';
// kept.test.js - members and instances: they survive their gate, the loss of a session and a stranger's hand, and are
// gone when they were left.
const assert = require('node:assert/strict');
const { after, before, test } = require('node:test');
const { LostError, UnreachableError } = require('..');
const { KeptNode } = require('../lib/kept.js');
const { Transport } = require('../lib/transport.js');
const { Rig, stop } = require('./rig.js');

const rig = new Rig();
let gates;
before(async () => {
  await rig.begin(2);
  gates = rig.gates.map((gate) => gate.url);
});
after(() => rig.end());

const settled = (ms) => new Promise((r) => setTimeout(r, ms));

/** Collects all that a watch yields in `seen`. `until(fits)` resolves with the next list that fits. */
function follow(list) {
  const seen = [];
  let at = 0;
  let wake = () => {};
  const over = (async () => {
    for await (const now of list) {
      seen.push(now);
      wake();
    }
  })();
  const until = async (fits) => {
    for (;;) {
      while (at < seen.length) {
        const now = seen[at++];
        if (fits(now)) return now;
      }
      await new Promise((resolve) => (wake = resolve));
    }
  };
  return { until, over, seen };
}

/** It was there in all of them, from the first one in which it was. */
const neverFlapped = (seen) => assert.deepEqual(seen.slice(seen.findIndex((all) => all.length > 0)).filter((all) => all.length !== 1), [], 'it flapped');

test('an instance is registered, changed, and is gone when it is unregistered', { timeout: 60_000 }, async () => {
  const [mine, other] = [rig.client(gates), rig.client(gates)];
  const stopping = new AbortController();
  const web = follow(other.watchInstances('web', { signal: stopping.signal }));
  assert.deepEqual(await web.until(() => true), []);
  const told = [];
  const registration = await mine.register('web', { id: 'a', address: '10.0.0.7', port: 8080, payload: { zone: 3 }, uri: '{scheme}://{ address }:{port}/{[}v1{]}', onChange: (present) => told.push(present) });
  assert.deepEqual([registration.path, registration.id, registration.service, registration.present], ['/services/web/a', 'a', 'web', true]);
  const [seen] = await web.until((all) => all.length === 1);
  assert.deepEqual([seen.address, seen.port, seen.payload, seen.state, seen.uri], ['10.0.0.7', 8080, { zone: 3 }, 'up', 'http://10.0.0.7:8080/{v1}']);
  await registration.disable();
  await web.until(([one]) => one.state === 'disabled');
  await registration.update({ port: 8081, sslPort: 8443 });
  const [changed] = await web.until(([one]) => one.port === 8081);
  assert.deepEqual([changed.state, changed.registered, changed.uri], ['disabled', seen.registered, 'https://10.0.0.7:8081/{v1}']);
  await registration.enable();
  await web.until(([one]) => one.state === 'up');
  await registration.unregister();
  await web.until((all) => all.length === 0);
  assert.deepEqual(told, [true]);
  assert.equal(registration.present, false);
  await assert.rejects(registration.update({ port: 1 }), { code: 'ECLOSED' });
  stopping.abort();
  await web.over;
});

test('instances have a base', { timeout: 60_000 }, async () => {
  const client = rig.client(gates);
  await client.register('db', { base: '/elsewhere', address: 'h' });
  assert.deepEqual(await client.instances('db'), []);
  assert.equal((await client.instances('db', { base: '/elsewhere' })).length, 1);
  await client.close();
  assert.deepEqual(await rig.client(gates).instances('db', { base: '/elsewhere' }), []);
});

test('a member joins, sets its data and leaves', { timeout: 60_000 }, async () => {
  const client = rig.client(gates);
  const group = follow(client.watchMembers('/kept/group'));
  await group.until((all) => all.length === 0);
  const member = await client.join('/kept/group', { id: 'a', data: '10.0.0.7' });
  assert.equal((await group.until((all) => all.length === 1))[0].data, '10.0.0.7');
  await member.set(Buffer.from([0xff]));
  assert.equal((await group.until(([one]) => one.data === null))[0].data_base64, '/w==');
  await member.leave();
  await group.until((all) => all.length === 0);
  await client.close();
  await group.over;
});

test('an id is that of one session; a program that was started again takes its place', { timeout: 60_000 }, async () => {
  const [first, second] = [rig.client(gates, { ttl: '4s' }), rig.client(gates)];
  const told = [];
  const member = await first.join('/kept/ids', { id: 'a', data: 'first', onChange: (present, error) => told.push([present, error?.code]) });
  await assert.rejects(second.join('/kept/ids', { id: 'a' }), { code: 'ENODEEXISTS', path: '/kept/ids/a', message: /\{replace: true\} takes its place/ });
  const other = await second.join('/kept/ids', { id: 'a', data: 'second', replace: true });
  while (member.present) await settled(50); // it is told with a renewal
  assert.equal((await first.members('/kept/ids'))[0].data, 'second');
  assert.equal(member.error.code, 'ENODEEXISTS');
  await other.leave();
  while (!member.present) await settled(50);
  assert.equal((await first.members('/kept/ids'))[0].data, 'first');
  assert.deepEqual(told, [[true, undefined], [false, 'ENODEEXISTS'], [true, undefined]]);

  const before = await first.register('ids', { id: 'a', address: 'before' });
  const again = await second.register('ids', { id: 'a', address: 'again' });
  while (before.present) await settled(50);
  assert.equal((await first.instances('ids'))[0].address, 'again'); // neither takes it from the other for ever
  assert.equal(again.present, true);
});

test('what somebody deletes is made anew', { timeout: 60_000 }, async () => {
  const client = rig.client(gates, { ttl: '2s' });
  const group = follow(client.watchMembers('/kept/deleted'));
  const member = await client.join('/kept/deleted', { id: 'a' });
  const [{ czxid }] = await group.until((all) => all.length === 1);
  await client.withLock('/kept/lock', (signal, hold) => hold.delete(member.path));
  await group.until(([one]) => one && one.czxid !== czxid);
  await client.close();
});

test('a registration survives its gate without a flap, and its end is its own', { timeout: 60_000 }, async () => {
  const client = rig.client(gates, { ttl: '3s' });
  const watcher = rig.client(rig.url); // not at the gates
  const web = follow(watcher.watchInstances('survives'));
  const told = [];
  const registration = await client.register('survives', { id: 'a', address: 'h', onChange: (...news) => told.push(news) });
  await client.join('/kept/survives', { id: 'a' });
  const [{ path }] = await web.until((all) => all.length === 1);
  for (const gate of rig.gates) {
    await stop(gate.process, 'SIGKILL');
    await registration.update({ payload: gate.url }); // at the other one
    await web.until(([one]) => one?.payload === gate.url);
    await settled(7000); // twice its ttl: at the dead gate it would have ended
    await gate.start();
  }
  neverFlapped(web.seen);
  assert.deepEqual([path, told, registration.present], ['/services/survives/a', [[true, null]], true]);
  assert.equal((await watcher.members('/kept/survives')).length, 1);
  await client.close();
  await web.until((all) => all.length === 0);
  assert.deepEqual(await watcher.members('/kept/survives'), []);
});

test('a gate that has lost its key is no end of a registration', { timeout: 60_000 }, async () => {
  const gate = rig.gates[0];
  const client = rig.client(gate.url, { ttl: '2s' });
  const watcher = rig.client(rig.url);
  const web = follow(watcher.watchInstances('keyless'));
  const registration = await client.register('keyless', { id: 'a', address: 'h' });
  const member = await client.join('/kept/keyless', { id: 'a' });
  const [{ path }] = await web.until((all) => all.length === 1);
  const [{ session }] = await watcher.members('/kept/keyless');
  await stop(gate.process, 'SIGKILL');
  await gate.start(false);
  for (let now; (now = await watcher.members('/kept/keyless'))[0]?.session === session || !now.length; ) {
    assert.equal(now.length, 1, 'it flapped');
    await settled(50);
  }
  await registration.update({ payload: 'moved' });
  await web.until(([one]) => one?.payload === 'moved');
  neverFlapped(web.seen);
  assert.deepEqual([path, member.present], ['/services/keyless/a', true]);
  await member.leave();
  await registration.unregister();
  assert.deepEqual(await watcher.instances('keyless'), []);
  assert.deepEqual(await watcher.members('/kept/keyless'), []);
  await stop(gate.process);
  await gate.start();
});

test('a session that was lost is followed by another one', { timeout: 60_000 }, async () => {
  const client = rig.client(gates, { ttl: '2s' });
  const told = [];
  const member = await client.join('/kept/lost', { id: 'a', onChange: (present, error) => told.push([present, error instanceof LostError]) });
  const [{ session }] = await client.members('/kept/lost');
  for (const gate of rig.gates) await stop(gate.process, 'SIGKILL');
  const watcher = rig.client(rig.url);
  while ((await watcher.members('/kept/lost')).length > 0) await settled(100);
  for (const gate of rig.gates) await gate.start();
  for (let now; (now = await watcher.members('/kept/lost')).length === 0 || now[0].session === session; ) await settled(50);
  while (!member.present) await settled(20);
  assert.deepEqual(told, [[true, false], [false, true], [true, false]]);
});

/** A node whose session has ended. `session()` begins the next one; `puts` are its requests. */
async function homeless(session) {
  const puts = [];
  const live = (id) => ({ id, headers: {}, over: null, forget() {}, haunt() {}, isOver: () => false });
  const transport = new Transport(['http://127.0.0.1:1'], {});
  transport.ask = async (method) => {
    puts.push(method);
    return { status: 201 };
  };
  let first = live('1');
  const node = new KeptNode(transport, { path: '/g/a', target: '/v1/members/g/a', request: () => ({}) }, { place: async () => first ?? session(live('2')), schedule() {} });
  await node.begin();
  first = null;
  puts.length = 0;
  node.moved(new LostError('it has ended'));
  return { node, puts, transport };
}

test('a change is refused while no gate begins a session, and made with the next one', { timeout: 10_000 }, async () => {
  let opens = false;
  const { node, puts } = await homeless((next) => {
    if (opens) return next;
    throw new UnreachableError('no gate has answered');
  });
  await assert.rejects(node.changed(), UnreachableError);
  assert.deepEqual(puts, []);
  opens = true;
  while (!node.there) await settled(10);
  assert.deepEqual(puts, ['PUT']);
});

test('what was left while no gate answered is not put in a later session', { timeout: 10_000 }, async () => {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  const { node, puts } = await homeless((next) => opened.then(() => next));
  await assert.rejects(node.leave(10), UnreachableError);
  open();
  await new Promise(setImmediate);
  assert.deepEqual(puts, []);
});

test('a pause between two attempts to move ends when the node is left, and with its client', { timeout: 10_000 }, async () => {
  for (const end of ['leave', 'close']) {
    let again = () => {};
    let error = new UnreachableError('no gate has answered');
    const { node, transport } = await homeless(() => {
      again();
      throw error;
    });
    const pausing = new Promise((resolve) => {
      const { pause } = Transport.prototype;
      transport.pause = (ms, ...more) => {
        resolve();
        return pause.call(transport, 3_600_000, ...more);
      };
    });
    await pausing;
    if (end === 'leave') {
      await node.leave(5000);
    } else {
      const asked = new Promise((resolve) => (again = resolve));
      error = new LostError('the client is closed', { code: 'ECLOSED' });
      transport.close();
      await asked;
    }
  }
});

test('what is asked wrongly is told', { timeout: 60_000 }, async () => {
  const client = rig.client(gates);
  await assert.rejects(client.register('web', { port: 1 }), { name: 'TypeError', message: /address is missing/ });
  await assert.rejects(client.register('web', { address: 'h', port: 65536 }), { name: 'TypeError', message: /port must be a port, 1 to 65535, not 65536/ });
  await assert.rejects(client.register('a/b', { address: 'h' }), { name: 'TypeError', message: /a service is a name without "\/", unlike "a\/b"/ });
  await assert.rejects(client.register('web', { address: 'h', uri: '{scheme' }), { name: 'TypeError', message: /uri has a "\{" without its other half/ });
  await assert.rejects(client.register('web', { address: 'h', adress: 'h' }), { name: 'TypeError', message: /no option "adress"/ });
  await assert.rejects(client.register('web', { address: 'h', payload: () => {} }), { name: 'TypeError', message: /what JSON can say/ });
  await assert.rejects(client.join('group'), { name: 'TypeError', message: /a path begins with "\/"/ });
  await assert.rejects(client.join('/g', { data: 5 }), { name: 'TypeError', message: /data must be a text or bytes, not 5/ });
  await assert.rejects(client.instances('web', { base: 'services' }), { name: 'TypeError', message: /a path begins with "\/"/ });
  await assert.rejects(client.register('..', { address: 'h' }), { code: 'EINVAL' });
  await assert.rejects(client.join('/g', { signal: AbortSignal.abort(new Error('no more')) }), { message: 'no more' });
});
