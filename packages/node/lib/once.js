'use strict';
// once.js - a job that several processes start and one of them runs: once in a period, or once for all. The same record
// as `clave lock --once` (the node PATH-once/KEY), so programs and shells exclude each other.
//
// A period begins when a run begins, by the servers' clock: the record's ctime against the mtime of a write made now.
// Each write of the record is one transaction with a check of the lock. A run that failed, or whose process died, does
// not count, so the job is done at least once; `atMostOnce` makes the other choice.
const node = require('./node.js');
const { UnknownOutcomeError } = require('./errors.js');
const { format, read } = require('./record.js');

const ROUNDS = 16;

const former = ({ fields, stat }) => ({
  state: ['started', 'failed'].includes(fields.state) ? fields.state : 'done',
  began: new Date(stat.ctime),
  took: fields.took ? Number(fields.took) : null,
  host: fields.host ?? null,
  token: fields.token ?? null,
});

class Record {
  constructor(client, hold, path) {
    Object.assign(this, { client, hold, path, id: node.crypto.randomUUID(), began: performance.now() });
  }

  body(state) {
    const took = state === 'started' ? 0 : Math.round(performance.now() - this.began);
    return format({ state, id: this.id, token: this.hold.token, took });
  }

  /** Our entry in place of `found`. false: it is not the one that is there, or nobody knows. */
  async start(found) {
    try {
      if (!found) await this.hold.create(this.path, this.body('started'), { parents: true });
      else
        await this.hold.multi([
          { op: 'delete', path: this.path, version: found.stat.version },
          { op: 'create', path: this.path, data: this.body('started') },
        ]);
      return true;
    } catch (error) {
      const code = error.code;
      if (error instanceof UnknownOutcomeError || ['ENODEEXISTS', 'EBADVERSION', 'ENONODE'].includes(code)) return false;
      throw error;
    }
  }

  /** null: the job is to be run, and it is recorded as started. Otherwise the run that counts. */
  async begin(period, atMostOnce) {
    for (let round = 0; round < ROUNDS; round++) {
      const found = await read(this.client, this.path);
      const counts = found && found.fields.id !== this.id && (atMostOnce || former(found).state === 'done');
      if (counts && period === null) return former(found);
      if (counts) {
        const stat = await this.#touch(found);
        if (!stat) continue;
        if (Math.abs(stat.mtime - found.stat.ctime) < period) return former(found);
        found.stat = stat;
      }
      if (await this.start(found)) return null;
    }
    throw new UnknownOutcomeError(`${this.path}: too many answers were lost`);
  }

  /** Its new stat has the servers' time. null: it has changed, or nobody knows. */
  async #touch(found) {
    try {
      return await this.hold.set(this.path, found.data, { version: found.stat.version });
    } catch (error) {
      if (error instanceof UnknownOutcomeError || error.code === 'EBADVERSION' || error.code === 'ENONODE') return null;
      throw error;
    }
  }
}

async function runOnce(client, path, { key = 'once', period = null, atMostOnce = false }, options, fn) {
  if (!/^[^/\0]+$/.test(key)) throw new TypeError(`once: a key is one word, without a "/", unlike ${JSON.stringify(key)}`);
  const hold = await client.lock(path, options);
  return hold.run(async (signal) => {
    const record = new Record(client, hold, `${path}-once/${key}`);
    const counts = await record.begin(period, atMostOnce);
    if (counts) return { ran: false, former: counts };
    record.began = performance.now();
    let result;
    try {
      result = await fn(signal, hold);
    } catch (error) {
      await hold.set(record.path, record.body('failed')).catch(() => {}); // it stays "started", which does not count either
      throw error;
    }
    await hold.set(record.path, record.body('done'));
    return { ran: true, result };
  });
}

module.exports = { runOnce };
