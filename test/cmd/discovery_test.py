"""Services and their instances: `clave instances`, /v1/services, and Debian's Prometheus, which reads the latter."""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from gate_rig import Gate
from harness import PATIENCE, Running, clave, free_port, scratch, server, spawn
from lock_rig import until


def instance(name, ident, port, **more):
    """As Curator writes it."""
    return json.dumps({"name": name, "id": ident, "address": "127.0.0.1", "port": port, "sslPort": None, "payload": None,
                       "registrationTimeUTC": 1, "serviceType": "DYNAMIC", "uriSpec": None, **more})


class OnServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.base = "/" + self.id().rsplit(".", 1)[1]

    def verb(self, *words, code=0):
        r = clave(*words, connect=self.server.connect)
        self.assertEqual(r.code, code, (words, r))
        return r

    def put(self, service, ident, data):
        self.verb("create", "--parents", f"{self.base}/{service}/{ident}", data)


class Instances(OnServer):
    def test_they_are_listed(self):
        self.assertEqual(self.verb("instances", "--base", self.base).out, "")
        self.put("web", "b", instance("web", "b", 81, enabled=False, sslPort=8443))
        self.put("web", "a", instance("web", "a", 80))
        self.put("db", "odd", "127.0.0.1")
        lines = [line.rsplit(" ", 1)[0] for line in self.verb("instances", "--base", self.base, "web").out.splitlines()]
        self.assertEqual(lines, ["web a 127.0.0.1:80 up DYNAMIC", "web b 127.0.0.1:81,ssl:8443 disabled DYNAMIC"])
        odd = self.verb("instances", "--base", self.base).out.splitlines()[0]
        self.assertRegex(odd, r"^db odd - unreadable - \w+ \(it is not a JSON object\)$")
        ready = self.verb("instances", "--base", self.base, "--ready", "--json").out.splitlines()
        self.assertEqual([json.loads(line)["id"] for line in ready], ["a"])
        self.verb("instances", "--base", self.base, "--ready", "db", code=66)

    def test_json_has_all_that_there_is(self):
        payload = {"@class": "a.B", "text": "\n", "list": [1, None]}
        self.put("web", "i", instance("web", "i", None, payload=payload))
        [line] = self.verb("instances", "--base", self.base, "--json", "web").out.splitlines()
        told = json.loads(line)
        self.assertEqual({k: told[k] for k in ("service", "id", "path", "state", "fault", "address", "port", "ssl_port", "payload",
                                               "registered", "type", "uri_spec")},
                         {"service": "web", "id": "i", "path": f"{self.base}/web/i", "state": "up", "fault": None,
                          "address": "127.0.0.1", "port": None, "ssl_port": None, "payload": payload, "registered": 1,
                          "type": "DYNAMIC", "uri_spec": None})
        self.assertEqual(told["stat"]["version"], 0)

    def test_uri(self):
        """Of Curator's own parts; and registered by ours."""
        spec = {"parts": [{"value": "scheme", "variable": True}, {"value": "://", "variable": False},
                          {"value": "address", "variable": True}, {"value": "/a b", "variable": False}]}
        self.put("web", "a", instance("web", "a", 80, uriSpec=spec))
        self.put("web", "b", instance("web", "b", 80))
        self.put("web", "odd", "x")
        lines = [line.split()[:3] for line in self.verb("instances", "--base", self.base, "--uri", "web").out.splitlines()]
        self.assertEqual(lines, [["web", "a", "http://127.0.0.1/a_b"], ["web", "b", "-"], ["web", "odd", "-"]])
        told = [json.loads(line)["uri"] for line in self.verb("instances", "--base", self.base, "--json").out.splitlines()]
        self.assertEqual(told, ["http://127.0.0.1/a b", None, None])
        r = self.verb("register", "--base", self.base, "--id", "c", "--address", "h", "--ssl-port", 443, "--uri",
                      "{scheme}://{address}:{ssl-port}/{id}", "own", "--", os.environ.get("CLAVE", "clave"), "instances", "--uri",
                      "--base", self.base, "--connect", self.server.connect, "own")
        self.assertEqual(r.out.split()[:3], ["own", "c", "https://h:443/c"])
        for bad, why in (("{a", "has a { without }"), ("a}", "write {]}"), ("{{}", "write {[}")):
            self.assertIn(why, self.verb("register", "--address", "h", "--uri", bad, "own", "--", "true", code=64).err)

    def test_what_others_wrote_does_not_reach_a_terminal(self):
        self.put("web", "i", instance("web", "\033[2J a", 1, address="\x9b h"))
        self.assertEqual(self.verb("instances", "--base", self.base).out.split()[:3], ["web", "?[2J_a", "?_h:1"])

    def test_watch_prints_them_again(self):
        self.put("web", "a", instance("web", "a", 80))
        watch = Running("instances", "--base", self.base, "--watch", "web", connect=self.server.connect)
        self.addCleanup(watch.process.kill)
        self.assertTrue(watch.line().startswith("web a "))
        self.put("web", "b", instance("web", "b", 80))
        self.assertEqual([watch.line().split()[:2] for _ in range(3)], [[], ["web", "a"], ["web", "b"]])
        self.verb("rm", f"{self.base}/web/a")
        self.assertEqual([watch.line().split()[:2] for _ in range(2)], [[], ["web", "b"]])
        watch.process.send_signal(signal.SIGINT)

    def test_wrong_words_are_refused(self):
        self.assertIn("give its parent with --base", self.verb("instances", "a/b", code=64).err)
        self.verb("instances", "--base", "services", code=66)
        self.verb("instances", "..", code=66)


class Register(OnServer):
    def register(self, *words, service="web", command=("sleep", "1000")):
        running = Running("register", "--session-timeout", "4s", "--base", self.base, "--address", "10.0.0.1", *words, service, "--",
                          *command, connect=self.server.connect)
        self.addCleanup(lambda: (running.process.kill(), running.process.wait()))
        return running

    def listed(self, service="web"):
        return [json.loads(line) for line in self.verb("instances", "--base", self.base, "--json", service).out.splitlines()]

    def paths(self):
        return [i["path"].rsplit("/", 1)[1] for i in self.listed()]

    def test_an_instance_is_there_while_its_command_runs(self):
        before = time.time() * 1000
        running = self.register("--id", "a", "--port", 80, "--ssl-port", 443, "--payload", '{"zone": 3}',
                                command=("sh", "-c", "echo begun; exec sleep 1000"))
        self.assertEqual(running.line(), "begun")  # and so it is registered
        [told] = self.listed()
        self.assertEqual([told[k] for k in ("id", "address", "port", "ssl_port", "payload", "type", "state")],
                         ["a", "10.0.0.1", 80, 443, {"zone": 3}, "DYNAMIC", "up"])
        self.assertTrue(before - 1000 < told["registered"] < time.time() * 1000 + 1000)
        self.assertNotEqual(told["stat"]["ephemeral_owner"], "0x0")
        data = self.verb("get", told["path"]).out
        self.assertEqual(data, '{"name":"web","id":"a","address":"10.0.0.1","port":80,"sslPort":443,"payload":{"zone": 3},'
                         f'"registrationTimeUTC":{told["registered"]},"serviceType":"DYNAMIC","uriSpec":null}}')
        self.assertEqual(running.end(signal.SIGTERM).code, 143)
        self.assertEqual(self.listed(), [])

    def test_the_exit_code_is_the_commands(self):
        self.assertEqual(self.register("--id", "a", command=("sh", "-c", "exit 7")).end().code, 7)
        self.assertEqual(self.register("--id", "a", command=("/no/such/command",)).end().code, 127)
        self.assertEqual(self.listed(), [])

    def test_it_is_registered_again(self):
        running = self.register("--id", "a", command=("sh", "-c", "echo $$; exec sleep 1000"))
        self.addCleanup(os.kill, int(running.line()), signal.SIGKILL)  # which outlives it
        self.verb("rm", f"{self.base}/web/a")
        until(lambda: self.paths() == ["a"], what="it is there again")
        running.process.kill()
        until(lambda: self.paths() == [], what="it goes with the session of a killed process")

    def test_another_of_the_id_takes_its_place(self):
        first = self.register("--id", "a", "--port", 1, command=("sh", "-c", "echo begun; exec sleep 1000"))
        first.line()
        second = self.register("--id", "a", "--port", 2, command=("sh", "-c", "echo begun; exec sleep 1000"))
        second.line()
        self.assertEqual([i["port"] for i in self.listed()], [2])
        self.assertEqual(first.end(signal.SIGTERM).code, 143)
        self.assertEqual([i["port"] for i in self.listed()], [2])

    def test_types(self):
        for kind, stays in ("STATIC", False), ("PERMANENT", True):
            running = self.register("--id", kind, "--type", kind, command=("sh", "-c", "echo begun; exec sleep 1000"))
            running.line()
            self.assertEqual([(i["type"], i["stat"]["ephemeral_owner"]) for i in self.listed()], [(kind, "0x0")])
            running.end(signal.SIGTERM)
            self.assertEqual(self.paths(), [kind] if stays else [])
        self.verb("rm", f"{self.base}/web/PERMANENT")
        running = self.register("--id", "s", "--type", "DYNAMIC_SEQUENTIAL", command=("sh", "-c", "echo begun; exec sleep 1000"))
        running.line()
        self.assertRegex(self.paths()[0], r"^s\d{10}$")
        running.end(signal.SIGTERM)
        self.assertEqual(self.paths(), [])

    def test_a_server_set(self):
        running = self.register("--serverset", "--port", 9, command=("sh", "-c", "echo begun; exec sleep 1000"))
        running.line()
        [told] = self.listed()
        self.assertRegex(told["path"], r"/web/member_\d{10}$")
        self.assertEqual(json.loads(self.verb("get", told["path"]).out),
                         {"serviceEndpoint": {"host": "10.0.0.1", "port": 9}, "additionalEndpoints": {}, "status": "ALIVE"})
        self.assertEqual((told["type"], told["state"], told["address"], told["port"]), ("SERVERSET", "up", "10.0.0.1", 9))

    def test_disabled(self):
        self.register("--id", "a", "--disabled", command=("sh", "-c", "echo begun; exec sleep 1000")).line()
        self.assertEqual([i["state"] for i in self.listed()], ["disabled"])

    def test_health(self):
        """What clients see while the check fails: no instance, or a disabled one, and one server set that has stopped."""
        well = scratch("well")
        check = ["--health-every", "200ms", "--health", f"test -e {well}"]
        begun = ("sh", "-c", "echo begun; exec sleep 1000")
        for flags, sick, healthy in (([], [], ["up"]), (["--on-unhealthy", "disable"], ["disabled"], ["up"]),
                                     (["--on-unhealthy", "disable", "--type", "STATIC"], ["disabled"], ["up"]),
                                     (["--on-unhealthy", "disable", "--serverset", "--port", "9"], ["disabled"], ["up"])):
            running = self.register("--id", "a", *check, *flags, command=begun)
            running.line()
            states = lambda: [i["state"] for i in self.listed()]
            self.assertEqual(states(), sick, flags)
            for _ in range(2):
                with open(well, "w", encoding="utf-8"):
                    pass
                until(lambda healthy=healthy: states() == healthy, what=f"healthy {flags}")
                os.unlink(well)
                until(lambda sick=sick: states() == sick, what=f"unhealthy {flags}")
            self.assertEqual(running.end(signal.SIGTERM).code, 143)
            self.assertEqual(self.listed(), [])

    def test_what_the_check_says_while_there_is_no_server(self):
        """It is done when the server is back: the node of the session that goes on is deleted."""
        well = scratch("well")
        own = server()
        self.addCleanup(own.stop)
        running = Running("register", "--session-timeout", "4s", "--address", "h", "--id", "a", "--health-every", "200ms", "--health",
                          f"test -e {well}", "web", "--", "sh", "-c", "echo begun; exec sleep 1000", connect=own.connect)
        self.addCleanup(lambda: (running.process.kill(), running.process.wait()))
        running.line()
        ids = lambda: [json.loads(line)["id"] for line in clave("instances", "--json", connect=own.connect).out.splitlines()]
        with open(well, "w", encoding="utf-8"):
            pass
        until(lambda: ids() == ["a"], what="registered")
        own.stop(signal.SIGKILL)
        os.unlink(well)
        until(lambda: "unhealthy" in running.process.stderr.readline(), what="it is told without the server")
        own.start()
        until(lambda: ids() == [], what="gone")
        with open(well, "w", encoding="utf-8"):
            pass
        until(lambda: ids() == ["a"], what="registered again")
        self.assertEqual(running.end(signal.SIGTERM).code, 143)

    def test_wrong_words_are_refused(self):
        for words, says in ((["--port", "0"], "--port"), (["--port", "65536"], "--port"), (["--type", "SERVERSET"], "--type"),
                            (["--id", "a/b"], "--id 'a/b': it is the name of a node"), (["--address", ""], "--address is empty"),
                            (["--payload", "x"], "--payload 'x': not JSON"), (["--payload", "@x"], "$(cat FILE)"),
                            (["--serverset"], "no port"), (["--on-unhealthy", "disable"], "needs --health"),
                            (["--health", "true", "--type", "STATIC"], "needs --on-unhealthy disable")):
            r = self.register(*words).end()
            self.assertEqual(r.code, 64, (words, r))
            self.assertIn(says, r.err)
        self.assertIn("--address is missing", self.verb("register", "--base", self.base, "web", "--", "true", code=64).err)


class Prometheus:
    """Debian's, with one job whose targets a gate tells."""

    def __init__(self, config):
        self.port = free_port()
        self.process = spawn(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={scratch('tsdb')}",
                              f"--web.listen-address=127.0.0.1:{self.port}"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def targets(self):
        """Discovered labels of each target; None: it does not answer yet."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            c.request("GET", "/api/v1/targets?state=active")
            answer = c.getresponse()
            return [t["discoveredLabels"] for t in json.load(answer)["data"]["activeTargets"]] if answer.status == 200 else None
        except OSError:
            return None
        finally:
            c.close()

    def failures(self):
        """Refreshes that have failed."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        c.request("GET", "/metrics")
        text = c.getresponse().read().decode()
        c.close()
        return sum(float(n) for n in re.findall(r"^prometheus_sd_http_failures_total (\S+)$", text, re.M))

    def addresses(self):
        found = self.targets()
        return None if found is None else sorted(t["__address__"] for t in found)


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed")
class WithPrometheus(OnServer):
    def configure(self, what):
        path = scratch("prometheus.yml")
        with open(path, "w", encoding="utf-8") as f:
            f.write("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: them\n" + what)
        return path

    def follow(self, prometheus, lose):
        """Finds, loses and finds again, each within its refresh; and keeps what it has while the gate is away."""
        self.put("web", "a", instance("web", "a", 81))
        until(lambda: prometheus.addresses() == ["127.0.0.1:81"], what="the first instance is a target")
        [labels] = prometheus.targets()
        self.put("web", "b", instance("web", "b", 82))
        until(lambda: prometheus.addresses() == ["127.0.0.1:81", "127.0.0.1:82"], what="both instances are targets")
        self.verb("rm", f"{self.base}/web/a")
        until(lambda: prometheus.addresses() == ["127.0.0.1:82"], what="one of them is gone")
        lose()
        self.assertEqual(prometheus.addresses(), ["127.0.0.1:82"])
        self.verb("rm", "-r", f"{self.base}/web")
        until(lambda: prometheus.addresses() == [], what="no instance is a target")
        self.put("web", "a", instance("web", "a", 81))
        until(lambda: prometheus.addresses() == ["127.0.0.1:81"], what="the first instance is a target again")
        return labels

    def test_http_sd_configs(self):
        gate = Gate(self.server.connect).start()
        self.addCleanup(gate.stop)
        prometheus = Prometheus(self.configure(
            "  http_sd_configs: [{refresh_interval: 1s, "
            f"url: 'http://{gate.address}/v1/services?base={self.base}&format=http_sd'}}]\n"))

        def lose():
            gate.stop()
            until(lambda: prometheus.failures() >= 2, what="a refresh has failed twice")
            gate.start()
        labels = self.follow(prometheus, lose)
        self.assertEqual({k: v for k, v in labels.items() if k.startswith("__meta_clave_")},
                         {"__meta_clave_service": "web", "__meta_clave_id": "a", "__meta_clave_type": "DYNAMIC",
                          "__meta_clave_path": f"{self.base}/web/a"})


    def test_serverset_sd_configs(self):
        prometheus = Prometheus(self.configure(
            f"  serverset_sd_configs: [{{servers: ['{self.server.connect}'], paths: ['{self.base}/web']}}]\n"))

        def member(port):
            running = Running("register", "--session-timeout", "4s", "--base", self.base, "--serverset", "--address", "127.0.0.1",
                              "--port", port, "web", "--", "sleep", "1000", connect=self.server.connect)
            self.addCleanup(lambda: (running.process.kill(), running.process.wait()))
            return running
        first, second = member(81), member(82)
        until(lambda: prometheus.addresses() == ["127.0.0.1:81", "127.0.0.1:82"], what="both members are targets")
        first.process.kill()
        until(lambda: prometheus.addresses() == ["127.0.0.1:82"], what="the killed one is gone")
        member(81)
        until(lambda: prometheus.addresses() == ["127.0.0.1:81", "127.0.0.1:82"], what="both are targets again")
        second.end(signal.SIGTERM)
        until(lambda: prometheus.addresses() == ["127.0.0.1:81"], what="the ended one is gone")


if __name__ == "__main__":
    unittest.main(verbosity=2)
