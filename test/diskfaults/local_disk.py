"""The local server of a user, whose disk fails: what its clients, which start it, see of that."""
import errno
import os
import re
import shutil
import signal
import time

import harness
from failed import require
from harness import PATIENCE, UNSAFE, scratch
from plan import Plan

GIVES_UP = "10s"


class Local:
    def __init__(self, plan, number, how, n):
        self.plan, self.root = plan, scratch("root")
        os.mkdir(self.root)
        self.dir = os.path.join(self.root, "state", "clave")
        self.env = plan.environment(os.environ["FAILING_DISK"], self.root)
        self.env["CLAVE_LOCAL_DIR"] = self.dir
        self.number = number
        plan.fail(n, number, lasts=how == "lasts", is_short=how == "short")

    def run(self, *words):
        return harness.clave("--timeout", GIVES_UP, *words, env=self.env)

    def try_to(self, *words):
        """Whether it was done; if not, the message says where and why, or which log does."""
        r = self.run(*words)
        if r.code == 0:
            return True
        until = time.monotonic() + PATIENCE
        while missing := self.missing_in(told := r.err + self.logged(r.err)):
            require(time.monotonic() < until,
                    f"'{missing[0]}' is not in what {words[0]} said ({r.code}): {told}")
            time.sleep(0.005)  # a server writes why when its connections are closed
        return False

    def logged(self, told):
        """What the log has that the message names."""
        log = os.path.join(self.dir, "serve.log")
        if log not in told or not os.path.exists(log):
            return ""
        with open(log) as f:
            return f.read()

    def missing_in(self, told):
        """The log is on the same disk: while that fails, it cannot be written."""
        log_fails = self.plan.lasts and "serve.log" in told
        told = told.replace("i/o error", os.strerror(errno.EIO)).lower()  # libuv's word for it
        needed = [self.root] if log_fails else [self.root, os.strerror(self.number)]
        return [n for n in needed if n.lower() not in told]

    def servers(self):
        """Their process ids."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if f.read().split(b"\0")[1:4] == [b"serve", b"--local", self.dir.encode()]:
                        yield int(pid)
            except OSError:
                pass

    def end(self):
        until = time.monotonic() + PATIENCE
        while found := list(self.servers()):
            require(time.monotonic() < until, "the local server hangs")
            for pid in found:
                os.kill(pid, signal.SIGTERM)
            time.sleep(0.005)
        shutil.rmtree(os.path.dirname(self.root), ignore_errors=True)


class LocalDisk:
    name = "local"

    def prepare(self, _clave):
        pass

    def run_case(self, number, how, n):
        """The call that failed and what became of it; None: there are not so many."""
        local = Local(Plan(scratch("plan")), number, how, n)
        try:
            done = local.try_to("create", "/n", "data")
            # While it lasts, a lock is waited for without end.
            locked = how == "lasts" or local.try_to("lock", "/l", "true")
            struck, call = local.plan.struck, local.plan.call
            local.plan.work()
            r = local.run("lock", "/l", "true")
            require(r.code == 0, f"the lock cannot be had when the disk works: {r}")
            r = local.run("get", "/n")
            require(not done or r.out == "data", f"{UNSAFE}: /n is lost: {r}")
        finally:
            local.plan.work()
            local.end()
        if not struck:
            return None
        return re.sub(r"\.[0-9a-f]+$", ".ZXID", call), "is done" if done and locked else "fails"

    def count_calls(self):
        plan = Plan(scratch("plan"))
        local = Local(plan, errno.EIO, "once", 0)
        for words in (("create", "/n", "data"), ("lock", "/l", "true")):
            require(local.try_to(*words), "it fails without a fault")
        local.end()
        return plan.calls
