"""Apache's standalone server takes connections before it has a database (3.8.0 does), and forgets who
asks in between without closing the connection: its close() ends with a NullPointerException. Such a
client then waits for as long as it gives a server for its greeting, and with kazoo and Curator that
is as long as the session lasts, which is over by then. Here the server loads its data first; then it
sends such a client away, which comes again at once."""
import os
import shutil
import subprocess

import harness

PROPERTY = {"zookeeper.serverCnxnFactory": "LoadFirst"}


def load_first():
    """From here on, for every standalone server of harness.py; without javac it stays as it is."""
    if not shutil.which("javac"):
        return
    out = harness.scratch("classes")
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run(["javac", "-nowarn", "-Xlint:none", "-cp", harness.APACHE, "-d", out,
                    os.path.join(here, "java", "LoadFirst.java")], check=True)
    harness.APACHE += ":" + out
    harness.ApacheServer.properties = dict(harness.ApacheServer.properties, **PROPERTY)
