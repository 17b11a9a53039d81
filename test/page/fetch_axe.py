#!/usr/bin/python3
"""Brings axe-core, which looks for what keeps people with disabilities out, to the file named: one version,
by npm, and only with the checksum below. A file that is there already is taken when it is that version's."""
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

VERSION = "4.14.1"
PACKAGE = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
FILE = "5j5ln5gG165b1AiZBDsIcaUGLFRCsBs/Gj7fXq9Qv1w6cQSnJGMpO0rRt3xmGg1OQOhQ3sid6dbs5wqME6mvFw=="


def sha512(data):
    return base64.b64encode(hashlib.sha512(data).digest()).decode()


def is_there(path):
    if not os.path.exists(path):
        return False
    with open(path, "rb") as f:
        return sha512(f.read()) == FILE


def main(target):
    if is_there(target):
        return
    if not shutil.which("npm"):
        sys.exit("npm is missing: tools/setup test")
    with tempfile.TemporaryDirectory() as scratch:
        p = subprocess.run(["npm", "pack", "--silent", f"axe-core@{VERSION}"], cwd=scratch, capture_output=True, text=True,
                           timeout=120, stdin=subprocess.DEVNULL)
        archive = os.path.join(scratch, f"axe-core-{VERSION}.tgz")
        if p.returncode != 0 or not os.path.exists(archive):
            sys.exit(f"npm could not bring axe-core {VERSION}:\n{p.stderr[-2000:]}")
        with open(archive, "rb") as f:
            if sha512(f.read()) != PACKAGE:
                sys.exit(f"axe-core {VERSION} has another checksum than it should have")
        with tarfile.open(archive) as t:
            data = t.extractfile("package/axe.min.js").read()
    with open(target + ".new", "wb") as f:
        f.write(data)
    os.replace(target + ".new", target)


if __name__ == "__main__":
    main(sys.argv[1])
