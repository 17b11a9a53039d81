'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const { after, before, test } = require('node:test');
const v8 = require('node:v8');
const vm = require('node:vm');
const { connect } = require('..');
const { Rig, TOKEN } = require('./rig.js');

const rig = new Rig();
before(() => rig.begin());
after(() => rig.end());

v8.setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc');

function bytesUsed() {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const openFiles = () => fs.readdirSync('/proc/self/fd').length;

test('ten thousand locks leave neither memory nor descriptors behind', async () => {
  const before = openFiles();
  const client = connect(rig.url, { token: TOKEN });
  const turns = async (n) => {
    const one = async (where) => {
      for (let i = 0; i < n / 10; i++) await (await client.lock(where)).release();
    };
    await Promise.all(Array.from({ length: 10 }, (_, i) => one(`/leaks/${i}`)));
  };
  await turns(1000);
  const first = bytesUsed();
  await turns(10_000);
  const more = bytesUsed() - first;
  assert.ok(more < 2 << 20, `${more} bytes more`);
  await client.close();
  assert.equal(openFiles(), before);
});
