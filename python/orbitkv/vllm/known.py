"""Keys that are known to be stored: what is in here need not be offered to the manager again."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from typing import Deque, Iterable, List, Optional

from ..client import CacheManagerClient
from ..family import Family
from ..wire import HEAD_BYTES

_LOG = logging.getLogger("orbitkv.vllm")

#: Between two questions for what is gone: neither the engine's thread nor its interpreter is to notice them.
_POLL_SECONDS = 0.5
_WAITING_MAX = 256


class KnownKeys:
    """The keys that were stored, or found, last; as many as fit. Only good in one life of the manager.

    A hint, nothing more: a key that was evicted meanwhile costs hits until its removal is told or it falls out, one that is
    missing here costs one look of the manager. Keys are kept by their heads, which is all that removals tell.
    """

    def __init__(self, most: int = 1 << 16) -> None:
        self._most = most
        self._heads: "OrderedDict[bytes, None]" = OrderedDict()
        self._removed: "OrderedDict[bytes, None]" = OrderedDict()  # may have been told before the report of their save
        self._epoch = 0

    def __contains__(self, key: bytes) -> bool:
        return key[:HEAD_BYTES] in self._heads

    def __len__(self) -> int:
        return len(self._heads)

    def live(self, epoch: int) -> None:
        """Says which life the manager is in; another one than before has lost what no drive holds, so nothing is known."""
        if epoch and epoch != self._epoch:
            self.clear()
            self._epoch = epoch

    def add(self, keys: Iterable[bytes], epoch: int) -> None:
        self.live(epoch)
        for key in keys:
            head = key[:HEAD_BYTES]
            if head in self._removed:
                del self._removed[head]  # it may be gone already: the next save asks the manager
                continue
            self._heads[head] = None
            self._heads.move_to_end(head)
        while len(self._heads) > self._most:
            self._heads.popitem(last=False)

    def forget(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._heads.pop(key[:HEAD_BYTES], None)

    def removed(self, heads: Iterable[bytes]) -> None:
        """Forgets what the manager says is gone, also where the report of its save is still to come."""
        for head in heads:
            if head in self._heads:
                del self._heads[head]
            else:
                self._removed[head] = None
        while len(self._removed) > self._most // 16:
            self._removed.popitem(last=False)

    def clear(self) -> None:
        self._heads.clear()
        self._removed.clear()


class Removals:
    """Asks the manager now and then which blocks are gone, on a thread of its own, for :class:`KnownKeys`."""

    def __init__(self, client: CacheManagerClient, family: Family) -> None:
        self._client = client
        self._family = family
        self._told: Deque[Optional[List[bytes]]] = deque()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orbitkv-removals", daemon=True)
        self._thread.start()

    def follow(self, family: Family) -> None:
        """Asks for another family from now on."""
        self._family = family

    def take_into(self, known: KnownKeys) -> None:
        """Forgets what is gone. The engine's thread; no waiting."""
        while self._told:
            heads = self._told.popleft()
            if heads is None:
                known.clear()
            else:
                known.removed(heads)

    def _run(self) -> None:
        epoch = upto = 0
        while not self._ended.wait(_POLL_SECONDS):
            try:
                seen = self._client.removals(self._family, upto)
            except Exception as e:  # whatever it is: without it the list is only older
                _LOG.warning("OrbitKV: which blocks are gone is not followed any more: %s", e)
                return
            if seen is None:
                continue
            if upto and (seen.epoch != epoch or seen.first_sequence > upto):
                self._tell(None)  # some were not told
            elif seen.heads is None or seen.heads:
                self._tell(seen.heads)
            epoch, upto = seen.epoch, seen.next_sequence

    def _tell(self, heads: Optional[List[bytes]]) -> None:
        if len(self._told) >= _WAITING_MAX:  # the engine has not stepped for long
            self._told.clear()
            heads = None
        self._told.append(heads)

    def close(self) -> None:
        """Ends it; a question that is under way ends by itself."""
        self._ended.set()
