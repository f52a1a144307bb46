"""What a query found, and the restores under its lease."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Protocol, Tuple, Type

from . import wire
from .blocks import BlockView
from .checksum import block_checksum
from .errors import MISTAKES, Code, OrbitKvError, Unavailable
from .family import KEY_BYTES, Family

if TYPE_CHECKING:  # pragma: no cover
    from .client import CacheManagerClient
    from .life import Life

_LANDING_BYTES = 16 << 20
_LOCATE_BLOCKS = 1024
_TRIES = 4
_NOTHING = (0, 0, 0, 0, 0, 0, 0, 0, wire.MISS)


class Match:
    """Leased blocks; false where there are none. Its lease ends with :meth:`release`, or with the process.

    Attributes:
        blocks: how many blocks every shard has.
        host_blocks: blocks of all shards that lie in host memory.
        drive_blocks: those on drives only.
        restore_micros: estimate of what restoring all of them takes, in microseconds.
        overtaken: blocks that moved behind a copy so far.
    """

    lease: int
    restore_micros: int
    blocks: int
    host_blocks: int
    drive_blocks: int
    _retry_ms: int
    _status: int

    __slots__ = (
        "_client",
        "_family",
        "_keys",
        "_life",
        "_retry_ms",
        "_status",
        "blocks",
        "drive_blocks",
        "host_blocks",
        "lease",
        "overtaken",
        "query_id",
        "restore_micros",
    )

    def __init__(
        self,
        client: "CacheManagerClient",
        life: Optional["Life"],
        family: Family,
        keys: bytes,
        query_id: int,
        answer: Optional[Tuple[Any, ...]],
    ) -> None:
        self._client = client
        self._life = life
        self._family = family
        self._keys = keys
        self.query_id = query_id
        self.overtaken = 0
        self._take(answer or _NOTHING)

    def _take(self, answer: Tuple[Any, ...]) -> None:
        (
            _,
            _,
            self.lease,
            self.restore_micros,
            self.blocks,
            self.host_blocks,
            self.drive_blocks,
            self._retry_ms,
            self._status,
        ) = answer

    @property
    def retry_seconds(self) -> float:
        """When to ask again, where it is pending."""
        return self._retry_ms / 1000

    @property
    def is_pending(self) -> bool:
        """Whether blocks are on their way from a drive: ask again with :meth:`poll`."""
        return self._status == wire.PENDING

    def __bool__(self) -> bool:
        return self.blocks > 0

    @property
    def keys(self) -> bytes:
        """Keys of the leased blocks, back to back."""
        return self._keys[: self.blocks * KEY_BYTES]

    @property
    def epoch(self) -> int:
        """The life of the manager that answered; 0 where none did."""
        return self._life.epoch if self._life is not None else 0

    @property
    def lease_seconds(self) -> float:
        """How long the lease lasts from its last renewal."""
        return self._life.welcome.lease_ms / 1000 if self._life is not None else 0.0

    def poll(self) -> bool:
        """Asks again, without sending keys; whether there is an answer now."""
        if not self.is_pending:
            return True
        answer: Tuple[Any, ...] = _NOTHING
        life = self._life
        if life is not None and life is self._client._life:
            frame = self._client._control(lambda op, epoch: wire.poll(op, epoch, self.query_id))
            answer = wire.FIXED_QUERY_ANSWER.of(frame) if frame is not None else _NOTHING
        self._take(answer)
        return not self.is_pending

    def renew(self) -> bool:
        """Lets the lease last as if it were new; whether it still does."""
        return self._on_lease(wire.renew)

    def release(self) -> None:
        """Gives the lease up. Safe to call twice."""
        if self.lease:
            self._on_lease(wire.release)
            self.lease = 0
        self._life = None  # its memory is not to stay mapped for a match that nobody needs any more

    def _on_lease(self, make: Any) -> bool:
        if not self.lease or self._life is not self._client._life:
            return False
        lease = self.lease
        frame = self._client._control(lambda op, epoch: make(op, epoch, (lease,)))
        return frame is not None and wire.lease_codes(frame)[0][1] == 0

    def restore(
        self,
        into: Any,
        shard: int = 0,
        start: int = 0,
        count: Optional[int] = None,
        verify: bool = False,
        deadline: Optional[float] = None,
        done: bool = True,
    ) -> int:
        """Copies blocks, in order, back to back.

        Args:
            into: a writable buffer of at least ``count`` blocks.
            shard: which shard's.
            start: the first block wanted.
            count: how many; to the end of the match where it is not given.
            verify: check each block's checksum as well as its generation.
            deadline: seconds; the client's transfer deadline where it is not given.
            done: tell the manager that the shard has its blocks; the lease ends when all shards have.

        Returns:
            How many blocks are there. What lies behind them in ``into`` is unspecified.
        """
        size = self._family.block_bytes
        target = memoryview(into).cast("B")
        wanted = self._wanted(start, count)
        if target.readonly or len(target) < wanted * size:
            raise OrbitKvError(
                Code.BAD_BUFFER, f"OKV-703: {wanted} blocks of {size} bytes need {wanted * size} writable bytes"
            )
        return self._send(_Memory(target, size, self._right_if(verify, start)), shard, start, wanted, deadline, done)

    def send(
        self,
        sink: "Sink",
        shard: int = 0,
        start: int = 0,
        count: Optional[int] = None,
        deadline: Optional[float] = None,
        done: bool = True,
    ) -> int:
        """Hands blocks, where they lie in shared memory, to whoever copies them; arguments and result are as of :meth:`restore`.

        What was copied counts only as far as the result says: that is known when all of it has been read.
        """
        return self._send(sink, shard, start, self._wanted(start, count), deadline, done)

    def _wanted(self, start: int, count: Optional[int]) -> int:
        wanted = self.blocks - start if count is None else count
        if start < 0 or wanted < 0 or start + wanted > self.blocks:
            raise OrbitKvError(Code.BAD_ARGUMENT, f"OKV-702: blocks {start} to {start + wanted} of {self.blocks}")
        return wanted

    def _send(
        self, sink: "Sink", shard: int, start: int, wanted: int, deadline: Optional[float], done: bool
    ) -> int:
        life = self._life
        if life is None or not self.lease:
            return 0
        until = time.monotonic() + (self._client._transfer_deadline if deadline is None else deadline)
        restored = 0
        try:
            tries = _TRIES
            while restored < wanted and tries and time.monotonic() < until:
                got = self._send_turn(life, sink, shard, start, restored, wanted - restored, until)
                restored += got
                tries = _TRIES if got else tries - 1
        except _End as end:
            restored += end.restored
        except Unavailable:
            self._client._check(life)
        except OrbitKvError as e:
            if e.code in MISTAKES:
                raise
            self._client._forget_stale(life, e)
        if done:
            self._tell(life, shard, restored, until)
        return restored

    def _send_turn(
        self, life: "Life", sink: "Sink", shard: int, start: int, restored: int, wanted: int, until: float
    ) -> int:
        """Copies until something is missing; raises :class:`_End` where nothing more is to come."""
        size = self._family.block_bytes
        landing, places = self._locate(life, shard, start + restored, min(wanted, _LOCATE_BLOCKS), until)
        try:
            runs: List[Tuple[int, int]] = []
            copied = 0
            while copied < len(places) and places[copied].kind in (wire.ARENA, wire.LANDED):
                place = places[copied]
                run = _run(places, copied, size)
                if place.kind == wire.LANDED:
                    sink.take(restored + copied, run, life.staging, place.offset)
                else:
                    sink.take(restored + copied, run, life.arena, place.segment * life.welcome.segment_bytes + place.offset)
                runs.append((copied, run))
                copied += run
            sink.settle()
            for first, run in runs:
                place = places[first]
                if place.kind == wire.LANDED:
                    continue
                if life.generations[place.segment] != place.generation:
                    self.overtaken += run
                    return first  # where they are now, the manager knows
                if not sink.is_right(restored + first, places[first : first + run]):
                    raise _End(first)
            if copied < len(places) and places[copied].kind != wire.LATER:
                raise _End(copied)
            return copied
        finally:
            if landing is not None:
                life.ranges.give_back(*landing)

    def _right_if(self, verify: bool, start: int) -> Optional[Callable[[memoryview, int, int, List[wire.Place]], bool]]:
        if not verify:
            return None
        return lambda target, at, block, places: self._is_right(target, at, start + block, places)

    def _is_right(self, target: memoryview, at: int, block: int, places: List[wire.Place]) -> bool:
        size = self._family.block_bytes
        return all(
            block_checksum(self._key(block + i), target[at + i * size : at + (i + 1) * size]) == place.checksum
            for i, place in enumerate(places)
        )

    def _key(self, block: int) -> bytes:
        return self._keys[block * KEY_BYTES : (block + 1) * KEY_BYTES]

    def _locate(self, life: "Life", shard: int, start: int, count: int, until: float) -> Any:
        """Places of blocks, and the range of staging memory in which those from drives have landed."""
        landing = None
        if self.drive_blocks:
            size = self._family.block_bytes
            room = min(max(_LANDING_BYTES, size), size * count)
            offset = life.ranges.take(room)
            landing = (offset, room) if offset is not None else None
        offset, room = landing or (0, 0)

        def give_back() -> None:
            if landing is not None:
                life.ranges.give_back(*landing)

        lease = self.lease
        try:
            answer = life.transfer.call(
                lambda op, epoch: wire.locate(op, epoch, lease, shard, start, count, offset, room), until, give_back
            )
        except OrbitKvError:
            give_back()
            raise
        places = wire.located(answer)
        if landing is None and not self.drive_blocks and any(p.kind == wire.LATER for p in places):
            self.drive_blocks = 1  # it left host memory since the query: next time there is a place for it
        return landing, places

    def _tell(self, life: "Life", shard: int, restored: int, until: float) -> None:
        lease = self.lease
        overtaken = self.overtaken
        try:
            life.control.call(lambda op, epoch: wire.done(op, epoch, lease, shard, restored, overtaken), until)
        except (Unavailable, OrbitKvError):
            pass  # it ends by itself

    def views(
        self, shard: int = 0, start: int = 0, count: Optional[int] = None, deadline: Optional[float] = None
    ) -> List[BlockView]:
        """Blocks where they lie, read-only, in order until one is missing. Close each."""
        wanted = self.blocks - start if count is None else count
        life = self._life
        if life is None or not self.lease or wanted <= 0:
            return []
        until = time.monotonic() + (self._client._transfer_deadline if deadline is None else deadline)
        try:
            landing, places = self._locate(life, shard, start, wanted, until)
        except Unavailable:
            self._client._check(life)
            return []
        except OrbitKvError as e:
            if e.code in MISTAKES:
                raise
            self._client._forget_stale(life, e)
            return []
        size = self._family.block_bytes
        found = []
        for i, place in enumerate(places):
            if place.kind not in (wire.ARENA, wire.LANDED):
                break
            found.append(place)
        landed = sum(place.kind == wire.LANDED for place in found)
        end = _LastOne(life, landing, landed) if landing is not None else None
        if end is not None and not landed:
            end.all_closed()
        return [
            BlockView(
                life,
                place,
                self._key(start + i),
                size,
                place.kind == wire.LANDED,
                end.closed if end is not None and place.kind == wire.LANDED else None,
            )
            for i, place in enumerate(found)
        ]

    def __enter__(self) -> "Match":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.release()


class Sink(Protocol):
    """Copies blocks out of shared memory."""

    def take(self, block: int, count: int, memory: memoryview, start: int) -> None:
        """Begins to copy blocks that lie back to back at ``start``; ``block`` counts from the first that was asked for."""

    def settle(self) -> None:
        """Returns when all that was begun has been read."""

    def is_right(self, block: int, places: List[wire.Place]) -> bool:
        """Whether copied blocks are what they should be, where somebody looks."""


class _Memory:
    """Memory of this process, back to back."""

    def __init__(
        self,
        target: memoryview,
        size: int,
        right: Optional[Callable[[memoryview, int, int, List[wire.Place]], bool]],
    ) -> None:
        self._target = target
        self._size = size
        self._right = right

    def take(self, block: int, count: int, memory: memoryview, start: int) -> None:
        at = block * self._size
        self._target[at : at + count * self._size] = memory[start : start + count * self._size]

    def settle(self) -> None:
        pass

    def is_right(self, block: int, places: List[wire.Place]) -> bool:
        return self._right is None or self._right(self._target, block * self._size, block, places)


class _End(Exception):
    """Nothing more is to come behind so many blocks of a turn."""

    def __init__(self, restored: int) -> None:
        super().__init__()
        self.restored = restored


class _LastOne:
    """Gives a landing range back when the last view of it is closed."""

    def __init__(self, life: "Life", landing: Any, views: int) -> None:
        self._life = life
        self._landing = landing
        self._views = views

    def closed(self) -> None:
        self._views -= 1
        if self._views == 0:
            self.all_closed()

    def all_closed(self) -> None:
        self._life.ranges.give_back(*self._landing)


def _run(places: List[wire.Place], first: int, size: int) -> int:
    """How many blocks from one on lie back to back, and so are one copy."""
    place = places[first]
    run = 1
    while first + run < len(places):
        other = places[first + run]
        if (
            other.kind != place.kind
            or other.segment != place.segment
            or other.generation != place.generation
            or other.offset != place.offset + run * size
        ):
            break
        run += 1
    return run
