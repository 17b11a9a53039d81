// At most two processes at a time: node semaphore.cjs
const { connect } = require('clave');

(async () => {
  const clave = connect();
  const lease = await clave.semaphore('/examples/two', { limit: 2 });
  await lease.run(() => console.log(`one of two, token ${lease.token}`));
  await clave.close();
})();
