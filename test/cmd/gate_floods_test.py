"""Floods of a gate beside holders who renew over HTTP, at a small size: no lock is lost, no renewal is late. The rows are
those of bench/http --floods. CLAVE_FLOOD=SECONDS: for longer."""
import os
import sys
import unittest

from gate_rig import is_sanitized
from harness import CLAVE, SOURCE

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "bench"))
import floods  # noqa: E402

# A sanitizer is slow, and uses memory of its own.
SIZE = {"seconds": float(os.environ.get("CLAVE_FLOOD", "1.5")), "rate": 30 if is_sanitized() else 150, "holders": 10,
        "ttl_ms": 4000, "connections": 60, "most": 300}


class Floods(unittest.TestCase):
    def flood(self, sender, addresses):
        for kind in floods.KINDS:
            with self.subTest(kind=kind, sender=sender, addresses=addresses):
                row = floods.run_row(CLAVE, kind, sender, addresses, SIZE)
                self.assertEqual([], [f for f in floods.faults_of(row, SIZE) if not (is_sanitized() and "MiB" in f)], row)
                self.assertGreater(row["begun"], SIZE["rate"] / 2, row)
                self.assertGreaterEqual(row["renewals"], SIZE["holders"], row)

    def test_of_a_token(self):
        self.flood("token", 1)

    def test_of_strangers_from_many_addresses(self):
        self.flood("no token", 16)

    def test_of_the_same_address(self):
        self.flood("loopback", 1)


if __name__ == "__main__":
    unittest.main()
