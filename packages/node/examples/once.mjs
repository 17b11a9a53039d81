// However many processes start this, one of them does it, once a day: node once.mjs
import { connect } from 'clave';

const clave = connect();
const done = await clave.once('/examples/report', { key: 'daily', for: '20h' }, async (signal) => {
  if (signal.aborted) throw signal.reason;
  return 'made';
});
console.log(done.ran ? done.result : `done already, by ${done.former.host}`);
await clave.close();
