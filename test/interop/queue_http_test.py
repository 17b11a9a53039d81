"""One queue: the adaptors of examples/http, with bash, Python and Node through a gate, Curator, kazoo and clave take
turns on one path, and some of them are killed. queue_test.py says how it is judged.

  queue_http_test.py clave|apache        CLAVE_QUEUE_TURNS=N for more turns than 80"""
import os
import shutil
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cmd"))
import queue_test  # noqa: E402
from gate_rig import Gate  # noqa: E402
from harness import SOURCE, environment, spawn  # noqa: E402

import subprocess  # noqa: E402

ADAPTORS = {"bash": "lock.sh", "python": "lock.py", "node": "lock.mjs"}
COMMAND = ('while [ ! -e "$5" ]; do CLAVE_LOG="$3" CLAVE_NAME="$4" CLAVE_TTL_MS="$6" "$ADAPTOR" "$2" sh -c '
           "'echo \"+ $CLAVE_NAME $CLAVE_TOKEN\" >>\"$CLAVE_LOG\"; "
           "echo \"- $CLAVE_NAME $CLAVE_TOKEN\" >>\"$CLAVE_LOG\"' || exit 1; done")


class Queue(queue_test.Queue):
    what = "the queue over HTTP"

    def __init__(self, connect, seed):
        super().__init__(connect, seed)
        self.gate = Gate(connect).start()

    def add(self, kind):
        if kind not in ADAPTORS:
            super().add(kind)
            return
        self.count += 1
        name = f"{kind}-{self.count}"
        env = environment(CLAVE_GATE=f"http://127.0.0.1:{self.gate.port}",
                          ADAPTOR=os.path.join(SOURCE, "examples", "http", ADAPTORS[kind]))
        self.living[name] = spawn(["sh", "-c", COMMAND, "sh", self.connect, self.path, self.log, name,
                                   self.stop, str(queue_test.SESSION_MS)],
                                  stdin=subprocess.DEVNULL, env=env, start_new_session=True)

    def kill_one(self):
        """An adaptor together with its command, as when their machine dies."""
        name = self.dice.choice(sorted(n for n in self.living if not n.startswith("command")))
        p = self.living.pop(name)
        if name.split("-")[0] in ADAPTORS:
            os.killpg(p.pid, signal.SIGKILL)
        else:
            p.send_signal(signal.SIGKILL)
        p.wait()
        self.killed.add(name)
        self.add(name.split("-")[0])

    def finish(self):
        super().finish()
        if self.gate.stop() != 0:
            sys.exit("the gate did not end well")


if __name__ == "__main__":
    queue_test.need_everybody()
    if not shutil.which("node") or not shutil.which("curl"):
        queue_test.skip("node or curl is not installed")
    queue_test.play(Queue, tuple(ADAPTORS) + ("curator", "kazoo", "command"), sys.argv[1],
                    int(os.environ.get("CLAVE_QUEUE_TURNS", "80")), least_kills=2, copies=1)
