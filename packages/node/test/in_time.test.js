'use strict';
// in_time.test.js - what every acquire rejects with when its time is over: BusyError only if a server has shown another before it.
const assert = require('node:assert/strict');
const test = require('node:test');
const { BusyError, UnreachableError } = require('..');
const { Rig, stop } = require('./rig.js');

const ACQUIRES = {
  lock: (c, wait) => c.lock('/in-time/lock', { wait }),
  readLock: (c, wait) => c.readLock('/in-time/rw', { wait }),
  writeLock: (c, wait) => c.writeLock('/in-time/rw', { wait }),
  semaphore: (c, wait) => c.semaphore('/in-time/semaphore', { limit: 1, wait }),
  slots: (c, wait) => c.slots('/in-time/slots').take('ours', { limit: 1, wait }),
};

async function all(c, kind) {
  for (const [what, acquire] of Object.entries(ACQUIRES))
    for (const wait of [0, '700ms'])
      await assert.rejects(acquire(c, wait), (error) => {
        assert.equal(error.name, kind.name, `${what}, ${wait}: ${error.message}`);
        return true;
      });
}

test('an acquire is busy only if it was shown', async (t) => {
  const rig = new Rig();
  t.after(() => rig.end());
  await rig.begin(1);
  const { url } = rig.gates[0];
  const holder = rig.client(url);
  await Promise.all([holder.lock('/in-time/lock'), holder.writeLock('/in-time/rw'), holder.semaphore('/in-time/semaphore', { limit: 1 }), holder.slots('/in-time/slots').take('theirs', { limit: 1 })]);
  const c = rig.client(url, { ttl: '4s' });
  await t.test('a held lock', () => all(c, BusyError));
  await stop(rig.server, 'SIGKILL');
  await t.test('a lost connection', () => all(c, UnreachableError));
  await t.test('no server', () => all(rig.client(url, { ttl: '4s' }), UnreachableError));
  await new Promise((done) => setTimeout(done, 6000));
  await t.test('a lost session', () => all(c, UnreachableError));
  await stop(rig.gates[0].process, 'SIGKILL');
  await t.test('no gate', () => all(c, UnreachableError));
});
