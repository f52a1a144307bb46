"""Goal: Python and Java mean the same bytes. Method: golden frames in the repository, read by both."""

import pathlib
import unittest

from orbitkv import wire
from orbitkv.saving import REASONS

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "manager/src/test/resources/golden/frames.txt"
DROP_REASONS = ROOT / "manager/src/test/resources/golden/drop-reasons.txt"

OP = 0x0102030405060708
EPOCH = 0xF112131415161718
HANDLE = 0x2122232425262728
KEYS = bytes(range(3, 67))
KEY = bytes(range(100, 132))


def requests():
    return {
        "Hello": wire.hello(OP, wire.WORKER, True, "engine-0", "test/1"),
        "OpenFamily": wire.open_family(OP, EPOCH, KEYS),
        "Query": wire.query(OP, EPOCH, HANDLE, 7, True, KEYS),
        "Poll": wire.poll(OP, EPOCH, HANDLE),
        "Locate": wire.locate(OP, EPOCH, HANDLE, 2, 3, 4, 8192, 65536),
        "Done": wire.done(OP, EPOCH, HANDLE, 2, 3, 1),
        "SaveBegin": wire.save_begin(OP, EPOCH, 7, 2, KEY, KEYS),
        "SaveCommit": wire.save_commit(OP, EPOCH, HANDLE, (4096, 12288)),
        "SaveAbort": wire.save_abort(OP, EPOCH, HANDLE),
        "Renew": wire.renew(OP, EPOCH, (5, HANDLE)),
        "Release": wire.release(OP, EPOCH, (5, HANDLE)),
        "Prefetch": wire.prefetch(OP, EPOCH, HANDLE, 7, KEYS),
        "Cancel": wire.cancel(OP, EPOCH, HANDLE),
        "Clear": wire.clear(OP, EPOCH, 7),
        "Sync": wire.sync(OP, EPOCH, 99, wire.DURABLE, 250),
        "Stats": wire.stats(OP, EPOCH),
        "Events": wire.events(OP, EPOCH, 17, 250),
        "ListBlocks": wire.list_blocks(OP, EPOCH, HANDLE),
        "Ping": wire.ping(OP, EPOCH),
        "Bye": wire.bye(OP, EPOCH),
    }


ANSWERS = {
    "Welcome": (
        wire.welcome,
        wire.Welcome(OP, EPOCH, 3, 1 << 40, 4096, 64 << 20, 1 << 20, 1 << 20, 30_000, 1 << 20, 16_384, 1024, 1),
    ),
    "FamilyOpened": (wire.family_opened, wire.FamilyOpened(OP, KEY, 7, 8, 65536)),
    "QueryAnswer": (wire.query_answer, wire.QueryAnswer(OP, HANDLE, 6, 1234, 64, 60, 4, 5, wire.READY)),
    "Located": (
        wire.located,
        [wire.Place(4096, 9, 5, 0xDEADBEEF, wire.ARENA), wire.Place(8192, 0, 0, 0, wire.LANDED)],
    ),
    "SaveGranted": (wire.granted, wire.Granted(OP, HANDLE, 2, b"\x05")),
    "SaveAnswer": (wire.save_answer, wire.SaveAnswer(OP, 77, 1, 2, 2, 3, 1)),
    "LeaseCodes": (wire.lease_codes, [(5, 0), (HANDLE, 1009)]),
    "SyncAnswer": (wire.sync_answer, wire.TIMED_OUT),
    "StatsAnswer": (wire.stats_answer, '{"a":1}'),
    "EventsAnswer": (wire.events_answer, (EPOCH, 17, [wire.Event(18, KEY, KEYS[:32], 2, wire.STORED)])),
    "EventsAnswerRemoved": (
        wire.events_answer,
        (
            EPOCH,
            17,
            [
                wire.Event(18, KEY, KEYS[:16] + bytes(16), 2, wire.REMOVED),
                wire.Event(19, KEY, bytes(32), 0, wire.CLEARED),
            ],
        ),
    ),
    "BlocksListed": (
        wire.blocks_listed,
        (EPOCH, HANDLE, [wire.ListedBlock(KEY, KEYS[:16], 2), wire.ListedBlock(KEY, KEYS[32:48], 3)]),
    ),
    "Ack": (lambda frame: frame.op, OP),
    "Error": (wire.error, wire.ErrorAnswer(OP, EPOCH, 1004, False, "OKV-1004: stale")),
}


def golden():
    lines = GOLDEN.read_text().splitlines()
    return {name: bytes.fromhex(hexed) for name, hexed in (line.split() for line in lines if line and line[0] != "#")}


class WireTest(unittest.TestCase):
    def test_requests_are_the_golden_ones(self):
        frames = golden()
        for name, frame in requests().items():
            with self.subTest(name):
                self.assertEqual(frames[name].hex(), frame.hex())

    def test_answers_are_read_as_they_are_meant(self):
        frames = golden()
        for name, (read, meant) in ANSWERS.items():
            with self.subTest(name):
                frame = wire.parse(frames[name])
                self.assertEqual(OP, frame.op)
                self.assertEqual(meant, read(frame))

    def test_every_golden_frame_is_known(self):
        self.assertEqual(set(golden()), set(requests()) | set(ANSWERS))

    def test_drop_reasons_are_those_of_the_store(self):
        lines = [line.split() for line in DROP_REASONS.read_text().splitlines() if line[:1] != "#"]
        self.assertEqual([(str(i), name or "NONE") for i, name in enumerate(REASONS)], [tuple(line) for line in lines])

    def test_longer_rows_of_a_later_version_are_read(self):
        frame = bytearray(golden()["Located"])
        row = wire._PLACE.size
        later = bytes(frame[:24]) + b"".join(bytes(frame[24 + i * row : 24 + (i + 1) * row]) + b"new!" for i in range(2))
        later = later[:20] + (row + 4).to_bytes(2, "little") + later[22:]
        self.assertEqual(ANSWERS["Located"][1], wire.located(wire.parse(later)))

    def test_lengths_that_cannot_be_are_refused(self):
        for length in (0, 7, wire.FRAME_BYTES_MAX + 1, 0xFFFFFFFF):
            with self.assertRaises(ValueError):
                wire.frame_bytes(length.to_bytes(4, "little"))


if __name__ == "__main__":
    unittest.main()
