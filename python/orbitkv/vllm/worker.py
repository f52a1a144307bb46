"""The half of the connector that lives beside the engine's pages: it moves blocks, on two threads of its own.

Nothing here raises into the engine: what can't be moved is a load that failed, or a save that was dropped.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ..client import CacheManagerClient, FamilyHandle
from ..family import Family
from ..match import Match
from .messages import Load, Report, Save, SaveReport, Step
from .pages import Buffer, Pages
from .scheduler import Counters, detached
from .settings import Settings

_LOG = logging.getLogger("orbitkv.vllm")

_CLOSE_SECONDS = 10.0


class _Mover:
    """A thread that does one kind of job after another, over a connection of its own."""

    def __init__(self, name: str, connect: Callable[[], CacheManagerClient], do: Callable[["_Mover", Any], None]) -> None:
        self.client = connect()
        self._do = do
        self._jobs: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._handles: Dict[str, FamilyHandle] = {}
        self._buffer: Optional[Buffer] = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, job: Any) -> None:
        self._jobs.put(job)

    def handle(self, family: Family, scope: str) -> FamilyHandle:
        known = self._handles.get(scope)
        if known is None:
            known = self.client.family(detached(family, scope))
            self._handles = {scope: known}  # an older scope does not come back
        return known

    def buffer(self, pages: Pages, size: int) -> Buffer:
        """One for all jobs; made when the first one needs it."""
        if self._buffer is None:
            self._buffer = pages.buffer(max(size, pages.layout.block_bytes))
        return self._buffer

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if self._closed:
                return
            self._do(self, job)

    def close(self) -> None:
        self._closed = True
        self._jobs.put(None)
        self._thread.join(_CLOSE_SECONDS)
        self.client.close()


class WorkerHalf:
    """See the module. The engine's thread calls it; results wait here until that asks for them.

    Args:
        connect: makes a connection to the manager.
        family: what the scheduler's half asks in, found by this half for itself.
        shard: which shard the pages of this rank are.
        stores: whether this rank saves; of ranks that hold the same bytes one does.
    """

    def __init__(
        self,
        connect: Callable[[], CacheManagerClient],
        family: Family,
        settings: Settings,
        shard: int = 0,
        stores: bool = True,
    ) -> None:
        self._connect = connect
        self._family = family
        self._settings = settings
        self._shard = shard
        self._stores = stores
        self._pages: Optional[Pages] = None
        self._loader: Optional[_Mover] = None
        self._saver: Optional[_Mover] = None
        self._lock = threading.Lock()
        self._received: Set[str] = set()
        self._failures: Dict[str, int] = {}
        self._report = Report()
        self._complained = False
        self.counters = Counters()

    def register(self, pages: Pages) -> None:
        """Takes the engine's pages over, and starts moving."""
        self._pages = pages
        if self._saver is None:
            self._saver = _Mover("orbitkv-saves", self._connect, self._save)
        if self._loader is None and self._settings.reads:
            self._loader = _Mover("orbitkv-loads", self._connect, self._load)
        if self._loader is not None and self._is_direct:
            pages.follow(self._loader.client)

    @property
    def _is_direct(self) -> bool:
        return self._settings.direct_load and not self._settings.verify_host

    def unregister(self) -> None:
        """Lets the pages go, before the engine unmaps them. Nothing is under way then."""
        self._pages = None

    # ---- the engine's thread

    def start_loads(self, step: Step) -> None:
        if not step.loads:
            return
        pages = self._pages
        if pages is None or self._loader is None or not self._agrees(step):
            for load in step.loads:
                self._loaded(load, 0)
            return
        after = pages.mark()
        for load in step.loads:
            self._loader.put((load, pages, after))

    def start_saves(self, step: Step) -> None:
        """The step has been computed, or will have been where the pages' stream is."""
        if step.number:
            with self._lock:
                self._report.step = step.number
        if not step.saves:
            return
        pages = self._pages
        if pages is None or self._saver is None or not self._agrees(step):
            for save in step.saves:
                self._saved(save, SaveReport(dropped=len(save.pages)))
            return
        after = pages.mark()
        for save in step.saves:
            self._saver.put((save, pages, after))

    def _agrees(self, step: Step) -> bool:
        """Both halves find the family for themselves. Where they differ, bytes could get a name that is not theirs."""
        if step.family == self._family.family_id() or self._complained:
            return step.family == self._family.family_id()
        self._complained = True
        _LOG.error(
            "OrbitKV: scheduler and worker name the KV cache differently (%s, %s), so nothing is saved or loaded; please"
            " report this with the engine's configuration",
            step.family.hex()[:16],
            self._family.family_id().hex()[:16],
        )
        return False

    def results(self) -> Tuple[Set[str], Set[str]]:
        """Requests whose loads have ended since the last call, and those of them that failed. Each exactly once."""
        with self._lock:
            received, self._received = self._received, set()
            failed = {name for name in received if name in self._failures}
            for name in failed:
                self._report.missed[name] = self._failures.pop(name)
        return received, failed

    def report(self) -> Optional[Report]:
        """What the scheduler's half has to know, since the last call."""
        with self._lock:
            if self._report.is_empty:
                return None
            report, self._report = self._report, Report()
        return report

    def take_counters(self) -> Dict[str, int]:
        with self._lock:
            return self.counters.take()

    def close(self) -> None:
        """Ends when the block copies that are under way have ended, or after a while; what only waits is given up."""
        for mover in (self._loader, self._saver):
            if mover is not None:
                mover.close()
        self._loader = self._saver = None

    # ---- the movers' threads

    def _load(self, mover: _Mover, job: Tuple[Load, Pages, Any]) -> None:
        load, pages, after = job
        done = 0
        started = time.monotonic()
        try:
            done = self._restore(mover, load, pages, after, started + self._settings.transfer_timeout_ms / 1000)
        except Exception:  # whatever it was, the request is computed instead
            _LOG.exception("OrbitKV: the load of request %s failed", load.request)
        with self._lock:
            self.counters.add("load_micros", int((time.monotonic() - started) * 1e6))
            self.counters.add("loaded_blocks", done)
            self.counters.add("load_bytes", done * pages.layout.block_bytes)
        self._loaded(load, done)

    def _restore(self, mover: _Mover, load: Load, pages: Pages, after: Any, until: float) -> int:
        match = mover.handle(self._family, load.detached).leased(load.lease, load.epoch, load.keys, load.on_drives)
        if not match:
            return 0
        if self._is_direct and pages.follow(mover.client):
            sink = pages.sink(load.pages, after)
            done = match.send(sink, self._shard, load.first, len(load.pages), until - time.monotonic())
        else:
            done = self._restore_through(mover.buffer(pages, self._settings.buffer_bytes), match, load, pages, after, until)
        with self._lock:
            self.counters.add("overtaken_blocks", match.overtaken)
        return done

    def _restore_through(
        self, buffer: Buffer, match: Match, load: Load, pages: Pages, after: Any, until: float
    ) -> int:
        size = pages.layout.block_bytes
        at_once = len(buffer.view) // size
        count = len(load.pages)
        done = 0
        while done < count:
            turn = min(at_once, count - done)
            got = match.restore(
                buffer.view[: turn * size],
                self._shard,
                load.first + done,
                turn,
                self._settings.verify_host,
                until - time.monotonic(),
                done + turn == count,
            )
            if got:
                pages.write(load.pages[done : done + got], buffer, after)
            done += got
            if got < turn:
                break
        return done

    def _loaded(self, load: Load, done: int) -> None:
        with self._lock:
            if done < len(load.pages):
                self._failures[load.request] = done
                self.counters.add("load_blocks_missed", len(load.pages) - done)
            self._received.add(load.request)

    def _save(self, mover: _Mover, job: Tuple[Save, Pages, Any]) -> None:
        save, pages, after = job
        report = SaveReport(dropped=len(save.pages))
        started = time.monotonic()
        try:
            if self._stores:
                report = self._store(mover, save, pages, after, started + self._settings.transfer_timeout_ms / 1000)
            else:
                report = SaveReport(stored=len(save.pages), epoch=mover.client.epoch)
        except Exception:  # saving is best effort
            _LOG.exception("OrbitKV: %d blocks were not saved", len(save.pages))
        with self._lock:
            self.counters.add("save_micros", int((time.monotonic() - started) * 1e6))
        self._saved(save, report)

    def _store(self, mover: _Mover, save: Save, pages: Pages, after: Any, until: float) -> SaveReport:
        handle = mover.handle(self._family, save.detached)
        buffer = mover.buffer(pages, self._settings.buffer_bytes)
        size = pages.layout.block_bytes
        at_once = len(buffer.view) // size
        count = len(save.pages)
        epoch = mover.client.epoch
        stored = accepted = done = 0
        while done < count and mover.client.is_connected:
            turn = min(at_once, count - done)
            pages.read(save.pages[done : done + turn], buffer, after)
            outcome = handle.save(
                save.keys[done * 32 : (done + turn) * 32],
                buffer.view[: turn * size],
                self._shard,
                save.parent if done == 0 else save.keys[(done - 1) * 32 : done * 32],
                until - time.monotonic(),
            )
            stored += outcome.present + outcome.accepted
            accepted += outcome.accepted
            done += turn
            if outcome.dropped:
                break  # what comes behind a hole is of no use
        with self._lock:
            self.counters.add("save_bytes", accepted * size)
        return SaveReport(stored=stored, dropped=count - stored, epoch=epoch if epoch == mover.client.epoch else 0)

    def _saved(self, save: Save, report: SaveReport) -> None:
        with self._lock:
            self._report.saves[save.number] = report
