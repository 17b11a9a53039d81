"""A server that is killed again and again, and each of its znodes is linearizable, over all of it."""
import os
import re
import signal
import subprocess
import unittest

from harness import PATIENCE, ClaveServer, environment, spawn

KILLS = 8
CALLS = 150 * (KILLS + 2)


class Znodes(unittest.TestCase):
    def test_a_server_that_is_killed_is_linearizable(self):
        server = ClaveServer(["--snap-count", "200"]).start()
        clients = spawn([os.environ["CLAVE_ZNODES"], server.connect, str(CALLS)],
                        stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
                        env=environment())
        for _ in range(KILLS):
            self.assertIn("calls", clients.stdout.readline())
            server.stop(signal.SIGKILL)
            server.start()
            clients.stdin.write("\n")
            clients.stdin.flush()
        told = clients.communicate(timeout=4 * PATIENCE)[0]
        self.assertEqual(clients.returncode, 0, told)
        verdict = re.search(r"linearizable: (\d+) calls, \d+ writes of unknown outcome, 0 znodes", told)
        self.assertTrue(verdict, told)
        self.assertEqual(int(verdict[1]), CALLS)
        self.assertEqual(server.stop(), 0)


unittest.main()
