"""Verbs that read, over trees that strangers have left (hostile_verbs.c): on a server with a gate,
before and after a restart, and from its files. CLAVE_TREES=N plays more of them; CLAVE_THIN=K asks about K times
fewer paths of each, so that many more fit into the same time."""
import os
import subprocess
import unittest

from harness import ClaveServer, clave, environment, free_port, spawn

TREES = int(os.environ.get("CLAVE_TREES", "40"))
THIN = int(os.environ.get("CLAVE_THIN", "1"))
SECONDS = 240 + TREES


class HostileVerbs(unittest.TestCase):
    def setUp(self):
        self.http = f"127.0.0.1:{free_port()}"
        self.server = ClaveServer(["--http", self.http]).start()

    def play(self, *seeds):
        env = environment(CLAVE_CONNECT=self.server.connect, CLAVE_HTTP=f"http://{self.http}",
                          **{k: v for k, v in os.environ.items() if "SAN_OPTIONS" in k})
        p = spawn([os.environ["CLAVE_HOSTILE_VERBS"], *map(str, seeds)], env=env, text=True, errors="replace",
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = p.communicate(timeout=SECONDS)
        self.assertEqual(p.returncode, 0, err[-4000:])
        self.assertRegex(out, r"^\d+ trees, \d+ verbs, ")
        print(out.strip())

    def test_every_verb_that_reads_copes_with_every_tree(self):
        self.play(TREES, 1, THIN)
        for verb in ("check", "dump", "digest"):
            r = clave("data", verb, self.server.data, timeout=SECONDS)
            self.assertEqual(r.code, 0, r)
        self.assertEqual(self.server.stop(), 0)
        self.server.start()
        r = clave("history", "--http", f"http://{self.http}", "--json", "-n", 1000)
        self.assertEqual(r.code, 0, r)
        self.play(1, TREES + 1)
        self.assertEqual(self.server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
