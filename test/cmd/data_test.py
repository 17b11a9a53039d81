"""`clave data`: whole directories, of clave and of Apache ZooKeeper, and damaged ones: each fault is
named with its file and its place, and nothing is changed by looking."""
import json
import os
import shutil
import signal
import struct
import unittest
import zlib

from harness import ApacheServer, ClaveServer, clave, has_apache, scratch

HEADER = 16


class Record:
    """One of a log file: where it is, and what it says."""

    def __init__(self, raw, at):
        self.at = at
        self.sum, self.len = struct.unpack(">qi", raw[at:at + 12])
        self.payload = raw[at + 12:at + 12 + self.len]
        self.zxid = struct.unpack(">q", self.payload[12:20])[0] if self.len >= 20 else 0
        self.end = at + 12 + self.len + 1
        kind = struct.unpack(">i", self.payload[28:32])[0] if self.len >= 32 else 0
        self.changes_tree = kind in (1, 5, 15)  # create, setData, create2


def records(raw):
    out, at = [], HEADER
    while at + 12 < len(raw) and struct.unpack(">i", raw[at + 8:at + 12])[0] > 0:
        out.append(Record(raw, at))
        at = out[-1].end
    return out


def a_refused_multi(zxid):
    """The record of a delete of /a and a check of another node, which failed."""
    def op(kind, body):
        return struct.pack(">ii", kind, len(body)) + body
    payload = struct.pack(">qiqqii", 7, 1, zxid, 0, 14, 2) + \
        op(2, struct.pack(">i", 2) + b"/a") + op(-1, struct.pack(">i", -101))
    return struct.pack(">qi", zlib.adler32(payload), len(payload)) + payload + b"B"


def newest_log(data):
    names = [n for n in os.listdir(os.path.join(data, "version-2")) if n.startswith("log.")]
    name = max(names, key=lambda n: int(n.split(".")[1], 16))
    with open(os.path.join(data, "version-2", name), "rb") as f:
        return f.read()


def changes_in_between(data):
    """The logs but the first, with three of their records of which the middle one changes the tree."""
    names = [n for n in os.listdir(os.path.join(data, "version-2")) if n.startswith("log.")]
    for name in sorted(names, key=lambda n: int(n.split(".")[1], 16))[1:]:
        with open(os.path.join(data, "version-2", name), "rb") as f:
            found = records(f.read())
        yield from ((name, three) for three in zip(found, found[1:], found[2:])
                    if three[1].changes_tree)


def fill(connect):
    for words in (["create", "/a", "1"], ["create", "/a/b", "2"], ["set", "/a", "3"],
                  ["create", "--container", "/box"], ["set", "/a/b", "4"], ["rm", "/a/b"]):
        result = clave(*words, connect=connect)
        if result.code != 0:
            raise AssertionError(result)


def contents(directory):
    found = {}
    for top, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(top, name), "rb") as f:
                found[os.path.join(top, name)] = f.read()
    return found


class Data(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server = ClaveServer(["--snap-count", "8"]).start()
        fill(server.connect)
        clave("create", "/last", "x", connect=server.connect)
        cls.whole = server.data
        while (len(records(newest_log(server.data))) not in (2, 3)  # after the newest snapshot
               or not any(changes_in_between(server.data))):  # the lengths of logs are random
            clave("set", "/last", "x", connect=server.connect)
        server.stop()

    def setUp(self):
        self.dir = scratch("copy")
        shutil.copytree(self.whole, self.dir)

    def files(self, kind):
        """By their zxids."""
        names = [n for n in os.listdir(os.path.join(self.dir, "version-2"))
                 if n.startswith(kind + ".")]
        return sorted(names, key=lambda n: int(n.split(".")[1], 16))

    def path(self, name):
        return os.path.join(self.dir, "version-2", name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return bytearray(f.read())

    def write(self, name, raw):
        with open(self.path(name), "wb") as f:
            f.write(raw)

    def log_with(self, least):
        return next(n for n in reversed(self.files("log")) if len(records(self.read(n))) >= least)

    def check(self, *texts):
        """Damaged, and these texts say so; in JSON too; and the files are what they were."""
        before = contents(self.dir)
        result = clave("data", "check", self.dir)
        self.assertEqual(result.code, 74, result)
        for text in texts:
            self.assertIn(text, result.out)
        told = json.loads(clave("--json", "data", "check", self.dir).out)
        self.assertIs(told["ok"], False)
        self.assertEqual(contents(self.dir), before)
        return told

    def fine(self):
        result = clave("--json", "data", "check", self.dir)
        self.assertEqual(result.code, 0, result)
        return json.loads(result.out)

    # ---- whole ones --------------------------------------------------------------------------

    def test_a_whole_one(self):
        told = self.fine()
        self.assertEqual({f["name"] for f in told["files"]},
                         set(self.files("snapshot") + self.files("log")))
        self.assertEqual([f["fault"] for f in told["files"]], [None] * len(told["files"]))
        self.assertGreater(told["digests"], 5)
        self.assertIn("ok: zxid " + told["zxid"], clave("data", "check", self.dir).out)
        digest = json.loads(clave("data", "digest", "--json", self.dir).out)
        for key in ("zxid", "digest", "nodes", "sessions"):
            self.assertEqual(digest[key], told[key])
        self.assertIn("digest " + told["digest"], clave("data", "digest", self.dir).out)

    def test_version_2_itself(self):
        self.assertEqual(clave("data", "check", os.path.join(self.dir, "version-2")).code, 0)

    def test_everything_is_printed(self):
        lines = [json.loads(s) for s in clave("data", "dump", "--json", self.dir).out.splitlines()]
        entries = [e for e in lines if "offset" in e]
        expected = [r for n in self.files("log") for r in records(self.read(n))]
        self.assertEqual([(e["offset"], int(e["zxid"], 16)) for e in entries],
                         [(r.at, r.zxid) for r in expected])
        last = next(e for e in entries for c in e["changes"] if c.get("path") == "/last")
        self.assertEqual(last["changes"][0]["data"], "x")
        node = next(e for e in lines if e.get("path") == "/a")
        self.assertEqual(node["acl"], [{"scheme": "world", "id": "anyone", "perms": 31}])
        self.assertTrue(any(e.get("path") == "/zookeeper/config" for e in lines))
        text = clave("data", "dump", self.dir, last["file"]).out
        self.assertIn(f"{last['file']} offset {last['offset']}: zxid {last['zxid']} ", text)
        self.assertIn(f"    {last['type']} /last, 1 byte, ", text)

    def test_a_refused_multi_is_not_shown_as_done(self):
        name = self.files("log")[-1]
        raw = self.read(name)
        last = records(raw)[-1]
        self.write(name, raw[:last.end] + a_refused_multi(last.zxid + 1))
        self.fine()
        lines = clave("data", "dump", self.dir, name).out.splitlines()
        self.assertRegex(lines[-3], " multi, refused$")
        self.assertEqual(lines[-2:], ["    not done: delete /a", "    error -101"])
        entries = [json.loads(s)
                   for s in clave("data", "dump", "--json", self.dir, name).out.splitlines()]
        self.assertEqual([e.get("refused") for e in entries[-2:]], [None, True])

    def test_what_it_cannot_look_at(self):
        for words, code in ((["check", "/none/of/these"], 74), (["check", scratch("x")], 74),
                            (["mend", self.dir], 64), (["check"], 64),
                            (["check", self.dir, "log.1"], 64), (["dump", self.dir, "log.x"], 64),
                            (["dump", self.dir, "log.ffff"], 74)):
            result = clave("data", *words)
            self.assertEqual((result.code, result.out), (code, ""), result)
            self.assertNotEqual(result.err, "")

    # ---- damaged logs ------------------------------------------------------------------------

    def test_a_flipped_bit(self):
        name = self.log_with(3)
        raw = self.read(name)
        for record in records(raw)[:3]:
            bad = bytearray(raw)
            bad[record.at + 12 + 20] ^= 1
            self.write(name, bad)
            self.check(f"{name}: ", f"the record at offset {record.at},", "has a wrong checksum")

    def test_a_torn_tail_is_no_fault(self):
        name = self.files("log")[-1]
        raw = self.read(name)
        last = records(raw)[-1]
        self.write(name, raw[:last.end - 5])
        told = self.fine()
        note = next(f["note"] for f in told["files"] if f["name"] == name)
        self.assertIn(f"at offset {last.at}", note)
        self.write(name, raw + bytes(1000))  # padding
        self.assertIsNone(next(f["note"] for f in self.fine()["files"] if f["name"] == name))

    def test_a_file_that_cannot_be_read(self):
        name = self.files("log")[0]
        os.unlink(self.path(name))
        os.mkdir(self.path(name))
        result = clave("data", "check", self.dir)
        self.assertEqual(result.code, 74, result)
        self.assertIn(f"cannot read {name} in {self.dir}: Is a directory", result.err)
        self.assertNotIn("ok", result.out)
        told = json.loads(clave("--json", "data", "check", self.dir).out)
        self.assertIs(told["ok"], False)

    def test_a_hole(self):
        name = self.log_with(3)
        raw = self.read(name)
        _, second, third = records(raw)[:3]
        raw[second.at:second.end] = bytes(second.end - second.at)
        self.write(name, raw)
        self.check(f"{name}: ", f"a hole at offset {second.at}, and a whole record after it at "
                                f"offset {third.at}")

    def test_a_hole_that_was_passed_over(self):
        name, following = self.files("log")[-2:]
        raw = self.read(name)
        end = records(raw)[-1].end
        self.write(name, raw[:end] + bytes(700) + self.read(following)[16:])
        note = next(f["note"] for f in self.fine()["files"] if f["name"] == name)
        self.assertIn(f"a hole at offset {end}", note)
        self.assertIn("the next log continues before it", note)

    def later_leader(self, name):
        """As if a later leader of an ensemble had written this log."""
        raw = bytearray(self.read(name))
        for i, r in enumerate(records(raw)):
            raw[r.at + 24:r.at + 32] = struct.pack(">q", (1 << 32) + i + 1)
            raw[r.at:r.at + 8] = struct.pack(">q", zlib.adler32(raw[r.at + 12:r.end - 1]))
        os.unlink(os.path.join(self.dir, "version-2", name))
        self.write("log.100000001", raw)

    def test_damage_before_a_later_leader(self):
        name, following = self.files("log")[-2:]
        self.later_leader(following)
        raw = self.read(name)
        for at in records(raw)[0].at + 40, records(raw)[-1].at + 40:
            damaged = bytearray(raw)
            damaged[at] ^= 1
            self.write(name, damaged)
            told = json.loads(clave("data", "check", "--json", self.dir).out)
            fault = next(f["fault"] for f in told["files"] if f["name"] == name)
            self.assertIn("wrong checksum", fault or "")

    def test_a_record_that_is_missing(self):
        name, (first, second, third) = next(changes_in_between(self.dir))
        raw = self.read(name)
        self.write(name, raw[:second.at] + raw[third.at:])
        self.check(f"the record at offset {second.at} has zxid {hex(third.zxid)}, after "
                   + hex(first.zxid), f"{name}: ")

    def test_a_record_that_is_no_transaction(self):
        name = self.log_with(2)
        raw = self.read(name)
        record = records(raw)[1]
        payload = bytearray(record.payload)
        payload[28:32] = struct.pack(">i", 77)
        raw[record.at:record.at + 12] = struct.pack(">qi", zlib.adler32(payload), record.len)
        raw[record.at + 12:record.at + 12 + record.len] = payload
        self.write(name, raw)
        self.check(f"the record at offset {record.at}, zxid {hex(record.zxid)}, is not a transaction")

    def test_a_digest_of_another_tree(self):
        name = self.files("log")[-1]
        raw = self.read(name)
        record = records(raw)[-1]
        payload = bytearray(record.payload)
        payload[-5] ^= 1
        raw[record.at:record.at + 12] = struct.pack(">qi", zlib.adler32(payload), record.len)
        raw[record.at + 12:record.at + 12 + record.len] = payload
        self.write(name, raw)
        self.check("DAMAGED: the tree differs from the one the log was written with, from zxid "
                   + hex(record.zxid))

    def test_no_log_at_all(self):
        name = self.files("log")[-1]
        self.write(name, b"ZKLX" + self.read(name)[4:])
        self.check(f"{name}: ", "it does not begin with ZKLG")

    def test_logs_that_end_too_early(self):
        name = self.files("log")[-1]
        os.unlink(self.path(name))
        self.fine()
        name = self.files("log")[-1]
        raw = self.read(name)
        self.write(name, raw[:records(raw)[-1].at])
        self.check("DAMAGED: the logs end with zxid ", "but the newest snapshot was made at ")

    def test_a_log_that_is_missing(self):
        gone, following = self.files("log")[-2:]
        os.unlink(self.path(gone))
        self.check(f"{following}: ", "but the log before it ends with")

    # ---- damaged snapshots -------------------------------------------------------------------

    def test_damaged_snapshots(self):
        name = self.files("snapshot")[0]
        raw = self.read(name)
        self.write(name, b"ZKSX" + raw[4:])
        self.check(f"{name}: ", "it does not begin with ZKSN")
        bad = bytearray(raw)
        bad[raw.index(b"anyone")] ^= 1
        self.write(name, bad)
        self.check(f"{name}: ", "a seal is not the checksum of the file, at offset ")

    def test_unfinished_snapshots(self):
        """Passed over as long as an older one carries the logs."""
        name = self.files("snapshot")[-1]
        raw = self.read(name)
        for bad, text in ((raw[:100], ", at offset "), (raw[:-3], "a seal is cut short"),
                          (b"", "it does not begin with ZKSN")):
            self.write(name, bad)
            note = next(f["note"] for f in self.fine()["files"] if f["name"] == name)
            self.assertIn("never finished, skipped: ", note)
            self.assertIn(text, note)
        for other in self.files("snapshot")[:-1]:
            os.unlink(self.path(other))
        self.check("DAMAGED: ", "no snapshot in ")

    # ---- Apache's -----------------------------------------------------------------------------

    @unittest.skipUnless(has_apache(), "Apache ZooKeeper is not installed")
    def test_what_apache_wrote(self):
        server = ApacheServer()
        server.start()
        fill(server.connect)
        server.stop(signal.SIGKILL)
        self.dir = server.data
        told = self.fine()
        self.assertGreater(told["digests"], 5)
        name = self.files("log")[-1]
        raw = self.read(name)
        record = records(raw)[2]
        raw[record.at + 40] ^= 0x10
        self.write(name, raw)
        self.check(f"{name}: ", f"the record at offset {record.at},", "has a wrong checksum")


if __name__ == "__main__":
    unittest.main()
