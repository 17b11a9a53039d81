"""One election: Curator's LeaderLatch, kazoo's Election, clave's latch and `clave elect` take turns
on one path; then Curator's LeaderSelector, kazoo's Election and clave's selector on another. Some
of them are killed. Judged as queue_test.py judges holders of a lock.

  elections_test.py clave|apache [latch|selector]...     CLAVE_QUEUE_TURNS=N for more than 150;
                                                   CLAVE_MIXED_SECONDS=N for that time, of each"""
import os
import sys

from queue_test import HERE, JARS, Queue, need_everybody, play

COMMAND = ('while [ ! -e "$5" ]; do CLAVE_LOG="$3" CLAVE_NAME="$4" "$CLAVE" elect --connect "$1" '
           '--quiet --session-timeout "$6ms" --id "$4" "$2" -- sh -c '
           "'echo \"+ $CLAVE_NAME $CLAVE_TOKEN\" >>\"$CLAVE_LOG\"; "
           "echo \"- $CLAVE_NAME $CLAVE_TOKEN\" >>\"$CLAVE_LOG\"' || exit 1; done")
KINDS = {"latch": ("curator", "kazoo", "clave", "command"),
         "selector": ("curator", "kazoo", "clave")}


def election(what):
    class Election(Queue):
        path, java = f"/one/{what}", "ElectionHolder.java"

        def command(self, kind):
            return {"curator": ["java", "-Xmx128m", "-XX:+UseSerialGC", f"-Dwhat={what}", "-cp",
                                f"{JARS}curator-recipes.jar:{JARS}slf4j-nop.jar:{self.classes}",
                                "ElectionHolder"],
                    "kazoo": ["/usr/bin/python3", os.path.join(HERE, "election_holder.py"), what],
                    "clave": [os.environ["CLAVE_ELECTION_HOLDER"], what],
                    "command": ["sh", "-c", COMMAND, "sh"]}[kind]
    return Election


if __name__ == "__main__":
    need_everybody()
    for name in sys.argv[2:] or KINDS:
        print(name, end=": ", flush=True)
        play(election(name), KINDS[name], sys.argv[1],
             int(os.environ.get("CLAVE_QUEUE_TURNS", "150")))
