// A former holder's transaction is refused.
const assert = require('node:assert/strict');
const { Client } = require('pg');
const { connect } = require('clave');
const { fencePostgres, StaleTokenError } = require('clave/fence');

(async () => {
  const [url, token] = process.argv.slice(2);
  const pg = new Client({ host: process.env.PGHOST, user: process.env.PGUSER, database: process.env.PGDATABASE });
  await pg.connect();
  await pg.query('CREATE TABLE fence (lock text PRIMARY KEY, token bigint NOT NULL)');
  await pg.query('CREATE TABLE report (body text)');
  const clave = connect(url, { token });
  const write = async (lock, body) => {
    await pg.query('BEGIN');
    try {
      await fencePostgres(pg, lock);
      await pg.query('INSERT INTO report VALUES ($1)', [body]);
      await pg.query('COMMIT');
    } catch (error) {
      await pg.query('ROLLBACK');
      throw error;
    }
  };
  const first = await clave.lock('/fence/pg');
  await write(first, 'one');
  await first.release();
  const second = await clave.lock('/fence/pg');
  await write(second, 'two');
  await assert.rejects(write(first, 'late'), StaleTokenError);
  await write(second, 'three');
  await second.release();
  assert.deepEqual((await pg.query('SELECT body FROM report')).rows.map((r) => r.body), ['one', 'two', 'three']);
  await clave.close();
  await pg.end();
})();
