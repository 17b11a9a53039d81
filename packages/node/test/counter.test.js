'use strict';
const assert = require('node:assert');
const { test, before, after } = require('node:test');
const { Rig } = require('./rig.js');

const rig = new Rig();
before(() => rig.begin());
after(() => rig.end());

test('a counter is read and changed', async () => {
  const counter = rig.client().counter('/node/counter');
  assert.equal(await counter.get(), 0n);
  assert.equal(await counter.add(), 1n);
  assert.equal(await counter.add(-3), -2n);
  assert.equal(await counter.set(9223372036854775807n), 9223372036854775807n);
  await assert.rejects(counter.add(1), { code: 'EINVAL' });
  assert.equal(await counter.compareAndSet(0, 1), false);
  assert.equal(await counter.compareAndSet(9223372036854775807n, 1), true);
  assert.equal(await counter.get(), 1n);
  await assert.rejects(counter.add(0.5), TypeError);
  await assert.rejects(counter.set(2n ** 63n), TypeError);
});

test('members and instances are listed', async () => {
  const client = rig.client();
  assert.deepEqual(await client.members('/node/group'), []);
  assert.deepEqual(await client.instances('web'), []);
  await assert.rejects(client.instances('web', { bas: '/x' }), { name: 'TypeError', message: /no option "bas", only base$/ });
  await assert.rejects(client.members('/node/group', { bas: '/x' }), { name: 'TypeError', message: /no option "bas"$/ });
  await assert.rejects(client.instances('web', '/x'), { name: 'TypeError', message: /must be an object, such as \{base: ...\}, not "\/x"/ });
  await assert.rejects(client.members(), TypeError);
  await assert.rejects(client.instances(), { name: 'TypeError', message: /a service is a name, unlike undefined/ });
  await assert.rejects(client.instances(''), TypeError);
});
