"""Goal: on a GPU pages are copied as on a processor, and behind what the engine still computes.

Method: the same memory on both, through all layouts; a slow computation on the current stream before a mark. Needs a GPU and torch.
"""

import importlib.util
import unittest

from orbitkv.vllm.layout import layout_of
from orbitkv.vllm.pages import CudaPages, HostPages

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


if __name__ == "__main__":
    unittest.main()
