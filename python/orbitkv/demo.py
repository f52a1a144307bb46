"""``python -m orbitkv.demo``: two processes share a prefix while a third kills the manager.

Each of two processes chats: it queries a prompt, restores what is there, compares every byte, and saves the rest. Half way
the manager is killed with SIGKILL and started again; what was on the drive is found again. Ends with 0 only when no byte
was wrong, no call was late and both processes were served before and after the kill.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import pathlib
import shutil
import signal
import sys
import tempfile
import time
from typing import Any, Dict, List

from . import CacheManagerClient, Family, key_chain
from .manager import NoManager, start

_BLOCK_BYTES = 64 << 10
_BLOCK_TOKENS = 16
_BLOCKS = 24
_DEADLINE = 0.25
_SIZES = ("--ssd-cache-capacity", "256mb", "--pool-size", "64mb")
_LATE = 1.0  # a busy machine may be late by this much in waking somebody

_FAMILY = Family(
    model_id="demo",
    tokenizer_digest=b"demo" * 8,
    kv_dtype="bf16",
    layout=b"demo",
    block_bytes=_BLOCK_BYTES,
    block_tokens=_BLOCK_TOKENS,
    engine="demo",
    hash_algorithm="orbitkv-sha256",
    fingerprint="demo",
)


def _keys(prompt: int) -> bytes:
    return key_chain((prompt << 16 | i for i in range(_BLOCKS * _BLOCK_TOKENS)), _BLOCK_TOKENS)


def _payload(keys: bytes) -> bytes:
    return b"".join(keys[at : at + 32] * (_BLOCK_BYTES // 32) for at in range(0, len(keys), 32))


def chat(name: str, socket: str, stop: Any, killed: Any, answers: Any) -> None:
    """One engine: prompts that the other one has as well, in an order of its own."""
    seen: Dict[str, Any] = {"name": name, "turns": 0, "wrong": 0, "late": 0, "slowest_seconds": 0.0}
    hits = [0, 0]
    with CacheManagerClient(socket, instance=name, deadline=_DEADLINE, transfer_deadline=2.0) as client:
        client.wait_connected(60)
        family = client.family(_FAMILY)
        into = bytearray(_BLOCKS * _BLOCK_BYTES)
        turn = 0
        while not stop.is_set():
            prompt = turn % 16 if name == "one" else (turn * 7) % 16
            turn += 1
            keys = _keys(prompt)
            data = _payload(keys)
            began = time.monotonic()
            match = family.query(keys)
            took = time.monotonic() - began
            seen["slowest_seconds"] = max(seen["slowest_seconds"], took)
            seen["late"] += took > _DEADLINE + _LATE
            restored = match.restore(into)
            match.release()
            hits[killed.is_set()] += restored
            seen["wrong"] += into[: restored * _BLOCK_BYTES] != data[: restored * _BLOCK_BYTES]
            if not client.is_connected:
                time.sleep(0.01)  # an engine would compute meanwhile, on another processor
            elif restored < _BLOCKS:
                parent = keys[(restored - 1) * 32 : restored * 32] if restored else None
                family.save(keys[restored * 32 :], data[restored * _BLOCK_BYTES :], parent=parent)
            seen["turns"] = turn
        seen["connects"] = client.connects
    seen["hit_blocks_before"], seen["hit_blocks_after"] = hits
    answers.put(seen)


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m orbitkv.demo", description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each half takes, in seconds (default 10)")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line of stdout")
    options = parser.parse_args(arguments)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="orbitkv-demo-"))
    context = multiprocessing.get_context("spawn")
    stop, killed, answers = context.Event(), context.Event(), context.Queue()
    with open(folder / "manager.log", "wb") as log:
        manager = start(folder, log, *_SIZES)
        socket = str(folder / "orbitkv.sock")
        chats = [context.Process(target=chat, args=(name, socket, stop, killed, answers)) for name in ("one", "two")]
        try:
            for process in chats:
                process.start()
            time.sleep(options.seconds)
            print("killing the manager", file=sys.stderr)
            manager.send_signal(signal.SIGKILL)
            manager.wait()
            killed.set()
            began = time.monotonic()
            manager = start(folder, log, *_SIZES)
            restart = time.monotonic() - began
            time.sleep(options.seconds)
            stop.set()
            seen = sorted((answers.get(timeout=120) for _ in chats), key=lambda answer: str(answer["name"]))
            for process in chats:
                process.join(60)
            manager.send_signal(signal.SIGTERM)
            exit_code = manager.wait(60)
        finally:
            manager.kill()
            for process in chats:
                process.kill()
    shutil.rmtree(folder, ignore_errors=True)
    good = exit_code == 0 and all(
        not answer["wrong"] and not answer["late"] and answer["hit_blocks_before"] and answer["hit_blocks_after"]
        for answer in seen
    )
    for answer in seen:
        print(
            f"process {answer['name']}: {answer['turns']} prompts, {answer['hit_blocks_before']} blocks hit before the"
            f" kill and {answer['hit_blocks_after']} after it, {answer['wrong']} wrong, slowest query"
            f" {answer['slowest_seconds'] * 1000:.1f} ms, connected {answer['connects']} times",
            file=sys.stderr,
        )
    print(f"manager back after {restart:.2f} s, {'good' if good else 'NOT GOOD'}", file=sys.stderr)
    if options.json:
        print(json.dumps({"good": good, "restart_seconds": round(restart, 3), "processes": seen}))
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except NoManager as e:
        print(f"orbitkv: {e}", file=sys.stderr)
        sys.exit(3)  # the machine lacks something
