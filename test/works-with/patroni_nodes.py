"""Nodes of Patroni with PostgreSQL, on one machine, each in a folder of its own: for works-with and for bench/hangs."""
import glob
import json
import os
import pwd
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

CONFIG = """
scope: works
name: {name}
{store}
restapi: {{listen: "127.0.0.1:{api}", connect_address: "127.0.0.1:{api}"}}
bootstrap:
  dcs:
    ttl: {ttl}
    loop_wait: 1
    retry_timeout: {retry}
    postgresql: {{use_pg_rewind: true, parameters: {{wal_log_hints: "on"}}}}
  initdb: [encoding: UTF8, data-checksums]
  pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
postgresql:
  listen: 127.0.0.1:{port}
  connect_address: 127.0.0.1:{port}
  data_dir: {base}/data
  bin_dir: {bin}
  pgpass: {base}/pgpass
  authentication:
    superuser: {{username: postgres}}
    replication: {{username: replicator}}
    rewind: {{username: postgres}}
  parameters: {{unix_socket_directories: {base}}}
"""
BIN = max(glob.glob("/usr/lib/postgresql/*/bin"), default="")


def become_its_user():
    """initdb refuses to run as root. A session of its own, to kill Patroni and PostgreSQL together."""
    os.setsid()
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)


class Node:
    def __init__(self, folder, name, store, ports, spawn, ttl=20, retry=3):
        """`store`: the lines of the configuration that say where the leader is agreed upon."""
        (self.api, self.port), self.base, self.spawn = ports, os.path.join(folder, name), spawn
        os.mkdir(self.base)
        self.config = os.path.join(self.base, "patroni.yml")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(name=name, store=store, api=self.api, port=self.port, base=self.base, bin=BIN, ttl=ttl,
                                  retry=retry))
        if os.getuid() == 0:
            shutil.chown(self.base, "postgres")
        self.process = None

    def start(self):
        with open(os.path.join(self.base, "log"), "a", encoding="utf-8") as log:
            self.process = self.spawn(["/usr/bin/patroni", self.config], before=become_its_user, stdout=log, stderr=log,
                                      stdin=subprocess.DEVNULL, cwd=self.base)
        return self

    def postmaster(self):
        with open(os.path.join(self.base, "data", "postmaster.pid"), encoding="utf-8") as f:
            return int(f.readline())

    def kill(self):
        """Patroni first, so that it cannot give up its leadership."""
        self.process.kill()
        self.process.wait()
        os.kill(self.postmaster(), signal.SIGKILL)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)

    def serves(self, role):
        """Its own API's answer to a load balancer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.api}/{role}", timeout=3) as r:
                return json.load(r)["state"] == "running"
        except (OSError, urllib.error.HTTPError, ValueError):
            return False


def leader_of(nodes):
    return next((n for n in nodes if n.serves("primary")), None)
