"""Goal: pinning is bounded, and a driver that refuses it costs speed only. Method: a driver that refuses what the test says."""

import types
import unittest

from orbitkv.vllm.pages import CudaBuffer
from orbitkv.vllm.settings import Settings
from orbitkv.vllm.worker import _Mover

GIB = 1 << 30


class Tensor:
    def __init__(self, size, pinned):
        self.memory = bytearray(size)
        self.pinned = pinned

    def numpy(self):
        return self.memory


class Driver:
    """What :class:`CudaBuffer` needs of torch; the allocations that are named are refused."""

    uint8 = "uint8"

    def __init__(self, refused=()):
        self.refused = refused
        self.pinned = []

    def empty(self, size, dtype, pin_memory=False):
        if pin_memory:
            self.pinned.append(size)
            if len(self.pinned) in self.refused:
                raise RuntimeError("CUDA error: operation not supported (801)")
        return Tensor(size, pin_memory)


class PinningTest(unittest.TestCase):
    def test_reported_vllm_55428_where_nothing_may_be_pinned_blocks_go_through_plain_memory(self):
        driver = Driver(refused={1})
        with self.assertLogs("orbitkv.vllm", "WARNING") as told:
            buffer = CudaBuffer(driver, 4096)
        self.assertIn("801", told.output[0])
        self.assertFalse(buffer.tensor.pinned)
        buffer.view[:4] = b"kept"
        self.assertEqual(b"kept", bytes(buffer.tensor.memory[:4]))

    def test_reported_vllm_51080_the_third_of_some_buffers_that_cannot_be_pinned_harms_no_other(self):
        driver = Driver(refused={3})
        with self.assertLogs("orbitkv.vllm", "WARNING") as told:
            buffers = [CudaBuffer(driver, 4096) for _ in range(4)]
        self.assertEqual(1, len(told.output))
        self.assertEqual([True, True, False, True], [buffer.tensor.pinned for buffer in buffers])

    def test_reported_TensorRT_LLM_17773_what_is_pinned_does_not_grow_with_the_pool(self):
        """One buffer a thread, made once: no call to the driver pins more, whatever pool the manager has."""
        driver = Driver()
        largest_block = 2 << 20
        pages = types.SimpleNamespace(
            layout=types.SimpleNamespace(block_bytes=largest_block), buffer=lambda size: CudaBuffer(driver, size)
        )
        movers = [_Mover(f"test-{i}", lambda: types.SimpleNamespace(close=lambda: None), lambda of, job: None) for i in range(2)]
        for mover in movers:
            for _ in range(3):
                mover.buffer(pages, Settings().buffer_bytes)
        self.assertEqual([Settings().buffer_bytes] * 2, driver.pinned)
        self.assertLess(sum(driver.pinned), GIB // 8)
        for mover in movers:
            mover.close()


if __name__ == "__main__":
    unittest.main()
