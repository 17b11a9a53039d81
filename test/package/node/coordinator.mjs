// Three "processes" with clocks of their own on one task: each time is run by one of them.
import assert from 'node:assert/strict';
import cron from 'node-cron';
import { connect } from 'clave';
import { coordinator } from 'clave/node-cron';

const [url, token] = process.argv.slice(2);
const runs = new Map();
const clients = [1, 2, 3].map(() => connect(url, { token }));
const tasks = clients.map((clave) =>
  cron.schedule('* * * * * *', ({ date }) => runs.set(+date, (runs.get(+date) ?? 0) + 1), { name: 'each second', distributed: true, runCoordinator: coordinator(clave) }),
);
await new Promise((done) => setTimeout(done, 4500));
await Promise.all(tasks.map((t) => t.destroy()));
assert.ok(runs.size >= 3, `${runs.size} times were run`);
for (const [time, n] of runs) assert.equal(n, 1, `SAFETY VIOLATED: ${new Date(time).toISOString()} was run ${n} times`);

// A fast job, and a process whose clock is behind.
const [fast, late] = clients.map((c) => coordinator(c, { prefix: '/late' }));
const key = 'report:2026-11-27T10:00:00.000Z';
assert.equal(await fast.shouldRun(key, 1000), true);
assert.equal(await late.shouldRun(key, 1000), false); // it runs
await fast.onComplete(key);
assert.equal(await late.shouldRun(key, 1000), false); // it has run
assert.equal(await late.shouldRun('report:2026-11-27T10:00:01.000Z', 1000), true);
await late.onComplete('report:2026-11-27T10:00:01.000Z');
await Promise.all(clients.map((c) => c.close()));
