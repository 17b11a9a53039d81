"""What goes wrong: paths, servers, sizes, streams. Each has its exit code and a line on
standard error that names the verb, the thing and the cause."""
import os
import subprocess
import unittest

from harness import CLAVE, PATIENCE, Running, Served, clave, environment, free_port, server, spawn
from peers import Expiring, Peer, Proxy

ONLINE = [["get", "/x"], ["set", "/x", "d"], ["create", "/x"], ["rm", "/x"], ["ls", "/x"],
          ["tree", "/x"], ["stat", "/x"], ["getacl", "/x"],
          ["setacl", "/x", "open"], ["watch", "/x"], ["sync", "/x"], ["ping"]]
WITH_PATH = ONLINE[:-1]


class WithoutServer(unittest.TestCase):
    def fails(self, code, *words, **keywords):
        r = clave(*words, **keywords)
        self.assertEqual(r.code, code, (words, r))
        self.assertEqual(r.out, "", r)
        self.assertTrue(r.err.startswith("clave: "), r)
        self.assertNotRegex(r.err, r"E[A-Z]{4,}|-1\d\d\d?\b", "a bare code")
        return r

    def test_usage(self):
        for words in ([], ["nonsense"], ["get"], ["get", "/a", "/b"], ["set", "/a"], ["rm"],
                      ["create"], ["create", "/a", "b", "c"], ["stat"], ["watch"], ["--nonsense"],
                      ["get", "--nonsense", "/a"], ["get", "-q", "/a"], ["get", "/a", "--stat=1"],
                      ["ping", "x"], ["ping", "-n"], ["ping", "-n", "0"], ["ping", "-n", "x"],
                      ["ping", "--interval", "5x"], ["tree", "--depth", "-1"], ["sync", "/", "/"],
                      ["set", "/a", "b", "--version", "1x"], ["version", "x"], ["ls", "/", "/"]):
            r = self.fails(64, *words)
            self.assertIn("clave help", r.err)

    def test_flags_that_are_none(self):
        self.assertIn("get: no such flag: --tree (see", self.fails(64, "get", "--tree", "/").err)
        self.assertIn("get: no such flag: -z (see", self.fails(64, "get", "-z", "/").err)
        self.assertIn("get: --t=1 is ambiguous: it begins --timeout, --tls-ca, --tls-cert, --tls-key, --tls-name, --tls-any-name (see",
                      self.fails(64, "get", "--t=1", "/").err)
        self.assertIn("--max is ambiguous: it begins --max-session-timeout, --max-connections, ",
                      self.fails(64, "serve", "--max").err)
        self.assertIn(", ... (see", self.fails(64, "serve", "--max").err)
        for words, instead in (("lock -w=1 /x true", "-w=1: the value of a short flag follows without '=': -w 1 (see"),
                               ("semaphore -tn=3 /x true", "-tn 3 (see"), ("ls -c=h:1 /", "-c h:1 (see")):
            self.assertIn(instead, self.fails(64, *words.split()).err, words)
        self.assertIn("--json=1 takes no value",
                      self.fails(64, "get", "--json=1", "/").err)

    def test_did_you_mean(self):
        """Mistyped words, and those of flock, consul lock, etcdctl and zkCli.sh."""
        for words, instead in (
                ("lokc", "unknown verb 'lokc'; did you mean 'lock'?"), ("locsk", "'lock' or 'locks'?"),
                ("Lock", "'lock'?"), ("list", "'clave locks'"), ("unlock /x", "'clave locks revoke PATH NODE'"),
                ("status", "'clave ping'"), ("flock /x true", "'clave lock PATH -- COMMAND'"), ("getAcl /x", "'getacl'?"),
                ("deleteall /x", "'clave rm -r'"), ("help lokc", "unknown verb or topic 'lokc'; did you mean 'lock'?"),
                ("lock --nonblock /x true", "--no-wait (-n)?"), ("lock --nb /x true", "--no-wait (-n)?"),
                ("semaphore --nonblock -n 3 /x true", "--no-wait (-t)?"), ("lock -x /x true", "A lock is exclusive"),
                ("lock -e /x true", "A lock is exclusive"), ("rwlock --exclusive /x true", "--write (-W)?"),
                ("lock -s /x true", "'clave rwlock -r'?"), ("rwlock --shared /x true", "--read (-r)?"),
                ("lock /x -u", "released when its command ends"), ("lock -o /x true", "leave it out"),
                ("lock -F /x true", "leave it out"), ("lock --conflict-exit-code 3 /x true", "--conflict-code (-E)?"),
                ("lock -timeout=3s /x true", "no such flag: -timeout=3s; did you mean --wait, for the lock, or --timeout"),
                ("lock /x -timeout 3s true", "no such flag: -timeout; did you mean --wait"),
                ("lock -wait=3s /x true", "no such flag: -wait=3s; did you mean '--wait=3s'?"),
                ("get -json /x", "did you mean '--json'?"), ("-connect=h:1 get /", "'--connect=h:1'?"),
                ("--conect=h:1 get /", "'--connect'?"), ("lock -try=3s /x true", "--wait=DURATION?"),
                ("lock -monitor-retry=3 /x true", "leave it out"), ("lock -child-exit-code /x true", "leave it out"),
                ("lock -pass-stdin /x true", "leave it out"), ("lock -shell /x true", "'-- sh -c COMMAND'"),
                ("lock -n=3 /x true", "no such flag: -n=3; did you mean 'clave semaphore -n N'?"),
                ("lock -n 3 /x true", "3 is not a path; N may hold a lock with: clave semaphore -n N PATH"),
                ("lock --timout 3s /x true", "'--timeout'?"), ("elect --nonblock /x true", "--no-wait (-n)?"),
                ("elect --name=n /x true", "did you mean --id?"),
                ("elect --once /x true", "no such flag: --once; did you mean 'clave lock --once KEY'?"), ("get -s /x", "--stat?"), ("ls -s /x", "--long (-l)?"),
                ("ls -R /x", "'clave tree'?"), ("rm -R /x", "--recursive (-r)?"), ("watch -r /x", "--recursive?"),
                ("get -w /x", "'clave watch'?"), ("create -e /x", "'clave lock'?"), ("create -t 5 /x", "--ttl?"),
                ("kv get x", "'clave get', "), ("session list", "'clave sessions'"), ("event", "'clave watch'?"),
                ("endpoint health", "'clave ping'?"), ("addauth digest a:b", "--auth"), ("connect h:1", "--connect (-c)"),
                ("lock --wiat=3 /x true", "'--wait'?"), ("get --stta /x", "'--stat'?"),
                ("serve --lisen h:1", "'--listen'?"), ("serve --conect h:1", "no such flag: --conect (see"),
                ("get --qqqq /x", "no such flag: --qqqq (see"), ("qqqq", "unknown verb 'qqqq' (see")):
            self.assertIn(instead, self.fails(64, *words.split()).err, words)

    def test_a_flag_that_took_the_path(self):
        for words, says in (("elect --id /e -- true", "the path is missing: clave elect PATH"), ("elect --id /e true x", "true: invalid path"),
                            ("elect --id /e", "an argument is missing: clave elect PATH")):
            r = clave(*words.split())
            self.assertEqual((r.code in (64, 66), says in r.err), (True, True), r)
            self.assertIn("; '/e' was taken as the value of --id", r.err)
        self.assertNotIn("was taken", self.fails(66, "elect", "--id", "/e", "/x/", "true").err)

    def test_a_command_for_a_shell_as_flock_takes_it(self):
        r = self.fails(64, "lock", "/x y", "-c", "it's date")
        self.assertIn(r"with a shell: clave lock '/x y' -- sh -c 'it'\''s date' (see", r.err)
        self.assertIn("no command given: clave lock /x -- COMMAND", self.fails(64, "lock", "-c", "h:1", "/x").err)
        self.assertNotIn("semaphore", self.fails(66, "lock", "", "true").err)  # a variable without a value

    def test_verbs_without_a_client_refuse_its_flags(self):
        flags = (["--connect", "h:1"], ["-c", "h:1"], ["--session-timeout", "4s"],
                 ["--timeout", "4s"], ["--auth", "digest:a:b"], ["--tls-name", "n"],
                 ["--tls-any-name"])
        for verb in (["serve", "--check-config"], ["data", "check", "/nonexistent"],
                     ["grow", "/nonexistent"]):
            for flag in flags:
                name = "--connect" if flag[0] == "-c" else flag[0]
                for words in (verb + flag, flag + verb):
                    self.assertIn(f"clave: {verb[0]}: {name} is a flag of clients; {verb[0]} "
                                  "connects to no server (see", self.fails(64, *words).err)
        self.assertIn("--tls-ca: give it after 'serve'",
                      self.fails(64, "--tls-ca", "/f", "serve", "--check-config").err)

    def test_an_alias_with_flags_of_clients_has_help_and_version(self):
        alias = ["--connect", "h:1", "--timeout", "4s", "--auth", "digest:a:b", "--tls-name", "n"]
        for words in (["help"], ["help", "get"], ["version"], ["--help"], ["--version"], ["get", "--help"],
                      ["serve", "--help"], ["data", "--help"]):
            plain = clave(*words)
            for given in (alias + words, words + alias if words[0] in ("help", "version") else None):
                if given:
                    r = clave(*given)
                    self.assertEqual((r.code, r.out, r.err), (0, plain.out, ""), given)
            self.assertTrue(plain.out, words)

    def test_the_environment_of_clients_is_no_fault_of_others(self):
        r = clave("version", env={"CLAVE_CONNECT": "h:1", "CLAVE_TIMEOUT": "nonsense"})
        self.assertEqual((r.code, r.err), (0, ""), r)

    def test_what_is_missing_is_shown(self):
        self.assertIn("an argument is missing: clave get PATH (see", self.fails(64, "get").err)
        self.assertIn("too few arguments: clave set PATH DATA|- (see",
                      self.fails(64, "set", "/x").err)

    def test_durations(self):
        for bad in ("5x", "s", "", "-1s", "99999999999999999999s", "30d", "0s", "1m30", "30s1m", "1m1m",
                    "1.", "1.5.2s", "1,5s", "500us", "1 2s", "1e3", "0", "0.0"):
            for flag in ("--timeout", "--session-timeout"):
                r = self.fails(64, "get", "/", flag, bad)
                if bad == "5x":
                    self.assertIn("500ms, 0.5s, 10, 3m, 1h30m, 2d", r.err)
        connect = f"127.0.0.1:{free_port()}"
        for good, within in (("50ms", "50ms"), ("0.05", "50ms"), (".05s", "50ms"), ("0.001m", "60ms"),
                             ("0s 60msec", "60ms"), ("0.0000001d", "9ms"), ("0.00001", "1ms")):
            r = self.fails(69, "get", "/", "--timeout", good, connect=connect)
            self.assertIn(f"within {within}:", r.err)

    def test_durations_out_of_range(self):
        self.assertIn("not between 1ms and 24d", self.fails(64, "get", "/", "--timeout", "25d").err)
        r = self.fails(64, "lock", "--wait", "400d", "/", "true")
        self.assertIn("not between 0ms and 366d", r.err)
        self.assertIn("not between 1ms and 24d; a number without a unit is in seconds",
                      self.fails(64, "get", "/", "--timeout", "10000000").err)

    def test_creator_needs_an_identity(self):
        for words in (["create", "/a", "--acl", "creator"], ["lock", "--acl", "creator", "/a", "true"],
                      ["create", "/a", "--acl", "world:anyone:r,auth::cdrwa"]):
            self.assertIn("--auth", self.fails(66, *words, connect="127.0.0.1:1").err)

    def test_auth_needs_a_form(self):
        for bad in ("", "joe", "digest:joe", "digest:", ":x"):
            self.fails(64, "get", "/", "--auth", bad)

    def test_hosts_that_make_no_sense(self):
        for bad in ("host:port", "host:99999", "h1/app,h2/app", "h1;h2", '"h1"', "[::1", "host/a//b", "local:x"):
            r = self.fails(64, "get", "/", "--connect", bad)
            self.assertIn(bad, r.err)

    def test_bad_paths(self):
        for path, why in (("x", "does not begin with /: write /x\n"), ("it's", "write '/it'\\''s'"), ("", "is empty"), ("/a/", "ends with /: write /a\n"), ("a//", "does not begin with /: write /a\n"),
                          ("//a", "empty segment"), ("/a/../b", "relative"), ("/.", "relative"),
                          ("/a\x01", "control"), (b"/\xff\xfe", "UTF-8"),
                          ("/\U0001f600", "not allow")):
            for words in WITH_PATH:
                r = clave(words[0], path, *words[2:], connect="127.0.0.1:1")
                self.assertEqual(r.code, 66, (words, path, r))
                self.assertIn(why, r.err)
                self.assertTrue(r.err.rstrip("\n").isprintable(), "a terminal would obey it")

    def test_nobody_there(self):
        connect = f"127.0.0.1:{free_port()}"
        for words in ONLINE:
            r = self.fails(69, *words, "--timeout", "300ms", connect=connect)
            self.assertIn(connect, r.err)
            self.assertIn("within 300ms", r.err)

    def test_host_that_does_not_exist(self):
        r = self.fails(69, "get", "/", "--timeout", "1s", connect="no-such-host.invalid:2181")
        self.assertIn("no-such-host.invalid", r.err)

    def test_peer_that_is_no_zookeeper(self):
        for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_8.4\r\n",
                       b"\0" * 64, b"\xff" * 64, b""):
            peer = Peer(answer)
            self.fails(69, "get", "/", "--timeout", "500ms", connect=f"127.0.0.1:{peer.port}")
            peer.close()

    def test_peer_that_says_nothing(self):
        peer = Peer(None)
        for words in (["get", "/"], ["lock", "/", "true"]):
            r = self.fails(69, "--timeout", "2s", *words, connect=f"127.0.0.1:{peer.port}")
            self.assertIn("has not answered yet", r.err)
        peer.close()

    def test_unix_socket_that_is_not_there(self):
        r = self.fails(69, "get", "/", "--timeout", "300ms", connect="unix:/nonexistent/socket")
        self.assertIn("/nonexistent/socket", r.err)


class WithServer(Served):
    def clave(self, *words, **keywords):
        return clave(*words, connect=self.server.connect, **keywords)

    def test_one_of_two_servers_is_dead(self):
        r = clave("get", "/", connect=f"127.0.0.1:{free_port()},{self.server.connect}")
        self.assertEqual(r.code, 0, r)

    def test_too_many_bytes(self):
        r = self.clave("create", "/big", "-", stdin=b"x" * (1 << 20))
        self.assertEqual(r.code, 64, r)
        self.assertIn("1048575", r.err)
        r = self.clave("create", "/big", "-", stdin=b"x" * ((1 << 20) - 20))
        self.assertEqual(r.code, 64, r)
        self.assertIn("too big for one frame", r.err)
        data = b"x" * 1000000
        self.assertEqual(self.clave("create", "/big", "-", stdin=data).code, 0)
        self.assertEqual(self.clave("get", "/big").bytes, data)

    def test_identity_of_a_scheme_that_cannot_be(self):
        r = self.clave("--auth", "x" * 64 + ":y", "ls", "/")
        self.assertEqual(r.code, 64, r)
        self.assertIn("scheme", r.err)

    def test_identity_that_is_not_taken(self):
        for words in (["get", "/"], ["lock", "/auth", "true"]):
            r = self.clave("--auth", "digest:joe:pw", "--auth", "nonsense:x", *words)
            self.assertEqual(r.code, 77, r)
            self.assertIn("refused the identity of scheme nonsense", r.err)

    def test_a_server_that_stops_answering(self):
        self.assertEqual(self.clave("create", "/slow").code, 0)
        s = server()
        import signal
        s.process.send_signal(signal.SIGSTOP)
        r = clave("get", "/", "--timeout", "500ms", connect=s.connect)
        self.assertEqual(r.code, 69, r)
        s.process.send_signal(signal.SIGCONT)
        s.stop()

    def test_silence_is_not_blamed_on_the_answer_before_it(self):
        # The session, which server it is, and that there is no such node to write.
        proxies = [Proxy(self.server.port, frames) for frames in (1, 2, 3)]
        runs = [Running("set", "--create", "--timeout", "5s", f"/silent{p.frames}", "x",
                        connect=f"127.0.0.1:{p.port}") for p in proxies]
        for frames, run in enumerate(runs, 1):
            self.addCleanup(proxies[frames - 1].close)
            r = run.end()
            self.assertEqual(r.code, 75, r)
            self.assertIn(f"/silent{frames}: no answer in time (it may have taken effect", r.err)

    def closed(self, words, close, code, text):
        """Runs with descriptors closed as a shell does with >&-."""
        p = spawn(["/bin/sh", "-c", f'exec "$0" "$@" {close}', CLAVE] + words,
                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                  env=environment(CLAVE_CONNECT=self.server.connect))
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, code, (words, close, err))
        self.assertIn(text, err.decode())
        self.assertLessEqual(err.count(b"standard "), 1, "told twice")

    def test_a_missing_node_is_made_by_the_flag_that_is_named(self):
        for words, hint in ((["get", "/none"], "no such node\n"),
                            (["rm", "/none"], "no such node\n"),
                            (["create", "/none/a"], "no such node (its parent does not exist: --parents"),
                            (["set", "/none", "x"], "no such node (--create creates it)\n")):
            r = self.clave(*words)
            self.assertEqual(r.code, 66, r)
            self.assertIn(hint, r.err)
        r = clave("ls", "/", connect=self.server.connect + "/not-there")
        self.assertEqual(r.code, 66, r)
        self.assertIn("the chroot in the server list does not exist", r.err)

    def test_missing_streams(self):
        self.clave("create", "/streams", "data")
        self.closed(["get", "/streams"], ">&-", 74, "standard output")
        self.closed(["ls", "/"], ">&-", 74, "standard output")
        self.closed(["ping", "-n", "1"], ">&-", 74, "standard output")
        self.closed(["help"], ">&-", 74, "standard output")
        self.closed(["get", "/streams"], ">/dev/full", 74, "No space left")
        self.closed(["data", "digest", self.server.data], ">/dev/full", 74, "No space left")
        self.closed(["get", "/streams"], "2>&-", 0, "")
        self.closed(["get", "/nothing"], "2>&-", 66, "")
        self.closed(["get", "/streams"], "<&- >&- 2>&-", 74, "")
        self.closed(["set", "/streams", "new"], "<&- >&- 2>&-", 0, "")
        self.closed(["set", "/streams", "-"], "<&-", 74, "standard input")
        self.assertEqual(self.clave("get", "/streams").out, "new")

    def test_reader_that_leaves(self):
        self.clave("create", "/pipe", "-", stdin=b"x" * 500000)
        p = spawn(["/bin/sh", "-c", '"$0" get /pipe; echo $? >&2', CLAVE], stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, env=environment(CLAVE_CONNECT=self.server.connect))
        p.stdout.close()
        err = p.stderr.read()
        p.stderr.close()
        p.wait()
        self.assertEqual(err, b"74\n")

    def test_reader_of_a_watch_leaves(self):
        self.clave("create", "/left", "0")
        w = Running("watch", "/left", connect=self.server.connect)
        self.assertTrue(w.line().startswith("watching"))
        w.process.stdout.close()
        self.clave("set", "/left", "1")
        self.assertEqual(w.process.wait(PATIENCE), 74)
        w.process.stderr.close()

    def test_watch_survives_a_restart_of_the_server(self):
        s = server()
        w = Running("watch", "/r", connect=s.connect)
        self.assertEqual(w.line(), "watching-missing /r")
        s.stop()
        s.start()
        self.assertEqual(clave("create", "/r", connect=s.connect).code, 0)
        self.assertTrue(w.line().startswith("created /r"))
        w.end(9)
        s.stop()

    def test_watch_survives_its_session(self):
        s = Expiring()
        w = Running("watch", "/x", connect=s.connect)
        self.assertEqual(w.line(), "watching-missing /x")
        self.assertEqual(s.sessions, 2)
        w.end(9)
        s.close()


if __name__ == "__main__":
    unittest.main()
