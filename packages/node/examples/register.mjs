// An instance of a service, found by another program, and a member of a group: node register.mjs
import { connect } from 'clave';

const clave = connect(); // CLAVE_GATE, or http://127.0.0.1:8080; CLAVE_GATE_TOKEN, whose role is write
const web = await clave.register('web', { id: 'a', address: '10.0.0.7', port: 8080, payload: { zone: 3 }, uri: '{scheme}://{address}:{port}/v1' });
const worker = await clave.join('/examples/workers', { id: 'a', data: '10.0.0.7' });

for await (const instances of clave.watchInstances('web')) {
  for (const { id, state, uri } of instances) console.log(`web ${id} ${state} ${uri}`);
  if (instances.length > 0) break; // a service would follow them until it ends
}
for (const { id, data } of await clave.members('/examples/workers')) console.log(`worker ${id} ${data}`);

await web.disable(); // drains: others do not use it any more
await web.unregister();
await worker.leave();
await clave.close();
