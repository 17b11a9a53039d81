"""A PostgreSQL of Debian's for tests, on a Unix socket in a folder of its own."""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile

from harness import PATIENCE, spawn


class PostgresServer:
    @staticmethod
    def found():
        """The programs of the newest installed one, or None."""
        found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
        return os.path.dirname(max(found, key=lambda p: int(p.split("/")[4]))) if found else None

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="clave-postgres-", dir="/tmp")  # a short name, for its socket
        run_as = {}
        if os.getuid() == 0:  # it refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            run_as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chmod(self.folder, 0o755)
        data = f"{self.folder}/data"
        subprocess.run([f"{self.found()}/initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-sync",
                        "--locale=C"], check=True, capture_output=True, timeout=PATIENCE, cwd=self.folder, **run_as)
        self.process = spawn([f"{self.found()}/postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses=",
                              "-c", "fsync=off"], stderr=subprocess.PIPE, text=True, cwd=self.folder, **run_as)
        for line in self.process.stderr:
            if "ready to accept connections" in line:
                break

    def reach(self):
        return {"PGHOST": self.folder, "PGUSER": "postgres", "PGDATABASE": "postgres"}

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.stderr.read()
        self.process.wait(PATIENCE)
        self.process.stderr.close()
        shutil.rmtree(self.folder, True)
