"""Runs a client's program on a fresh server, which it may ask to have killed and restarted.

  with_server.py zkmt PROGRAM | zkcli SCRIPT

The server is clave's, or Apache's with CLAVE_TEST_SERVER=apache."""
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cmd"))
from harness import scratch, server, spawn  # noqa: E402


def restart(s):
    s.stop(signal.SIGKILL)
    s.start()


def run_zkmt(s, program):
    p = spawn([program, s.connect], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for line in p.stdout:
        print(line, end="", flush=True)
        if line == "restart\n":
            restart(s)
            p.stdin.write("\n")
            p.stdin.flush()
    return p.wait()


def run_zkcli(s, script):
    if not shutil.which("java") or not os.path.exists("/usr/share/zookeeper/bin/zkCli.sh"):
        print("zkCli.sh is not installed: nothing was tested")
        return 77
    flag = scratch("restart")
    p = spawn(["sh", script, s.connect, flag], stdin=subprocess.DEVNULL)
    while p.poll() is None:
        if os.path.exists(flag):
            restart(s)
            os.unlink(flag)
        time.sleep(0.05)
    return p.returncode


def main():
    s = server()
    code = {"zkmt": run_zkmt, "zkcli": run_zkcli}[sys.argv[1]](s, sys.argv[2])
    s.stop()
    sys.exit(code)


main()
