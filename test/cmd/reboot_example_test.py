"""examples/reboot: machines reboot in turn, and keep their slots until they are healthy again."""
import os
import subprocess
import unittest

from harness import CLAVE, PATIENCE, SOURCE, ClaveServer, clave, environment, scratch, spawn

SCRIPT = os.path.join(SOURCE, "examples/reboot/clave-reboot")


class Machine:
    """Its reboot is a line in a file, and what it needs are files of its own."""

    def __init__(self, server, name, **settings):
        self.dir = os.path.dirname(scratch("x"))
        self.server = server
        given = {"id": name, "slots": "/reboots/test", "wait": "10s", "required": self.at("required"),
                 "lock": self.at("lock"), "healthy": f"test -e {self.at('healthy')}",
                 "reboot": f"cp {self.at('required')} {self.at('rebooted')}"}
        given.update(settings)
        with open(self.at("config"), "w", encoding="ascii") as f:
            f.writelines(f"{key}='{value}'\n" for key, value in given.items())

    def at(self, name):
        return os.path.join(self.dir, name)

    def put(self, name):
        with open(self.at(name), "w", encoding="ascii"):
            pass

    def begin(self, verb):
        env = environment(CLAVE_REBOOT_CONFIG=self.at("config"), CLAVE_CONNECT=self.server.connect,
                          PATH=f"{os.path.dirname(CLAVE)}:{os.environ['PATH']}")
        return spawn([SCRIPT, verb], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                     stdin=subprocess.DEVNULL, text=True)

    def run(self, verb):
        p = self.begin(verb)
        out, err = p.communicate(timeout=PATIENCE)
        return p.returncode, out + err

    def reboots(self):
        """The reboot that it has asked for takes place."""
        os.remove(self.at("rebooted"))
        os.remove(self.at("required"))  # as /run is empty


class Reboot(unittest.TestCase):
    def setUp(self):
        self.server = ClaveServer().start()
        self.addCleanup(self.server.stop)
        self.assertEqual(clave("slot", "limit", "/reboots/test", "1", connect=self.server.connect).code, 0)

    def owners(self):
        return clave("slot", "list", "/reboots/test", connect=self.server.connect).out.split()

    def test_machines_take_turns(self):
        a, b = Machine(self.server, "a"), Machine(self.server, "b")
        for m in (a, b):
            self.assertEqual(m.run("ask")[0], 0)  # no reboot is required
            self.assertFalse(os.path.exists(m.at("rebooted")))
            m.put("required")
            m.put("healthy")
        self.assertEqual(self.owners(), [])
        self.assertEqual(a.run("ask")[0], 0)
        self.assertTrue(os.path.exists(a.at("rebooted")))
        waits = b.begin("ask")
        self.assertEqual(a.run("done")[0], 0)  # it has not been down yet
        self.assertEqual((self.owners(), os.path.exists(b.at("rebooted"))), (["a"], False))
        a.reboots()
        self.assertEqual(a.run("done")[0], 0)
        self.assertEqual(waits.wait(PATIENCE), 0)
        self.assertEqual((self.owners(), os.path.exists(b.at("rebooted"))), (["b"], True))
        b.reboots()
        for _ in range(2):  # also when it owns none
            self.assertEqual(b.run("done")[0], 0)
        self.assertEqual(self.owners(), [])

    def test_a_machine_that_is_not_healthy_keeps_its_slot(self):
        a, b = Machine(self.server, "a"), Machine(self.server, "b", wait="200ms")
        for m in (a, b):
            m.put("required")
        self.assertEqual(a.run("ask")[0], 0)
        a.reboots()
        code, said = a.run("done")
        self.assertEqual(code, 1)
        self.assertIn("not healthy", said)
        self.assertEqual(self.owners(), ["a"])
        self.assertEqual(b.run("ask")[0], 75)
        self.assertFalse(os.path.exists(b.at("rebooted")))
        a.put("required")
        self.assertEqual(a.run("ask")[0], 0)  # it may reboot again
        a.reboots()
        a.put("healthy")
        self.assertEqual(a.run("done")[0], 0)
        self.assertEqual(b.run("ask")[0], 0)

    def test_a_reboot_that_fails_gives_the_slot_back(self):
        a = Machine(self.server, "a", reboot="false")
        a.put("required")
        code, said = a.run("ask")
        self.assertEqual(code, 1)
        self.assertIn("failed", said)
        self.assertEqual(self.owners(), [])

    def test_without_servers_nothing_happens(self):
        a = Machine(self.server, "a", wait="300ms")
        a.server = type("Nowhere", (), {"connect": "127.0.0.1:1"})
        a.put("required")
        self.assertNotEqual(a.run("ask")[0], 0)
        self.assertFalse(os.path.exists(a.at("rebooted")))

    def test_usage(self):
        self.assertEqual(Machine(self.server, "a").run("never")[0], 64)


if __name__ == "__main__":
    unittest.main()
