'use strict';
// fence.js - writes that a store refuses when a later holder has written: compared and written in one step. The store
// keeps the largest token that it has seen. Equal is allowed: a holder writes more than once.
const node = require('./node.js');

/** A later holder has written. Nothing was written. */
class StaleTokenError extends Error {
  constructor(where, token, seen) {
    super(`token ${token} is stale at ${where}${seen === undefined ? '' : `: ${seen} has been there`}`);
    this.name = 'StaleTokenError';
  }
}

const tokenOf = (lock) => String(typeof lock === 'object' ? lock.token : lock);

/** In a transaction of `client` (one of `pg`, after BEGIN): goes on only if no later holder of the lock has been here.
 * The row stays locked until the transaction ends. Makes the table `fence (lock text PRIMARY KEY, token bigint)` a
 * condition. */
async function fencePostgres(client, lock, name = lock.path) {
  const token = tokenOf(lock);
  const { rowCount } = await client.query(
    'INSERT INTO fence (lock, token) VALUES ($1, $2) ON CONFLICT (lock) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token',
    [name, token],
  );
  if (rowCount === 0) throw new StaleTokenError(name, token);
}

/** Writes an object whose first line is the token. `get()` resolves to {etag, body (text)} or null; `put(body, headers)`
 * to the status: 200 or 201 written, 409 or 412 refused by the condition. */
async function fenceS3({ get, put }, lock, content, { tries = 5 } = {}) {
  const token = tokenOf(lock);
  for (let i = 0; i < tries; i++) {
    const now = await get();
    const seen = /^token (\d+)/.exec(now?.body ?? '')?.[1];
    if (seen !== undefined && BigInt(seen) > BigInt(token)) throw new StaleTokenError('the object', token, seen);
    const status = await put(`token ${token}\n${content}`, now ? { 'If-Match': now.etag } : { 'If-None-Match': '*' });
    if (status === 200 || status === 201) return;
    if (![404, 409, 412].includes(status)) throw new Error(`the object was not written: the store answered ${status}`);
  }
  throw new Error(`the object was not written: it changed ${tries} times meanwhile`);
}

/** Replaces a file whose first line is the token. For writers on one machine; `FILE.lock` excludes them while they
 * compare. */
async function fenceFile(file, lock, content) {
  const token = tokenOf(lock);
  const guard = await lockFile(`${file}.lock`);
  try {
    const seen = /^token (\d+)/.exec(await node.fs.readFile(file, 'utf8').catch(absent))?.[1];
    if (seen !== undefined && BigInt(seen) > BigInt(token)) throw new StaleTokenError(file, token, seen);
    const fresh = node.path.join(node.path.dirname(file), `.${node.path.basename(file)}.${process.pid}.${token}`);
    const out = await node.fs.open(fresh, 'w');
    try {
      await out.writeFile(`token ${token}\n${content}`);
      await out.sync();
    } finally {
      await out.close();
    }
    await node.fs.rename(fresh, file);
  } finally {
    await guard();
  }
}

/** flock(1) of util-linux, which shell scripts use, too. It ends with this process. Resolves to what gives it back. */
function lockFile(file) {
  return new Promise((resolve, reject) => {
    const holder = node.child_process.spawn('flock', [file, 'sh', '-c', 'echo held; cat >&2'], { stdio: ['pipe', 'pipe', 'ignore'] });
    const ended = new Promise((done) => holder.on('close', done));
    holder.on('error', (cause) => reject(new Error(`cannot run flock for ${file}: ${cause.message}`, { cause })));
    holder.on('close', (code) => reject(new Error(`flock ${file} ended with ${code}`)));
    holder.stdout.once('data', () =>
      resolve(() => {
        holder.stdin.end();
        return ended;
      }),
    );
  });
}

const absent = (error) => {
  if (error.code !== 'ENOENT') throw error;
  return '';
};

module.exports = { fencePostgres, fenceS3, fenceFile, StaleTokenError };
