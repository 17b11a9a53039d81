"""A disk that is full, fails or has become read-only, at each call of a program in turn.

  FAILING_DISK=failing_disk.so diskfaults_test.py [--sample K] [--table] [--only CASES] CLAVE

The n-th call that touches the data directory fails, once or from then on, for each n, each scenario
and each of ENOSPC (with a short write before it, too), EIO and EROFS. A server that ends is started
again, as a supervisor does; while the fault lasts, once more; then the disk works again. Each time

* everything that was acknowledged is there, and `clave data check` finds nothing;
* a server that ends has said where, why and what to do, and has not turned idly before;
* the server serves again when the disk works: at most after a start.

The others are a local server (local_disk.py), and the clients that start it; audit logs (audit_disk.py);
and the programs that write a directory and end (tool_disk.py).

--sample tries every K-th case, --table prints what became of each call."""
import argparse
import collections
import copy
import errno
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cmd"))
import harness  # noqa: E402
from harness import PATIENCE, UNSAFE, environment, scratch, spawn  # noqa: E402
from audit_disk import AUDITS  # noqa: E402
from failed import Failed, require, require_told  # noqa: E402
from local_disk import LocalDisk  # noqa: E402
from tool_disk import TOOLS  # noqa: E402
from plan import Plan  # noqa: E402
from work import Work  # noqa: E402

SNAP_COUNT = "10"
LOG_HEADER = 16
BUSY_S = 5  # of processor time: whoever needs more turns idly


# ---- one server --------------------------------------------------------------------------------

class Server:
    """`clave serve` on one directory, started as often as it takes."""

    def __init__(self, clave, plan, root):
        self.clave, self.plan, self.data = clave, plan, os.path.join(root, "above", "data")
        self.socket = os.path.join(os.path.dirname(root), "socket")
        self.env = environment(**plan.environment(os.environ["FAILING_DISK"], root))
        self.process, self.told = None, ""

    def start(self):
        """Whether it serves; otherwise it has ended."""
        self.process = spawn([self.clave, "serve", "--data", self.data, "--listen",
                              f"unix:{self.socket}", "--snap-count", SNAP_COUNT],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, text=True, env=self.env)
        if "serving on" in self.process.stdout.readline():
            return True
        self.ended()
        return False

    def ended(self):
        """Waits for it: its exit code."""
        until = time.monotonic() + PATIENCE
        while (got := os.wait4(self.process.pid, os.WNOHANG))[0] == 0:
            require(time.monotonic() < until, "the server hangs")
            time.sleep(0.001)
        self.process.returncode = os.waitstatus_to_exitcode(got[1])
        require(got[2].ru_utime + got[2].ru_stime < BUSY_S, "the server turns idly")
        self.told = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode

    def signal(self, number):
        os.kill(self.process.pid, number)  # send_signal would wait for it, had it ended
        return self.ended()

    def check_told(self):
        """A server that ended by itself said why."""
        require(self.process.returncode > 0, f"it ended with {self.process.returncode}")
        require_told(self.told, os.path.dirname(os.path.dirname(self.data)), self.plan.number)


# ---- scenarios ---------------------------------------------------------------------------------

def version_2(root):
    return os.path.join(root, "above", "data", "version-2")


def newest_log(root):
    return max((f for f in os.listdir(version_2(root)) if f.startswith("log.")),
               key=lambda f: int(f[4:], 16))


def leave_torn(root):
    """A killed server leaves a torn batch, and files that have no name yet."""
    with open(os.path.join(version_2(root), newest_log(root)), "r+b") as f:
        log = f.read()
        f.seek(len(log.rstrip(b"\0")))
        f.write(log[LOG_HEADER:LOG_HEADER + 40]) # of the length that a whole record has
        f.truncate()
    for name in ("unfinished.snapshot", "unfinished.log"):
        with open(os.path.join(version_2(root), name), "wb") as f:
            f.write(b"x" * 100)


def leave_empty_log(root):
    """So does one that had just begun a log."""
    last = int(newest_log(root)[4:], 16)
    with open(os.path.join(version_2(root), f"log.{last + 1000:x}"), "wb"):
        pass


def leave_log_of_apache(root):
    """A log of ZooKeeper's does not show where its batches begin: all of it is written again."""
    with open(os.path.join(version_2(root), newest_log(root)), "r+b") as f:
        f.seek(LOG_HEADER - 8)
        f.write(b"\0" * 8)


def leave_restored(root):
    data = os.path.dirname(version_2(root))
    os.rename(data, data + "-before")
    r = harness.clave("data", "restore", data + "-before", data)
    require(r.code == 0, f"it cannot be restored: {r}")
    shutil.rmtree(data + "-before")


class Scenario:
    """A directory, and what is done there: the work of `before` first, without a fault."""

    def __init__(self, name, before, rounds, how=None, leave=None):
        self.name, self.before, self.rounds = name, before, rounds
        self.how, self.leave = how, leave
        self.clave, self.root, self.work = None, None, None

    def prepare(self, clave):
        self.clave, self.root, self.work = clave, scratch(self.name), Work(self.before)
        os.mkdir(self.root)
        if self.before == 0:
            return
        server = Server(clave, Plan(scratch("plan")), self.root)
        require(server.start() and self.work.go_on(server.socket), "it cannot be prepared")
        server.signal(self.how)
        if self.leave:
            self.leave(self.root)

    def lay_out(self, plan):
        """A server on a copy of the directory, and the work that is to be gone on with."""
        root, work = scratch("root"), copy.deepcopy(self.work)
        shutil.copytree(self.root, root)
        work.rounds += self.rounds
        return Server(self.clave, plan, root), work

    def run_case(self, number, how, n):
        """The call that failed and what became of it; None: there are not so many."""
        plan = Plan(scratch("plan"))
        server, work = self.lay_out(plan)
        plan.fail(n, number, lasts=how == "lasts", is_short=how == "short")
        outcome = until_done(server, work, plan)
        struck, call = plan.struck, plan.call
        plan.work()
        checked = harness.clave("data", "check", server.data)
        require(checked.code == 0, f"{UNSAFE}: clave data check: {checked}")
        require(server.start(), f"it does not start when the disk works: {server.told}")
        work.check(server.socket)
        server.signal(signal.SIGKILL)
        shutil.rmtree(os.path.dirname(server.socket), ignore_errors=True)
        return (re.sub(r"\.[0-9a-f]+$", ".ZXID", call), outcome) if struck else None

    def count_calls(self):
        plan = Plan(scratch("plan"))
        server, work = self.lay_out(plan)
        plan.fail(0, errno.EIO)
        require(until_done(server, work, plan) == "serves on", "it ends without a fault")
        return plan.calls


SUBJECTS = [Scenario("new", 0, 30), Scenario("torn", 12, 4, signal.SIGKILL, leave_torn),
            Scenario("empty-log", 12, 4, signal.SIGTERM, leave_empty_log),
            Scenario("log-of-apache", 12, 2, signal.SIGTERM, leave_log_of_apache),
            Scenario("restored", 12, 2, signal.SIGTERM, leave_restored),
            LocalDisk(), *AUDITS, *TOOLS]


# ---- one case ----------------------------------------------------------------------------------

def until_done(server, work, plan):
    """As a supervisor: what became of it."""
    outcome, ends = "serves on", 0
    while True:
        serves = server.start()
        done = serves and work.go_on(server.socket)
        if done and server.signal(signal.SIGTERM) == 0:
            return outcome
        if serves and not done:
            server.ended()
        server.check_told()
        ends += 1
        if outcome == "serves on":
            outcome = "ends" if serves else "does not start"
        require(plan.struck > 0 and ends <= 2, f"it ends without a fault: {server.told}")
        if ends == 2 or not plan.lasts:
            plan.work()


# ---- all of them -------------------------------------------------------------------------------

HOWS = [(errno.ENOSPC, "once"), (errno.ENOSPC, "lasts"), (errno.ENOSPC, "short"),
        (errno.EIO, "once"), (errno.EIO, "lasts"), (errno.EROFS, "once"), (errno.EROFS, "lasts")]


def table(seen):
    print("| | call | " + " | ".join(f"{errno.errorcode[n]}, {how}" for n, how in HOWS) + " |")
    print("|---|---|" + "---|" * len(HOWS))
    for group, call in sorted({(group, call) for group, call, _, _ in seen}):
        cells = [", ".join(sorted(seen.get((group, call, n, how), ()))) or "-" for n, how in HOWS]
        print(f"| {group} | {call} | " + " | ".join(cells) + " |")


def cases(clave, only):
    """Each subject with each fault at each call (where that is not reached, nothing fails): whose row
    it is in the table, its name, and what runs it."""
    for s in SUBJECTS:
        if only and only.split(":")[0] != s.name:
            continue
        s.prepare(clave)
        calls = s.count_calls()
        for number, how in HOWS:
            for n in range(1, calls + 1):
                group = "serve" if isinstance(s, Scenario) else s.name
                yield group, f"{s.name}:{errno.errorcode[number]}:{how}:{n}", number, how, (
                    functools.partial(s.run_case, number, how, n))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--sample", type=int, default=1, metavar="K")
    p.add_argument("--table", action="store_true")
    p.add_argument("--only", metavar="SUBJECT[:ERRNO[:HOW[:N]]]", help="as a failure names it")
    p.add_argument("clave")
    a = p.parse_args()
    harness.CLAVE = a.clave
    seen, tried, faults = collections.defaultdict(set), 0, []
    for i, (group, name, number, how, run) in enumerate(cases(a.clave, a.only)):
        if (a.only and not f"{name}:".startswith(f"{a.only}:")) or i % a.sample != 0:
            continue
        try:
            got = run()
        except (Failed, OSError, subprocess.TimeoutExpired) as e:
            faults.append(name)
            print(f"{name}: {str(e).rstrip() or repr(e)}", flush=True)
            continue
        if got:
            tried += 1
            seen[group, got[0], number, how].add(got[1])
    if a.table:
        table(seen)
    print(f"{tried + len(faults)} cases, {len(faults)} failed")
    sys.exit(1 if faults or tried == 0 else 0)


main()
