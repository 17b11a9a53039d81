"""The audit log of clave beside Apache's: the same client, the same lines."""
import os
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cmd"))
from harness import (ApacheServer, ClaveServer, PATIENCE, ask, has_apache, scratch,  # noqa: E402
                     spawn)

try:
    from kazoo.client import KazooClient
    from kazoo.exceptions import KazooException
    from kazoo.security import OPEN_ACL_UNSAFE, make_acl, make_digest_acl
except ImportError:
    print("kazoo is not installed: nothing was tested")
    sys.exit(77)

SIMPLE = "/usr/share/java/slf4j-simple.jar"
if not has_apache() or not os.path.exists(SIMPLE):
    print("Apache ZooKeeper or slf4j-simple is not installed: nothing was tested")
    sys.exit(77)


class Apache(ApacheServer):
    def start(self):
        self.log = scratch("audit.log")
        cfg = scratch("zoo.cfg")
        with open(cfg, "w") as f:
            f.write(f"dataDir={self.data}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
                    "admin.enableServer=false\naudit.enable=true\n")
        logger = "org.slf4j.simpleLogger."
        given = ["defaultLogLevel=off", "log.org.apache.zookeeper.audit.Slf4jAuditLogger=info",
                 "showThreadName=false"]
        with open(self.log, "w") as f:
            self.process = spawn(
                ["java", "-Xmx256m"] + [f"-D{logger}{g}" for g in given]
                + ["-cp", f"/usr/share/java/zookeeper.jar:{SIMPLE}",
                   "org.apache.zookeeper.server.ZooKeeperServerMain", cfg],
                stdout=subprocess.DEVNULL, stderr=f, stdin=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        while b"Mode: standalone" not in ask(self.port, b"srvr"):
            if time.monotonic() > until or self.process.poll() is not None:
                raise AssertionError("Apache ZooKeeper did not start")
            time.sleep(0.05)
        return self


class Clave(ClaveServer):
    def __init__(self):
        self.log = scratch("audit.log")
        super().__init__(flags=["--audit", self.log])


def use(connect):
    """Each kind of request that either server audits."""
    zk = KazooClient(connect, timeout=8)
    zk.start(timeout=PATIENCE)

    def attempt(call, *args, **named):
        try:
            call(*args, **named)
        except KazooException:
            pass

    joe = make_digest_acl("joe", "pw", all=True)
    attempt(zk.create, "/a", b"1")
    attempt(zk.create, "/a", b"1")
    attempt(zk.create, "/e", b"", ephemeral=True)
    attempt(zk.create, "/a/s-", b"", sequence=True)
    attempt(zk.create, "/a/es-", b"", sequence=True, ephemeral=True)
    attempt(zk.create, "/no/no", b"")
    attempt(zk.create, "/no/s-", b"", sequence=True)
    attempt(zk.set, "/a", b"2")
    attempt(zk.set, "/a", b"2", version=9)
    attempt(zk.set, "/none", b"2")
    attempt(zk.set_acls, "/a", OPEN_ACL_UNSAFE)
    attempt(zk.set_acls, "/a", [make_acl("ip", "127.0.0.1", read=True, write=True), joe])
    attempt(zk.set_acls, "/none", OPEN_ACL_UNSAFE)
    attempt(zk.delete, "/a")
    attempt(zk.delete, "/none")
    attempt(zk.get, "/none")
    for build in (lambda t: (t.create("/m", b""), t.set_data("/m", b"1"), t.check("/m", 1),
                             t.delete("/m"), t.create("/m3", b"", ephemeral=True)),
                  lambda t: (t.create("/m2", b""), t.delete("/none"))):
        transaction = zk.transaction()
        build(transaction)
        transaction.commit()
    attempt(zk.create, "/denied", b"", acl=[joe])
    attempt(zk.set, "/denied", b"1")
    attempt(zk.create, "/denied/x", b"")
    zk.add_auth("digest", "joe:pw")
    attempt(zk.set, "/denied", b"2")
    zk.add_auth("digest", "ann:pw")
    attempt(zk.set, "/denied", b"3")
    zk.stop()
    zk.close()


def lines(server):
    """As (level, pairs), in order, but for the nodes of one session: they are in no order."""
    with open(server.log) as f:
        found = re.findall(r"^.*?\b(INFO|ERROR)\b[^=]* ((?:session|user)=.*)$", f.read(), re.M)
    sessions = {}
    result = []
    for level, text in found:
        pairs = [p.split("=", 1) for p in text.split("\t")]
        for pair in pairs:
            if pair[0] == "session":
                pair[1] = sessions.setdefault(pair[1], len(sessions))
            if pair[0] == "user":  # Apache's are in no order
                pair[1] = ",".join(sorted(pair[1].split(",")))
        result.append((level, tuple(map(tuple, pairs))))
    is_owned = [i for i, (_, pairs) in enumerate(result)
                if ("operation", "ephemeralZNodeDeletionOnSessionCloseOrExpire") in pairs]
    result[is_owned[0]:is_owned[-1] + 1] = sorted(result[is_owned[0]:is_owned[-1] + 1])
    return result


class Audit(unittest.TestCase):
    def test_the_same_lines(self):
        told = []
        for server in (Apache(), Clave()):
            server.start()
            use(server.connect)
            server.stop()
            told.append(lines(server))
        self.assertGreater(len(told[0]), 25)
        self.maxDiff = None
        self.assertEqual(told[1], told[0])


if __name__ == "__main__":
    unittest.main()
