"""The client of a manager: what engine connectors stand on.

Every call ends at its deadline at the latest, whatever the manager does; without one, a query is a miss, a restore
delivers nothing and a save drops its blocks. Reconnecting happens in the background.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import struct
import threading
import time
import weakref
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import wire
from .blocks import BlockView
from .channel import out_of_range
from .errors import MISTAKES, Code, OrbitKvError, Unavailable
from .family import KEY_BYTES, Family
from .life import Life
from .match import Match
from .saving import Save, SaveOutcome

Buffer = Any  # whatever has the buffer protocol: bytes, bytearray, memoryview, numpy arrays, torch CPU tensors via numpy

_LOG = logging.getLogger("orbitkv")

_KEYS_MAX = 16_384
_CONNECT_SECONDS = 1.0
_BACKOFF_SECONDS = (0.02, 0.5)
_LOOK_SECONDS = 1.0

_T = TypeVar("_T")


class Memories(NamedTuple):
    """Shared memory of one life of a manager, for those that let a device read it.

    Attributes:
        pool: host memory of the store, read-only.
        staging: memory of this client, in which blocks from drives arrive.
        pool_taken: says how many of the first bytes of the pool have held blocks.
        on_end: has a function called with both when that manager has gone; false where it has already.
    """

    pool: memoryview
    staging: memoryview
    pool_taken: Callable[[], int]
    on_end: Callable[[Callable[[Tuple[memoryview, ...]], None]], bool]


class CacheManagerClient:
    """A connection to a manager that repairs itself. Safe from any thread.

    Args:
        socket: path of the manager's socket; by default what ``ORBITKV_BOOTSTRAP_SOCKET`` names.
        instance: the engine that this is a part of: its processes share leases.
        role: ``"scheduler"``, ``"worker"``, ``"linker"`` or ``"tool"``.
        deadline: seconds after which a query, or anything else that moves no blocks, gives up.
        transfer_deadline: the same for restores and saves.

    Attributes:
        connects: how often it has found a manager.
        last_error: why it did not, the last time; ``None`` once it has.

    A forked process goes on with a connection of its own; leases from before the fork stay the parent's.
    """

    def __init__(
        self,
        socket: Optional[str] = None,
        instance: str = "default",
        role: str = "tool",
        deadline: float = 0.1,
        transfer_deadline: float = 5.0,
    ) -> None:
        roles = {"scheduler": wire.SCHEDULER, "worker": wire.WORKER, "linker": wire.LINKER, "tool": wire.TOOL}
        if role not in roles:
            raise ValueError(f"role is {role!r}; give one of {', '.join(roles)}")
        self._path = socket or os.environ.get("ORBITKV_BOOTSTRAP_SOCKET", "/run/orbitkv/orbitkv.sock")
        self._instance = instance
        self._role = roles[role]
        self._deadline = deadline
        self._transfer_deadline = transfer_deadline
        self._life: Optional[Life] = None
        self._families: Dict[bytes, Family] = {}
        self._closed = False
        self.connects = 0
        self.last_error: Optional[Exception] = None
        self._start()
        _clients.add(self)

    def _start(self) -> None:
        self._changed = threading.Condition()
        self._query_ids = itertools.count(os.getpid() << 40 | 1)
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._keeper = threading.Thread(target=self._keep, name="orbitkv-keeper", daemon=True)
        self._keeper.start()

    def _start_over(self) -> None:
        """In a forked process, which has no keeper and must not speak on its parent's connections."""
        life = self._life
        self._life = None
        if life is not None:
            life.abandon()
        if not self._closed:
            os.close(self._wake_read)
            os.close(self._wake_write)
            self._start()

    # ---- the background

    def _keep(self) -> None:
        wait = _BACKOFF_SECONDS[0]
        while not self._closed:
            life = self._life
            if life is None:
                life = self._try()
                if life is None:
                    with self._changed:
                        self._changed.wait_for(lambda: self._closed, wait)
                    wait = min(wait * 2, _BACKOFF_SECONDS[1])
                    continue
                wait = _BACKOFF_SECONDS[0]
            if not life.is_over:
                life.wait_for_end(_LOOK_SECONDS, self._wake_read)
                self._empty_wake()
            if life.is_over:
                with self._changed:
                    self._life = None
                life.end()
        life = self._life
        self._life = None
        if life is not None:
            life.end()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _try(self) -> Optional[Life]:
        name = f"python/{os.getpid()}"
        try:
            life = Life(self._path, self._role, self._instance, name, time.monotonic() + _CONNECT_SECONDS)
        except (Unavailable, OrbitKvError, OSError, ValueError) as e:
            if isinstance(e, OrbitKvError) and str(e) != str(self.last_error):
                _LOG.warning("the manager at %s refuses this client: %s", self._path, e)
            self.last_error = e
            return None
        _LOG.info("connected to the manager at %s, epoch %x", self._path, life.epoch)
        for family in list(self._families.values()):
            try:
                life.numbers(family, time.monotonic() + _CONNECT_SECONDS)
            except (Unavailable, OrbitKvError, ValueError):
                pass  # whoever uses it is told
        with self._changed:
            self._life = life
            self.last_error = None
            self.connects += 1
            self._changed.notify_all()
        return life

    def _empty_wake(self) -> None:
        try:
            os.read(self._wake_read, 64)
        except BlockingIOError:
            pass

    def _lost(self, life: Life) -> None:
        """Somebody found the connection broken: the background looks at once."""
        life.fail()
        with self._changed:
            if self._life is life and not self._closed:
                self._life = None
                life_over = life
            else:
                return
        threading.Thread(target=life_over.end, daemon=True).start()
        self._nudge()

    def _nudge(self) -> None:
        try:
            os.write(self._wake_write, b"x")
        except OSError:
            pass

    # ---- for users

    @property
    def is_connected(self) -> bool:
        """Whether there is a manager to talk to, as far as is known."""
        life = self._life
        return life is not None and not life.is_over

    @property
    def memories(self) -> Optional["Memories"]:
        """The shared memory of the manager that this client is connected with; None where it is not."""
        life = self._life
        return Memories(life.arena, life.staging, life.arena_taken, life.on_end) if life is not None else None

    @property
    def epoch(self) -> int:
        """The life of the manager that this is connected to; 0 where it isn't."""
        life = self._life
        return life.epoch if life is not None else 0

    def wait_connected(self, timeout: float) -> bool:
        """Waits for a manager, for start-up; nothing else needs it."""
        with self._changed:
            return self._changed.wait_for(lambda: self._life is not None or self._closed, timeout) and not self._closed

    def family(self, family: Family) -> "FamilyHandle":
        """A handle of a family. Does not wait: it is opened as soon as there is a manager."""
        self._families[family.family_id()] = family
        return FamilyHandle(self, family)

    def sync(self, position: int, durable: bool = False, timeout: float = 10.0) -> bool:
        """Waits until saved blocks survive a kill of the manager, or a power loss (``durable``)."""
        deadline = time.monotonic() + timeout
        level = wire.DURABLE if durable else wire.WRITTEN
        while time.monotonic() < deadline:
            life = self._life
            if life is None:
                return False
            wait = min(1000, max(1, int((deadline - time.monotonic()) * 1000)))
            try:
                answer = life.transfer.call(
                    lambda op, epoch: wire.sync(op, epoch, position, level, wait), deadline + _CONNECT_SECONDS
                )
            except Unavailable:
                self._check(life)
                return False
            except OrbitKvError as e:
                if e.code in MISTAKES:
                    raise
                self._forget_stale(life, e)
                return False
            status = wire.sync_answer(answer)
            if status != wire.TIMED_OUT:
                return status == wire.REACHED
        return False

    def stats(self) -> Dict[str, Any]:
        """What the manager has done and holds; empty where there is none."""
        answer = self._control(wire.stats)
        return json.loads(wire.stats_answer(answer)) if answer is not None else {}

    def events(self, from_sequence: int = 0, wait: float = 0.0) -> "Events":
        """Events from a sequence on; 0 asks for the sequence to begin with. :class:`Residents` keeps what they say."""
        answer = self._events(from_sequence, wait)
        return Events(*wire.events_answer(answer)) if answer is not None else Events(0, 0, [])

    def removals(self, family: Family, from_sequence: int) -> Optional[wire.Removals]:
        """What events from a sequence on say of blocks of a family that are gone; ``None`` where no manager answers."""
        answer = self._events(from_sequence, 0.0)
        return wire.removals(answer, family.family_id()) if answer is not None else None

    def _events(self, from_sequence: int, wait: float) -> Optional[wire.Frame]:
        millis = int(min(wait, 1.0) * 1000)
        deadline = time.monotonic() + wait + self._deadline
        return self._asked(
            lambda life: life.transfer.call(lambda op, epoch: wire.events(op, epoch, from_sequence, millis), deadline)
        )

    def list_blocks(self, cursor: int = 0) -> Optional["BlocksListed"]:
        """Some of the blocks that are stored; 0 begins, then ``next_cursor`` of the answer before. ``None``: no manager answers."""
        deadline = time.monotonic() + self._transfer_deadline
        answer = self._asked(
            lambda life: life.transfer.call(lambda op, epoch: wire.list_blocks(op, epoch, cursor), deadline)
        )
        return BlocksListed(*wire.blocks_listed(answer)) if answer is not None else None

    def ping(self) -> bool:
        """Whether the manager answers."""

        def ask(life: Life) -> bool:
            op = life.control.next_op()
            life.control.ask(op, wire.ping(op, life.epoch), time.monotonic() + self._deadline, wire.FIXED_ACK)
            return True

        return bool(self._asked(ask))

    def _control(self, make: Callable[[int, int], bytes], deadline: Optional[float] = None) -> Optional[wire.Frame]:
        """An answer over the control connection; ``None`` where there is none in time."""
        return self._asked(lambda life: life.control.call(make, deadline or time.monotonic() + self._deadline))

    def _asked(self, ask: Callable[[Life], _T]) -> Optional[_T]:
        """What a question to the manager brings; ``None`` where it is away, late, or refuses."""
        life = self._life
        if life is None:
            return None
        try:
            return ask(life)
        except Unavailable:
            self._check(life)
        except OrbitKvError as e:
            if e.code in MISTAKES:
                raise
            self._forget_stale(life, e)
        return None

    def _check(self, life: Life) -> None:
        if life.is_over:
            self._lost(life)

    def _forget_stale(self, life: Life, error: OrbitKvError) -> None:
        _LOG.debug("the manager refused: %s", error)
        if error.code == Code.STALE_EPOCH:
            self._lost(life)

    def next_query_id(self) -> int:
        """A number for a query that none of this client had."""
        return next(self._query_ids)

    def close(self) -> None:
        """Ends the connection and everything that the manager holds for it. Views stay valid."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        self._nudge()
        if threading.current_thread() is not self._keeper:
            self._keeper.join(5.0)

    def __enter__(self) -> "CacheManagerClient":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


_clients: "weakref.WeakSet[CacheManagerClient]" = weakref.WeakSet()


def _start_over_after_fork() -> None:
    for client in list(_clients):
        client._start_over()


os.register_at_fork(after_in_child=_start_over_after_fork)


@dataclass(frozen=True)
class Events:
    """Events in order. Where ``first_sequence`` is above what was asked for, some are lost; another ``epoch`` starts anew."""

    epoch: int
    first_sequence: int
    events: List[wire.Event]

    @property
    def next_sequence(self) -> int:
        """What to ask for next."""
        return self.events[-1].sequence + 1 if self.events else self.first_sequence


@dataclass(frozen=True)
class BlocksListed:
    """Blocks that were stored a moment ago. Where ``next_cursor`` is 0 it is the end; all blocks only together with events."""

    epoch: int
    next_cursor: int
    blocks: List[wire.ListedBlock]


class FamilyHandle:
    """Blocks whose bytes are compatible. Valid for as long as its client, through restarts of the manager."""

    def __init__(self, client: CacheManagerClient, family: Family) -> None:
        self._client = client
        self.family = family
        self._life_token: Optional[object] = None  # not the life itself, whose memory would stay mapped behind its end
        self._number = 0

    def query(
        self,
        keys: bytes,
        may_wait: bool = False,
        query_id: Optional[int] = None,
        deadline: Optional[float] = None,
    ) -> Match:
        """Finds the longest stored run of consecutive blocks from the first key on, over all shards.

        Args:
            keys: 32 bytes each, back to back, from any block of a prompt on; those beyond 16,384 are not looked at.
            may_wait: whether the answer may be ``pending`` while blocks come from a drive; then :meth:`Match.poll`.
            query_id: a number of the caller's; a later query with it ends the lease of this one.
            deadline: seconds; the client's where it is not given.

        Returns:
            A match; false where there is nothing. Use it as a context, or release it.

        Raises:
            OrbitKvError: the caller's mistake, never the manager's state.
        """
        if len(keys) % KEY_BYTES:
            raise OrbitKvError(Code.BAD_BUFFER, f"OKV-703: keys take {KEY_BYTES} bytes each, got {len(keys)} bytes")
        if len(keys) > _KEYS_MAX * KEY_BYTES:
            keys = keys[: _KEYS_MAX * KEY_BYTES]
        client = self._client
        number = client.next_query_id() if query_id is None else query_id
        until = time.monotonic() + (client._deadline if deadline is None else deadline)
        life = client._life
        if life is None:
            return Match(client, None, self.family, keys, number, None)
        try:
            family = self._number if life.token is self._life_token else self._number_in(life, until)
            control = life.control
            op = control.next_op()
            frame = wire.query(op, life.epoch, number, family, may_wait, keys)
            answer = control.ask(op, frame, until, wire.FIXED_QUERY_ANSWER)
        except Unavailable:
            client._check(life)
            return Match(client, None, self.family, keys, number, None)
        except OrbitKvError as e:
            if e.code in MISTAKES:
                raise
            client._forget_stale(life, e)
            return Match(client, None, self.family, keys, number, None)
        except struct.error as e:
            raise out_of_range(e) from e
        return Match(client, life, self.family, keys, number, answer)

    def _number_in(self, life: Life, until: float) -> int:
        """The family's number on the connection for queries, kept for those that follow."""
        number, _ = life.numbers(self.family, until)
        self._number = number
        self._life_token = life.token  # last: another thread may be asking meanwhile
        return number

    def open(self, timeout: float) -> bool:
        """Waits for a manager that knows the family, for start-up; nothing else needs it. Whether there is one."""
        until = time.monotonic() + timeout
        client = self._client
        while client.wait_connected(max(0.0, until - time.monotonic())):
            life = client._life
            try:
                if life is not None:
                    life.numbers(self.family, until)
                    return True
            except Unavailable:
                pass
            except OrbitKvError as e:
                if e.code in MISTAKES:
                    raise
            if time.monotonic() >= until:
                return False
            time.sleep(0.01)
        return False

    def leased(self, lease: int, epoch: int, keys: bytes, on_drives: bool) -> Match:
        """What another process of this instance has leased, to restore it here. False where the manager is another by now.

        Args:
            lease: the number of that process's :attr:`Match.lease`.
            epoch: its :attr:`Match.epoch`.
            keys: its :attr:`Match.keys`.
            on_drives: whether blocks of it lay on drives only.
        """
        life = self._client._life
        if life is None or life.epoch != epoch:
            return Match(self._client, None, self.family, keys, 0, None)
        blocks = len(keys) // KEY_BYTES
        answer = wire.QueryAnswer(0, 0, lease, 0, blocks, 0, blocks if on_drives else 0, 0, wire.READY)
        return Match(self._client, life, self.family, keys, 0, answer)

    def prefetch(self, keys: bytes, query_id: Optional[int] = None) -> int:
        """Asks for blocks to come into host memory; returns the query's number, for :meth:`cancel`."""
        keys = keys[: _KEYS_MAX * KEY_BYTES]
        number = query_id if query_id is not None else self._client.next_query_id()
        life = self._client._life
        if life is not None:
            try:
                until = time.monotonic() + self._client._deadline
                family, _ = life.numbers(self.family, until)
                self._client._control(lambda op, epoch: wire.prefetch(op, epoch, number, family, keys), until)
            except Unavailable:
                self._client._check(life)
            except OrbitKvError as e:
                if e.code in MISTAKES:
                    raise
        return number

    def cancel(self, query_id: int) -> None:
        """Ends a query: its lease, its prefetch."""
        self._client._control(lambda op, epoch: wire.cancel(op, epoch, query_id))

    def clear(self) -> bool:
        """Forgets every block of the family for good; whether the manager did."""
        life = self._client._life
        if life is None:
            return False
        try:
            until = time.monotonic() + self._client._transfer_deadline
            family, _ = life.numbers(self.family, until)
            return self._client._control(lambda op, epoch: wire.clear(op, epoch, family), until) is not None
        except Unavailable:
            self._client._check(life)
        except OrbitKvError as e:
            if e.code in MISTAKES:
                raise
        return False

    def save(
        self,
        keys: bytes,
        blocks: Union[Buffer, Sequence[Buffer]],
        shard: int = 0,
        parent: Optional[bytes] = None,
        deadline: Optional[float] = None,
    ) -> SaveOutcome:
        """Takes blocks in. The caller's memory is its own again when this returns.

        Args:
            keys: 32 bytes each, back to back, of consecutive blocks.
            blocks: one buffer with all of them back to back, or a buffer for each.
            shard: which shard they belong to.
            parent: the key of the block before the first; ``None`` at a prompt's start.
            deadline: seconds; the client's transfer deadline where it is not given.
        """
        size = self.family.block_bytes
        count, left = divmod(len(keys), KEY_BYTES)
        sources = _sources(blocks, count, size)
        if left or (parent is not None and len(parent) != KEY_BYTES):
            raise OrbitKvError(Code.BAD_BUFFER, f"OKV-703: keys take {KEY_BYTES} bytes each")
        client = self._client
        until = time.monotonic() + (client._transfer_deadline if deadline is None else deadline)
        life = client._life
        if life is None:
            return SaveOutcome(dropped=count, reason="UNAVAILABLE")
        return Save(client, life, self.family, keys, sources, shard, parent, until).run()


def _sources(blocks: Union[Buffer, Sequence[Buffer]], count: int, size: int) -> List[memoryview]:
    if isinstance(blocks, (list, tuple)):
        views = [memoryview(block).cast("B") for block in blocks]
        if len(views) != count or any(len(view) != size for view in views):
            raise OrbitKvError(
                Code.BAD_BUFFER, f"OKV-703: {count} keys need as many buffers of {size} bytes, got {len(views)}"
            )
        return views
    whole = memoryview(blocks).cast("B")
    if len(whole) != count * size:
        raise OrbitKvError(
            Code.BAD_BUFFER, f"OKV-703: {count} blocks of {size} bytes need {count * size} bytes, got {len(whole)}"
        )
    return [whole[i * size : (i + 1) * size] for i in range(count)]
