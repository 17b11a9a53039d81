// A number of its own for each order: node counter.mjs
import { connect } from 'clave';

const clave = connect(); // CLAVE_GATE, or http://127.0.0.1:8080; CLAVE_GATE_TOKEN, whose role is write
const orders = clave.counter('/examples/orders');
console.log(`order ${await orders.add()}`);
console.log(`order ${await orders.add()}`);
await clave.close();
