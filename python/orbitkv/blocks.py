"""Blocks where they lie in shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Optional

from .checksum import block_checksum

if TYPE_CHECKING:  # pragma: no cover
    from .life import Life
    from .wire import Place


class BlockView:
    """A leased block, read-only and without a copy.

    What it shows is right only as long as :attr:`is_current` says so *afterwards*: the manager never waits for readers.
    So look at the bytes, copy or send them, then ask.
    """

    def __init__(
        self, life: "Life", place: "Place", key: bytes, size: int, landed: bool, end: Optional[Callable[[], None]]
    ) -> None:
        self._life = life
        self._place = place
        self._key = key
        self._end = end
        self._landed = landed
        memory = life.staging if landed else life.arena
        start = place.offset if landed else place.segment * life.welcome.segment_bytes + place.offset
        self.data: memoryview = memory[start : start + size].toreadonly()

    @property
    def is_current(self) -> bool:
        """Whether every byte that was read so far was the block's."""
        return self._landed or self._life.generations[self._place.segment] == self._place.generation

    def verify(self) -> bool:
        """Whether the bytes have the block's checksum, which covers its key as well, and still lie there.

        What came from a drive was proved while the manager put it into this process's own memory, and is not again.
        """
        return self._landed or (block_checksum(self._key, self.data) == self._place.checksum and self.is_current)

    def close(self) -> None:
        """Gives the view up. Of a block from a drive, its memory is used again."""
        self.data.release()
        end, self._end = self._end, None
        if end is not None:
            end()
