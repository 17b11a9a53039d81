"""A cycle of three: Curator waits for kazoo, kazoo for clave, clave for Curator. clave sees it, is the
only one that looks, and gives up; the others go on.

  deadlock_test.py clave|apache
"""
import os
import shutil
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cmd"))
from harness import (ApacheServer, CLAVE, ClaveServer, JARS, Running, clave,  # noqa: E402
                     has_apache, scratch, spawn)
from lock_rig import queue, until  # noqa: E402

CURATOR, KAZOO, OURS = "/order/a", "/order/b", "/order/c"  # who holds which at first


def skip(why):
    print(f"{why}: nothing was tested")
    sys.exit(77)


def expect(fine, what):
    if not fine:
        sys.exit(f"failed: {what}")


def compile_java():
    out = scratch("classes")
    jars = ":".join(JARS + j + ".jar" for j in ("curator-recipes", "curator-framework",
                                                "curator-client", "zookeeper"))
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", out,
                    os.path.join(HERE, "java", "OrderHolder.java")], check=True)
    return out


def look(server):
    return clave("locks", "--deadlocks", "--json", "/order", connect=server.connect)


def run(server, classes):
    from kazoo.client import KazooClient
    from kazoo.recipe.lock import Lock
    curator = spawn(["java", "-Xmx128m", "-XX:+UseSerialGC", "-cp",
                     f"{JARS}curator-recipes.jar:{JARS}slf4j-nop.jar:{classes}", "OrderHolder",
                     server.connect, CURATOR, KAZOO],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expect(curator.stdout.readline() == "held\n", "Curator holds its first")
    client = KazooClient(server.connect)
    client.start()
    # With the names that Curator knows, in Curator's queue.
    shared = type("SharedLock", (Lock,), {"_NODE_NAME": "-lock-", "_EXCLUDE_NAMES": ["-lock-"]})
    has, wants = shared(client, KAZOO), shared(client, OURS)
    expect(has.acquire(), "kazoo holds its first")
    go = scratch("go")
    os.mkfifo(go)
    ours = Running("lock", OURS, "--", "sh", "-c", f"echo held; read go <{go}; "
                   f"{CLAVE} lock --detect-deadlock {CURATOR} -- true", connect=server.connect)
    expect(ours.line() == "held", "clave holds its first")

    curator.stdin.write("\n")
    curator.stdin.flush()
    waiting = threading.Thread(target=wants.acquire)
    waiting.start()
    until(lambda: len(queue(server, KAZOO)) == 2 and len(queue(server, OURS)) == 2)
    expect(look(server).code == 0, "no deadlock so far")
    stop = Running("lock", CURATOR, "--", "true", connect=server.connect)
    until(lambda: len(queue(server, CURATOR)) == 2)
    expect(look(server).code == 0, "somebody who only waits is in no cycle")
    with open(go, "w") as f:
        f.write("go\n")
    result = ours.end()
    expect(result.code == 79, f"clave gives up: {result}")
    for path in (CURATOR, KAZOO, OURS):
        expect(f" waits for {path} behind " in result.err, f"it says who waits: {result}")
    waiting.join(60)
    expect(wants.is_acquired, "kazoo goes on")
    wants.release()
    has.release()
    expect(curator.stdout.readline() == "got\n", "Curator goes on")
    expect(curator.wait(60) == 0, "Curator ends")
    expect(stop.end().code == 0, "who came meanwhile has its turn")
    client.stop()
    client.close()


def main():
    apache = sys.argv[1] == "apache"
    if not shutil.which("javac") or not os.path.exists(JARS + "curator-recipes.jar"):
        skip("no javac, or no Curator")
    if apache and not has_apache():
        skip("no Apache ZooKeeper")
    try:
        import kazoo  # noqa: F401
    except ImportError:
        skip("no kazoo")
    server = (ApacheServer if apache else ClaveServer)().start()
    run(server, compile_java())
    server.stop()
    print("the cycle was seen, and ended by the one who looked")


main()
