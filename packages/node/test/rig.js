'use strict';
// rig.js - a server with HTTP for the tests: CLAVE names the program.
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const { connect } = require('..');

const CLAVE = process.env.CLAVE ?? 'clave';
const TOKEN = 'a-token-for-the-tests-of-the-package';

const freePort = () =>
  new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** Resolves when the program has printed its address. */
function start(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(CLAVE, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    child.stdout.once('data', () => resolve(child));
    child.once('exit', (code) => reject(new Error(`${CLAVE} ${args.join(' ')} ended with ${code}`)));
    child.once('error', reject);
  });
}

function stop(child, signal = 'SIGTERM') {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once('exit', () => resolve());
    child.kill(signal);
  });
}

/** `clave serve` with HTTP, and `gates` gates in front of it. */
class Rig {
  #clients = [];

  /** A client that is closed at the end. */
  client(urls = this.url, options = {}) {
    const client = connect(urls, { token: TOKEN, ...options });
    this.#clients.push(client);
    return client;
  }

  async begin(gates = 0) {
    this.data = fs.mkdtempSync(path.join(os.tmpdir(), 'clave-node-'));
    [this.zk, this.port] = [await freePort(), await freePort()];
    this.connect = `127.0.0.1:${this.zk}`;
    this.url = `http://127.0.0.1:${this.port}`;
    this.tokens = path.join(this.data, 'tokens');
    fs.writeFileSync(this.tokens, `${TOKEN} admin\n`, { mode: 0o600 });
    await this.serve();
    this.gates = [];
    for (let i = 0; i < gates; i++) {
      const gate = { port: await freePort() };
      gate.url = `http://127.0.0.1:${gate.port}`;
      gate.start = async (hasKey = true) => {
        const key = hasKey ? ['--http-key', `${this.data}/key`] : [];
        gate.process = await start(['gate', '--connect', this.connect, '--http', `127.0.0.1:${gate.port}`, '--http-tokens', this.tokens, ...key]);
      };
      if (i === 0) fs.writeFileSync(`${this.data}/key`, require('node:crypto').randomBytes(32).toString('hex'), { mode: 0o600 });
      await gate.start();
      this.gates.push(gate);
    }
    return this;
  }

  async serve() {
    this.server = await start(['serve', '--data', `${this.data}/data`, '--listen', this.connect, '--http', `127.0.0.1:${this.port}`, '--http-tokens', this.tokens]);
  }

  async end() {
    await Promise.allSettled(this.#clients.map((client) => client.close()));
    for (const gate of this.gates) await stop(gate.process);
    await stop(this.server);
    fs.rmSync(this.data, { recursive: true, force: true });
  }
}

module.exports = { Rig, CLAVE, TOKEN, start, stop, freePort };
