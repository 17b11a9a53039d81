// nightly.mjs - the job of this folder in JavaScript, over HTTP: node nightly.mjs ledger
import { appendFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { connect } from 'clave';

const ledger = process.argv[2] ?? 'ledger';
const clave = connect(); // CLAVE_GATE, CLAVE_GATE_TOKEN
await clave.withLock('/jobs/nightly', async (signal, lock) => {
  appendFileSync(ledger, `begin ${lock.token} javascript\n`);
  await setTimeout(100, null, { signal });
  lock.check(); // else it may be another's by now
  appendFileSync(ledger, `end ${lock.token} javascript\n`);
});
await clave.close();
