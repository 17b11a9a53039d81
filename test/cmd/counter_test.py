"""`clave counter`: a number that many change at once, while the server is killed."""
import json
import signal
import subprocess
import unittest

from harness import CLAVE, ClaveServer, clave, environment, spawn

CONTENDERS, EACH = 20, 5


class Counter(unittest.TestCase):
    def setUp(self):
        self.server = ClaveServer().start()
        self.addCleanup(lambda: self.server.stop())

    def verb(self, *words, code=0):
        r = clave("counter", *words, connect=self.server.connect)
        self.assertEqual(r.code, code, (words, r.err))
        return r

    def test_it_counts(self):
        self.assertEqual(self.verb("/c/n").out, "0\n")
        self.assertEqual([self.verb("/c/n", step).out for step in ("+1", "+41", "-2")], ["1\n", "42\n", "40\n"])
        told = json.loads(self.verb("--json", "/c/n", "-50").out)
        self.assertEqual(told, {"path": "/c/n", "before": 40, "after": -10})
        self.assertEqual(self.verb("--set", "7", "/c/n").out, "7\n")
        self.assertIn("it is not 6", self.verb("--set", "8", "--if", "6", "/c/n", code=66).err)
        self.assertEqual(self.verb("--set", "8", "--if", "7", "/c/n").out, "8\n")
        self.verb("--set", "1", "--if", "0", "/c/none", code=66)
        self.assertEqual(clave("ls", "/c/n-markers", connect=self.server.connect).out, "")

    def test_wrong_words(self):
        self.assertIn("say +1000 to add, or --set 1000", self.verb("/c/n", "1000", code=64).err)
        self.assertIn("flags come before PATH", self.verb("/c/n", "--set", "4", code=64).err)
        self.assertIn("flags come before PATH", self.verb("/c/n", "--json", code=64).err)
        for words in ("/c/n", "one"), ("/c/n", "+"), ("/c/n", "9" * 20), ("--set", "x", "/c/n"), ("--if", "1", "/c/n"), \
                ("--set", "1", "/c/n", "+1"):
            self.verb(*words, code=64)
        clave("create", "-p", "/c/text", "four", connect=self.server.connect)
        self.assertIn("/c/text has 4 bytes of data, and a counter has 8", self.verb("/c/text", code=64).err)
        self.verb("--set", 2**63 - 1, "/c/full")
        self.assertIn(f"/c/full is {2**63 - 1}, and the sum has more than 64 bits", self.verb("/c/full", "+1", code=64).err)
        self.assertIn("--if 'x': not a number from -9223372036854775808", self.verb("--if", "x", "--set", "1", "/c/n", code=64).err)

    def test_twenty_contenders_while_the_server_is_killed(self):
        script = f"for i in $(seq {EACH}); do '{CLAVE}' counter /c/n +1 || echo failed; done"
        env = environment(CLAVE_CONNECT=self.server.connect)
        running = [spawn(["sh", "-c", script], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                   for _ in range(CONTENDERS)]
        for _ in range(3):
            running[0].stdout.readline()
            self.server.stop(signal.SIGKILL)
            self.server.start()
        told = [line for p in running for line in p.communicate(timeout=120)[0].split()]
        numbers = [int(line) for line in told if line != "failed"]
        self.assertEqual(len(set(numbers)), len(numbers), "no number twice")
        value, unknown = int(self.verb("/c/n").out), told.count("failed")
        self.assertGreater(len(numbers), 0)
        self.assertLessEqual(value, CONTENDERS * EACH)
        self.assertGreaterEqual(value, CONTENDERS * EACH - unknown - 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
