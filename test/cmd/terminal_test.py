"""What a person at a terminal has: completion, help by topic, errors as JSON, headers, --watch, flags of flock(1)."""
import json
import os
import pty
import re
import shutil
import socket
import subprocess
import time
import unittest

from gate_rig import is_sanitized
from harness import CLAVE, PATIENCE, SOURCE, clave, environment, free_port, server, spawn

COMPLETION = os.path.join(SOURCE, "contrib", "completion")


class OnServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server()
        cls.addClassCleanup(cls.server.stop)
        for path in "/jobs", "/jobs/nightly", "/jobs/hourly", "/other", "/col:on", "/col:on/one":
            assert clave("create", path, "x", connect=cls.server.connect).code == 0


class Completion(OnServer):
    def offers(self, *words, connect=None):
        r = clave("completion", "--", *words, connect=connect or self.server.connect)
        self.assertEqual((r.code, r.err), (0, ""), r)
        return r.out.split()

    def test_verbs_and_flags_are_those_of_the_tables(self):
        self.assertEqual(self.offers("loc"), ["lock", "locks"])
        verbs = clave("help").out.split("\nVerbs:\n")[1].split("\n\n")[0]
        self.assertEqual(self.offers(""), [line.split()[0] for line in verbs.splitlines()])
        self.assertEqual(self.offers("lock", "--wai"), ["--wait"])
        self.assertIn("--json", self.offers("get", "--"))
        self.assertNotIn("--connect", self.offers("data", "--"))
        self.assertEqual(self.offers("help", "sema"), ["semaphore"])

    @unittest.skipIf(is_sanitized(), "a sanitizer's start alone may take 300 ms")
    def test_paths_are_the_servers(self):
        self.assertEqual(sorted(self.offers("ls", "/jobs/")), ["/jobs/hourly", "/jobs/nightly"])
        self.assertEqual(self.offers("lock", "-n", "/jobs/n"), ["/jobs/nightly"])
        self.assertIn("/other", self.offers("get", ""))
        self.assertEqual(self.offers("get", "/none/"), [])

    def test_nothing_for_values_and_commands(self):
        self.assertEqual(self.offers("lock", "--wait", "1"), [])
        self.assertEqual(self.offers("lock", "/jobs", "--", "/"), [])
        self.assertEqual(self.offers("lock", "/jobs", "/"), [])
        self.assertEqual(self.offers("lock", "/jobs", "ls", "/"), [])
        self.assertEqual(self.offers("--auth", "loc"), [])
        self.assertEqual(self.offers("nothing", "loc"), [])

    def test_the_value_of_a_flag_is_no_verb(self):
        self.assertEqual(self.offers("--auth", "lock", "ge"), ["get", "getacl"])
        self.assertEqual(self.offers("--auth=lock", "-v", "ge"), ["get", "getacl"])
        self.assertIn("--stat", self.offers("--timeout", "lock", "get", "--tls-name", "watch", "--"))
        self.assertIn("--tls-ca", self.offers("--"))

    @unittest.skipIf(is_sanitized(), "as above")
    def test_the_servers_are_those_of_the_flag(self):
        for words in (["-c", "{}", "get"], ["get", "-c", "{}"], ["--connect={}", "get"], ["get", "--connect={}"],
                      ["--connect", "{}", "--auth", "lock", "get", "-v"]):
            with self.subTest(words):
                self.assertEqual(self.offers(*(w.format(self.server.connect) for w in words), "/jobs/n", connect="127.0.0.1:1"),
                                 ["/jobs/nightly"])

    def test_a_server_that_does_not_answer_costs_300_ms(self):
        took = []
        for _ in range(3):  # of which one finds the machine idle enough
            with socket.create_server(("127.0.0.1", 0)) as silent:
                p = spawn([CLAVE, "completion", "--", "ls", "/"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=environment(CLAVE_CONNECT=f"127.0.0.1:{silent.getsockname()[1]}"))
                connection, _ = silent.accept()
                begun = time.monotonic()
                with connection:
                    while connection.recv(4096):
                        pass
                    took.append(time.monotonic() - begun)
                self.assertEqual(p.communicate(timeout=PATIENCE)[0], b"")
                self.assertEqual(p.returncode, 0)
        self.assertLess(min(took), 0.6)

    def test_no_local_server_is_started(self):
        r = clave("completion", "--", "ls", "/", connect=None)
        self.assertEqual((r.code, r.out, r.err), (0, "", ""), r)

    def shell(self, *words, **more):
        r = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False,
                           env=environment(CLAVE_CONNECT=self.server.connect,
                                           PATH=f"{os.path.dirname(CLAVE)}:{os.environ['PATH']}", **more))
        self.assertEqual(r.returncode, 0, r)
        return r.stdout.split()

    def in_bash(self, line):
        """What the program is given when the keys of LINE are typed in an interactive bash."""
        main, side = pty.openpty()
        p = spawn(["bash", "--norc", "--noprofile", "-i"], stdin=side, stdout=side, stderr=side, start_new_session=True,
                  env=environment(CLAVE_CONNECT="127.0.0.1:1", PS1="", TERM="dumb", INPUTRC="/dev/null",
                                  PATH=f"{os.path.dirname(CLAVE)}:{os.environ['PATH']}"))
        os.close(side)
        # In the line as run, the program is one that prints its words.
        os.write(main, f"source {COMPLETION}/clave.bash; set -o functrace; trap '[[ $BASH_COMMAND != clave\\ * ]] || "
                       f"{{ printf \"<%s>\" \"$BASH_COMMAND\"; exit; }}' DEBUG\n{line}\n".encode())
        said = b""
        try:
            while piece := os.read(main, 4096):
                said += piece
        except OSError:
            pass  # bash has ended
        os.close(main)
        p.wait(PATIENCE)
        return said.decode().rsplit("<", 1)[-1].split(">")[0]

    @unittest.skipIf(is_sanitized(), "as above")
    def test_bash(self):
        at = self.server.connect
        for typed, run in ((f"clave -c {at} ls /jobs/n\t", f"clave -c {at} ls /jobs/nightly"),
                           (f"clave --connect={at} get /jobs/n\t", f"clave --connect={at} get /jobs/nightly"),
                           (f"clave -c {at} get /col:on/o\t", f"clave -c {at} get /col:on/one"),
                           ("clave loc\tX", "clave lockX"), ("clave get --st\t", "clave get --stat")):
            with self.subTest(typed):
                self.assertEqual(self.in_bash(typed), run)

    @unittest.skipIf(is_sanitized(), "as above")
    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        script = f"source {COMPLETION}/clave.fish; complete -C 'clave ls /jobs/n'"
        self.assertEqual(self.shell("fish", "--no-config", "-c", script), ["/jobs/nightly"])

    @unittest.skipIf(is_sanitized(), "as above")
    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        script = f"""compadd() {{ print -l -- ${{(P)argv[-1]}} }}; words=(clave ls /jobs/n) CURRENT=3
            source {COMPLETION}/_clave"""
        self.assertEqual(self.shell("zsh", "-fc", script), ["/jobs/nightly"])


class Help(unittest.TestCase):
    def test_topics(self):
        text = clave("help").out
        topics = text.rsplit(": ", 1)[1].strip().split(", ")
        self.assertGreaterEqual(len(topics), 8)
        for topic in topics:
            r = clave("help", topic)
            self.assertEqual((r.code, r.err), (0, ""), r)
            self.assertTrue(all(line in text for line in r.out.splitlines()), r)
        self.assertIn("76 lock lost", clave("help", "exit-codes").out)

    def test_each_verb_is_in_a_topic(self):
        kinds = "".join(clave("help", kind).out for kind in ("locking", "elections", "nodes", "services", "servers"))
        listed = {line.split()[0] for line in kinds.splitlines()}
        verbs = {line.split()[0] for line in clave("help").out.split("\nVerbs:\n")[1].split("\n\n")[0].splitlines()}
        self.assertEqual(verbs - listed, {"version", "completion", "help"})


class Json(OnServer):
    def errors(self, *words, connect=None, code=None):
        r = clave(*words, connect=connect or self.server.connect)
        lines = [json.loads(line) for line in r.err.splitlines()]
        self.assertTrue(lines, r)
        self.assertNotEqual(r.code, 0, r)
        for line in lines:
            self.assertLessEqual({"time", "event", "verb", "message"}, set(line), r)
        if lines[-1]["event"] == "error":
            self.assertEqual(lines[-1]["exit"], r.code, r)
        return lines[-1]

    def test_errors_are_objects(self):
        e = self.errors("get", "--json", "/none")
        self.assertEqual((e["event"], e["verb"], e["path"], e["code"]), ("error", "get", "/none", "ENONODE"))
        e = self.errors("create", "/jobs", "x", "--json")
        self.assertEqual((e["code"], e["path"]), ("ENODEEXISTS", "/jobs"))
        self.assertIn("to change its data", e["message"])
        self.assertEqual(self.errors("ls", "--json", "x")["code"], "EPATH")
        self.assertEqual(self.errors("ls", "--no-such", "--json")["exit"], 64)
        e = self.errors("get", "--json", "--timeout", "200ms", "/x", connect=f"127.0.0.1:{free_port()}")
        self.assertEqual(e["verb"], "get")
        self.assertIn("no server could be reached", e["message"])
        r = clave("lock", "--json", "/json", "--", "/no/such/command", connect=self.server.connect)
        last = json.loads(r.err.splitlines()[-1])
        self.assertEqual((r.code, last["event"], last["exit"]), (127, "error", 127), r)

    def test_every_verb(self):
        verbs = clave("help").out.split("\nVerbs:\n")[1].split("\n\n")[0].splitlines()
        for verb in (line.split()[0] for line in verbs):
            if verb != "completion":  # its words are others'
                with self.subTest(verb):
                    self.assertEqual(self.errors(verb, "--json", "--no-such-flag")["exit"], 64)


class Screen(OnServer):
    def on_terminal(self, *words):
        """What it prints on a terminal."""
        main, side = pty.openpty()
        p = spawn([CLAVE, *words], stdin=subprocess.DEVNULL, stdout=side, env=environment(CLAVE_CONNECT=self.server.connect))
        os.close(side)
        said = b""
        try:
            while piece := os.read(main, 4096):
                said += piece
        except OSError:
            pass  # the other side is closed
        os.close(main)
        self.assertEqual(p.wait(PATIENCE), 0)
        return said.decode().replace("\r\n", "\n")

    def holder(self, path, *words):
        p = spawn([CLAVE, *words, "-c", self.server.connect, path, "--", "sh", "-c", "echo held; exec cat"],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
        self.assertEqual(p.stdout.readline(), "held\n")
        self.addCleanup(self.end, p)
        return p

    @staticmethod
    def end(p):
        p.stdin.close()
        p.wait(PATIENCE)
        p.stdout.close()

    def test_a_header_on_a_terminal_only(self):
        self.holder("/header", "lock")
        header, line = self.on_terminal("locks", "/header").splitlines()
        self.assertEqual(header.split(), "# ROLE TOKEN TIME HOST PID NAME COMMAND".split())
        self.assertEqual(header.index("HOST"), line.index(line.split()[4]))
        plain = clave("locks", "/header", connect=self.server.connect).out
        self.assertEqual(len(plain.splitlines()), 1)
        self.holder("/header-e", "elect")
        self.assertEqual(self.on_terminal("candidates", "/header-e").splitlines()[0].split(), "# ROLE TOKEN SINCE ID".split())

    def test_names_that_a_terminal_would_obey(self):
        """U+202E turns what follows it round. Scripts read names as they are."""
        turned, shown = "/turned/a\u202egpj.exe\u2028", "a?gpj.exe?"
        for path in "/turned", turned:
            self.assertEqual(clave("create", path, connect=self.server.connect).code, 0)
        self.assertEqual(clave("ls", "/turned", connect=self.server.connect).out, turned[8:] + "\n")
        self.assertEqual(self.on_terminal("ls", "/turned"), shown + "\n")
        self.assertRegex(self.on_terminal("ls", "-l", "/turned"), rf" {re.escape(shown)}\n$")
        self.assertIn(shown, self.on_terminal("tree", "/turned"))
        self.holder(turned, "lock")
        for words in ("locks",), ("top", "--once"):
            said = self.on_terminal(*words)
            self.assertNotIn("\u202e", said)
            self.assertIn("gpj.exe", said)

    def test_watch(self):
        for verb, path, running in ("locks", "/watched", "lock"), ("candidates", "/watched-e", "elect"):
            with self.subTest(verb):
                first = self.holder(path, running)
                p = spawn([CLAVE, verb, "--watch", "--json", path], stdout=subprocess.PIPE, text=True,
                          env=environment(CLAVE_CONNECT=self.server.connect))
                token = json.loads(p.stdout.readline())["token"]
                second = spawn([CLAVE, running, "-c", self.server.connect, path, "--", "cat"], stdin=subprocess.PIPE,
                               env=environment())
                while json.loads(p.stdout.readline())["position"] != 2:
                    pass
                first.stdin.close()
                while True:
                    at = json.loads(p.stdout.readline())
                    if at["position"] == 1 and at["token"] != token:
                        break
                p.kill()
                p.wait(PATIENCE)
                p.stdout.close()
                second.stdin.close()
                second.wait(PATIENCE)

    def test_watch_needs_a_path(self):
        r = clave("locks", "--watch", connect=self.server.connect)
        self.assertEqual(r.code, 64)
        self.assertIn("clave top", r.err)


class Flock(unittest.TestCase):
    def test_its_command(self):
        for words in (("/x", "-c", "a | b"), ("-c", "a | b", "/x")):
            r = clave("lock", *words)
            self.assertEqual(r.code, 64)
            self.assertIn("clave lock /x -- sh -c 'a | b'", r.err)


if __name__ == "__main__":
    unittest.main()
