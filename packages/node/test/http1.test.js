'use strict';
// http1.test.js - answers cut into pieces at each byte, and answers that are none.
const assert = require('node:assert/strict');
const net = require('node:net');
const { test } = require('node:test');
const { connect, UnreachableError } = require('..');
const { Pool } = require('../lib/http1.js');

/** A server that sends these bytes for each request, `size` at a time; `ends`: and ends the connection. */
async function server(t, text, size = Infinity, ends = false) {
  const bytes = Buffer.from(text, 'latin1');
  const s = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', async () => {
      for (let at = 0; at < bytes.length && !socket.destroyed; at += size) {
        socket.write(bytes.subarray(at, Math.min(bytes.length, at + size)));
        if (size !== Infinity) await new Promise(setImmediate);
      }
      if (ends) socket.end();
    });
  });
  s.connections = 0;
  s.on('connection', () => s.connections++);
  await new Promise((r) => s.listen(0, '127.0.0.1', r));
  const pool = new Pool(() => net.connect(s.address().port, '127.0.0.1'), 2, 2);
  t.after(() => (pool.close(), s.close()));
  const ask = (method = 'GET', more = {}) => pool.request(method, '/x', { headers: { host: 'h' }, timeout: 2000, isRefed: () => true, ...more });
  return { ask, s, url: `http://127.0.0.1:${s.address().port}` };
}

const OK = 'HTTP/1.1 200 OK\r\n';
const GOOD = [
  [`${OK}Content-Length: 5\r\nETag: "a"\r\netag: "b"\r\n\r\nhello`, 'hello', true],
  [`HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${OK}content-length: 2\r\n\r\nhi`, 'hi', true],
  [`${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: z\r\n\r\n`, 'abc0123456789', true],
  [`${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, '', true],
  [`HTTP/1.1 204 No Content\r\n\r\n`, '', true],
  [`HTTP/1.1 304\r\nContent-Length: 7\r\n\r\n`, '', true],
  [`${OK}Connection: close\r\nContent-Length: 1\r\n\r\nx`, 'x', false],
];

test('whole answers, in whatever pieces', async (t) => {
  for (const [text, body, keeps] of GOOD)
    for (const size of [Infinity, 1, 7]) {
      const { ask, s } = await server(t, text, size);
      for (let i = 0; i < 3; i++) assert.equal(String((await ask()).body), body, text);
      assert.equal(s.connections, keeps ? 1 : 3, text);
    }
  const { ask } = await server(t, GOOD[0][0]);
  assert.equal((await ask()).headers.etag, '"a", "b"');
  assert.equal(String((await (await server(t, `${OK}\r\nto the end`, 3, true)).ask()).body), 'to the end');
});

test('what is no answer, or no whole one, is told, and its connection is not used again', async (t) => {
  const bad = [
    ['SSH-2.0-OpenSSH\r\n\r\n', /no HTTP/], [`${OK}broken\r\n\r\n`, /malformed header/], [`${OK}Transfer-Encoding: gzip\r\n\r\n`, /gzip/],
    [`${OK}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n`, /chunked/], [`${OK}Content-Length: -1\r\n\r\n`, /no length/], [`${OK}Content-Length: 1, 1\r\n\r\nx`, /no length/],
    [`${OK}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`, /malformed chunk/], [`${OK}Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n`, /malformed chunk/],
    [`${OK}Content-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n`, /more than one/], [`${OK}x: ${'y'.repeat(70_000)}`, /without an end/],
    [`${OK}Content-Length: 9\r\n\r\nx`, /cut off/, true], [`${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nx`, /cut off/, true], ['HTTP/1.1 2', /cut off/, true], ['', /closed before/, true], ['HTTP/1.1 200 OK\r\n', /no answer within/],
  ];
  for (const [text, words, ends = false] of bad) {
    const { ask, s } = await server(t, text, Infinity, ends);
    for (let i = 1; i <= 2; i++) {
      await assert.rejects(ask('GET', { timeout: /within/.test(words) ? 100 : 2000 }), words, text);
      assert.equal(s.connections, i);
    }
  }
  const { url } = await server(t, 'SSH-2.0-OpenSSH\r\n\r\n');
  await assert.rejects(connect(url).lock('/x', { wait: '300ms' }), (e) => e instanceof UnreachableError && /no HTTP/.test(e.message) && e.message.includes(url));
});

test('requests wait for one of few connections, and no longer than they may', async (t) => {
  const { ask, s } = await server(t, GOOD[0][0], 1);
  assert.equal((await Promise.all(Array.from({ length: 20 }, () => ask()))).length, 20);
  assert.equal(s.connections, 2);
  const silent = await server(t, '');
  const stuck = [0, 1].map(() => silent.ask('GET', { timeout: 600 }).catch((e) => e.message));
  const { signal } = AbortSignal.timeout ? { signal: AbortSignal.timeout(100) } : {};
  await assert.rejects(silent.ask('GET', { timeout: 50 }), /within 50 ms/);
  await assert.rejects(silent.ask('GET', { signal }), /timeout|aborted/i);
  const next = silent.ask('GET', { timeout: 800 }).catch((e) => e.message); // has a connection in place of one that failed
  assert.match((await Promise.all([...stuck, next])).join(), /600 ms.*600 ms.*800 ms/);
  assert.equal(silent.s.connections, 3);
  await assert.rejects(ask('GET', { headers: { host: 'h', x: 'a\r\nb: c' } }), TypeError);
});
