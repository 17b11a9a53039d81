// npm_cycle.mjs - acquire + release of the npm package: npm_cycle.mjs URL PATH CYCLES
import { connect } from '../packages/node/index.mjs';

const [url, path, cycles] = process.argv.slice(2);
const clave = connect(url);
const us = [];
for (let i = -20; i < Number(cycles); i++) {
  const begun = performance.now();
  await (await clave.lock(path)).release();
  if (i >= 0) us.push(1000 * (performance.now() - begun)); // the first ones make a session
}
await clave.close();
us.sort((a, b) => a - b);
const at = (part) => Math.round(us[Math.floor(part * (us.length - 1))]);
console.log(JSON.stringify({ p50_us: at(0.5), p99_us: at(0.99) }));
