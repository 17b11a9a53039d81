"""A holder that is stopped for longer than its session, of every recipe, with real processes: the next
one holds meanwhile, with a greater token; and when the first wakes, it knows at once that it holds
nothing, its guarded write is not done, and it hears of the loss exactly once.

  stopped_test.py [KIND]..."""
import os
import signal
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cmd"))
from harness import UNSAFE, ClaveServer, clave, spawn  # noqa: E402

SESSION_MS = 6000  # all of them hold for the time that it takes to start twenty
# Who is stopped, who comes next, and how often the first hears of it: for each lock of several.
TABLE = [
    ("mutex", "mutex", 1),
    ("simple", "simple", 1),
    ("read", "write", 1),
    ("write", "read", 1),
    ("write", "write", 1),
    ("semaphore", "semaphore", 1),
    ("multilock", "multilock", 2),
    ("latch", "latch", 1),
    ("selector", "selector", 1),
    ("unfair", "unfair", 1),
]
REFUSED = ("ELOST", "ENOTHELD")  # a latch that has heard of it does not lead


class Holder:
    def __init__(self, kind, connect, path):
        self.what = f"{kind} at {path}"
        self.process = spawn([os.environ["CLAVE_STOPPED_HOLDER"], kind, connect, path,
                              str(SESSION_MS)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def hears(self, word):
        line = self.process.stdout.readline().split()
        if len(line) != 2 or line[0] != word:
            raise AssertionError(f"{self.what}: {line} instead of {word}")
        return line[1]

    def signal(self, which):
        self.process.send_signal(which)

    def dismiss(self):
        self.process.stdin.close()
        return self.process.wait(30)


class Stopped(unittest.TestCase):
    def test_whoever_was_stopped_does_no_harm(self):
        server = ClaveServer(["--tick", "500ms", "--max-connections", "0"]).start()
        rows = [row for row in TABLE if not sys.argv[1:] or row[0] in sys.argv[1:]]
        first, tokens, second = [], [], []
        for i, (kind, _, _) in enumerate(rows):
            path = f"/stopped-{i}"
            r = clave("create", f"{path}-data", "", connect=server.connect)
            self.assertEqual(r.code, 0, r)
            first.append(Holder(kind, server.connect, path))
        # All at once, so that the whole table takes one session.
        for holder in first:
            tokens.append(int(holder.hears("held")))
        for holder in first:
            holder.signal(signal.SIGSTOP)
            holder.signal(signal.SIGUSR1)  # which it hears of when it wakes, before all else
        for i, (_, kind, _) in enumerate(rows):
            second.append(Holder(kind, server.connect, f"/stopped-{i}"))
        for i, holder in enumerate(second):
            self.assertGreater(int(holder.hears("held")), tokens[i],
                               f"{UNSAFE}: no greater token: {holder.what}")
        for holder in first:
            holder.signal(signal.SIGCONT)
        for i, (kind, _, losses) in enumerate(rows):
            with self.subTest(stopped=kind, next=rows[i][1]):
                self.assertEqual(first[i].hears("woke"), "0", f"{UNSAFE}: two holders")
                wrote = first[i].hears("write")
                self.assertNotEqual(wrote, "OK", f"{UNSAFE}: a stale write was done")
                self.assertIn(wrote, REFUSED)
                self.assertEqual(int(first[i].hears("lost")), losses)
                self.assertEqual(first[i].hears("release"), "ELOST")
                self.assertEqual(first[i].dismiss(), 0)
                data = clave("get", f"/stopped-{i}-data", connect=server.connect)
                self.assertEqual((data.code, data.out.strip()), (0, ""), f"{UNSAFE}: the write was done")
        for holder in second:
            self.assertEqual(holder.dismiss(), 0, holder.what)
        server.stop()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
