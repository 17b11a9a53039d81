#!/usr/bin/python3
"""Floods of a gate, beside holders of locks who renew over HTTP: bench/http --floods, and
test/cmd/gate_floods_test.py at a small size.

A gate with its server is started for each row. HOLDERS sessions hold a lock each and renew at a third
of their ttl, every other one on a connection that it makes anew each time; a flood of one kind
begins RATE requests a second, keeps its connections as long as the gate does, and answers to nobody.
The verdict of a row: no lock is lost, no renewal is answered later than a third of the ttl after it
was due, and the gate's memory is within the bound.
"""
import asyncio
import collections
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

KINDS = ("connections", "heads", "bodies", "sessions", "waits", "streams", "scrapes")
# Of a flood: a token of its own; none, where tokens are needed; none, where a loopback address will do.
SENDERS = ("token", "no token", "loopback")
HOLDER, FLOOD = "c1d0e8a2b6f94d7c8e5a3b1f0d2c4e6a", "0f9e8d7c6b5a49382716f5e4d3c2b1a0"
MIB = 1 << 20


def authorization(token):
    return f"Authorization: Bearer {token}\r\n" if token else ""


# ---- the gate -----------------------------------------------------------------------------------

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Gate:
    """`clave gate` before a server of its own."""

    def __init__(self, program, flags=(), tokens=True):
        self.dir, self.port, zk = tempfile.mkdtemp(prefix="floods."), free_port(), free_port()
        own = []
        if tokens:
            path = f"{self.dir}/tokens"
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as f:
                f.write(f"{HOLDER} lock name=holders\n{FLOOD} lock name=flood\n")
            own = ["--http-tokens", path]
        self.processes = []
        self.spawn([program, "serve", "--data", f"{self.dir}/data", "--listen", f"127.0.0.1:{zk}", "--max-connections", "0"])
        self.process = self.spawn([program, "gate", "--connect", f"127.0.0.1:{zk}", "--http", f"127.0.0.1:{self.port}", *own, *flags])

    def spawn(self, command):
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.processes.append(p)
        if not p.stdout.readline():
            self.stop()
            raise RuntimeError(f"{' '.join(command)} does not start")
        return p

    def memory(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def stop(self):
        for p in reversed(self.processes):
            p.terminate()
            p.wait()
            p.stdout.close()
        shutil.rmtree(self.dir, ignore_errors=True)


# ---- holders ------------------------------------------------------------------------------------

class Holder:
    def __init__(self, number, port, token, ttl_ms):
        self.number, self.port, self.ttl = number, port, ttl_ms / 1000
        self.head = authorization(token)
        self.stream = None
        self.late, self.refused, self.lost = [], 0, None

    def close(self):
        if self.stream:
            self.stream[1].close()
        self.stream = None

    async def ask(self, method, path, body=None, headers=""):
        if not self.stream:
            self.stream = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.stream
        data = json.dumps(body) if body is not None else ""
        kind = "Content-Type: application/json\r\n" if data else ""
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{self.head}{headers}{kind}"
                     f"Content-Length: {len(data)}\r\n\r\n{data}".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = head.partition("\r\ncontent-length:")[2].split("\r\n")[0]
        answer = await reader.readexactly(int(length or 0))
        if "\r\nconnection: close" in head:
            self.close()
        return int(head.split()[1]), json.loads(answer) if answer else {}

    async def take(self):
        status, s = await self.ask("POST", "/v1/sessions", {"ttl_ms": int(self.ttl * 1000)})
        assert status == 201, s
        self.secret = f"Clave-Session: {s['secret']}\r\n"
        self.path, self.ttl = f"/v1/sessions/{s['id']}/renew", s["ttl_ms"] / 1000
        status, c = await self.ask("POST", "/v1/claims", {"path": f"/floods/held-{self.number}"}, self.secret)
        assert status == 201, c

    async def renew_once(self, due):
        try:
            status, s = await asyncio.wait_for(self.ask("POST", self.path, None, self.secret), self.ttl)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
            self.close()
            return False
        if status == 200 and [c["state"] for c in s["claims"]] == ["held"]:
            self.late.append(time.monotonic() - due)
            return True
        if status in (429, 503):
            self.refused += 1
            return False
        self.lost = f"{status} {s}"
        return True

    async def hold(self, until):
        every = self.ttl / 3
        due = time.monotonic() + every * (self.number % 10) / 10
        while due < until and not self.lost:
            await asyncio.sleep(due - time.monotonic())
            if self.number % 2:
                self.close()
            while not await self.renew_once(due):
                await asyncio.sleep(0.02)
            due = max(due + every, time.monotonic())


async def hold_all(a):
    holders = [Holder(i, a["port"], a["token"], a["ttl_ms"]) for i in range(a["holders"])]
    for h in holders:
        await h.take()
    print("ready", flush=True)
    until = time.monotonic() + a["seconds"]
    await asyncio.gather(*(h.hold(until) for h in holders))
    late = sorted(x for h in holders for x in h.late)
    lost = [h.lost for h in holders if h.lost]
    print(json.dumps({"renewals": len(late), "p99_s": late[len(late) * 99 // 100] if late else None,
                      "longest_s": late[-1] if late else None, "third_s": holders[0].ttl / 3,
                      "refused": sum(h.refused for h in holders), "lost": len(lost),
                      "why": lost[:1]}), flush=True)


# ---- floods -------------------------------------------------------------------------------------

def request_of(kind, token):
    """What one request of the flood sends, and whether it reads the answer."""
    def head(method, path, n=0, more=""):
        return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{authorization(token)}{more}"
                f"Content-Type: application/json\r\nContent-Length: {n}\r\n\r\n").encode()
    contended = b'{"path": "/floods/contended"}'
    return {
        "connections": (b"", True),
        "heads": (head("GET", "/v1/locks")[:60], True),
        "bodies": (head("POST", "/v1/claims", 2 * MIB) + b" " * (2 * MIB - 1), True),
        "sessions": (head("POST", "/v1/sessions", 2) + b"{}", True),
        "waits": (head("POST", "/v1/hold", len(contended), "Prefer: wait=60\r\n") + contended, True),
        "streams": (head("GET", "/v1/events"), False),
        "scrapes": (head("GET", "/metrics"), False),
    }[kind]


class Flood:
    def __init__(self, a):
        self.a, self.statuses, self.open, self.begun = a, collections.Counter(), set(), 0
        self.request, self.reads = request_of(a["kind"], a["token"])

    async def one(self, number):
        address = f"127.0.{1 + number % self.a['addresses']}.1" if self.a["addresses"] > 1 else "127.0.0.1"
        writer, status = None, "no answer"
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.a["port"], local_addr=(address, 0), limit=4096)
            writer.write(self.request)
            line = await reader.readline()
            status = line.decode("latin-1").split()[1] if line else "closed"
            self.statuses[status] += 1
            while self.reads and await reader.read(4096):
                pass
            await asyncio.sleep(0 if self.reads else self.a["seconds"])
        except OSError:
            if status == "no answer":
                self.statuses["closed"] += 1
        finally:
            if writer:
                writer.transport.abort()

    async def run(self):
        begun, end = time.monotonic(), time.monotonic() + self.a["seconds"]
        while (now := time.monotonic()) < end:
            while self.begun < (now - begun) * self.a["rate"] and len(self.open) < self.a["most"]:
                task = asyncio.ensure_future(self.one(self.begun))
                self.open.add(task)
                task.add_done_callback(self.open.discard)
                self.begun += 1
            await asyncio.sleep(0.005)
        took = time.monotonic() - begun
        for task in list(self.open):
            task.cancel()
        await asyncio.gather(*self.open, return_exceptions=True)
        print(json.dumps({"per_s": self.begun / took, "begun": self.begun, "statuses": self.statuses}), flush=True)


# ---- a row --------------------------------------------------------------------------------------

def spawn(what, **arguments):
    return subprocess.Popen([sys.executable, __file__, what, json.dumps(arguments)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, text=True)


def peak_memory(gate, p):
    """Until the process has ended."""
    peak = gate.memory()
    while p.poll() is None:
        peak = max(peak, gate.memory())
        time.sleep(0.05)
    return peak


def run_row(program, kind, sender, addresses, o):
    """`o`: seconds, rate, holders, ttl_ms, connections, most."""
    gate = Gate(program, ["--http-max-connections", str(o["connections"]), "--http-max-sender-sessions", "10000"],
                sender != "loopback")
    with contextlib.ExitStack() as stack:
        stack.callback(gate.stop)
        holders = spawn("hold", port=gate.port, token=HOLDER if sender != "loopback" else None,
                        seconds=o["seconds"], holders=o["holders"], ttl_ms=o["ttl_ms"])
        stack.callback(holders.wait)
        if holders.stdout.readline() != "ready\n":
            raise RuntimeError("the holders have no locks")
        before = gate.memory()
        flood = spawn("flood", port=gate.port, kind=kind, token=FLOOD if sender == "token" else None,
                      addresses=addresses, seconds=o["seconds"], rate=o["rate"], most=o["most"])
        stack.callback(flood.wait)
        peak = peak_memory(gate, flood)
        row = {"kind": kind, "sender": sender, "addresses": addresses, "grown": peak - before}
        row.update(json.loads(flood.stdout.read()))
        row.update(json.loads(holders.stdout.read()))
        return row


def memory_bound(o):
    """What docs/reference/http.md, "Limits", states: bodies and answers, and so much a connection; of sessions with a claim 24 KB."""
    return 256 * MIB + o["connections"] * (17 + 24) * 1024


def faults_of(row, o):
    faults = []
    if row["lost"]:
        faults.append(f"{row['lost']} locks lost: {row['why']}")
    if not row["renewals"] or row["longest_s"] > row["third_s"]:
        faults.append(f"a renewal after {row['longest_s']} s, of {row['renewals']}")
    if row["grown"] > memory_bound(o):
        faults.append(f"{row['grown'] / MIB:.0f} MiB more, {memory_bound(o) / MIB:.0f} stated")
    return faults


def report(program, o, kinds=KINDS, senders=SENDERS, addresses=(1, 16)):
    """Prints the table; returns how many rows have faults."""
    print(f"{o['holders']} holders, ttl {o['ttl_ms']} ms; {o['seconds']} s a row; "
          f"--http-max-connections {o['connections']}; {os.cpu_count()} CPUs\n\n"
          "| flood | sender | addresses | begun/s | answered | renewals | p99, ms | longest, ms | refused | lost | memory, MiB | |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    bad = 0
    for kind in kinds:
        for sender in senders:
            for n in addresses:
                row = run_row(program, kind, sender, n, o)
                faults = faults_of(row, o)
                bad += bool(faults)
                told = ", ".join(f"{k}: {v}" for k, v in sorted(row["statuses"].items()))
                print(f"| {kind} | {sender} | {n} | {row['per_s']:.0f} | {told} | {row['renewals']} | "
                      f"{(row['p99_s'] or 0) * 1000:.0f} | {(row['longest_s'] or 0) * 1000:.0f} | {row['refused']} | "
                      f"{row['lost']} | {row['grown'] / MIB:.1f} | {'; '.join(faults) or 'ok'} |", flush=True)
    return bad


if __name__ == "__main__":
    ARGUMENTS = json.loads(sys.argv[2])
    asyncio.run(hold_all(ARGUMENTS) if sys.argv[1] == "hold" else Flood(ARGUMENTS).run())
