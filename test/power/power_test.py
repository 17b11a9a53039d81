"""The data directory as power cuts leave it: opened by clave, thousands of times in one process
(clave_power), and by Apache ZooKeeper, hundreds of times in one Java process.

  power_test.py PROGRAM [SEEDS [EVERY [ARGUMENT...]]]

As the disk left it ZooKeeper may refuse a directory: it does not start on a record that a lost block
has damaged, its own neither. What it opens has to be right. Once clave has started on it, ZooKeeper
has to open every one and find what clave has found. Before 3.6 it has no digest to tell of."""
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
JARS = "/usr/share/java/"
CLASSES = (os.environ.get("CLAVE_APACHE_JARS") or
           JARS + "zookeeper.jar:" + JARS + "slf4j-nop.jar")


def has_apache():
    return shutil.which("java") is not None and all(map(os.path.exists, CLASSES.split(":")))


def run(program, *arguments):
    return subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, check=False,
                          stdout=subprocess.PIPE, text=True)


def check_lies(program):
    """A disk that does not do what it says has to be found out, or the test proves nothing."""
    for lie in ("files", "names"):
        result = run(program, "--epochs", "1", "--writes", "60", "--lie", lie)
        if result.returncode != 1 or "VIOLATION" not in result.stdout:
            sys.exit(f"a disk that lies about {lie} was not found out: {result.stdout}")
        kept = os.path.dirname(result.stdout.rsplit("kept in ", 1)[1].strip() + "/")
        if "/clave-power-" in kept:
            shutil.rmtree(kept)


class Expected:
    """A line of what clave_power expects of a directory."""

    def __init__(self, line):
        kind, self.dir, self.epoch, acknowledged, zxid = line.split()
        self.raw = kind == "raw"
        self.acknowledged, self.zxid = int(acknowledged), int(zxid)


def read_histories(folder):
    """The zxids, each with the digest of the tree after it, by epoch."""
    histories = {}
    for name in os.listdir(folder):
        if name.startswith("history-"):
            with open(f"{folder}/{name}", encoding="utf-8") as f:
                histories[name.split("-")[1]] = {tuple(line.split()) for line in f}
    return histories


def judge(e, found, history, counts):
    """A fault in what ZooKeeper has found, or None."""
    if found[0] == "refused":
        counts["raw refused" if e.raw else "refused"] += 1
        return None if e.raw else "refused: " + " ".join(found[1:])
    zxid, digest = int(found[0]), found[1]
    counts["raw" if e.raw else "mended"] += 1
    if zxid < e.acknowledged:
        return f"{e.acknowledged} was acknowledged, ZooKeeper has {zxid}"
    if not e.raw and zxid != e.zxid:
        return f"ZooKeeper has {zxid}, clave {e.zxid}"
    if (str(zxid), digest) not in history:
        return f"at {zxid} there never was the tree {digest}"
    return None


def ask_apache(folder):
    with open(f"{folder}/expected", encoding="utf-8") as f:
        expected = [Expected(line) for line in f]
    result = subprocess.run(
        ["java", "-Xmx512m", "-cp", CLASSES, f"{HERE}/java/OpenAll.java"], check=True, text=True,
        input="".join(e.dir + "\n" for e in expected), stdout=subprocess.PIPE)
    found = {words[0]: words[1:] for words in map(str.split, result.stdout.splitlines())}
    histories = read_histories(folder)
    counts, faults = Counter(), []
    for e in expected:
        fault = judge(e, found[e.dir], histories[e.epoch], counts)
        if fault:
            faults.append(f"{e.dir}: {fault}")
    print("ZooKeeper:", ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return faults


def main():
    program = sys.argv[1]
    seeds, every = (int(a) for a in (sys.argv[2:4] + ["1", "15"][len(sys.argv) - 2:]))
    check_lies(program)
    for seed in range(1, seeds + 1):
        folder = tempfile.mkdtemp(prefix="clave-power-")
        samples = ["--samples", folder, str(every)] if has_apache() else []
        result = run(program, "--seed", str(seed), *samples, *sys.argv[4:])
        print(result.stdout, end="", flush=True)
        if result.returncode != 0:
            sys.exit(1)
        faults = ask_apache(folder) if samples else []
        if faults:
            sys.exit("\n".join(faults[:20]))
        shutil.rmtree(folder)
    if not has_apache():
        print("Apache ZooKeeper is not installed: opened by clave alone")


main()
