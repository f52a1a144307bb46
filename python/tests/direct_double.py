"""A GPU in host memory: CUDA's part of direct loads, on a machine without one."""

import ctypes

from orbitkv.vllm.direct import DirectSink, Mappings, address_of
from orbitkv.vllm.pages import HostPages


class DriverDouble:
    """Copies at once, or, when told to, not before the stream is waited for. Refuses to register what the test says."""

    def __init__(self, refuses=lambda start, size: False, late=False):
        self.refuses = refuses
        self.late = late
        self.registered = {}
        self.longest = 0
        self.copies = 0
        self.waiting = []

    def register(self, address, size):
        if self.refuses(address, size):
            return 801
        assert address not in self.registered, "registered twice"
        self.registered[address] = size
        self.longest = max(self.longest, size)
        return 0

    def unregister(self, address):
        del self.registered[address]

    def copy(self, to, source, size, stream):
        # As CUDA: a copy lies within what one call has registered.
        assert any(start <= source and source + size <= start + length for start, length in self.registered.items())
        self.copies += 1
        self.waiting.append((to, source, size))
        if not self.late:
            self.run()
        return 0

    def run(self):
        for to, source, size in self.waiting:
            ctypes.memmove(to, source, size)
        self.waiting = []


class StreamDouble:
    cuda_stream = 0

    def __init__(self, driver):
        self._driver = driver
        self.waits = 0

    def synchronize(self):
        self.waits += 1
        self._driver.run()


class DirectPages(HostPages):
    """Pages in host memory into which a driver's double fetches blocks by itself."""

    def __init__(self, memory, layout, driver=None):
        super().__init__(memory, layout)
        self.driver = driver or DriverDouble(late=True)
        self.mappings = Mappings(self.driver)
        self.stream = StreamDouble(self.driver)
        self.slow = 0

    def follow(self, client):
        return self.mappings.follow(client)

    def sink(self, pages, after=None):
        return self.sink_of(pages)

    def sink_of(self, pages):
        return DirectSink(self.mappings, self.driver, self.layout, address_of(self._memory), pages, self.stream, self._plain)

    def _plain(self, to, data):
        self.slow += 1
        self._memory[to : to + len(data)] = data
