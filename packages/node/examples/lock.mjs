// One process of many does the work: node lock.mjs
import { connect, BusyError } from 'clave';

const clave = connect(); // CLAVE_GATE, or http://127.0.0.1:8080; CLAVE_GATE_TOKEN
try {
  const lock = await clave.lock('/examples/lock', { wait: '10s' });
  try {
    lock.check();
    console.log(`held, token ${lock.token}`);
  } finally {
    await lock.release();
  }
} catch (error) {
  if (!(error instanceof BusyError)) throw error;
  console.log('another process holds it');
}
await clave.close();
