// One of several processes leads, and stops as soon as it does not: node lead.mjs
import { connect } from 'clave';
import { setTimeout as sleep } from 'node:timers/promises';

const clave = connect();
for await (const term of clave.lead('/examples/svc')) {
  console.log(`leads, term ${term.token}`);
  for (let i = 0; i < 3 && !term.signal.aborted; i++) await sleep(100);
  break; // a service would go on until the signal
}
await clave.close();
