"""An exact picture of which blocks a manager holds: what a router keeps of each host."""

from __future__ import annotations

import threading
import time
from typing import Dict, Iterable, Optional, Set, Tuple

from . import wire
from .client import CacheManagerClient

_Shard = Tuple[bytes, int]


class Residents:
    """Which blocks are stored, by the heads of their keys. Follows a manager through gaps and restarts.

    Exact behind every :meth:`update` that says so, but for what happens within the manager's own delay: a block that has gone
    is told when the index is swept, some tenths of a second later with a small store, seconds with ten million blocks.

    Any number of threads may ask :meth:`holds`; one calls :meth:`update`. A head takes some 100 bytes here.

    Args:
        client: a connection for this alone: a wait for events keeps its transfers waiting.
        families: ids of the families to keep; all of them where it is not given.
    """

    def __init__(self, client: CacheManagerClient, families: Optional[Iterable[bytes]] = None) -> None:
        self._client = client
        self._families = None if families is None else frozenset(families)
        self._heads: Dict[_Shard, Set[bytes]] = {}
        self._lock = threading.Lock()
        self._epoch = 0
        self._next = 0
        self.resyncs = 0  #: how often it began anew

    def update(self, wait: float = 0.0) -> bool:
        """Takes in what has happened, waiting for something to happen where nothing has, a second at most.

        Returns:
            Whether the picture is whole now; false where the manager is away, which leaves the picture as it was.
        """
        if not self._epoch and not self._begin():
            return False
        while True:
            seen = self._client.events(self._next, wait)
            if not seen.epoch:
                return False
            if seen.epoch != self._epoch or seen.first_sequence > self._next:
                if not self._begin():
                    return False
                wait = 0.0
                continue
            with self._lock:
                for event in seen.events:
                    self._take(event)
            self._next = seen.next_sequence
            if not seen.events:
                return True
            wait = 0.0

    def _begin(self) -> bool:
        """Asks for what is stored now. What happens meanwhile comes as events behind it."""
        self._epoch = 0
        start = self._client.events()
        heads: Dict[_Shard, Set[bytes]] = {}
        cursor = 0
        while start.epoch:
            listed = self._client.list_blocks(cursor)
            if listed is None or listed.epoch != start.epoch:
                return False
            for block in listed.blocks:
                if self._families is None or block.family_id in self._families:
                    heads.setdefault((block.family_id, block.shard), set()).add(block.head)
            cursor = listed.next_cursor
            if not cursor:
                break
        if not start.epoch:
            return False
        with self._lock:
            self._heads = heads
        self._epoch = start.epoch
        self._next = start.next_sequence
        self.resyncs += 1
        return True

    def _take(self, event: wire.Event) -> None:
        if self._families is not None and event.family_id not in self._families:
            return
        if event.kind == wire.CLEARED:
            for shard in [shard for shard in self._heads if shard[0] == event.family_id]:
                del self._heads[shard]
        elif event.kind == wire.STORED:
            self._heads.setdefault((event.family_id, event.shard), set()).add(event.head)
        elif event.kind == wire.REMOVED:
            self._heads.get((event.family_id, event.shard), set()).discard(event.head)

    def holds(self, family_id: bytes, key: bytes, shard: int = 0) -> bool:
        """Whether a block of a shard is stored, as far as is known."""
        with self._lock:
            return key[: wire.HEAD_BYTES] in self._heads.get((family_id, shard), ())

    def __len__(self) -> int:
        with self._lock:
            return sum(len(heads) for heads in self._heads.values())

    def wait_whole(self, seconds: float) -> bool:
        """Waits until the picture is whole, for start-up."""
        until = time.monotonic() + seconds
        while not self.update():
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True
