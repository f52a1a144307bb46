"""``python -m orbitkv.bench``: what the client costs beside the least that could do the same, in alternating rounds of one run.

* **query** of 64 blocks, beside 64 bytes that go to a plain Java program over such a socket and back; and beside a ping
* **restore** of those blocks into a buffer, beside a copy of the same bytes by numpy (where it is not installed: by Python)
* **save** of as many new blocks, beside copy and CRC32C of as many bytes by the Java that does it, on its processor

This process and the other sides are pinned to a processor each. Ratios are of a round, so that what the machine does
meanwhile counts for both.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Sequence

from . import CacheManagerClient, Family, key_chain
from .manager import NoManager, start, tools

_BLOCKS = 64
_BLOCK_BYTES = 1 << 20
_BLOCK_TOKENS = 16
_BYTES = _BLOCKS * _BLOCK_BYTES
_MESSAGE_BYTES = 64
_WARM_UP_CALLS = 20_000  # until the compilers of the other sides have come to their end
_WARM_UP_SAVES = 40  # the same; and each page of the pool has been written
_COPIES = 3
_PAUSE_SECONDS = 0.001
_SECONDS = 60.0
_QUERY_P50_MAX = 1.2
_QUERY_P99_MAX = 2.0
_SHARE_MIN = 0.8
_NOT_AVAILABLE = 3  # exit code
_NUMBER = struct.Struct("<q")
_CALLS = ("bare", "ping", "query", "bare_after_pause", "ping_after_pause", "query_after_pause")

_FAMILY = Family(
    model_id="bench",
    tokenizer_digest=b"bench" * 6 + b"xx",
    kv_dtype="bf16",
    layout=b"bench",
    block_bytes=_BLOCK_BYTES,
    block_tokens=_BLOCK_TOKENS,
    engine="bench",
    hash_algorithm="orbitkv-sha256",
    fingerprint="bench",
)


class Floor:
    """The plain Java program; ``bench floor`` of the manager's command line."""

    def __init__(self, folder: pathlib.Path, log: Any) -> None:
        path = str(folder / "floor.sock")
        try:
            self.process = subprocess.Popen([*tools(), "bench", "floor", "--socket", path], stdout=log, stderr=log)
        except OSError as e:
            raise NoManager(f"OKV-102: cannot run {tools()[0]}: {e.strerror}") from e
        self._socket = socket.socket(socket.AF_UNIX)
        self._message = bytes(_MESSAGE_BYTES)
        self._answer = bytearray(_MESSAGE_BYTES)
        until = time.monotonic() + 5 * _SECONDS  # it may be built first
        while True:
            try:
                self._socket.connect(path)
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    self.close()
                    raise NoManager(f"OKV-804: bench floor did not start; see {log.name}") from None
                time.sleep(0.02)

    def round_trip(self) -> None:
        """64 bytes there and back, with nothing around it."""
        self._socket.send(self._message)
        self._socket.recv_into(self._answer)

    def copy_seconds(self, size: int) -> float:
        """How long a copy of so many bytes with their checksum takes."""
        self._socket.sendall(_NUMBER.pack(size).ljust(_MESSAGE_BYTES, b"\0"))
        got = self._socket.recv(_MESSAGE_BYTES, socket.MSG_WAITALL)
        if len(got) != _MESSAGE_BYTES:
            raise NoManager("OKV-804: bench floor ended by itself")
        return float(_NUMBER.unpack_from(got)[0] / 1e9)

    def close(self) -> None:
        self._socket.close()
        self.process.kill()
        self.process.wait()


def _pin(pid: int, processor: int) -> None:
    """All threads that a process has; those that come inherit it."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            os.sched_setaffinity(int(thread), {processor})
        except ProcessLookupError:
            pass


def _times(call: Callable[[], Any], count: int, pause: float = 0.0) -> List[int]:
    """Nanoseconds of each of some calls, in order of size."""
    clock = time.perf_counter_ns
    times = [0] * count
    for i in range(count):
        if pause:
            time.sleep(pause)
        began = clock()
        call()
        times[i] = clock() - began
    times.sort()
    return times


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _spread(values: Sequence[float]) -> Dict[str, float]:
    return {
        "median": round(statistics.median(values), 3),
        "min": round(min(values), 3),
        "max": round(max(values), 3),
    }


def _bounded(values: Sequence[float], bound: float, at_most: bool) -> Dict[str, Any]:
    median = statistics.median(values)
    return {**_spread(values), "bound": bound, "within": median <= bound if at_most else median >= bound}


class Side:
    """A manager and a client of it."""

    def __init__(self, folder: pathlib.Path, log: Any, *options: str) -> None:
        folder.mkdir()
        sizes = ("--pool-size", "320mb", "--ssd-cache-capacity", "1gb", "--hint-value-size", "1mb")
        self.manager = start(folder, log, *sizes, *options)
        self.client = CacheManagerClient(
            str(folder / "orbitkv.sock"), instance="bench", role="worker", deadline=5.0, transfer_deadline=_SECONDS
        )
        self.blocks = self.client.family(_FAMILY)
        if not self.client.wait_connected(_SECONDS):
            self.close()
            raise NoManager(f"OKV-804: no connection to the manager: {self.client.last_error}")

    def save(self, keys: bytes, source: bytearray) -> None:
        """New blocks."""
        saved = self.blocks.save(keys, source)
        if saved.accepted != _BLOCKS:
            raise NoManager(f"OKV-803: a save was not taken in whole: {saved}")

    def await_quiet(self) -> None:
        """Until nothing is on its way to the drive: blocks of a drive that is out stay in host memory, which does as well."""
        until = time.monotonic() + _SECONDS
        while self.client.stats().get("nvme_queued_blocks", 1):
            if time.monotonic() > until:
                raise NoManager(
                    f"OKV-105: after {_SECONDS:.0f} s blocks are still on their way to the drive below"
                    f" {tempfile.gettempdir()}; name another folder with TMPDIR"
                )
            time.sleep(0.05)

    def close(self) -> None:
        self.client.close()
        self.manager.kill()
        self.manager.wait()


class Bench:
    """Managers, the plain program, and clients of all."""

    def __init__(self, folder: pathlib.Path, log: Any, seed: int) -> None:
        self.random = random.Random(seed)
        processors = sorted(os.sched_getaffinity(0))
        if len(processors) < 2:
            raise NoManager("OKV-102: this process may use one processor only; each side needs one of its own")
        own, other = processors[0], processors[1]
        self._closing = contextlib.ExitStack()
        with contextlib.ExitStack() as opened:
            self.floor = Floor(folder, log)
            opened.callback(self.floor.close)
            self.asked = Side(folder / "asked", log)
            opened.callback(self.asked.close)
            # One of its own: what is saved once goes to no drive there, whose writes would be measured as well.
            self.saved = Side(folder / "saved", log, "--ssd-write-policy", "reuse")
            opened.callback(self.saved.close)
            # Only now: a Java that is started on one processor takes it for the machine's only one.
            for process in (self.floor.process, self.asked.manager, self.saved.manager):
                _pin(process.pid, other)
            _pin(os.getpid(), own)
            self.source = bytearray(self.random.randbytes(_BYTES))
            self.into = bytearray(_BYTES)
            self.keys = self.new_keys()
            self.asked.save(self.keys, self.source)
            self.asked.await_quiet()
            self._closing = opened.pop_all()

    def new_keys(self) -> bytes:
        """Keys that nobody has used."""
        return key_chain((self.random.getrandbits(32) for _ in range(_BLOCKS * _BLOCK_TOKENS)), _BLOCK_TOKENS)

    def query(self) -> None:
        """As an engine asks: with its request's number, so that the lease of the time before ends."""
        if self.asked.blocks.query(self.keys, query_id=1).blocks != _BLOCKS:
            raise NoManager("OKV-803: a query did not find what was saved")

    def measure_save(self) -> Dict[str, float]:
        keys = self.new_keys()
        client = self.saved.client
        busy = client.stats()["request_seconds"]
        save = _seconds(lambda: self.saved.save(keys, self.source))
        busy = client.stats()["request_seconds"] - busy
        return {"floor": self.floor.copy_seconds(_BYTES), "save": save, "manager": busy}

    def measure_restore(self, order: int) -> Dict[str, float]:
        with self.asked.blocks.query(self.keys, query_id=1) as match:
            views = match.views()
            if len(views) != _BLOCKS:
                raise NoManager(f"OKV-803: {len(views)} of {_BLOCKS} blocks are there")
            copy = _copier([view.data for view in views], self.into)

            def restore() -> None:
                if match.restore(self.into, done=False) != _BLOCKS:
                    raise NoManager("OKV-803: a restore stopped short")

            times: Dict[str, List[float]] = {"copy": [], "restore": []}
            for turn in range(2 * _COPIES):
                name, act = (("copy", copy), ("restore", restore))[(turn + order) % 2]
                times[name].append(_seconds(act))
            if self.into != self.source:
                raise NoManager("OKV-803: restored bytes are not those that were saved")
            copy = None  # type: ignore[assignment]
            for view in views:
                view.close()
        return {name: statistics.median(each) for name, each in times.items()}

    def measure_query(self, order: int, calls: int) -> Dict[str, List[int]]:
        acts = [("bare", self.floor.round_trip), ("query", self.query), ("ping", self.asked.client.ping)]
        acts = acts[order % 3 :] + acts[: order % 3]
        times = {name: _times(act, calls) for name, act in acts}
        # Both sides asleep, as for the first prompt of an engine's step.
        return {**times, **{name + "_after_pause": _times(act, calls // 20, _PAUSE_SECONDS) for name, act in acts}}

    def close(self) -> None:
        self._closing.close()


def _copier(sources: List[memoryview], into: bytearray) -> Callable[[], None]:
    """Copies the bytes of blocks, back to back."""
    size = _BLOCK_BYTES
    try:
        import numpy
    except ImportError:
        target = memoryview(into)

        def in_python() -> None:
            for i, source in enumerate(sources):
                target[i * size : (i + 1) * size] = source

        return in_python
    arrays = [numpy.frombuffer(source, numpy.uint8) for source in sources]
    targets = [numpy.frombuffer(into, numpy.uint8, size, i * size) for i in range(len(arrays))]

    def by_numpy() -> None:
        for target, array in zip(targets, arrays):
            numpy.copyto(target, array)

    return by_numpy


def run(bench: Bench, rounds: int, calls: int) -> Dict[str, Any]:
    for _ in range(_WARM_UP_SAVES):
        bench.measure_save()
    bench.measure_restore(0)
    bench.measure_query(0, _WARM_UP_CALLS)
    queries, restores, saves = [], [], []
    for order in range(rounds):
        saves.append(bench.measure_save())
        restores.append(bench.measure_restore(order))
        queries.append(bench.measure_query(order, calls))
        print(f"round {order + 1} of {rounds}", file=sys.stderr)

    def micros(name: str, share: float) -> List[float]:
        return [each[name][int(len(each[name]) * share)] / 1e3 for each in queries]

    def ratios(share: float, when: str = "") -> List[float]:
        return [ours / bare for ours, bare in zip(micros("query" + when, share), micros("bare" + when, share))]

    def rates(each: List[Dict[str, float]], name: str) -> Dict[str, float]:
        return _spread([_BYTES / of[name] / 1e9 for of in each])

    result: Dict[str, Any] = {
        "blocks": _BLOCKS,
        "block_bytes": _BLOCK_BYTES,
        "rounds": rounds,
        "calls_a_round": calls,
        "query_us": {
            name: {"p50": _spread(micros(name, 0.5)), "p99": _spread(micros(name, 0.99))}
            for name in _CALLS
        },
        "query_p50_of_bare_after_pause": _spread(ratios(0.5, "_after_pause")),
        "query_p50_of_bare": _bounded(ratios(0.5), _QUERY_P50_MAX, True),
        "query_p99_of_bare": _bounded(ratios(0.99), _QUERY_P99_MAX, True),
        "copied_by": "numpy" if "numpy" in sys.modules else "python",
        "restore_gb_s": {"copy": rates(restores, "copy"), "restore": rates(restores, "restore")},
        "restore_of_copy": _bounded([each["copy"] / each["restore"] for each in restores], _SHARE_MIN, False),
        "save_gb_s": {"copy_crc32c": rates(saves, "floor"), "save": rates(saves, "save")},
        "save_of_copy_crc32c": _bounded([each["floor"] / each["save"] for each in saves], _SHARE_MIN, False),
        "save_on_the_managers_processor": _spread([each["floor"] / each["manager"] for each in saves]),
    }
    result["within_bounds"] = all(value["within"] for value in result.values() if isinstance(value, dict) and "within" in value)
    return result


def _tell(result: Dict[str, Any]) -> None:
    def line(what: str, spread: Dict[str, Any]) -> None:
        bound = f"   bound {spread['bound']}: {'good' if spread['within'] else 'NOT GOOD'}" if "bound" in spread else ""
        print(
            f"{what:<36} {spread['median']:>9.3f} [{spread['min']:.3f}..{spread['max']:.3f}]{bound}", file=sys.stderr
        )

    for name in _CALLS:
        for share in ("p50", "p99"):
            line(f"{name.replace('_', ' ')}, {share}, us", result["query_us"][name][share])
    line("query / bare after a pause, p50", result["query_p50_of_bare_after_pause"])
    line("query / bare, p50", result["query_p50_of_bare"])
    line("query / bare, p99", result["query_p99_of_bare"])
    line(f"copy by {result['copied_by']}, GB/s", result["restore_gb_s"]["copy"])
    line("restore, GB/s", result["restore_gb_s"]["restore"])
    line("restore / copy", result["restore_of_copy"])
    line("copy + CRC32C, GB/s", result["save_gb_s"]["copy_crc32c"])
    line("save, GB/s", result["save_gb_s"]["save"])
    line("save / copy + CRC32C", result["save_of_copy_crc32c"])
    line("of it on the manager's processor", result["save_on_the_managers_processor"])


def _count(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"OKV-801: {text!r} is not a number from {low} to {high}")
        return int(text)

    return parse


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m orbitkv.bench", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=_count(1, 1000), default=7, help="measured rounds, 1 to 1000 (default 7)")
    parser.add_argument(
        "--calls", type=_count(100, 1_000_000), default=4000, help="queries a round, 100 to 1000000 (default 4000)"
    )
    parser.add_argument("--seed", type=_count(0, 1 << 62), default=1, help="chooses keys and bytes (default 1)")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a median is outside of its bound")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line of stdout")
    options = parser.parse_args(arguments)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="orbitkv-bench-"))
    try:
        with open(folder / "log", "w+b") as log:
            try:
                bench = Bench(folder, log, options.seed)
                try:
                    result = run(bench, options.rounds, options.calls)
                finally:
                    bench.close()
            except NoManager:
                log.seek(0)
                sys.stderr.write(log.read(1 << 16).decode(errors="replace"))
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _tell(result)
    if options.json:
        print(json.dumps(result))
    return 1 if options.check and not result["within_bounds"] else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except NoManager as e:
        print(f"orbitkv: {e}", file=sys.stderr)
        sys.exit(_NOT_AVAILABLE)
