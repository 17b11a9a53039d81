// package_holder.mjs - one holder in the queue of packages_test.py, with the npm package: as package_holder.py.
//
//   package_holder.mjs GATE,... PATH LOG NAME STOP SESSION_MS
import { existsSync, openSync, writeSync } from 'node:fs';
import { setTimeout as nap } from 'node:timers/promises';
import { LostError, connect } from '../../packages/node/index.mjs';

const STEP_MS = 5;
const [gates, path, log, name, stop, sessionMs] = process.argv.slice(2);
const fd = openSync(log, 'a');
const clave = connect(gates.split(','), { ttl: Number(sessionMs) });
while (!existsSync(stop)) {
  const hold = await clave.lock(path);
  const append = (sign) => writeSync(fd, `${sign} ${name} ${hold.token}\n`);
  append('+');
  await nap(STEP_MS);
  for (let said = false; existsSync(`${stop}-${name}`) && hold.validFor(); await nap(STEP_MS)) {
    if (!said) append('=');
    said = true;
  }
  append(hold.validFor() ? '-' : '!');
  await hold.release().catch((error) => {
    if (!(error instanceof LostError)) throw error;
  });
}
await clave.close();
