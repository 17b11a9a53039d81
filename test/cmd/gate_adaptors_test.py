"""examples/http: each adaptor runs a command under a lock of a gate, and stops it in time when the gate is silent."""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from gate_rig import Gate
from gate_tls_rig import CA, OTHER, TlsGate
from harness import PATIENCE, SOURCE, ClaveServer, environment, scratch, spawn

ADAPTORS = ("lock.sh", "lock.py", "lock.mjs")
TTL_MS = 4000


class Adaptors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ClaveServer(["--max-connections", "0"]).start()
        cls.gate = Gate(cls.server.connect).start()

    @classmethod
    def tearDownClass(cls):
        cls.gate.process.send_signal(signal.SIGCONT)
        cls.gate.stop()
        cls.server.stop()

    def start(self, adaptor, path, script, gate=None, **more):
        if adaptor == "lock.mjs" and not shutil.which("node"):
            self.skipTest("node is not installed")
        env = environment(CLAVE_GATE=f"http://127.0.0.1:{(gate or self.gate).port}", CLAVE_TTL_MS=str(TTL_MS))
        env.update(more)
        return spawn([os.path.join(SOURCE, "examples", "http", adaptor), path, "sh", "-c", script],
                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)

    def test_a_command_under_a_lock(self):
        """Its exit code, a token that grows, and the lock is free at once."""
        newest = 0
        for adaptor in ADAPTORS:
            with self.subTest(adaptor):
                p = self.start(adaptor, "/one", "echo $CLAVE_TOKEN; exit 3")
                out, err = p.communicate(timeout=PATIENCE)
                self.assertEqual((p.returncode, err), (3, ""))
                self.assertGreater(int(out), newest)
                newest = int(out)

    def test_too_many_wait(self):
        """A poll that is refused for that is made again, and the place is kept."""
        gate = Gate(self.server.connect, "--http-max-waiting", "5").start()
        streams = [gate.dial() for _ in range(4)]  # as many as one sender may have
        for s in streams:
            s.sendall(b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            s.recv(1)
        over = scratch("over")
        held = self.start("lock.py", "/full", f"echo; until test -e {over}; do sleep 0.1; done")
        held.stdout.readline()  # it runs
        ran = [(a, self.start(a, "/full", "echo ran", gate)) for a in ADAPTORS]
        until = time.monotonic() + PATIENCE
        while not re.search(rb'refused_total{reason="waiting"} ([6-9]|\d\d)', gate.call("GET", "/metrics")[2]):
            self.assertLess(time.monotonic(), until, "their polls are refused")
            time.sleep(0.05)
        with open(over, "w", encoding="ascii"):
            pass
        for s in streams:
            s.close()
        for adaptor, p in ran:
            with self.subTest(adaptor):
                out, err = p.communicate(timeout=PATIENCE)
                self.assertEqual((p.returncode, out, err), (0, "ran\n", ""))
        held.communicate(timeout=PATIENCE)
        gate.stop()

    def test_who_is_not_let_in(self):
        tokens = scratch("tokens")
        with open(tokens, "w", encoding="utf-8") as f:
            f.write("reader-0123456789 read\n")
        os.chmod(tokens, 0o600)
        gate = Gate(self.server.connect, "--http-tokens", tokens).start()
        for adaptor in ADAPTORS:
            with self.subTest(adaptor):
                p = self.start(adaptor, "/no", "echo ran", gate, CLAVE_GATE_TOKEN="reader-0123456789")
                out, err = p.communicate(timeout=PATIENCE)
                self.assertEqual((p.returncode, out), (75, ""))
                self.assertIn(adaptor, err)
        gate.stop()

    def test_over_tls(self):
        """With the certificate of the gate's authority, and not with another's."""
        gate = TlsGate(self.server.connect).start()
        at = f"https://localhost:{gate.port}"
        for adaptor in ADAPTORS:
            with self.subTest(adaptor):
                p = self.start(adaptor, "/tls", "echo ran; exit 3", CLAVE_GATE=at, CLAVE_GATE_CA=CA.cert)
                self.assertEqual((p.communicate(timeout=PATIENCE), p.returncode), (("ran\n", ""), 3))
                p = self.start(adaptor, "/tls", "echo ran", CLAVE_GATE=at, CLAVE_GATE_CA=OTHER.cert)
                out, err = p.communicate(timeout=PATIENCE)
                self.assertEqual((p.returncode, out), (75, ""), err)
                self.assertIn(adaptor, err)
        self.assertEqual(gate.stop(), 0)

    def test_it_stops_before_the_deadline(self):
        """The gate is stopped: nobody renews. The commands end before their sessions' time is over."""
        script = "echo; trap 'date +%s.%N >$ENDED; kill $!; exit' TERM; sleep 60 & wait"
        ended = {a: scratch("ended") for a in ADAPTORS}
        ran = [(a, self.start(a, f"/stop/{a}", script, ENDED=ended[a])) for a in ADAPTORS]
        for _, p in ran:
            p.stdout.readline()  # it runs
        self.gate.process.send_signal(signal.SIGSTOP)
        stopped = time.time()
        for adaptor, p in ran:
            with self.subTest(adaptor):
                self.assertEqual(p.wait(PATIENCE), 75)
                with open(ended[adaptor], encoding="ascii") as f:
                    self.assertLess(float(f.read()) - stopped, TTL_MS / 1000)
        self.gate.process.send_signal(signal.SIGCONT)
        for _, p in ran:
            p.communicate()


if __name__ == "__main__":
    unittest.main()
