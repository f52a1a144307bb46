"""Which parts of the staging memory are in use."""

from __future__ import annotations

import threading
from typing import List, Optional, Tuple


class Ranges:
    """Gives ranges of a memory out, first fit, page-aligned. Never waits. Safe from any thread."""

    PAGE = 4096

    def __init__(self, size: int) -> None:
        self._lock = threading.Lock()
        self._free: List[Tuple[int, int]] = [(0, size)]
        self.size = size

    def take(self, size: int) -> Optional[int]:
        """Where a range of so many bytes starts; ``None`` where there is none."""
        size = -(-size // self.PAGE) * self.PAGE
        with self._lock:
            for i, (start, length) in enumerate(self._free):
                if length >= size:
                    if length == size:
                        del self._free[i]
                    else:
                        self._free[i] = (start + size, length - size)
                    return start
        return None

    def give_back(self, start: int, size: int) -> None:
        size = -(-size // self.PAGE) * self.PAGE
        with self._lock:
            self._free.append((start, size))
            self._free.sort()
            merged: List[Tuple[int, int]] = []
            for begin, length in self._free:
                if merged and merged[-1][0] + merged[-1][1] == begin:
                    merged[-1] = (merged[-1][0], merged[-1][1] + length)
                else:
                    merged.append((begin, length))
            self._free = merged

    def free_bytes(self) -> int:
        with self._lock:
            return sum(length for _, length in self._free)
