"""Copies between the engine's pages and memory of this process, on any device."""

from __future__ import annotations

import ctypes
import logging
from typing import Any, Optional, Protocol, Sequence

from ..client import CacheManagerClient
from ..match import Sink
from .direct import CudaDriver, DirectSink, Mappings
from .layout import BlockLayout

_LOG = logging.getLogger("orbitkv.vllm")


class Buffer(Protocol):
    """Memory that blocks go through, back to back."""

    @property
    def view(self) -> memoryview: ...


class Pages(Protocol):
    """The engine's pages on one device. Used by two threads, one that reads and one that writes.

    Buffers are those that :meth:`buffer` has made.
    """

    layout: BlockLayout

    def buffer(self, size: int) -> Buffer:
        """Memory from which, and into which, copies are fast."""

    def mark(self) -> Any:
        """Where the engine's computation is now; a copy *after* it sees what was computed, and overtakes no reader."""

    def read(self, pages: Sequence[int], into: Any, after: Any) -> None:
        """Copies pages into a buffer; they may be reused when this returns."""

    def write(self, pages: Sequence[int], source: Any, after: Any) -> None:
        """Copies from a buffer into pages; the blocks are there when this returns."""

    def follow(self, client: CacheManagerClient) -> bool:
        """Makes ready to copy from the client's shared memory; whether that goes, else blocks go through a buffer."""

    def sink(self, pages: Sequence[int], after: Any) -> Sink:
        """What takes blocks from where they lie to pages, of a client that is followed."""


class HostBuffer:
    """Plain memory."""

    def __init__(self, size: int) -> None:
        self._memory = bytearray(size)
        self.view = memoryview(self._memory)


class HostPages:
    """Pages in host memory: the engine computes on this processor, and has computed when it calls us."""

    def __init__(self, memory: memoryview, layout: BlockLayout, owner: Any = None) -> None:
        self.layout = layout
        self._memory = memory
        self._owner = owner  # keeps the allocation alive

    @classmethod
    def at(cls, address: int, size: int, layout: BlockLayout, owner: Any) -> "HostPages":
        """Pages of an allocation that ``owner`` keeps alive."""
        memory = memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")
        return cls(memory, layout, owner)

    def buffer(self, size: int) -> HostBuffer:
        return HostBuffer(size)

    def mark(self) -> None:
        return None

    def follow(self, client: CacheManagerClient) -> bool:
        return False  # a copy is a copy, through the buffer or not

    def sink(self, pages: Sequence[int], after: Any = None) -> Sink:
        raise NotImplementedError("pages in host memory follow nobody")

    def read(self, pages: Sequence[int], into: Buffer, after: Any = None) -> None:
        memory, target, at = self._memory, into.view, 0
        for page in pages:
            for run in self.layout.runs:
                start = run.offset + page * run.stride
                target[at : at + run.length] = memory[start : start + run.length]
                at += run.length

    def write(self, pages: Sequence[int], source: Buffer, after: Any = None) -> None:
        memory, origin, at = self._memory, source.view, 0
        for page in pages:
            for run in self.layout.runs:
                start = run.offset + page * run.stride
                memory[start : start + run.length] = origin[at : at + run.length]
                at += run.length


class CudaBuffer:
    """Pinned memory of a bounded size.

    Where the driver refuses to pin any (confidential computing, a limit on locked memory), plain memory: copies are right and slower.
    """

    def __init__(self, torch: Any, size: int) -> None:
        try:
            self.tensor = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        except RuntimeError as e:
            _LOG.warning("OrbitKV: %d bytes can't be pinned, copies to and from the GPU will be slower: %s", size, e)
            self.tensor = torch.empty(size, dtype=torch.uint8)
        self.view = memoryview(self.tensor.numpy())


class CudaPages:
    """Pages in a GPU's memory: one copy a run, on a stream for each direction, behind an event of the compute stream."""

    def __init__(self, flat: Any, layout: BlockLayout) -> None:
        """Takes the allocation as one flat tensor of bytes."""
        import torch

        self.layout = layout
        self._torch = torch
        self._flat = flat
        self._device = flat.device
        self._out = torch.cuda.Stream(device=self._device)
        self._in = torch.cuda.Stream(device=self._device)
        self._driver: Optional[CudaDriver] = None
        self._mappings: Optional[Mappings] = None
        try:
            self._driver = CudaDriver(lambda: torch.cuda.set_device(self._device))
        except (OSError, AttributeError) as e:
            _LOG.warning("OrbitKV: libcuda can't be used (%s); loads are copied by the processor instead, which is slower", e)
        else:
            self._mappings = Mappings(self._driver)

    def buffer(self, size: int) -> CudaBuffer:
        return CudaBuffer(self._torch, size)

    def mark(self) -> Any:
        event = self._torch.cuda.Event()
        event.record(self._torch.cuda.current_stream(self._device))
        return event

    def follow(self, client: CacheManagerClient) -> bool:
        return self._mappings is not None and self._mappings.follow(client)

    def sink(self, pages: Sequence[int], after: Any) -> Sink:
        assert self._driver is not None and self._mappings is not None, "nobody is followed"
        self._torch.cuda.set_device(self._device)
        if after is not None:
            self._in.wait_event(after)
        return DirectSink(
            self._mappings, self._driver, self.layout, self._flat.data_ptr(), pages, self._in, self._write_plain
        )

    def _write_plain(self, to: int, data: memoryview) -> None:
        with self._torch.cuda.stream(self._in):
            self._flat[to : to + len(data)].copy_(self._torch.frombuffer(bytearray(data), dtype=self._torch.uint8))

    def read(self, pages: Sequence[int], into: CudaBuffer, after: Optional[Any]) -> None:
        self._copy(self._out, pages, into, after, True)

    def write(self, pages: Sequence[int], source: CudaBuffer, after: Optional[Any]) -> None:
        self._copy(self._in, pages, source, after, False)

    def _copy(self, stream: Any, pages: Sequence[int], buffer: CudaBuffer, after: Optional[Any], out: bool) -> None:
        flat, host, at = self._flat, buffer.tensor, 0
        with self._torch.cuda.device(self._device), self._torch.cuda.stream(stream):
            if after is not None:
                stream.wait_event(after)
            for page in pages:
                for run in self.layout.runs:
                    start = run.offset + page * run.stride
                    on_device = flat[start : start + run.length]
                    on_host = host[at : at + run.length]
                    if out:
                        on_host.copy_(on_device, non_blocking=True)
                    else:
                        on_device.copy_(on_host, non_blocking=True)
                    at += run.length
        stream.synchronize()
