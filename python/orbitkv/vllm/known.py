"""Keys that are known to be stored: what is in here need not be offered to the manager again."""

from __future__ import annotations

from collections import OrderedDict
from typing import Iterable


class KnownKeys:
    """The keys that were stored, or found, last; as many as fit. Only good in one life of the manager.

    A hint, nothing more: a key that was evicted meanwhile costs hits until it falls out, one that is missing here costs one
    look of the manager.
    """

    def __init__(self, most: int = 1 << 16) -> None:
        self._most = most
        self._keys: "OrderedDict[bytes, None]" = OrderedDict()
        self._epoch = 0

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def live(self, epoch: int) -> None:
        """Says which life the manager is in; another one than before has lost what no drive holds, so nothing is known."""
        if epoch and epoch != self._epoch:
            self._keys.clear()
            self._epoch = epoch

    def add(self, keys: Iterable[bytes], epoch: int) -> None:
        self.live(epoch)
        for key in keys:
            self._keys[key] = None
            self._keys.move_to_end(key)
        while len(self._keys) > self._most:
            self._keys.popitem(last=False)

    def forget(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._keys.pop(key, None)

    def clear(self) -> None:
        self._keys.clear()
