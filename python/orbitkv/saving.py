"""How blocks are handed over: through staging memory, in turns of which several are on their way at once."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Deque, List, Optional, Sequence, TypeVar, Union

from . import wire
from .channel import Sent
from .errors import MISTAKES, OrbitKvError, Unavailable, name_of
from .family import KEY_BYTES, Family
from .staging import Ranges

if TYPE_CHECKING:  # pragma: no cover
    from .client import CacheManagerClient
    from .life import Life

_TURN_BYTES = 1 << 20  # four of them stay in the cache that both sides share, and a round trip is a tenth of copying one
_BEGUN_AHEAD = 4  # turns that are begun while an earlier one is copied: their answers are there when it is their turn
_COMMITS = 3  # on their way while the next turn is copied: one is worked at, and the manager has others while this side sleeps

#: Why the manager dropped blocks, by its number: ``SaveResult.DropReason``.
REASONS = ("", "QUEUE_FULL", "POOL_BUSY", "INDEX_FULL", "CLEARED", "KEY_COLLISION")

_T = TypeVar("_T")


@dataclass(frozen=True)
class SaveOutcome:
    """What became of the blocks of a save, in order: ``present + accepted`` are stored, the ``dropped`` ones are not.

    Attributes:
        position: for :meth:`CacheManagerClient.sync`; 0 where none goes to a drive.
        admitted: accepted blocks that go to a drive.
        reason: why blocks were dropped, as a word; empty where none was.
    """

    present: int = 0
    accepted: int = 0
    admitted: int = 0
    dropped: int = 0
    position: int = 0
    reason: str = ""


class Save:
    """One save under way, by one thread.

    The manager answers in order. So turns are begun ahead, before the turns in front of them are committed, and while one turn is
    copied some commits are on their way. Neither side waits for the other's wake-up, only for the slower of the two
    (decision 0032).
    """

    def __init__(
        self,
        client: "CacheManagerClient",
        life: "Life",
        family: Family,
        keys: bytes,
        sources: Sequence[memoryview],
        shard: int,
        parent: Optional[bytes],
        until: float,
    ) -> None:
        self._client = client
        self._life = life
        self._family = family
        self._keys = keys
        self._sources = sources
        self._shard = shard
        self._parent = parent
        self._until = until
        self._number = 0
        self._next = 0  # the first block that no turn has
        self._over = False  # a turn was dropped: what lies behind a hole could never be found
        self._begun: Deque[_Turn] = deque()
        self._handed_over: Deque[_Turn] = deque()
        self._total = SaveOutcome()

    def run(self) -> SaveOutcome:
        """Saves in turns until a block is dropped."""
        end_given_up(self._client, self._life, self._until)
        number = self._tried(len(self._sources), lambda: self._life.numbers(self._family, self._until)[1])
        if isinstance(number, SaveOutcome):
            return number
        self._number = number
        try:
            while not self._over and (self._begun or self._next < len(self._sources)):
                self._begin_ahead()
                self._hand_over(self._begun.popleft())
                while len(self._handed_over) > _COMMITS:
                    self._finish_oldest()
            while self._handed_over:
                self._finish_oldest()
        finally:
            self._leave_nothing()
        return _add(self._total, SaveOutcome(dropped=len(self._sources) - _blocks(self._total)))

    def _begin_ahead(self) -> None:
        life = self._life
        size = self._family.block_bytes
        at_once = max(1, min(min(life.welcome.staging_bytes // 4, _TURN_BYTES) // size, life.welcome.blocks_max))
        while self._next < len(self._sources) and len(self._begun) < _BEGUN_AHEAD:
            turn = _Turn(self._next, min(at_once, len(self._sources) - self._next), size)
            self._next += turn.count
            self._begun.append(turn)
            self._send(turn, lambda: self._send_begin(turn))

    def _send_begin(self, turn: "_Turn") -> Sent:
        first, behind = turn.first * KEY_BYTES, (turn.first + turn.count) * KEY_BYTES
        number, shard, keys = self._number, self._shard, self._keys[first:behind]
        parent = self._keys[first - KEY_BYTES : first] if first else self._parent
        return self._life.transfer.send(
            lambda op, epoch: wire.save_begin(op, epoch, number, shard, parent, keys), self._until
        )

    def _send(self, turn: "_Turn", act: Callable[[], Sent]) -> None:
        sent = self._tried(turn.count, act)
        if isinstance(sent, SaveOutcome):
            turn.outcome = sent
        else:
            turn.sent = sent

    def _hand_over(self, turn: "_Turn") -> None:
        """Copies the blocks of a begun turn that are wanted, and commits them."""
        self._handed_over.append(turn)
        if turn.outcome is None:
            granted = self._tried(turn.count, lambda: wire.granted(self._answer(turn)))
            if isinstance(granted, SaveOutcome):
                turn.outcome = granted
            else:
                turn.granted(granted, self._sources)
        if turn.outcome is None and self._take_staging(turn):
            try:
                turn.fill(self._life.staging)
            except BaseException:  # the caller's buffer, or somebody who interrupts
                self._give_up(turn)
                raise
            self._send(turn, lambda: self._send_commit(turn))
            if turn.outcome is not None:
                self._give_up(turn)
        self._over = self._over or turn.outcome is not None and turn.outcome.dropped > 0

    def _take_staging(self, turn: "_Turn") -> bool:
        """A place for the turn, where need be that of turns before it; whether there is one and it is to be used."""
        while not turn.take(self._life.ranges) and self._handed_over[0] is not turn:
            self._finish_oldest()
        if turn.start is not None and not self._over:
            return True
        self._give_up(turn)
        turn.outcome = SaveOutcome(dropped=turn.count, reason="STAGING_FULL")
        return False

    def _give_up(self, turn: "_Turn") -> None:
        turn.give_back_to(self._life.ranges)()
        self._life.given_up.append(turn.save)

    def _send_commit(self, turn: "_Turn") -> Sent:
        give_back = turn.give_back_to(self._life.ranges)
        return self._life.transfer.send(
            lambda op, epoch: wire.save_commit(op, epoch, turn.save, turn.places), self._until, give_back
        )

    def _finish_oldest(self) -> None:
        """Counts a turn behind those before it: once blocks were dropped, all behind them are."""
        turn = self._handed_over.popleft()
        outcome = turn.outcome or self._tried(turn.count, lambda: self._saved(turn))
        if self._total.dropped:
            outcome = SaveOutcome(dropped=_blocks(outcome))
        self._total = _add(self._total, outcome)
        self._over = self._over or outcome.dropped > 0

    def _saved(self, turn: "_Turn") -> SaveOutcome:
        try:
            saved = wire.save_answer(self._answer(turn))
        except OrbitKvError:
            turn.give_back_to(self._life.ranges)()
            raise
        turn.give_back_to(self._life.ranges)()
        there = turn.count - len(turn.sources)
        reason = REASONS[saved.reason] if saved.reason < len(REASONS) else str(saved.reason)
        return SaveOutcome(saved.present + there, saved.accepted, saved.admitted, saved.dropped, saved.position, reason)

    def _leave_nothing(self) -> None:
        """Waits for what is still on its way where a save ended early: the next one would be refused beside it."""
        for turn in (*self._handed_over, *self._begun):
            if turn.sent is None or turn.outcome is not None:
                continue
            try:
                if turn.sources:
                    self._saved(turn)
                else:
                    save = wire.granted(self._answer(turn)).save
                    self._life.given_up.extend([save] if save else [])
            except (Unavailable, OrbitKvError):
                pass  # what comes late is dealt with by whoever receives it
        end_given_up(self._client, self._life, self._until)

    def _answer(self, turn: "_Turn") -> wire.Frame:
        sent, turn.sent = turn.sent, None
        assert sent is not None, "an answer is waited for once"
        return self._life.transfer.answer_to(sent, self._until)

    def _tried(self, blocks: int, act: Callable[[], _T]) -> Union[_T, SaveOutcome]:
        return tried(self._client, self._life, blocks, act)


def tried(client: "CacheManagerClient", life: "Life", blocks: int, act: Callable[[], _T]) -> Union[_T, SaveOutcome]:
    """What came of an act, or a drop of its blocks where the manager does not do it."""
    try:
        return act()
    except Unavailable:
        client._check(life)
        return SaveOutcome(dropped=blocks, reason="UNAVAILABLE")
    except OrbitKvError as e:
        if e.code in MISTAKES:
            raise
        client._forget_stale(life, e)
        return SaveOutcome(dropped=blocks, reason=name_of(e.code))


def end_given_up(client: "CacheManagerClient", life: "Life", until: float) -> None:
    """Tells the manager, which keeps no more than 64 begun saves of a session; the next save tells the rest."""
    while life.given_up:
        save = life.given_up.popleft()
        told = tried(
            client, life, 1, lambda: life.transfer.call(lambda op, epoch: wire.save_abort(op, epoch, save), until)
        )
        if isinstance(told, SaveOutcome) and told.reason == "UNAVAILABLE":
            life.given_up.append(save)
            return


class _Turn:
    """Some consecutive blocks of a save, on their way through staging memory."""

    def __init__(self, first: int, count: int, size: int) -> None:
        self.first = first
        self.count = count
        self.sent: Optional[Sent] = None  #: its begin or its commit, until it is answered
        self.outcome: Optional[SaveOutcome] = None  #: where it is known without a commit
        self.save = 0
        self.sources: List[memoryview] = []  #: of the blocks that are wanted
        self.start: Optional[int] = None
        self._size = size
        self._step = -(-size // Ranges.PAGE) * Ranges.PAGE

    def granted(self, answer: wire.Granted, sources: Sequence[memoryview]) -> None:
        """The manager has said which blocks it wants."""
        self.save = answer.save
        self.sources = [sources[self.first + i] for i in _set_bits(answer.wanted, self.count)]
        if not self.sources:
            self.outcome = SaveOutcome(present=self.count)

    def take(self, ranges: Ranges) -> bool:
        self.start = ranges.take(self._step * len(self.sources))
        return self.start is not None

    @property
    def places(self) -> range:
        start = self.start or 0
        return range(start, start + self._step * len(self.sources), self._step)

    def fill(self, staging: memoryview) -> None:
        for at, source in zip(self.places, self.sources):
            staging[at : at + self._size] = source

    def give_back_to(self, ranges: Ranges) -> Callable[[], None]:
        """What gives its memory back, once, however often it is called."""

        def give_back() -> None:
            start, self.start = self.start, None
            if start is not None:
                ranges.give_back(start, self._step * len(self.sources))

        return give_back


def _set_bits(bits: bytes, count: int) -> List[int]:
    return [i for i in range(count) if bits[i // 8] >> i % 8 & 1]


def _blocks(outcome: SaveOutcome) -> int:
    return outcome.present + outcome.accepted + outcome.dropped


def _add(a: SaveOutcome, b: SaveOutcome) -> SaveOutcome:
    return SaveOutcome(
        a.present + b.present,
        a.accepted + b.accepted,
        a.admitted + b.admitted,
        a.dropped + b.dropped,
        max(a.position, b.position),
        a.reason or b.reason,
    )
