"""The connector, with a line in a file for each block that it copies: key, checksum of its bytes in the pages, and their start.

With ``ORBITKV_TEST_SPOIL`` it fills the first page of each load with zeros, to see whether anybody would notice.
"""

import json
import os
import zlib

from orbitkv.vllm.connector import OrbitKVConnector
from orbitkv.vllm.worker import WorkerHalf


class TracingConnector(OrbitKVConnector):
    """Writes to the file that ``ORBITKV_TEST_TRACE`` names."""

    def register_kv_caches(self, kv_caches):
        super().register_kv_caches(kv_caches)
        trace(self._worker)


def trace(worker: WorkerHalf):
    file = open(os.environ["ORBITKV_TEST_TRACE"], "a", buffering=1)
    pages = worker._pages
    restore, store = worker._restore, worker._store

    def lines(what, keys, ids):
        buffer = pages.buffer(pages.layout.block_bytes)
        for i, page in enumerate(ids):
            pages.read([page], buffer)
            key = keys[i * 32 : i * 32 + 32].hex()
            said = {"what": what, "key": key, "crc": zlib.crc32(buffer.view), "start": bytes(buffer.view[:64]).hex()}
            file.write(json.dumps(said) + "\n")

    def traced_store(mover, save, *rest):
        lines("saved", save.keys, save.pages)
        return store(mover, save, *rest)

    def traced_restore(mover, load, *rest):
        done = restore(mover, load, *rest)
        lines("loaded", load.keys[load.first * 32 :], load.pages[:done])
        if done and os.environ.get("ORBITKV_TEST_SPOIL"):
            pages.write(load.pages[:1], pages.buffer(pages.layout.block_bytes))
        return done

    worker._store, worker._restore = traced_store, traced_restore
