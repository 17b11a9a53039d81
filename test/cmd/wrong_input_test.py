"""Wrong input, for every verb that there is: no server, no permission, no node, a wrong value, an unknown flag, a missing
argument. Each ends with its exit code and one message, which says what was wrong with what and what to do; with --json
that is one object."""
import json
import os
import re
import socket
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import clave, free_port, scratch, server

# How each verb is used, with {} for the path of a node; None: it asks no server.
WORDS = {
    "lock": "{} -- true", "rwlock": "-r {} -- true", "semaphore": "-n 2 {} -- true", "slot": "limit {} 2", "locks": "{}",
    "top": "--once {}", "elect": "{} -- true", "leader": "{}", "candidates": "{}", "resign": "{}", "transfer": "{} id",
    "check": "{} 1", "ctdb-lock": "{}", "get": "{}", "set": "{} data", "create": "{}/new", "rm": "{}/child", "ls": "{}",
    "tree": "{}", "instances": "--base {}", "register": "--base {} --address h --id i web -- true", "mirror": "--once {} " + scratch("mirror"), "counter": "{} +1", "member": "{} --id a -- true", "members": "{}", "stat": "{}/child", "getacl": "{}", "setacl": "{} open", "acl": None, "watch": "{}", "sync": "{}",
    "ping": "-n 1", "serve": None, "gate": None, "sessions": "", "data": None, "history": None, "grow": None,
    "version": None, "completion": None, "help": None,
}
# Those that need no permission for what they ask, or none on one node.
OPEN = {"stat", "sync", "ping", "sessions"}
# What is said of a node that is not there.
NO_NODE = {
    "get": "no such node", "set": "no such node (--create creates it)", "create": "its parent does not exist: --parents",
    "rm": "no such node", "ls": "no such node", "tree": "no such node", "stat": "no such node", "getacl": "no such node",
    "setacl": "no such node", "resign": "no leader", "transfer": "no candidate has the id",
}
# These make it, take it for an empty queue, or name none.
NEED_NO_NODE = {"lock", "rwlock", "semaphore", "slot", "locks", "top", "elect", "leader", "candidates", "check", "ctdb-lock", "watch",
                "sync", "ping", "sessions", "instances", "register", "mirror", "member", "members", "counter"}


def verbs():
    return clave("completion", "--", "").out.split()


def flags(verb):
    """Long names and the names of their values."""
    return re.findall(r"^ +(?:-\w, )? *--([\w-]+) ([A-Z-]+)\b", clave(verb, "--help").out.split("\nFlags for every verb")[0], re.M)


class Failing(unittest.TestCase):
    def fails(self, code, *words, says, out="", connect=None):
        """`says`: what must be in the message."""
        plain = clave(*words, connect=connect)
        lines = plain.err.splitlines()
        self.assertEqual((plain.code, plain.out, len(lines)), (code, out, 1), (words, plain))
        self.assertTrue(lines[0].startswith(f"clave: {words[0]}: "), plain)
        for text in says:
            self.assertIn(text, lines[0], words)
        r = clave(words[0], "--json", *words[1:], connect=connect)
        self.assertEqual((r.code, r.out, len(r.err.splitlines())), (code, out, 1), (words, r))
        told = json.loads(r.err)
        self.assertEqual((told["event"], told["verb"], told["exit"]), ("error", words[0], code), r)
        said = [re.sub(r"after \d+ ms", "after N ms", text)  # curl's
                for text in (told["message"], lines[0][len(f"clave: {words[0]}: "):])]
        self.assertEqual(said[0], said[1], r)
        return told

    def each(self, cases, check):
        """Checks several at a time, since most of the time they wait."""
        with ThreadPoolExecutor(4) as pool:
            found = [(case, pool.submit(check, *case)) for case in cases]
        self.assertTrue(found)
        for case, done in found:
            with self.subTest(case[0]):
                done.result()


class WithoutServer(Failing):
    def test_the_tables_have_every_verb(self):
        self.assertEqual(sorted(WORDS), sorted(verbs()))
        self.assertEqual(sorted([*NO_NODE, *NEED_NO_NODE]), sorted(v for v in WORDS if WORDS[v] is not None))

    def test_an_unknown_flag(self):
        def check(verb):
            self.fails(64, verb, "--no-such-flag", says=["no such flag: --no-such-flag", f"(see 'clave help {verb}')"])
        self.each([(v,) for v in verbs() if v != "completion"], check)  # its words are others'

    def test_a_missing_argument(self):
        def check(verb):
            self.fails(64, verb, says=[f"(see 'clave help {verb}')"])
        needing = []
        for verb in verbs():
            arguments = re.match(r"usage: clave \S+(?: \[FLAG\]\.\.\.)? ?(.*)", clave(verb, "--help").out).group(1)
            if re.sub(r"^(\[[^]]*\] ?)+", "", arguments)[:1] not in ("", "|"):
                needing.append((verb,))
        self.assertGreater(len(needing), 20)
        self.each(needing, check)

    def test_a_wrong_value(self):
        def check(name, verb, flag):
            self.fails(64, verb, f"--{flag}", "nonsense", says=[f"--{flag}", "nonsense"])
        wrong = [(f"{verb} --{flag}", verb, flag) for verb in verbs() for flag, value in flags(verb)
                 if value in ("DURATION", "N", "BYTES")]
        wrong += [(f"{verb} --timeout", verb, flag) for verb in WORDS if WORDS[verb] for flag in ("timeout", "session-timeout")]
        self.assertGreater(len(wrong), 60)
        self.each(wrong, check)

    def test_an_empty_value(self):
        """As of a variable that is not set: a command that does nothing would succeed."""
        def check(name, verb, flag):
            self.fails(64, verb, f"--{flag}", "", says=[f"--{flag} is empty"])
        empty = [(f"{verb} --{flag}", verb, flag) for verb in verbs() for flag, value in flags(verb)
                 if value in ("SHELL-COMMAND", "CMD", "ID")]
        names = {name for name, _, _ in empty}
        self.assertLessEqual({"lock --fence", "elect --health", "elect --on-elected", "elect --on-deposed", "elect --standby",
                              "mirror --exec", "elect --id", "register --id", "member --id", "slot --id"}, names)
        self.each(empty, check)

    def test_what_a_verb_cannot_use(self):
        used, tree = f"127.0.0.1:{free_port()}", os.path.dirname(scratch("copy"))
        with open(scratch("file"), "w", encoding="utf-8") as f, socket.create_server(("127.0.0.1", int(used[10:]))):
            for code, words, says in (
                    (74, ["serve", "--data", f.name], [f.name, "Not a directory"]),
                    (74, ["serve", "--data", scratch("new"), "--listen", used], [used, "in use by another process"]),
                    (64, ["serve", "--config", "/nonexistent"], ["/nonexistent: No such file"]),
                    (64, ["serve", "--data", scratch("new"), "--listen", "x:y"], ["--listen 'x:y'", "expected host[:port]"]),
                    (74, ["gate", "--connect", used, "--http", used], [used, "in use by another process"]),
                    (64, ["gate", "--connect", used, "--http", "127.0.0.1:0", "--http-tokens", "/nonexistent"],
                     ["/nonexistent: No such file"]),
                    (74, ["data", "check", "/nonexistent"], ["/nonexistent: No such file"]),
                    (64, ["data", "look", "/nonexistent"], ["'look': expected check, dump"]),
                    (73, ["data", "backup", tree, tree + "/copy"], ["name a directory outside it"]),
                    (64, ["grow", "/nonexistent", "h"], ["3, 5, 7 or 9 servers"]),
                    (69, ["history", "--http", "http://127.0.0.1:1"], ["http://127.0.0.1:1 cannot be asked", "--http"]),
                    (64, ["acl", "hash", "joe"], ["no password: it is the first line of standard input"]),
                    (64, ["help", "nonesuch"], ["unknown verb or topic 'nonesuch'"]),
                    (64, ["ls", "--connect", "h:x", "/"], ["'h:x': a port must be a number"])):
                with self.subTest(words):
                    self.fails(code, *words, says=says)

    def test_no_server(self):
        nobody = f"127.0.0.1:{free_port()}"

        def check(verb):
            words = WORDS[verb].format("/p").split()
            told = self.fails(69, verb, "--timeout", "200ms", *words, connect=nobody, out="3" if verb == "ctdb-lock" else "",
                              says=[f"{nobody}: no server could be reached within 200ms: ", "connection refused", "--connect"])
            self.assertEqual(told["code"], "EUNREACHABLE")
        self.each([(v,) for v in WORDS if WORDS[v] is not None], check)


class OnServer(Failing):
    @classmethod
    def setUpClass(cls):
        cls.server = server()
        cls.addClassCleanup(cls.server.stop)
        for path in "/closed", "/closed/child":
            assert clave("create", path, "x", connect=cls.server.connect).code == 0
        for path in "/closed/child", "/closed":
            assert clave("setacl", "--auth", "digest:joe:pw", path, "creator", connect=cls.server.connect).code == 0

    def test_no_permission(self):
        def check(verb):
            words = WORDS[verb].format("/closed").split()
            told = self.fails(77, verb, *words, connect=self.server.connect, out="3" if verb == "ctdb-lock" else "",
                              says=["/closed", "not authorised", "--auth"])
            self.assertEqual(told["code"], "ENOAUTH")
        self.each([(v,) for v in WORDS if WORDS[v] is not None and v not in OPEN], check)
        self.fails(77, "sessions", connect=self.server.connect, says=["super user", "--auth"])

    def test_no_node(self):
        def check(verb):
            told = self.fails(66, verb, *WORDS[verb].format("/none").split(), connect=self.server.connect,
                              says=["/none", NO_NODE[verb]])
            self.assertTrue(told["path"].startswith("/none"), told)
        self.each([(v,) for v in NO_NODE], check)


if __name__ == "__main__":
    unittest.main()
