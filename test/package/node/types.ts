// Compiled with tsc --strict.
import { connect, BusyError, type Client, type Hold, type Membership, type OnceResult, type Registration } from 'clave';
import { fenceFile, fencePostgres } from 'clave/fence';
import { coordinator } from 'clave/node-cron';
import { startGate } from 'clave/testing';
import cron from 'node-cron';
import pg from 'pg';

export async function types(): Promise<void> {
  const clave: Client = connect(['http://a:8080', 'unix:/run/clave.sock'], { token: async () => 't', ttl: '10s' });
  const lock: Hold = await clave.lock('/x', { wait: '10s', signal: AbortSignal.timeout(1000) });
  const token: string = lock.token;
  if (lock.validFor(100) && !lock.signal.aborted) await lock.set('/y', token, { version: 1 });
  await fenceFile('/tmp/x', lock, 'content');
  await fencePostgres(new pg.Client(), lock);
  await lock.multi([{ op: 'create', path: '/y/n-', mode: 'persistent_sequential' }]);
  const length: number = await lock.run(async (signal, hold) => (signal.aborted ? 0 : hold.path.length));
  const done: OnceResult<number> = await clave.once('/x', { for: '20h' }, () => length);
  if (done.ran) done.result.toFixed();
  else done.former.began.getTime();
  for await (const term of clave.lead('/svc')) await term.publish('me');
  const sum: bigint = await clave.counter('/n').add(1);
  const ids: string[] = (await clave.members('/g')).map((m) => m.id);
  const ports: (number | null)[] = (await clave.instances('web', { base: '/s' })).map((i) => i.port);
  const member: Membership = await clave.join('/g', { id: 'a', data: new Uint8Array(), replace: true, onChange: (there, error) => void [there, error?.code] });
  await member.set('x');
  await member.leave({ within: '2s' });
  await using web: Registration = await clave.register('web', { address: 'h', port: 80, payload: ports, uri: '{address}' });
  await web.update({ enabled: false, payload: null });
  for await (const list of clave.watchInstances('web')) list[0]?.uri?.toUpperCase();
  for await (const list of clave.watchMembers('/g', { signal: AbortSignal.timeout(1) })) list.map((m) => m.id);
  // @ts-expect-error an address is needed
  await clave.register('web', { port: 80 });
  for await (const seen of clave.watch('/x')) seen?.holders.map((p) => p.host);
  cron.schedule('* * * * *', () => {}, { name: 'n', distributed: true, runCoordinator: coordinator(clave) });
  try {
    await clave.semaphore('/s', { limit: 3, permits: 2, wait: 0 });
    const slot = await clave.slots('/r').take('web1', { limit: 1, reason: 'kernel' });
    const owned: [Date, boolean, string] = [slot.since, slot.taken, (await slot.set('/x', 'data')).mzxid];
    void owned;
  } catch (error) {
    if (error instanceof BusyError) error.code.toString();
  }
  const gate = await startGate();
  gate.fault({ status: 503, times: 2 });
  await clave.withLock(gate.places('/x')[0]!.token, () => fetch(gate.url, { signal: lock.signal }));
  await clave.once('/x', (signal) => signal.throwIfAborted());
  await lock.unref().release({ within: '2s' });
  const text: string = (await clave.get('/x'))!.data.toString('utf8');
  await clave.slots('/r').give(text, { token: 5n });
  // @ts-expect-error there is no such option
  await clave.lock('/x', { timeout: 1 });
  // @ts-expect-error a limit is needed
  await clave.semaphore('/s', {});
  await using scoped = await clave.readLock('/x');
  scoped.check();
}
