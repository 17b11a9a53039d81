// balancer_clients.mjs GATE CLIENTS GRANTS: clients of the npm package contend for one lock over GATE until
// it has been granted GRANTS times in all, and print what they saw as one line of JSON.
import { setTimeout as nap } from 'node:timers/promises';
import { connect } from '../../packages/node/index.mjs';

const HOLD_MS = 10;
const [gate, clients, grants] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const seen = { grants: 0, lost: [], overlaps: 0, tokens_back: 0, errors: [], release_ms: [], clients: 0 };
const inside = new Set();
let newest = 0n;

async function contend() {
  const clave = connect(gate, { ttl: '20s' });
  let own = 0;
  while (seen.grants < grants) {
    try {
      const lock = await clave.lock('/balanced', { wait: '60s' });
      seen.overlaps += inside.size;
      seen.tokens_back += BigInt(lock.token) <= newest;
      newest = BigInt(lock.token);
      inside.add(lock);
      lock.signal.addEventListener('abort', () => {
        if (inside.has(lock)) seen.lost.push(String(lock.signal.reason?.message));
      });
      await nap(HOLD_MS);
      inside.delete(lock);
      const begin = performance.now();
      await lock.release();
      seen.release_ms.push(performance.now() - begin);
      seen.grants++;
      own++;
    } catch (error) {
      seen.errors.push(`${error.name} ${error.code}: ${error.message}`);
      if (seen.errors.length > 20) break;
    }
  }
  seen.clients += own > 0;
  await clave.close();
}

await Promise.all(Array.from({ length: clients }, contend));
seen.release_ms.sort((a, b) => a - b);
const at = (share) => seen.release_ms[Math.floor(seen.release_ms.length * share)];
console.log(JSON.stringify({ ...seen, release_ms: { p50: at(0.5), p99: at(0.99) } }));
process.exit(0);
