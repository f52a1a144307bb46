"""Goal: what a GPU fetches by itself is what a copy through memory brings, and no memory is let go under it.

Method: a driver's double in host memory that copies only when the stream is waited for; every layout; a mapping larger than a piece.
"""

import mmap
import random
import threading
import time
import unittest

from orbitkv.client import Memories
from orbitkv.vllm.direct import PIECE_BYTES, HostMemory, Mappings, address_of
from orbitkv.vllm.layout import layout_of
from orbitkv.vllm.pages import HostPages

from ..direct_double import DirectPages, DriverDouble
from .test_vllm_layout import BLOCKS, LAYOUTS, views_of


class DirectTest(unittest.TestCase):
    def test_every_layout_as_through_memory(self):
        for name in LAYOUTS:
            with self.subTest(name):
                views, size = views_of(name)
                layout = layout_of(views, BLOCKS, size)
                content = memoryview(random.Random(name).randbytes(3 * layout.block_bytes))
                one, other = bytearray(size), bytearray(size)
                through = HostPages(memoryview(one), layout)
                buffer = through.buffer(len(content))
                buffer.view[:] = content
                direct = DirectPages(memoryview(other), layout)
                for pages in ([3, 1, 2], [0, 1, 2], [4, 3, 0]):
                    through.write(pages, buffer)
                    sink = direct.sink_of(pages)
                    sink.take(0, 3, content, 0)
                    sink.settle()
                    self.assertEqual(one, other)
                self.assertEqual(0, direct.slow)

    def test_neighbours_are_one_copy_where_blocks_are_one_run(self):
        views, size = views_of("BLNHC")
        layout = layout_of(views, BLOCKS, size)
        direct = DirectPages(memoryview(bytearray(size)), layout)
        source = memoryview(bytes(4 * layout.block_bytes))
        sink = direct.sink_of([1, 2, 3, 0])
        sink.take(0, 4, source, 0)
        sink.settle()
        self.assertEqual(2, direct.driver.copies)

    def test_only_what_loads_touch_is_registered_and_each_call_is_short(self):
        with mmap.mmap(-1, 3 * PIECE_BYTES + 4096) as memory:
            view = memoryview(memory).toreadonly()
            driver = DriverDouble()
            known = HostMemory(driver, view)
            self.assertTrue(known.may_read(PIECE_BYTES + 5, 100))
            self.assertEqual({known.address + PIECE_BYTES: PIECE_BYTES}, driver.registered)
            self.assertTrue(known.may_read(3 * PIECE_BYTES - 10, 20), "over the border of two")
            self.assertEqual(2 * PIECE_BYTES + 4096, sum(driver.registered.values()))
            self.assertLessEqual(driver.longest, PIECE_BYTES)
            known.end()
            self.assertEqual({}, driver.registered)
            view.release()
            del known

    def test_a_copy_over_the_border_of_two_pieces_is_two(self):
        views, size = views_of("BLNHC")
        layout = layout_of(views, BLOCKS, size)
        memory = bytearray(size)
        direct = DirectPages(memoryview(memory), layout)
        with mmap.mmap(-1, 2 * PIECE_BYTES) as mapping:
            view = memoryview(mapping)
            content = random.Random(3).randbytes(3 * layout.block_bytes)
            at = PIECE_BYTES - layout.block_bytes - 7
            view[at : at + len(content)] = content
            sink = direct.sink_of([1, 2, 3])
            sink.take(0, 3, view, at)
            sink.settle()
            self.assertEqual(2, direct.driver.copies)
            self.assertEqual(content, bytes(memory[layout.block_bytes : 4 * layout.block_bytes]))
            direct.mappings.end((view,))
            view.release()

    def test_what_may_not_be_registered_is_copied_all_the_same(self):
        views, size = views_of("LBNHC")
        layout = layout_of(views, BLOCKS, size)
        memory = bytearray(size)
        direct = DirectPages(memoryview(memory), layout, DriverDouble(refuses=lambda start, size: True))
        content = memoryview(random.Random(5).randbytes(2 * layout.block_bytes))
        with self.assertLogs("orbitkv.vllm", "WARNING") as told:
            for _ in range(2):
                sink = direct.sink_of([4, 0])
                sink.take(0, 2, content, 0)
                sink.settle()
        self.assertEqual(1, len(told.output))
        self.assertIn("801", told.output[0])
        wanted = bytearray(size)
        through = HostPages(memoryview(wanted), layout)
        buffer = through.buffer(len(content))
        buffer.view[:] = content
        through.write([4, 0], buffer)
        self.assertEqual(wanted, memory)
        self.assertEqual(0, direct.driver.copies)

    def test_memory_stays_until_copies_from_it_have_ended(self):
        views, size = views_of("BLNHC")
        layout = layout_of(views, BLOCKS, size)
        memory = bytearray(size)
        direct = DirectPages(memoryview(memory), layout)
        source = memoryview(bytes([9]) * layout.block_bytes)
        sink = direct.sink_of([2])
        sink.take(0, 1, source, 0)
        ended = threading.Event()
        ending = threading.Thread(target=lambda: (direct.mappings.end((source,)), ended.set()))
        ending.start()
        self.assertFalse(ended.wait(0.1), "the mapping was let go under a copy")
        self.assertEqual(1, len(direct.driver.registered))
        sink.settle()
        self.assertTrue(ended.wait(10))
        ending.join()
        self.assertEqual({}, direct.driver.registered)
        self.assertEqual(9, memory[2 * layout.block_bytes])

    def test_a_copy_that_fails_lets_the_lock_go(self):
        views, size = views_of("BLNHC")
        layout = layout_of(views, BLOCKS, size)
        direct = DirectPages(memoryview(bytearray(size)), layout)
        direct.driver.copy = lambda *of: 700
        sink = direct.sink_of([2])
        with self.assertRaisesRegex(RuntimeError, "OKV-704.*700"):
            sink.take(0, 1, memoryview(bytes(layout.block_bytes)), 0)
        self.assertTrue(direct.mappings.lock.acquire(timeout=1))

    def test_the_address_of_memory_that_cannot_be_written(self):
        content = b"x" * 100
        self.assertEqual(address_of(memoryview(content)[40:]), address_of(memoryview(content)) + 40)


class Client:
    """A client as far as its memory is concerned."""

    def __init__(self, pool=None, staging=None, taken=0, gone=False):
        self.calls = []
        self.taken = taken
        self.gone = gone
        self.memories = None if pool is None else Memories(pool, staging, lambda: self.taken, self._on_end)

    def _on_end(self, call):
        if not self.gone:
            self.calls.append(call)
        return not self.gone

    def end(self):
        for call in self.calls:
            call((self.memories.pool, self.memories.staging))


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


class MappingsTest(unittest.TestCase):
    def test_without_a_manager_nobody_is_followed(self):
        self.assertFalse(Mappings(DriverDouble()).follow(Client()))
        pool, staging = memoryview(b"a" * 8), memoryview(b"b" * 8)
        mappings = Mappings(DriverDouble())
        self.assertFalse(mappings.follow(Client(pool, staging, gone=True)))
        self.assertEqual([], mappings._known)

    def test_each_life_is_followed_once_and_let_go_at_its_end(self):
        one = Client(memoryview(b"a" * 8), memoryview(b"b" * 8))
        other = Client(memoryview(b"c" * 8), memoryview(b"d" * 8))
        mappings = Mappings(DriverDouble())
        for client in (one, one, other, one):
            self.assertTrue(mappings.follow(client))
        self.assertEqual([1, 1], [len(one.calls), len(other.calls)])
        one.end()
        self.assertEqual(2, len(mappings._known))
        other.end()
        self.assertEqual([], mappings._known)

    def test_what_has_held_blocks_is_registered_before_a_load_comes(self):
        others = set(threading.enumerate())
        with mmap.mmap(-1, 5 * PIECE_BYTES + 4096) as memory:
            pool = memoryview(memory).toreadonly()
            driver = DriverDouble()
            client = Client(pool, memoryview(bytearray(4096)), taken=PIECE_BYTES + 1)
            Mappings(driver).follow(client)
            until(lambda: len(driver.registered) == 2)
            client.taken = 6 * PIECE_BYTES
            until(lambda: len(driver.registered) == 6)
            self.assertEqual(5 * PIECE_BYTES + 4096, sum(driver.registered.values()))
            client.end()
            self.assertEqual({}, driver.registered)
            until(lambda: not set(threading.enumerate()) - others)
            pool.release()


if __name__ == "__main__":
    unittest.main()
