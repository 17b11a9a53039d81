"""One queue: programs written by hand and clave's simple lock, fair and unfair election
(simple_prefix, CLAVE_LATCH_FAIR, CLAVE_LATCH_UNFAIR) take turns; some of them are killed. Judged as queue_test.py judges.

  elementary_test.py clave|apache [simple|fair|unfair]...     CLAVE_QUEUE_TURNS=N for more than 150;
                                                  CLAVE_MIXED_SECONDS=N for that time, of each"""
import os
import sys

from queue_test import HERE, Queue, need_kazoo, play

KINDS = ("hand", "clave")
PATHS = {"simple": "/one/simple", "fair": "/one/fair", "unfair": "/one/unfair/leader"}


def exercise(what):
    class Exercise(Queue):
        path, java = PATHS[what], None

        def command(self, kind):
            if kind == "hand":
                return ["/usr/bin/python3", "-B", os.path.join(HERE, "hand_holder.py"), what]
            return [os.environ["CLAVE_ELECTION_HOLDER"], what]
    return Exercise


if __name__ == "__main__":
    need_kazoo()
    for name in sys.argv[2:] or PATHS:
        print(name, end=": ", flush=True)
        play(exercise(name), KINDS, sys.argv[1], int(os.environ.get("CLAVE_QUEUE_TURNS", "150")))
