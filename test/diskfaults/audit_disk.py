"""The audit log of `clave serve` and that of `clave gate`, on a disk of its own that fails: nobody waits
for it, lines that are lost are counted, and it goes on when the disk works. It is opened again by
SIGHUP, as logrotate asks for it."""
import errno
import glob
import os
import re
import shutil
import signal
import subprocess
import time

import harness
from failed import require, require_told
from gate_rig import UnixConnection, ask
from harness import PATIENCE, environment, scratch, spawn
from plan import Plan
from zk import Client

EXIT_IO = 74
BEFORE, AFTER = range(0, 3), range(3, 6)  # requests, before and after it is opened again
LAST = 6  # when the disk works


class Process:
    """With an audit log in a directory whose calls fail; its other files are elsewhere."""

    def __init__(self, command, log, plan, root):
        self.path, self.process = os.path.join(root, "audit.log"), None
        self.err, self.renamed, self.log = scratch("err"), 0, log
        self.command = command + ["--log-level", "info", self.log, self.path]
        self.env = environment(**plan.environment(os.environ["FAILING_DISK"], root))

    def start(self):
        """Whether it serves; otherwise it has ended."""
        with open(self.err, "a", encoding="utf-8") as err:
            self.process = spawn(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=err, text=True, env=self.env)
        ready = self.process.stdout.readline()
        if not ready:
            self.end()
        return ready != ""

    def end(self):
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code

    def said(self):
        with open(self.err, encoding="utf-8") as f:
            return f.read()

    def reopened(self):
        """How often it has been opened again, or could not be."""
        return len(re.findall(r"the audit log \S+ (?:is opened )?again", self.said()))

    def rotate(self):
        """As logrotate; returns when that is done."""
        times = self.reopened()
        self.renamed += 1
        if os.path.exists(self.path):
            os.rename(self.path, f"{self.path}.{self.renamed}")
        os.kill(self.process.pid, signal.SIGHUP)
        until = time.monotonic() + PATIENCE
        while self.reopened() == times:
            require(time.monotonic() < until, "the audit log is not opened again")
            time.sleep(0.001)

    def lines(self):
        """Those of all its files together, and those of the newest."""
        texts = {}
        for name in glob.glob(self.path + "*"):
            with open(name, encoding="utf-8") as f:
                texts[name] = f.read().splitlines()
        return sum(texts.values(), []), texts.get(self.path, [])


class Audit:
    def __init__(self, name, is_gate):
        self.name, self.is_gate = name, is_gate
        self.clave, self.server, self.requests = None, None, 0

    def prepare(self, clave):
        self.clave = clave
        if self.is_gate:
            self.server = harness.ClaveServer(["--max-connections", "0"]).start()

    def begin(self, plan, root):
        os.mkdir(root)
        self.socket = os.path.join(os.path.dirname(root), "socket")
        address = f"unix:{self.socket}"
        if self.is_gate:
            return Process([self.clave, "gate", "--connect", self.server.connect, "--http", address],
                           "--http-audit", plan, root)
        return Process([self.clave, "serve", "--data", scratch("data"), "--listen", address], "--audit",
                       plan, root)

    def started(self, process):
        """Whether it answers; otherwise it has ended."""
        if not process.start():
            return False
        until = time.monotonic() + PATIENCE
        while self.is_gate and self.ask("GET", "/readyz") != 200:
            require(time.monotonic() < until, "the gate does not reach its server")
            time.sleep(0.001)
        return True

    def ask(self, *words, **headers):
        c = UnixConnection(self.socket)
        status = ask(c, *words, **headers)[0]
        c.close()
        return status

    def request(self, name):
        """A change, which is made whatever the audit log's disk does."""
        if self.is_gate:
            status = self.ask("POST", f"/v1/znodes/{name}", b"x", Content_Type="application/octet-stream")
            require(status == 201, f"the request is refused: {status}")
            return
        c = Client(self.socket, PATIENCE)
        c.send_create(f"/{name}", "x")
        require(c.answer()[0] == 0, "the request is refused")
        c.close()

    def work(self, process, plan):
        """The first call that failed, what became of it, and the names of the requests."""
        outcome = "goes on"
        if not self.started(process):
            require(process.process.returncode == EXIT_IO and plan.struck > 0, "it ends without a fault")
            require_told(process.said(), process.path, plan.number)
            plan.work()
            require(self.started(process), f"it does not start when the disk works: {process.said()}")
            outcome = "does not start"
        self.requests += 1
        names = [f"r{self.requests}-{i}" for i in range(LAST + 1)]
        for i in BEFORE:
            self.request(names[i])
        process.rotate()
        for i in AFTER:
            self.request(names[i])
        # Its lines are written by a thread: what fails there has to have failed, or to have been done.
        process.rotate()
        struck = plan.struck > 0
        plan.work()
        process.rotate()
        self.request(names[LAST])
        os.kill(process.process.pid, signal.SIGTERM)
        require(process.end() == 0, f"it fails at its end: {process.said()}")
        return outcome, names, struck

    def check_lines(self, process, names, number):
        """Whether none is lost; those that are have been counted."""
        every, newest = process.lines()
        form = re.compile(r"^\S+ \S+ INFO audit\.Slf4jAuditLogger: .*\t(?:znode=/|target=/v1/znodes/)(\S+)\t"
                          r".*result=success$")
        found = [m[1] for m in map(form.match, every) if m]
        missing = [n for n in names if n not in found]
        told = re.findall(r"the audit log \S+ has lost (\d+) lines?: (.*)", process.said())
        require(len(found) == len(set(found)), f"a line is there twice: {every}")
        require(len(missing) <= sum(int(n) for n, _ in told), f"{missing} is lost, and it said: {told}")
        require(all(os.strerror(number) in why for _, why in told), f"it said: {told}")
        require(any(names[LAST] in line for line in newest), f"it does not go on: {every}")
        return not told

    def run_case(self, number, how, n):
        """The call that failed and what became of it; None: there are not so many."""
        plan, root = Plan(scratch("plan")), scratch("root")
        process = self.begin(plan, root)
        plan.fail(n, number, lasts=how == "lasts", is_short=how == "short")
        outcome, names, struck = self.work(process, plan)
        if not self.check_lines(process, names, number):
            outcome = "loses lines"
        elif "cannot open the audit log" in process.said() and outcome == "goes on":
            require_told(process.said(), process.path, number, advice=False)
            outcome = "keeps the old file"
        shutil.rmtree(os.path.dirname(root), ignore_errors=True)
        return (plan.call, outcome) if struck else None

    def count_calls(self):
        plan, root = Plan(scratch("plan")), scratch("root")
        plan.fail(0, errno.EIO)
        process = self.begin(plan, root)
        outcome, names, _ = self.work(process, plan)
        require(outcome == "goes on" and self.check_lines(process, names, 0), "it fails without a fault")
        return plan.calls


AUDITS = [Audit("audit", False), Audit("http-audit", True)]
