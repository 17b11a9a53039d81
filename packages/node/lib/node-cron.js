'use strict';
// node-cron.js - a RunCoordinator for node-cron: of all processes that have a task, one runs each of its times.
//
// The lock PREFIX/NAME is held while the task runs, so a run that is late delays nobody into running beside it. The record
// PREFIX/NAME-once/last remembers the newest time that was run, so a process whose clock is behind does not run it again,
// however fast the task was.
const { BusyError } = require('./errors.js');
const { format, read } = require('./record.js');

const ISO = /^(.*):(\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/s;

class ClaveCoordinator {
  #client;
  #prefix;
  #onLost;
  #running = new Map();

  /** `onLost(key, error)`: the lock was lost while the task runs; fence what must not be late. */
  constructor(client, { prefix = '/cron', onLost = () => {} } = {}) {
    this.#client = client;
    this.#prefix = prefix;
    this.#onLost = onLost;
  }

  async shouldRun(key, _lease) {
    const [, name, time] = ISO.exec(key) ?? [];
    if (!name) throw new TypeError(`a distributed task needs a name: ${JSON.stringify(key)}`);
    const path = `${this.#prefix}/${encodeURIComponent(name).replace(/^\.+$/, (dots) => dots.replaceAll('.', '%2E'))}`;
    let hold;
    try {
      hold = await this.#client.lock(path, { wait: 0 });
    } catch (error) {
      if (error instanceof BusyError) return false; // another decides, or runs
      throw error;
    }
    try {
      if (!(await this.#mark(hold, `${path}-once/last`, time))) {
        await hold.release();
        return false;
      }
    } catch (error) {
      await hold.release().catch(() => {});
      throw error;
    }
    this.#running.set(key, hold);
    hold.signal.addEventListener('abort', () => this.#onLost(key, hold.signal.reason), { once: true });
    return true;
  }

  /** Records the time, unless it or a later one is recorded. */
  async #mark(hold, path, time) {
    const found = await read(this.#client, path);
    if (found && Date.parse(found.fields.time) >= Date.parse(time)) return false;
    const body = format({ time, token: hold.token });
    if (found) await hold.set(path, body, { version: found.stat.version });
    else await hold.create(path, body, { parents: true });
    return true;
  }

  async onComplete(key) {
    const hold = this.#running.get(key);
    this.#running.delete(key);
    await hold?.release();
  }
}

const coordinator = (client, options) => new ClaveCoordinator(client, options);

module.exports = { coordinator, ClaveCoordinator };
