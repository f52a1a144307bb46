"""Goal: the small parts hold by themselves. Method: against plain models, seeded."""

import random
import unittest

from orbitkv import CacheManagerClient, Code, OrbitKvError, checksum
from orbitkv.client import _sources
from orbitkv.staging import Ranges

PAGE = Ranges.PAGE


class ChecksumTest(unittest.TestCase):
    def test_known_values_of_crc32c(self):
        self.assertEqual(0xE3069283, checksum._in_python(b"123456789"))
        self.assertEqual(0x8A9136AA, checksum._in_python(bytes(32)))
        self.assertEqual(0x62A8AB43, checksum._in_python(b"\xff" * 32))

    def test_it_goes_on_where_it_ended(self):
        whole = checksum._in_python(b"123456789")
        self.assertEqual(whole, checksum._in_python(b"56789", checksum._in_python(b"1234")))
        self.assertEqual(whole, checksum.block_checksum(b"1234", memoryview(b"56789")))


class RangesTest(unittest.TestCase):
    def test_ranges_never_overlap_and_all_come_back(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        ranges = Ranges(64 * PAGE)
        held = []
        for _ in range(5000):
            if held and rng.random() < 0.5:
                start, size = held.pop(rng.randrange(len(held)))
                ranges.give_back(start, size)
            else:
                size = rng.randrange(1, 12 * PAGE)
                start = ranges.take(size)
                if start is not None:
                    self.assertEqual(0, start % PAGE)
                    for other, length in held:
                        self.assertTrue(start + size <= other or other + length <= start, f"seed {seed}")
                    held.append((start, size))
        for start, size in held:
            ranges.give_back(start, size)
        self.assertEqual(64 * PAGE, ranges.free_bytes())
        self.assertEqual(0, ranges.take(64 * PAGE))
        self.assertIsNone(ranges.take(1))


class MisuseTest(unittest.TestCase):
    def test_buffers_that_do_not_fit_are_refused(self):
        for blocks, count in ((b"12345678", 3), ([b"1234", b"123"], 2), ([b"1234"], 2)):
            with self.assertRaises(OrbitKvError) as refused:
                _sources(blocks, count, 4)
            self.assertEqual(Code.BAD_BUFFER, refused.exception.code)
        self.assertEqual([b"1234", b"5678"], [bytes(view) for view in _sources(bytearray(b"12345678"), 2, 4)])

    def test_without_a_manager_everything_is_a_miss_at_once(self):
        from ..integration.manager_process import BLOCK_BYTES, family, keys_of, payload

        with CacheManagerClient("/nonexistent/orbitkv.sock") as client:
            chat = client.family(family())
            keys = keys_of(1, 2)
            match = chat.query(keys)
            self.assertFalse(match)
            self.assertEqual(0, match.restore(bytearray(2 * BLOCK_BYTES)))
            self.assertEqual([], match.views())
            saved = chat.save(keys, payload(keys))
            self.assertEqual((2, "UNAVAILABLE"), (saved.dropped, saved.reason))
            self.assertEqual({}, client.stats())
            self.assertFalse(client.is_connected or client.ping() or chat.clear() or client.sync(1, timeout=0.1))
            with self.assertRaises(OrbitKvError):
                chat.query(b"not a key")

    def test_roles_are_known(self):
        with self.assertRaises(ValueError):
            CacheManagerClient("/nonexistent/orbitkv.sock", role="king")


if __name__ == "__main__":
    unittest.main()
