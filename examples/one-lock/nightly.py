# nightly.py - the job of this folder in Python: python3 nightly.py ledger
import sys
import time

import clave

ledger = sys.argv[1] if len(sys.argv) > 1 else "ledger"
with clave.Client() as c, c.lock("/jobs/nightly") as hold:
    with open(ledger, "a", encoding="ascii") as out:
        print("begin", hold.token, "python", file=out, flush=True)
        time.sleep(0.1)
        hold.check()  # else it may be another's by now
        print("end", hold.token, "python", file=out, flush=True)
