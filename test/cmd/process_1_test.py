"""clave as process 1 of a container: every orphan there becomes its child, and none stays a zombie;
and what would end another process by default does not end it."""
import os
import signal
import subprocess
import unittest

from harness import CLAVE, PATIENCE, Served, environment, free_port, scratch, spawn
from lock_rig import TICK, children, comm, stat, until

INSIDE = ["unshare", "-pf", "--mount-proc", "--kill-child"]


def can_be_process_1():
    return subprocess.run(INSIDE + ["true"], stderr=subprocess.DEVNULL).returncode == 0


def caught(pid):
    """SIGTERM comes to something in the program: it has begun."""
    with open(f"/proc/{pid}/status") as f:
        mask = next(line.split()[1] for line in f if line.startswith("SigCgt:"))
    return comm(pid) == "clave" and int(mask, 16) >> (signal.SIGTERM - 1) & 1


@unittest.skipUnless(can_be_process_1(), "no namespace of processes can be made here")
class Process1(Served):
    flags = TICK

    def starts(self, *words):
        """Runs clave as process 1 until it says something; returns its number outside."""
        p = spawn(INSIDE + [CLAVE, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                  env=environment(CLAVE_CONNECT=self.server.connect))
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.assertNotEqual(p.stdout.readline(), b"")
        return children(p.pid)[0]

    def orphans(self, pid):
        """Another program of the container, such as a health check, leaves children behind."""
        script = "for i in 1 2 3; do sleep 1000 & done"
        subprocess.run(["nsenter", "-t", str(pid), "-p", "sh", "-c", script], check=True,
                       timeout=PATIENCE, stdin=subprocess.DEVNULL)
        return until(lambda: [child for child in children(pid) if comm(child) == "sleep"])

    def check(self, *words):
        pid = self.starts(*words)
        for orphan in self.orphans(pid):
            os.kill(orphan, signal.SIGKILL)
            until(lambda: stat(orphan) is None)

    def test_serve(self):
        self.check("serve", "--data", scratch("data"), "--listen", f"127.0.0.1:{free_port()}")

    def test_gate(self):
        self.check("gate", "--http", f"127.0.0.1:{free_port()}")

    def test_lock(self):
        self.check("lock", "/lock", "--", "sh", "-c", "echo; exec tail -f /dev/null")

    def ends(self, process, pid, sig=signal.SIGTERM):
        os.kill(pid, sig)
        self.assertEqual(process.wait(PATIENCE), 128 + sig)

    def test_it_is_ended_while_it_connects(self):
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            for verb in (["ls", "--timeout", "1d"], ["watch"], ["lock"]):
                words = [*verb, "-c", f"127.0.0.1:{free_port()}", "/a"] + ["true"] * (verb == ["lock"])
                p = spawn(INSIDE + [CLAVE, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, env=environment())
                self.addCleanup(p.kill)
                until(lambda: children(p.pid) and caught(children(p.pid)[0]))
                self.ends(p, children(p.pid)[0], sig)

    def test_it_is_ended_between_two_terms(self):
        out = scratch("out")
        p = spawn(INSIDE + [CLAVE, "elect", "--forever", "/terms", "--", "sh", "-c", f"echo >> {out}"],
                  stdin=subprocess.DEVNULL, env=environment(CLAVE_CONNECT=self.server.connect))
        self.addCleanup(p.kill)
        until(lambda: os.path.exists(out))
        pid = children(p.pid)[0]
        until(lambda: not children(pid))
        self.ends(p, pid)

    def test_elect(self):
        self.check("elect", "--on-elected", "true", "/elect", "--", "sh", "-c",
                   "echo; exec tail -f /dev/null")


if __name__ == "__main__":
    unittest.main()
