'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const { fenceFile, fenceS3, StaleTokenError } = require('../fence.js');

test('a file keeps the largest token', async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'clave-fence-'));
  const file = path.join(dir, 'report');
  await fenceFile(file, '9', 'nine');
  await fenceFile(file, { token: '10' }, 'ten');
  await assert.rejects(fenceFile(file, '9', 'late'), StaleTokenError);
  await fenceFile(file, 10n, 'again');
  assert.equal(fs.readFileSync(file, 'utf8'), 'token 10\nagain');
  await Promise.all(Array.from({ length: 20 }, (_, i) => fenceFile(file, String(11 + i), `${i}`).catch((e) => assert.ok(e instanceof StaleTokenError))));
  assert.equal(fs.readFileSync(file, 'utf8'), 'token 30\n19');
  assert.deepEqual(fs.readdirSync(dir).sort(), ['report', 'report.lock']);
  fs.rmSync(dir, { recursive: true });
});

/** As S3 documents If-Match and If-None-Match. */
class Bucket {
  constructor() {
    this.object = null;
    this.n = 0;
  }
  get = async () => this.object && { ...this.object };
  put = async (body, headers) => {
    const fits = this.object ? headers['If-Match'] === this.object.etag : headers['If-None-Match'] === '*';
    if (!fits) return 412;
    this.object = { etag: `"${++this.n}"`, body };
    return 200;
  };
}

test('an object keeps the largest token', async () => {
  const bucket = new Bucket();
  await fenceS3(bucket, '5', 'five');
  await fenceS3(bucket, '12', 'twelve');
  await assert.rejects(fenceS3(bucket, '5', 'late'), StaleTokenError);
  assert.equal(bucket.object.body, 'token 12\ntwelve');
  // A later holder writes between the look and the write.
  const { get } = bucket;
  let once = true;
  bucket.get = async () => {
    const now = await get();
    if (once) await bucket.put('token 13\nthirteen', { 'If-Match': now.etag });
    once = false;
    return now;
  };
  await assert.rejects(fenceS3(bucket, '12', 'late'), StaleTokenError);
});
