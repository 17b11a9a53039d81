"""clave.testing, with pytest and without it."""
import os
import subprocess
import sys
import tempfile
import unittest

import clave
import clave.testing
from rig import CLAVE, PATIENCE, until

TESTS = '''
import clave
from clave.testing import clave_client, clave_server

def test_a_lock(clave_client, clave_server):
    with clave_client.lock("/x") as hold, clave.Client(clave_server.connect) as other:
        clave_client.create("/seen", "by this test alone")
        try:
            other.lock("/x").acquire(0)
        except clave.Busy:
            return
    assert False

def test_another(clave_client):
    assert clave_client.exists("/seen") is None
'''


class Testing(unittest.TestCase):
    def test_a_server(self):
        with clave.testing.Server(CLAVE) as server, clave.Client(server.connect, session_timeout=2) as c:
            c.create("/kept", "text")
            hold = c.lock("/held").acquire()
            server.kill()
            until(lambda: c.state == "SUSPENDED", "the loss of the connection")
            server.start()
            c.wait(PATIENCE)
            self.assertEqual(c.get("/kept").data, b"text")
            hold.check()
            server.pause()
            self.assertTrue(hold.lost.wait(PATIENCE))
            server.resume()
            folder = server._folder
            self.assertTrue(os.path.exists(folder))
        self.assertFalse(os.path.exists(folder))

    def test_a_pause_has_begun_when_it_returns(self):
        with clave.testing.Server(CLAVE) as server:
            threads = f"/proc/{server._process.pid}/task"
            for _ in range(50):
                server.pause()
                server.pause()  # changes nothing
                states = []
                for thread in os.listdir(threads):
                    with open(f"{threads}/{thread}/stat", encoding="ascii") as f:
                        states.append(f.read().rpartition(")")[2].split()[0])
                self.assertEqual(set(states), {"T"})
                server.resume()

    def test_fixtures(self):
        if subprocess.run([sys.executable, "-c", "import pytest"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("pytest is not installed")
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/test_it.py", "w", encoding="utf-8") as f:
                f.write(TESTS)
            done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", folder], text=True,
                                  capture_output=True, check=False, env={**os.environ, "CLAVE_BIN": CLAVE})
        self.assertIn("2 passed", done.stdout, done.stderr)

    def test_without_a_program(self):
        os_path, os.environ["PATH"] = os.environ["PATH"], ""
        self.addCleanup(os.environ.__setitem__, "PATH", os_path)
        if clave.testing.path() is None:
            with self.assertRaisesRegex(FileNotFoundError, "CLAVE_BIN"):
                clave.testing.Server()


if __name__ == "__main__":
    unittest.main()
