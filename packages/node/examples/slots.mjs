// A machine that may be out of service while at most two are. Its slot outlives this process: node slots.mjs
import { connect } from 'clave';

const clave = connect(); // CLAVE_GATE, or http://127.0.0.1:8080; CLAVE_GATE_TOKEN, whose role is write: it sets the limit
const slots = clave.slots('/examples/maintenance');
await slots.setLimit(2);
const slot = await slots.take('web1', { wait: '10s', reason: 'kernel' });
console.log(`web1 ${slot.taken ? 'took' : 'owned'} a slot, token ${slot.token}`);
for (const { owner, since } of (await slots.list()).owners) console.log(`${owner} since ${since}`);
await slots.give('web1', { token: slot.token });
await clave.close();
