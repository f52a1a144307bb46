"""Messages of the protocol as bytes: the Python side of ``orbitkv-protocol.xml`` (see ``docs/protocol.md``).

Everything is little-endian. A frame is its length (4 bytes, of what follows), the SBE header (block length, template,
schema, version), the fixed part of the message, then groups and variable data.
"""

from __future__ import annotations

import struct
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, Tuple

PROTOCOL = 1
SCHEMA = 22859
SCHEMA_VERSION = 1
KEY_BYTES = 32
HEAD_BYTES = 16  # of a key, what names a block in events
FRAME_BYTES_MAX = 1 << 20
LENGTH_BYTES = 4
HEADER_BYTES = 8
MESSAGE = LENGTH_BYTES + HEADER_BYTES

_HEAD = struct.Struct("<IHHHH")
_LENGTH = struct.Struct("<I")
_GROUP = struct.Struct("<HH")
_OP = struct.Struct("<Q")

# Templates.
HELLO = 1
WELCOME = 2
OPEN_FAMILY = 3
FAMILY_OPENED = 4
QUERY = 5
POLL = 6
QUERY_ANSWER = 7
LOCATE = 8
LOCATED = 9
DONE = 10
SAVE_BEGIN = 11
SAVE_GRANTED = 12
SAVE_COMMIT = 13
SAVE_ABORT = 14
SAVE_ANSWER = 15
RENEW = 16
RELEASE = 17
LEASE_CODES = 18
PREFETCH = 19
CANCEL = 20
CLEAR = 21
SYNC = 22
SYNC_ANSWER = 23
STATS = 24
STATS_ANSWER = 25
EVENTS = 26
EVENTS_ANSWER = 27
PING = 28
BYE = 29
ACK = 30
ERROR = 31
LIST_BLOCKS = 32
BLOCKS_LISTED = 33

# Roles of a session.
SCHEDULER = 1
WORKER = 2
LINKER = 3
TOOL = 4

# Answers to a query.
MISS = 0
PENDING = 1
READY = 2

# Where a block is.
MISSED = 0
ARENA = 1
LANDED = 2
LATER = 3

WRITTEN = 1
DURABLE = 2

REACHED = 0
TIMED_OUT = 1
FAILED = 2

STORED = 1
REMOVED = 2
CLEARED = 3

NO_PARENT = bytes(KEY_BYTES)

_HELLO = struct.Struct("<QHHBB")
_WELCOME = struct.Struct("<QQQQQQIIIIIIH")
_EPOCH = struct.Struct("<QQ")
_HANDLE = struct.Struct("<QQQ")
_FAMILY_OPENED = struct.Struct("<Q32sIII")
_QUERY = struct.Struct("<QQQIB")
_QUERY_ANSWER = struct.Struct("<QQQQIIIIB")
_LOCATE = struct.Struct("<QQQQQIII")
_PLACE = struct.Struct("<QIIIB")
_DONE = struct.Struct("<QQQIII")
_SAVE_BEGIN = struct.Struct("<QQ32sIIB")
_SAVE_GRANTED = struct.Struct("<QQI")
_SAVE_ANSWER = struct.Struct("<QQIIIIB")
_LEASE_CODE = struct.Struct("<QH")
_PREFETCH = struct.Struct("<QQQI")
_CLEAR = struct.Struct("<QQI")
_SYNC = struct.Struct("<QQQIB")
_SYNC_ANSWER = struct.Struct("<QB")
_EVENTS = struct.Struct("<QQQI")
_EVENTS_ANSWER = struct.Struct("<QQQ")
_EVENT = struct.Struct("<Q32s32sIB")
_BLOCKS_LISTED = struct.Struct("<QQQ")
_BLOCK = struct.Struct("<32s16sI")
_ERROR = struct.Struct("<QQHB")

_pack_query = struct.Struct("<IHHHHQQQIBI").pack
_QUERY_BYTES = _QUERY.size
_QUERY_REST = HEADER_BYTES + _QUERY.size + LENGTH_BYTES


def _frame(template: int, fixed: bytes, rest: bytes = b"") -> bytes:
    return (
        _HEAD.pack(HEADER_BYTES + len(fixed) + len(rest), len(fixed), template, SCHEMA, SCHEMA_VERSION)
        + fixed
        + rest
    )


def _data(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value


def _group(block_length: int, rows: Sequence[bytes]) -> bytes:
    return _GROUP.pack(block_length, len(rows)) + b"".join(rows)


# ---- requests


def hello(op: int, role: int, wants_memory: bool, instance: str, client: str) -> bytes:
    return _frame(
        HELLO,
        _HELLO.pack(op, PROTOCOL, PROTOCOL, role, int(wants_memory)),
        _data(instance.encode()) + _data(client.encode()),
    )


def open_family(op: int, epoch: int, family: bytes) -> bytes:
    return _frame(OPEN_FAMILY, _EPOCH.pack(op, epoch), _data(family))


def query(op: int, epoch: int, query_id: int, family: int, may_pend: bool, keys: bytes) -> bytes:
    size = len(keys)
    head = _pack_query(
        _QUERY_REST + size, _QUERY_BYTES, QUERY, SCHEMA, SCHEMA_VERSION, op, epoch, query_id, family, may_pend, size
    )
    return head + keys


def poll(op: int, epoch: int, query_id: int) -> bytes:
    return _frame(POLL, _HANDLE.pack(op, epoch, query_id))


def locate(
    op: int, epoch: int, lease: int, shard: int, start: int, count: int, landing_offset: int, landing_bytes: int
) -> bytes:
    return _frame(LOCATE, _LOCATE.pack(op, epoch, lease, landing_offset, landing_bytes, shard, start, count))


def done(op: int, epoch: int, lease: int, shard: int, restored: int, overtaken: int) -> bytes:
    return _frame(DONE, _DONE.pack(op, epoch, lease, shard, restored, overtaken))


def save_begin(op: int, epoch: int, family: int, shard: int, parent: Optional[bytes], keys: bytes) -> bytes:
    fixed = _SAVE_BEGIN.pack(op, epoch, parent or NO_PARENT, family, shard, parent is not None)
    return _frame(SAVE_BEGIN, fixed, _data(keys))


def save_commit(op: int, epoch: int, save: int, offsets: Iterable[int]) -> bytes:
    return _frame(SAVE_COMMIT, _HANDLE.pack(op, epoch, save), _group(8, [_OP.pack(offset) for offset in offsets]))


def save_abort(op: int, epoch: int, save: int) -> bytes:
    return _frame(SAVE_ABORT, _HANDLE.pack(op, epoch, save))


def renew(op: int, epoch: int, leases: Iterable[int]) -> bytes:
    return _frame(RENEW, _EPOCH.pack(op, epoch), _group(8, [_OP.pack(lease) for lease in leases]))


def release(op: int, epoch: int, leases: Iterable[int]) -> bytes:
    return _frame(RELEASE, _EPOCH.pack(op, epoch), _group(8, [_OP.pack(lease) for lease in leases]))


def prefetch(op: int, epoch: int, query_id: int, family: int, keys: bytes) -> bytes:
    return _frame(PREFETCH, _PREFETCH.pack(op, epoch, query_id, family), _data(keys))


def cancel(op: int, epoch: int, query_id: int) -> bytes:
    return _frame(CANCEL, _HANDLE.pack(op, epoch, query_id))


def clear(op: int, epoch: int, family: int) -> bytes:
    return _frame(CLEAR, _CLEAR.pack(op, epoch, family))


def sync(op: int, epoch: int, position: int, level: int, timeout_ms: int) -> bytes:
    return _frame(SYNC, _SYNC.pack(op, epoch, position, timeout_ms, level))


def stats(op: int, epoch: int) -> bytes:
    return _frame(STATS, _EPOCH.pack(op, epoch))


def events(op: int, epoch: int, from_sequence: int, wait_ms: int) -> bytes:
    return _frame(EVENTS, _EVENTS.pack(op, epoch, from_sequence, wait_ms))


def list_blocks(op: int, epoch: int, cursor: int) -> bytes:
    return _frame(LIST_BLOCKS, _HANDLE.pack(op, epoch, cursor))


def ping(op: int, epoch: int) -> bytes:
    return _frame(PING, _EPOCH.pack(op, epoch))


def bye(op: int, epoch: int) -> bytes:
    return _frame(BYE, _EPOCH.pack(op, epoch))


# ---- answers


class Welcome(NamedTuple):
    op: int
    epoch: int
    session: int
    arena_bytes: int
    generations_bytes: int
    staging_bytes: int
    segment_bytes: int
    segments: int
    lease_ms: int
    frame_bytes_max: int
    blocks_max: int
    leases_max: int
    protocol: int


class FamilyOpened(NamedTuple):
    op: int
    family_id: bytes
    family: int
    shards: int
    block_bytes: int


class QueryAnswer(NamedTuple):
    op: int
    query_id: int
    lease: int
    restore_micros: int
    blocks: int
    host_blocks: int
    drive_blocks: int
    retry_ms: int
    status: int


class Place(NamedTuple):
    offset: int
    segment: int
    generation: int
    checksum: int
    kind: int


class Granted(NamedTuple):
    op: int
    save: int
    wanted_blocks: int
    wanted: bytes


class SaveAnswer(NamedTuple):
    op: int
    position: int
    present: int
    accepted: int
    admitted: int
    dropped: int
    reason: int


class Event(NamedTuple):
    """What happened to a block. It is named by family, shard and head; the rest of ``key`` is 0 where the manager does not know it."""

    sequence: int
    family_id: bytes
    key: bytes
    shard: int
    kind: int

    @property
    def head(self) -> bytes:
        """The part of a key that names a block of a shard."""
        return self.key[:HEAD_BYTES]


class Removals(NamedTuple):
    """What an answer to ``events`` says of blocks of a family that are gone: their heads; ``None`` where it was cleared."""

    epoch: int
    first_sequence: int
    next_sequence: int
    heads: Optional[List[bytes]]


class ListedBlock(NamedTuple):
    family_id: bytes
    head: bytes
    shard: int


class ErrorAnswer(NamedTuple):
    op: int
    epoch: int
    code: int
    retryable: bool
    message: str


class Frame:
    """A frame that was received: ``body`` starts behind the SBE header, groups and data start at ``rest``."""

    __slots__ = ("template", "body", "rest", "op")

    def __init__(self, template: int, body: bytes, rest: int) -> None:
        self.template = template
        self.body = body
        self.rest = rest
        self.op: int = _OP.unpack_from(body)[0]

    def data(self, at: int) -> Tuple[bytes, int]:
        length = _LENGTH.unpack_from(self.body, at)[0]
        start = at + LENGTH_BYTES
        return self.body[start : start + length], start + length

    def rows(self, at: int) -> Tuple[int, int, int]:
        """Bytes of a row, how many rows, and where the first is."""
        length, count = _GROUP.unpack_from(self.body, at)
        return length, count, at + _GROUP.size


def parse(frame: bytes) -> Frame:
    """A whole frame, its length included."""
    _, block_length, template, schema, _ = _HEAD.unpack_from(frame)
    if schema != SCHEMA:
        raise ValueError(f"schema {schema} is not this protocol's")
    return Frame(template, frame[MESSAGE:], block_length)


class Fixed:
    """How an answer is read whose fixed part says all.

    ``size`` and ``head`` are those of this version's frame with nothing in its groups: a frame that has them needs no
    further look. Any other is read as usual.
    """

    __slots__ = ("_fields", "_template", "head", "size", "unpack_from")

    def __init__(self, template: int, fields: struct.Struct, groups: int) -> None:
        rest = bytes(groups * _GROUP.size)
        self._template = template
        self._fields = fields
        self.size = MESSAGE + fields.size + len(rest)
        self.head = _HEAD.pack(self.size - LENGTH_BYTES, fields.size, template, SCHEMA, SCHEMA_VERSION)
        self.unpack_from = fields.unpack_from

    def of(self, frame: Frame) -> Tuple[Any, ...]:
        """The fields of an answer that came in another way."""
        if frame.template != self._template:
            raise ValueError(f"message {frame.template} is no answer to this request")
        return self._fields.unpack_from(frame.body)


FIXED_QUERY_ANSWER = Fixed(QUERY_ANSWER, _QUERY_ANSWER, 1)
FIXED_ACK = Fixed(ACK, _OP, 0)


def frame_bytes(head: bytes) -> int:
    """The bytes of a frame that starts so, its length included."""
    length = _LENGTH.unpack_from(head)[0]
    if not HEADER_BYTES <= length <= FRAME_BYTES_MAX:
        raise ValueError(f"a frame claims {length} bytes")
    return LENGTH_BYTES + length


def welcome(frame: Frame) -> Welcome:
    return Welcome._make(_WELCOME.unpack_from(frame.body))


def family_opened(frame: Frame) -> FamilyOpened:
    return FamilyOpened._make(_FAMILY_OPENED.unpack_from(frame.body))


def query_answer(frame: Frame) -> QueryAnswer:
    return QueryAnswer._make(_QUERY_ANSWER.unpack_from(frame.body))


def located(frame: Frame) -> List[Place]:
    length, count, at = frame.rows(frame.rest)
    if length == _PLACE.size:
        rows = memoryview(frame.body)[at : at + count * length]
        return [Place._make(row) for row in _PLACE.iter_unpack(rows)]
    return [Place._make(_PLACE.unpack_from(frame.body, at + i * length)) for i in range(count)]


def granted(frame: Frame) -> Granted:
    op, save, blocks = _SAVE_GRANTED.unpack_from(frame.body)
    return Granted(op, save, blocks, frame.data(frame.rest)[0])


def save_answer(frame: Frame) -> SaveAnswer:
    return SaveAnswer._make(_SAVE_ANSWER.unpack_from(frame.body))


def lease_codes(frame: Frame) -> List[Tuple[int, int]]:
    length, count, at = frame.rows(frame.rest)
    return [_LEASE_CODE.unpack_from(frame.body, at + i * length) for i in range(count)]  # type: ignore[misc]


def sync_answer(frame: Frame) -> int:
    return _SYNC_ANSWER.unpack_from(frame.body)[1]


def stats_answer(frame: Frame) -> str:
    return frame.data(frame.rest)[0].decode()


def events_answer(frame: Frame) -> Tuple[int, int, List[Event]]:
    """The epoch, the first sequence that there can be, and events."""
    _, epoch, first = _EVENTS_ANSWER.unpack_from(frame.body)
    length, count, at = frame.rows(frame.rest)
    return epoch, first, [Event._make(_EVENT.unpack_from(frame.body, at + i * length)) for i in range(count)]


def removals(frame: Frame, family_id: bytes) -> Removals:
    """What an answer to ``events`` says of blocks that are gone; cheap where it says nothing of them."""
    _, epoch, first = _EVENTS_ANSWER.unpack_from(frame.body)
    length, count, at = frame.rows(frame.rest)
    upto = _OP.unpack_from(frame.body, at + (count - 1) * length)[0] + 1 if count else first
    kinds = frame.body[at + _EVENT.size - 1 : at + count * length : length]
    heads: Optional[List[bytes]] = []
    if REMOVED in kinds or CLEARED in kinds:
        for i, kind in enumerate(kinds):
            if kind != STORED:
                event = _EVENT.unpack_from(frame.body, at + i * length)
                if event[1] == family_id:
                    if kind == CLEARED or heads is None:
                        heads = None
                    else:
                        heads.append(event[2][:HEAD_BYTES])
    return Removals(epoch, first, upto, heads)


def blocks_listed(frame: Frame) -> Tuple[int, int, List[ListedBlock]]:
    """The epoch, the cursor to go on with (0: the end), and blocks."""
    _, epoch, cursor = _BLOCKS_LISTED.unpack_from(frame.body)
    length, count, at = frame.rows(frame.rest)
    return epoch, cursor, [ListedBlock._make(_BLOCK.unpack_from(frame.body, at + i * length)) for i in range(count)]


def error(frame: Frame) -> ErrorAnswer:
    op, epoch, code, retryable = _ERROR.unpack_from(frame.body)
    return ErrorAnswer(op, epoch, code, bool(retryable), frame.data(frame.rest)[0].decode(errors="replace"))
