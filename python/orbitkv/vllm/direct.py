"""Loads that a GPU fetches by itself: from the manager's shared memory, without a pass of this process over the bytes.

Shared memory is registered with CUDA in pieces of 64 MiB, behind what the manager has put blocks into so far, or when a load
touches it first: a driver call stays short, however large the pool is, and what never held blocks is not pinned. A piece that the
driver refuses is copied the slow way.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Protocol, Sequence, Tuple

from .layout import BlockLayout

if TYPE_CHECKING:  # pragma: no cover
    from ..client import CacheManagerClient
    from ..wire import Place

_LOG = logging.getLogger("orbitkv.vllm")

PIECE_BYTES = 64 << 20

_LOOK_SECONDS = 0.2  # how often the pool is asked how much of it has held blocks

_READ_ONLY = 0x08  # CU_MEMHOSTREGISTER_READ_ONLY, cuda.h
_ALREADY_REGISTERED = 712  # CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED


class Driver(Protocol):
    """What is asked of CUDA; on a machine without, a double in host memory."""

    def register(self, address: int, size: int) -> int:
        """Lets the GPU read host memory by itself, which this process may be unable to write; 0, or the driver's error."""

    def unregister(self, address: int) -> None:
        """Ends that; nothing is copied from there any more."""

    def copy(self, to: int, source: int, size: int, stream: int) -> int:
        """Begins to copy to the GPU, in order with what else the stream does; 0, or the driver's error."""


class CudaDriver:
    """libcuda."""

    def __init__(self, enter: Callable[[], None]) -> None:
        """``enter`` gives the calling thread the device's context. Raises OSError where there is no libcuda."""
        self._enter = enter
        cuda = ctypes.CDLL("libcuda.so.1")
        self._register = cuda.cuMemHostRegister_v2
        self._register.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint]
        self._unregister = cuda.cuMemHostUnregister
        self._unregister.argtypes = [ctypes.c_void_p]
        self._copy = cuda.cuMemcpyHtoDAsync_v2
        self._copy.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]

    def register(self, address: int, size: int) -> int:
        self._enter()
        error = int(self._register(address, size, _READ_ONLY))
        return 0 if error == _ALREADY_REGISTERED else error

    def unregister(self, address: int) -> None:
        self._enter()
        self._unregister(address)

    def copy(self, to: int, source: int, size: int, stream: int) -> int:
        return int(self._copy(to, source, size, stream))


class HostMemory:
    """One mapping, as far as the GPU may read it. It stays mapped for as long as this is not ended. Any thread."""

    def __init__(self, driver: Driver, memory: memoryview) -> None:
        self.memory: Optional[memoryview] = memory
        self.address = address_of(memory)
        self._driver = driver
        self._size = len(memory)
        self._pieces: Dict[int, bool] = {}
        self._changing = threading.Lock()
        self._warned = False

    def may_read(self, start: int, size: int) -> bool:
        """Whether the GPU may read a range."""
        return all(self._piece(piece) for piece in range(start // PIECE_BYTES, (start + size - 1) // PIECE_BYTES + 1))

    def learn(self, size: int) -> bool:
        """Registers one piece more of the first bytes; false where there is nothing left to do."""
        for piece in range((min(size, self._size) + PIECE_BYTES - 1) // PIECE_BYTES):
            if piece not in self._pieces:
                return self._piece(piece)
        return False

    def _piece(self, piece: int) -> bool:
        known = self._pieces.get(piece)
        return self._register(piece) if known is None else known

    def _register(self, piece: int) -> bool:
        with self._changing:
            if self.memory is None or piece in self._pieces:
                return self._pieces.get(piece, False)
            start = piece * PIECE_BYTES
            error = self._driver.register(self.address + start, min(PIECE_BYTES, self._size - start))
            self._pieces[piece] = error == 0
            if error and not self._warned:
                self._warned = True
                _LOG.warning(
                    "OrbitKV: the GPU can't be let at the manager's memory (CUDA error %d); loads are copied by the processor"
                    " instead, which is slower",
                    error,
                )
            return error == 0

    def end(self) -> None:
        with self._changing:
            for piece, known in self._pieces.items():
                if known:
                    self._driver.unregister(self.address + piece * PIECE_BYTES)
            self._pieces = {}
            self.memory = None


class Mappings:
    """The mappings that loads come from: the pool and the staging memory of one life of the manager, seldom of two.

    One thread loads; any thread may end a life's mappings.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._known: List[HostMemory] = []
        self.lock = threading.Lock()  #: held while copies from a mapping are under way

    def of(self, memory: memoryview) -> HostMemory:
        """The caller holds the lock until its copies have ended."""
        for known in self._known:
            if known.memory is memory:
                return known
        made = HostMemory(self._driver, memory)
        self._known.append(made)
        return made

    def follow(self, client: "CacheManagerClient") -> bool:
        """Knows the mappings of the manager that a client is connected with, and lets them go when that has gone.

        Returns:
            Whether it is connected, and this is so.
        """
        memories = client.memories
        if memories is None:
            return False
        with self.lock:
            if any(known.memory is memories.pool for known in self._known):
                return True
            pool = self.of(memories.pool)
            self.of(memories.staging)
        if not memories.on_end(self.end):
            self.end((memories.pool, memories.staging))
            return False
        threading.Thread(target=_learn, args=(pool, memories.pool_taken), name="orbitkv-pinning", daemon=True).start()
        return True

    def end(self, memories: Tuple[memoryview, ...]) -> None:
        """These are to be unmapped: waits for copies that are under way."""
        with self.lock:
            for known in [known for known in self._known if any(known.memory is memory for memory in memories)]:
                known.end()
                self._known.remove(known)


def _learn(pool: HostMemory, taken: Callable[[], int]) -> None:
    """Registers what has held blocks, so that loads don't have to: the first GiB of a load would take as long as twice its copy."""
    while pool.memory is not None:
        if not pool.learn(taken()):
            time.sleep(_LOOK_SECONDS)


class DirectSink:
    """Takes the blocks of one load to pages of the GPU: see :meth:`orbitkv.match.Match.send`."""

    def __init__(
        self,
        mappings: Mappings,
        driver: Driver,
        layout: BlockLayout,
        device: int,
        pages: Sequence[int],
        stream: Any,
        slow: Any,
    ) -> None:
        """``device`` is the address of the engine's pages; ``slow(to, bytes)`` copies what the GPU may not read."""
        self._mappings = mappings
        self._driver = driver
        self._layout = layout
        self._device = device
        self._pages = pages
        self._stream = stream
        self._slow = slow
        self._holds = False
        self._is_one_run = len(layout.runs) == 1 and layout.runs[0].stride == layout.runs[0].length

    def take(self, block: int, count: int, memory: memoryview, start: int) -> None:
        """Begins to copy blocks that lie back to back."""
        if not self._holds:
            self._mappings.lock.acquire()
            self._holds = True
        good = False
        try:
            self._take(block, count, memory, start)
            good = True
        finally:
            if not good:
                self.settle()

    def _take(self, block: int, count: int, memory: memoryview, start: int) -> None:
        size = self._layout.block_bytes
        source = self._mappings.of(memory)
        if not source.may_read(start, count * size):
            for i in range(count):
                self._copy_slowly(self._pages[block + i], memory[start + i * size : start + (i + 1) * size])
            return
        done = 0
        while done < count:
            length = self._neighbours(block + done, count - done) if self._is_one_run else 1
            at = start + done * size
            page = self._pages[block + done]
            for run in self._layout.runs:
                self._begin(self._device + run.offset + page * run.stride, source.address, at, run.length * length)
                at += run.length
            done += length

    def _neighbours(self, first: int, most: int) -> int:
        """How many blocks from one on go to pages that follow each other."""
        page, count = self._pages[first], 1
        while count < most and self._pages[first + count] == page + count:
            count += 1
        return count

    def _begin(self, to: int, source: int, at: int, size: int) -> None:
        """The driver takes no copy that crosses the border of two pieces."""
        while size:
            part = min(size, PIECE_BYTES - at % PIECE_BYTES)
            error = self._driver.copy(to, source + at, part, self._stream.cuda_stream)
            if error:
                raise RuntimeError(f"OKV-704: copying {part} bytes to the GPU ended with CUDA error {error}")
            to, at, size = to + part, at + part, size - part

    def _copy_slowly(self, page: int, data: memoryview) -> None:
        at = 0
        for run in self._layout.runs:
            self._slow(run.offset + page * run.stride, data[at : at + run.length])
            at += run.length

    def settle(self) -> None:
        """Returns when the GPU has read all that was begun."""
        if not self._holds:
            return
        try:
            self._stream.synchronize()
        finally:
            self._holds = False
            self._mappings.lock.release()

    def is_right(self, block: int, places: "List[Place]") -> bool:
        """Their generations were looked at; nobody looks at the bytes, which the manager scrubs."""
        return True


def address_of(memory: memoryview) -> int:
    """Where a buffer lies, which may be read-only, for which ctypes has no words of its own."""
    buffer = _PyBuffer()
    _get_buffer(ctypes.py_object(memory), ctypes.byref(buffer), 0)
    address = buffer.buf
    _release_buffer(ctypes.byref(buffer))
    return int(address)


class _PyBuffer(ctypes.Structure):
    """``Py_buffer`` of the stable C API, https://docs.python.org/3/c-api/buffer.html."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_get_buffer.restype = ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(_PyBuffer)]
_release_buffer.restype = None
