"""The fixture gate speaks as the real one: its answers are those of openapi.json."""
import http.client
import json
import os
import subprocess
import tempfile
import unittest

import scenes
from fixture_gate import FixtureGate

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GETS = ("/v1/whoami", "/v1/server", "/v1/server?samples", "/v1/locks?limit=5", "/v1/locks/accounts/alice", "/v1/locks/nobody", "/v1/elections", "/v1/elections/services/indexer",
        "/v1/deadlocks", "/v1/history?limit=50", "/v1/sessions", "/v1/znodes/config?children", "/v1/znodes/config?acl", "/v1/znodes/config", "/v1/znodes/nothing")


class Contract(unittest.TestCase):
    def test_every_answer_is_one_of_the_document(self):
        gate = scenes.cluster(FixtureGate(), 12, deadlock=True)
        connection = http.client.HTTPConnection("127.0.0.1", gate.port, timeout=30)
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "fixture.jsonl"), "w") as f:
                for target in GETS:
                    connection.request("GET", target)
                    answer = connection.getresponse()
                    f.write(json.dumps({"method": "GET", "target": target, "status": answer.status, "headers": dict(answer.getheaders()),
                                        "body": answer.read().decode(errors="replace")}) + "\n")
            p = subprocess.run(["/usr/bin/python3", "-B", os.path.join(SOURCE, "tools/check-openapi"), folder], capture_output=True, text=True, timeout=60)
        gate.stop()
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)


if __name__ == "__main__":
    unittest.main()
