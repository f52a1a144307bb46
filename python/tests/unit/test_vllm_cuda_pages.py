"""Goal: on a GPU pages are copied as on a processor, and behind what the engine still computes.

Method: the same memory on both, through all layouts; a slow computation on the current stream before a mark. Needs a GPU and torch.
"""

import importlib.util
import mmap
import os
import random
import unittest

from orbitkv.vllm.layout import layout_of
from orbitkv.vllm.pages import CudaPages, HostPages

from .test_vllm_direct import Client
from .test_vllm_layout import BLOCKS, LAYOUTS, views_of


def has_gpu():
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


@unittest.skipUnless(has_gpu(), "needs torch and a GPU")
class CudaPagesTest(unittest.TestCase):
    def test_copies_are_those_of_a_processor(self):
        import torch

        for name in LAYOUTS:
            with self.subTest(name):
                views, size = views_of(name)
                layout = layout_of(views, BLOCKS, size)
                content = torch.randint(0, 256, (size,), dtype=torch.uint8)
                host = HostPages(memoryview(content.numpy()), layout)
                gpu = CudaPages(content.cuda(), layout)
                one, other = host.buffer(2 * layout.block_bytes), gpu.buffer(2 * layout.block_bytes)
                host.read([3, 1], one)
                gpu.read([3, 1], other, gpu.mark())
                self.assertEqual(bytes(one.view), bytes(other.view))
                host.write([0, 4], one)
                gpu.write([0, 4], other, gpu.mark())
                self.assertTrue(torch.equal(content, gpu._flat.cpu()))

    def test_a_copy_waits_for_the_mark(self):
        import torch

        views, size = views_of("BLNHC")
        layout = layout_of(views, BLOCKS, size)
        gpu = CudaPages(torch.zeros(size, dtype=torch.uint8, device="cuda"), layout)
        buffer = gpu.buffer(layout.block_bytes)
        torch.cuda._sleep(500_000_000)  # a good while of the compute stream
        gpu._flat.fill_(7)
        gpu.read([2], buffer, gpu.mark())
        self.assertEqual(bytes([7]) * layout.block_bytes, bytes(buffer.view), "saved before it was computed")
        torch.cuda._sleep(500_000_000)
        gpu._flat.fill_(9)
        buffer.view[:] = bytes([5]) * layout.block_bytes
        gpu.write([2], buffer, gpu.mark())
        torch.cuda.synchronize()
        gpu.read([2], buffer, None)
        self.assertEqual(bytes([5]) * layout.block_bytes, bytes(buffer.view), "overtook what the engine wrote")

    def test_blocks_are_fetched_from_memory_that_this_process_cannot_write(self):
        """As the manager's pool: a memfd that is mapped for reading only. Two pieces of it, and what lies over their border."""
        import torch

        from orbitkv.vllm.direct import PIECE_BYTES

        fd = os.memfd_create("orbitkv-test", 0)
        self.addCleanup(os.close, fd)
        os.ftruncate(fd, 2 * PIECE_BYTES)
        for name in LAYOUTS:
            with self.subTest(name):
                views, size = views_of(name)
                layout = layout_of(views, BLOCKS, size)
                content = random.Random(name).randbytes(3 * layout.block_bytes)
                places = (0, PIECE_BYTES - layout.block_bytes - 7, 2 * PIECE_BYTES - 3 * layout.block_bytes)
                for place in places:
                    os.pwrite(fd, content, place)
                memory = memoryview(mmap.mmap(fd, 2 * PIECE_BYTES, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ))
                wanted = torch.randint(0, 256, (size,), dtype=torch.uint8)
                gpu = CudaPages(wanted.cuda(), layout)
                host = HostPages(memoryview(wanted.numpy()), layout)
                through = host.buffer(len(content))
                through.view[:] = content
                client = Client(memory, memoryview(bytearray(4096)))
                self.assertTrue(gpu.follow(client))
                for place, pages in zip(places, ([3, 1, 2], [0, 1, 2], [4, 3, 0])):
                    host.write(pages, through)
                    sink = gpu.sink(pages, gpu.mark())
                    sink.take(0, 3, memory, place)
                    sink.settle()
                    self.assertTrue(torch.equal(wanted, gpu._flat.cpu()), place)
                client.end()
                self.assertEqual([], gpu._mappings._known)

    def test_a_fetch_waits_for_the_mark(self):
        import torch

        views, size = views_of("BLNHC")
        layout = layout_of(views, BLOCKS, size)
        gpu = CudaPages(torch.zeros(size, dtype=torch.uint8, device="cuda"), layout)
        memory = memoryview(mmap.mmap(-1, 1 << 20))
        memory[: layout.block_bytes] = bytes([5]) * layout.block_bytes
        torch.cuda._sleep(500_000_000)
        gpu._flat.fill_(9)
        client = Client(memory, memoryview(bytearray(4096)))
        self.addCleanup(client.end)
        self.assertTrue(gpu.follow(client))
        sink = gpu.sink([2], gpu.mark())
        sink.take(0, 1, memory, 0)
        sink.settle()
        torch.cuda.synchronize()
        buffer = gpu.buffer(layout.block_bytes)
        gpu.read([2], buffer, None)
        self.assertEqual(bytes([5]) * layout.block_bytes, bytes(buffer.view), "overtook what the engine wrote")


if __name__ == "__main__":
    unittest.main()
