"""A gate with an address for TLS, and its clients."""
import http.client
import os
import shutil
import signal
import socket
import ssl
import time

from certificates import Authority
from gate_rig import Gate
from harness import PATIENCE, scratch

CA, OTHER = Authority("ca"), Authority("other")
SERVER, CLIENT = CA.server(), CA.client()
CLIENT_DN = "CN=client,O=Acme,C=DE"


def context(ca=CA, cert=None):
    c = ssl.create_default_context(cafile=ca.cert)
    if cert:
        c.load_cert_chain(cert.both)
    return c


class TlsGate(Gate):
    """Its files are copies, which can be replaced."""

    def __init__(self, connect, *flags, certificate=SERVER):
        super().__init__(connect, *flags, "-v")
        self.cert, self.key = scratch("gate.pem"), scratch("gate.key")
        self.address = f"tls:{self.address}"
        self.context = context()
        self.renew(certificate)
        self.flags += ["--http-tls-cert", self.cert, "--http-tls-key", self.key]

    def renew(self, certificate):
        """Each file at once: the gate may read them at any time."""
        for new, name in ((certificate.cert, self.cert), (certificate.key, self.key)):
            shutil.copy(new, name + ".new")
            os.rename(name + ".new", name)

    def reload(self):
        """Returns when the TLS files have been read again, or were refused."""
        words = ("read again: TLS files of HTTP", "the previous files stay in use")
        before = sum(self.said().count(w) for w in words)
        self.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + PATIENCE
        while sum(self.said().count(w) for w in words) == before:
            if time.monotonic() > until:
                raise AssertionError(f"not reloaded: {self.said()}")
            time.sleep(0.01)

    def open(self, ctx=None):
        return http.client.HTTPSConnection("localhost", self.port, timeout=PATIENCE,
                                           context=ctx or self.context)

    def dial(self, ctx=None):
        raw = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        return (ctx or self.context).wrap_socket(raw, server_hostname="localhost")

    def presented(self):
        """The certificate that a new connection is shown."""
        with self.dial() as s:
            return s.getpeercert(True)


def der_of(certificate):
    with open(certificate.cert, encoding="ascii") as f:
        return ssl.PEM_cert_to_DER_cert(f.read())
