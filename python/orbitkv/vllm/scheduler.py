"""The half of the connector that lives beside the engine's scheduler: lookups, leases, and which pages are saved.

It knows the engine by what it is handed: requests, block tables, the block pool. No call here raises for anything that a
manager does or fails to do, and none waits longer than ``orbitkv.timeout_ms`` a step in all.
"""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ..client import CacheManagerClient, FamilyHandle
from ..errors import OrbitKvError
from ..family import KEY_BYTES, Family
from ..match import Match
from .known import KnownKeys, Removals
from .messages import Load, Report, Save, SaveReport, Step
from .pace import PrefillPace
from .settings import Settings

_LOG = logging.getLogger("orbitkv.vllm")

#: What a client may raise where it and the manager don't understand each other. To the engine it is a miss.
_TROUBLE = (OrbitKvError, OSError, ValueError)

SAVE_BLOCKS_MAX = 1024
KEYS_MAX = 16_384
_QUIET_STEPS = 3


def key_of(block_hash: bytes) -> bytes:
    """An engine's hash as a key. Shorter ones are filled up with zeros: their family names algorithm and length."""
    return block_hash if len(block_hash) == KEY_BYTES else block_hash.ljust(KEY_BYTES, b"\0")


def detached(family: Family, scope: str) -> Family:
    """The family that an instance uses once its cache was reset: nobody else has it, and what was stored is out of reach."""
    return replace(family, scope=f"{family.scope}\0{scope}") if scope else family


@dataclass
class _Tracked:
    """A request that the engine knows.

    Attributes:
        offered: blocks that were offered to the manager, from the first one on.
        computed: tokens whose pages hold what they should, or will when the step under way has run: only a step that computes
            a request proves that whatever was loaded before has arrived, whoever loaded it.
    """

    request: Any
    offered: int = 0
    computed: int = 0


@dataclass
class _Lookup:
    """A question that was asked for a waiting request, and its answer, which stays until the request is admitted."""

    first: int
    asked: int
    began: float
    match: Optional[Match] = None
    renewed: float = 0.0
    local: int = 0

    @property
    def is_settled(self) -> bool:
        return self.match is not None and not self.match.is_pending

    @property
    def blocks(self) -> int:
        return self.match.blocks if self.match is not None else 0


@dataclass
class _Loading:
    """A load that is on its way: its lease, and the keys of its blocks."""

    match: Match
    keys: List[bytes]
    renewed: float


@dataclass
class _Pinned:
    """Pages that a save still reads, and what the ranks that are done with them said."""

    scope: str
    blocks: List[Any]
    keys: List[bytes]
    report: Optional[SaveReport] = None


@dataclass
class Counters:
    """Sums since they were taken last."""

    values: Dict[str, int] = field(default_factory=dict)

    def add(self, name: str, count: int = 1) -> None:
        if count:
            self.values[name] = self.values.get(name, 0) + count

    def take(self) -> Dict[str, int]:
        taken, self.values = self.values, {}
        return taken


class SchedulerHalf:
    """See the module. One thread calls all of it: the engine's."""

    def __init__(
        self,
        client: CacheManagerClient,
        family: Family,
        settings: Settings,
        ranks: int,
        make_step: Callable[[], Step] = Step,
        clock: Callable[[], float] = time.monotonic,
        removals: Optional[Removals] = None,
    ) -> None:
        self._client = client
        self._family_at_start = family
        self._family = family
        self._settings = settings
        self._ranks = ranks
        self._make_step = make_step
        self._clock = clock
        self._block_tokens = family.block_tokens
        self._scope = ""
        self._handle: FamilyHandle = client.family(family)
        self._tracked: Dict[str, _Tracked] = {}
        self._lookups: Dict[str, _Lookup] = {}
        self._loading: Dict[str, _Loading] = {}
        self._failed: Set[str] = set()
        self._loads: List[Load] = []
        self._saves: List[Save] = []
        self._pinned: Dict[int, _Pinned] = {}
        self._pinned_blocks = 0
        self._pinned_blocks_max = settings.pinned_blocks_max
        self._pool: Any = None
        self._save_number = 0
        self._known = KnownKeys()
        self._removals = removals
        self._spent = 0.0
        self._quiet_steps = 0
        self._pace = PrefillPace()
        self._step_number = 0
        self._sources: Dict[str, Tuple[int, int]] = {}
        self.counters = Counters()

    def wait_for_manager(self, seconds: float) -> bool:
        """At the engine's start, so that its first request is no miss for want of a connection."""
        try:
            return self._handle.open(seconds)
        except _TROUBLE as e:
            self._complain(e)
            return False

    # ---- lookups

    def on_new_request(self, request: Any) -> None:
        if not self._is_passed_over(request):
            self._tracked.setdefault(request.request_id, _Tracked(request))

    @staticmethod
    def _is_passed_over(request: Any) -> bool:
        """Prompts that may still change are neither looked up nor saved."""
        return bool(getattr(request, "resumable", False))

    def matched_tokens(self, request: Any, computed_tokens: int) -> Tuple[Optional[int], bool]:
        """How many tokens beyond the engine's own hit can be loaded; ``None``: ask again in the next step."""
        self.on_new_request(request)
        name = request.request_id
        if name in self._tracked:
            self._tracked[name].computed = 0  # the engine starts over, with other pages
        if not self._settings.reads or self._is_passed_over(request) or name in self._loading:
            return 0, False
        if getattr(request, "skip_reading_prefix_cache", False):
            return 0, False
        if name in self._failed:
            # vLLM counts the pages of a load that failed as still spoken for. Another load of the same request may then wait for
            # itself, and hold up everybody behind it; what is computed does not have to fit beside them.
            return 0, False
        first = computed_tokens // self._block_tokens
        end = min(len(request.block_hashes), request.num_tokens // self._block_tokens)
        lookup = self._lookups.get(name)
        if lookup is not None and (first < lookup.first or lookup.asked < end):
            self._drop(name)  # the engine's own hit shrank, or the prompt grew: other keys
            lookup = None
        if end <= first:
            self._drop(name)
            return 0, False
        if lookup is None:
            lookup = _Lookup(first, end, self._clock())
            self._lookups[name] = lookup
        lookup.local = first
        if not lookup.is_settled and not self._ask(name, lookup, request.block_hashes):
            return None, False
        blocks = min(lookup.first + lookup.blocks, end) - first
        if blocks > 0 and not self._pays(lookup, blocks):
            self._give_up(lookup)
            return 0, False
        return (blocks * self._block_tokens, True) if blocks > 0 else (0, False)

    def _ask(self, name: str, lookup: _Lookup, hashes: Sequence[bytes]) -> bool:
        """Whether there is an answer now."""
        now = self._clock()
        waited = (now - lookup.began) * 1000 >= self._settings.lookup_wait_ms
        if self._spent * 1000 >= self._settings.timeout_ms:
            if not waited:
                return False  # this step has waited for the manager enough
            lookup.match = self._miss()
            self.counters.add("lookups_given_up")
            return True
        if lookup.match is None or waited:
            keys = b"".join(key_of(h) for h in hashes[lookup.first : min(lookup.asked, lookup.first + KEYS_MAX)])
            query_id = lookup.match.query_id if lookup.match is not None else None
            lookup.match = self._query(keys, not waited, query_id)
            if query_id is None:
                self.counters.add("lookups")
                self.counters.add("lookup_blocks", lookup.asked - lookup.first)
        else:
            try:
                self._timed(lookup.match.poll)
            except _TROUBLE as e:
                self._complain(e)
                lookup.match = self._miss()
        if not lookup.is_settled:
            return False
        lookup.renewed = now
        self.counters.add("hit_blocks", lookup.blocks)
        if lookup.match.epoch:
            asked = [key_of(h) for h in hashes[lookup.first : lookup.asked]]
            self._known.add(asked[: lookup.blocks], lookup.match.epoch)
            self._known.forget(asked[lookup.blocks :])
        return True

    def _pays(self, lookup: _Lookup, blocks: int) -> bool:
        """Whether the manager expects to bring the blocks sooner than the engine computes them."""
        computing = self._pace.seconds(blocks * self._block_tokens)
        return computing is None or lookup.match is None or lookup.match.restore_micros <= computing * 1e6

    def _give_up(self, lookup: _Lookup) -> None:
        """Turns a hit into a miss that stays one."""
        self.counters.add("declined_blocks", lookup.blocks)
        if lookup.match is not None:
            self._release(lookup.match)
        lookup.match = self._miss()

    def _miss(self) -> Match:
        return Match(self._client, None, self._family, b"", 0, None)

    def _query(self, keys: bytes, may_wait: bool, query_id: Optional[int]) -> Match:
        deadline = max(0.001, self._settings.timeout_ms / 1000 - self._spent)
        try:
            match: Match = self._timed(
                lambda: self._handle.query(keys, may_wait=may_wait, query_id=query_id, deadline=deadline)
            )
            return match
        except _TROUBLE as e:
            self._complain(e)
            return self._miss()

    def _timed(self, call: Callable[[], Any]) -> Any:
        start = self._clock()
        try:
            return call()
        finally:
            self._spent += self._clock() - start

    def _complain(self, error: Exception) -> None:
        """Once: what the manager objects to is the same for every request."""
        if not self.counters.values.get("refusals"):
            _LOG.error("OrbitKV's manager refuses this engine's requests, which are misses now: %s", error)
        self.counters.add("refusals")

    def _drop(self, name: str) -> None:
        lookup = self._lookups.pop(name, None)
        if lookup is not None and lookup.match is not None:
            self._release(lookup.match)

    def _release(self, match: Match) -> None:
        try:
            if match.is_pending:
                self._timed(lambda: self._handle.cancel(match.query_id))
            else:
                self._timed(match.release)
        except _TROUBLE as e:
            self._complain(e)

    def allocated(self, request: Any, pages: Sequence[int], external_tokens: int) -> None:
        """The engine has admitted a request; with 0 tokens nothing of ours is loaded, and its lease ends."""
        name = request.request_id
        lookup = self._lookups.pop(name, None)
        if lookup is None:
            return
        match = lookup.match
        if external_tokens <= 0 or match is None or not match:
            if match is not None:
                self._release(match)
            return
        count = external_tokens // self._block_tokens
        into = tuple(pages[lookup.local : lookup.local + count])
        self._loads.append(
            Load(
                name, self._scope, match.lease, match.epoch, match.keys,
                lookup.local - lookup.first, match.drive_blocks > 0, into,
            )
        )  # fmt: skip
        keys = [key_of(h) for h in request.block_hashes[lookup.local : lookup.local + count]]
        self._loading[name] = _Loading(match, keys, self._clock())
        shards = max(1, self._family.shards)
        on_drives = min(external_tokens, match.drive_blocks * self._block_tokens // shards)
        self._sources[name] = (external_tokens - on_drives, on_drives)
        self.counters.add("loads")
        self.counters.add("load_blocks", count)

    def hit_sources(self, request: Any) -> Tuple[int, int]:
        """Tokens of the load just planned that lie in host memory, and on drives."""
        return self._sources.pop(request.request_id, (0, 0))

    # ---- saves

    def bind_pool(self, pool: Any) -> None:
        self._pool = pool
        if not self._pinned_blocks_max:
            self._pinned_blocks_max = max(1, len(pool.blocks) // 8)

    def step(self, output: Any) -> Step:
        """What the workers are to do in the step that ``output`` describes."""
        self._spent = 0.0
        self._renew()
        if self._removals is not None:
            self._removals.take_into(self._known)
        table = output.kv_connector_block_state
        # What another connector loads within a step can turn out wrong behind it; two more may be under way by then.
        self._quiet_steps = _QUIET_STEPS if getattr(output, "has_sync_kv_loads", False) else max(0, self._quiet_steps - 1)
        for name, scheduled in output.num_scheduled_tokens.items():
            tracked = self._tracked.get(name)
            if tracked is None or table is None:
                continue
            request = tracked.request
            tracked.computed = request.num_computed_tokens + scheduled
            whole = tracked.computed // self._block_tokens
            if self._quiet_steps:
                continue
            if tracked.offered < min(whole, len(request.block_hashes)):
                pages = table.get_block_ids(name)
                if pages is not None:
                    self._offer(tracked, pages[0], whole)
        made = self._make_step()
        made.number = self._begin_step(list(output.num_scheduled_tokens.values()))
        made.family = self._family_at_start.family_id()
        made.loads, self._loads = self._loads, []
        made.saves, self._saves = self._saves, []
        return made

    def _begin_step(self, scheduled: Sequence[int]) -> int:
        if not scheduled:
            return 0
        self._step_number += 1
        self._pace.begin(self._step_number, self._clock(), sum(n for n in scheduled if n > 1), sum(scheduled))
        return self._step_number

    def _offer(self, tracked: _Tracked, pages: Sequence[int], whole: int) -> int:
        """Offers blocks up to ``whole``, as far as there is room for pins; how many are left out."""
        hashes = tracked.request.block_hashes
        whole = min(whole, len(hashes), len(pages))
        first = tracked.offered
        while first < whole and key_of(hashes[first]) in self._known:
            first += 1
        tracked.offered = max(tracked.offered, first)
        while first < whole:
            room = self._pinned_blocks_max - self._pinned_blocks
            end = min(whole, first + room, first + SAVE_BLOCKS_MAX)
            chosen = list(pages[first:end])
            if 0 in chosen:  # the engine's null page stands for what it does not keep
                chosen = chosen[: chosen.index(0)]
                end = whole = first + len(chosen)
            if not chosen:
                break
            keys = [key_of(h) for h in hashes[first:end]]
            parent = key_of(hashes[first - 1]) if first else None
            blocks = [self._pool.blocks[page] for page in chosen]
            self._pool.touch(blocks)
            self._save_number += 1
            self._pinned[self._save_number] = _Pinned(self._scope, blocks, keys)
            self._pinned_blocks += len(blocks)
            self._saves.append(Save(self._save_number, self._scope, parent, b"".join(keys), tuple(chosen)))
            first = end
            tracked.offered = first
        return max(0, whole - tracked.offered)

    def finished(self, request: Any, pages: Sequence[int]) -> None:
        """A request has ended, however; its pages go back to the engine after this."""
        name = request.request_id
        self._drop(name)
        self._failed.discard(name)
        self._sources.pop(name, None)
        tracked = self._tracked.pop(name, None)
        if tracked is None:
            return
        computed = min(tracked.computed, request.num_computed_tokens - getattr(request, "num_in_flight_tokens", 0))
        left = self._offer(tracked, pages, max(0, computed) // self._block_tokens)
        self.counters.add("save_blocks_no_room", left)

    def _renew(self) -> None:
        """Leases of waiting requests and of loads under way last on. A waiting request that has lost its one asks again."""
        now = self._clock()
        for name, lookup in list(self._lookups.items()):
            if lookup.match is not None and not self._still_leased(lookup.match, lookup, now):
                self._drop(name)
        for loading in self._loading.values():
            self._still_leased(loading.match, loading, now)

    def _still_leased(self, match: Match, holder: "_Lookup | _Loading", now: float) -> bool:
        if not match.lease or now - holder.renewed <= match.lease_seconds / 3:
            return True
        holder.renewed = now
        try:
            return bool(self._timed(match.renew))
        except _TROUBLE as e:
            self._complain(e)
            return False

    # ---- what workers say

    def reported(self, report: Optional[Report], received: Sequence[str], failed: Sequence[str]) -> None:
        """Takes in what all ranks together have reported of a step."""
        if report is not None:
            if report.step:
                self._pace.end(report.step, self._clock())
            for number, save in report.saves.items():
                self._saved(number, save)
            for name, block in report.missed.items():
                loading = self._loading.get(name)
                if loading is not None:
                    self._known.forget(loading.keys[block:])  # what is computed instead is to be saved anew
        for name in received:
            loading = self._loading.pop(name, None)
            if loading is None:
                continue
            if name in failed:
                self.counters.add("loads_failed")
                if name in self._tracked:
                    self._failed.add(name)
                self._release(loading.match)
            else:
                loading.match.lease = 0  # the workers have told the manager that they are done

    def _saved(self, number: int, report: SaveReport) -> None:
        pinned = self._pinned.get(number)
        if pinned is None:
            return
        if pinned.report is None:
            pinned.report = report
        else:
            pinned.report.merge(report)
        if pinned.report.ranks < self._ranks:
            return
        del self._pinned[number]
        self._pinned_blocks -= len(pinned.blocks)
        self._pool.free_blocks(reversed(pinned.blocks))
        self.counters.add("saved_blocks", pinned.report.stored)
        self.counters.add("save_blocks_dropped", pinned.report.dropped)
        if not pinned.report.dropped and pinned.report.epoch and pinned.scope == self._scope:
            self._known.add(pinned.keys, pinned.report.epoch)

    # ---- the rest

    @property
    def has_work(self) -> bool:
        """Whether pages are pinned: then the engine must go on stepping, so that reports arrive."""
        return bool(self._pinned)

    @property
    def gauges(self) -> Dict[str, int]:
        """What is held now; all of it is 0 once an engine has drained."""
        return {
            "lookups": len(self._lookups),
            "loading": len(self._loading),
            "pinned_blocks": self._pinned_blocks,
            "unsent": len(self._loads) + len(self._saves),
            "failed": len(self._failed),
            "tracked": len(self._tracked),
        }

    def reset(self) -> bool:
        """Puts what was stored so far out of this instance's reach; whether that could be promised."""
        if self._loading:
            return False  # what is being loaded was made before the reset
        for name in list(self._lookups):
            self._drop(name)
        self._scope = f"reset-{uuid.uuid4()}"
        self._family = detached(self._family_at_start, self._scope)
        self._handle = self._client.family(self._family)
        self._known.clear()
        if self._removals is not None:
            self._removals.follow(self._family)
        self._tracked.clear()  # what still runs has pages from before; what is computed anew is asked for again
        return True

    def close(self) -> None:
        for name in list(self._lookups):
            self._drop(name)
        if self._removals is not None:
            self._removals.close()
        self._client.close()
