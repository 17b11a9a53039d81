"""Certificates for the tests of TLS, made by the command openssl: authorities, and what they sign."""
import os
import shutil
import subprocess
import sys
import tempfile

from harness import SCRATCH

if not shutil.which("openssl"):
    print("openssl is not installed: nothing was tested")
    sys.exit(77)


def _openssl(*words, **keywords):
    subprocess.run(["openssl", *words], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **keywords)


class Certificate:
    """Two PEM files; what follows `both` has the key and the certificate in one."""

    def __init__(self, directory, name):
        self.key = os.path.join(directory, name + ".key")
        self.cert = os.path.join(directory, name + ".pem")
        self.both = os.path.join(directory, name + ".both")

    def join(self):
        with open(self.both, "wb") as f:
            for part in (self.key, self.cert):
                with open(part, "rb") as p:
                    f.write(p.read())
        return self


class Authority(Certificate):
    def __init__(self, name="authority"):
        self.directory = tempfile.mkdtemp(dir=SCRATCH)
        super().__init__(self.directory, name)
        self.serial = 0
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", self.key, "-out", self.cert, "-subj", "/CN=" + name, "-days", "30",
                 "-addext", "basicConstraints=critical,CA:TRUE")

    def sign(self, subject, names="", extensions=(), ca=None):
        """`names`: "DNS:localhost,IP:127.0.0.1". `ca`: further words for openssl ca."""
        self.serial += 1
        c = Certificate(self.directory, f"c{self.serial}")
        request, config = c.cert + ".csr", c.cert + ".cnf"
        _openssl("req", "-utf8", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", c.key, "-out", request, "-subj", subject, "-multivalue-rdn")
        with open(config, "w") as f:
            f.write("[all]\nbasicConstraints=CA:FALSE\n")
            f.writelines(line + "\n" for line in extensions)
            if names:
                f.write(f"subjectAltName={names}\n")
            f.write("[ca]\ndefault_ca=here\n[here]\nunique_subject=no\npolicy=any\n"
                    f"database={c.cert}.db\nserial={c.cert}.serial\nnew_certs_dir={self.directory}\n"
                    "default_md=sha256\npreserve=yes\n[any]\n")
            f.writelines(f"{field}=optional\n" for field in (
                "countryName", "stateOrProvinceName", "localityName", "organizationName",
                "organizationalUnitName", "commonName", "emailAddress", "domainComponent"))
        open(c.cert + ".db", "w").close()
        with open(c.cert + ".serial", "w") as f:
            f.write(f"{self.serial + 0x1000:X}\n")
        _openssl("ca", "-batch", "-notext", "-config", config, "-cert", self.cert, "-keyfile",
                 self.key, "-in", request, "-out", c.cert, "-extensions", "all",
                 *(ca or ("-days", "30")))
        return c.join()

    def sign_plainly(self, subject):
        """Without extensions, as `openssl x509 -req` does it."""
        self.serial += 1
        c = Certificate(self.directory, f"c{self.serial}")
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", c.key,
                 "-out", c.cert + ".csr", "-subj", subject)
        _openssl("x509", "-req", "-in", c.cert + ".csr", "-CA", self.cert, "-CAkey", self.key, "-days", "30",
                 "-out", c.cert)
        return c.join()

    def server(self, names="DNS:localhost,IP:127.0.0.1", **keywords):
        return self.sign("/CN=server", names, **keywords)

    def client(self, subject="/C=DE/O=Acme/CN=client", **keywords):
        return self.sign(subject, **keywords)


EXPIRED = ("-startdate", "20200101000000Z", "-enddate", "20200102000000Z")
NOT_YET = ("-startdate", "20900101000000Z", "-enddate", "20910101000000Z")
