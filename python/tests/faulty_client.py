"""A client that is killed, or stopped, at a named point of its life: behind each kind of message that there is, within some, and
in the middle of its copies.

For tests and ``run_client_faults``. Clients are forked from a server that has one thread, so that each costs some milliseconds.
"""

import collections
import multiprocessing
import os
import pathlib
import signal
import socket
import time
import traceback

from orbitkv import CacheManagerClient, wire
from orbitkv import channel as channel_module

from .integration.manager_process import BLOCK_BYTES, family, keys_of, payload

BLOCKS = 8

#: Requests by the points that are behind them.
MESSAGES = {
    "Hello": wire.HELLO,
    "OpenFamily": wire.OPEN_FAMILY,
    "Query": wire.QUERY,
    "Poll": wire.POLL,
    "Locate": wire.LOCATE,
    "Done": wire.DONE,
    "SaveBegin": wire.SAVE_BEGIN,
    "SaveCommit": wire.SAVE_COMMIT,
    "SaveAbort": wire.SAVE_ABORT,
    "Renew": wire.RENEW,
    "Release": wire.RELEASE,
    "Prefetch": wire.PREFETCH,
    "Cancel": wire.CANCEL,
    "Clear": wire.CLEAR,
    "Sync": wire.SYNC,
    "Stats": wire.STATS,
    "Events": wire.EVENTS,
    "ListBlocks": wire.LIST_BLOCKS,
    "Ping": wire.PING,
    "Bye": wire.BYE,
}
WITHIN = tuple(f"within {name}" for name in ("Hello", "Query", "Locate", "SaveBegin", "SaveCommit"))
COPIES = ("copy into staging", "copy out of the arena", "views held")
POINTS = (*MESSAGES, *WITHIN, *COPIES)

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])
_WAIT_SECONDS = 60.0
_PACE_SECONDS = 0.05  # between two clients that come
_STOPPED_AT_ONCE = 24


class FaultyClient:
    """A process that runs the tour of :func:`_tour`, and gets a signal at a point of it; ``None``: gets none."""

    def __init__(self, manager_socket, number, point=None, with_signal=signal.SIGKILL):
        self.point = point
        self._told, tells = FORKS.Pipe(duplex=False)
        self.process = FORKS.Process(target=_run, args=(manager_socket, number, point, with_signal, tells), daemon=True)
        self.process.start()
        tells.close()

    def await_stopped(self):
        """Until every thread of it stands still; the point must be reached."""
        until = time.monotonic() + _WAIT_SECONDS
        while not self._stands_still():
            if not self.process.is_alive() or time.monotonic() > until:
                raise AssertionError(f"the client did not stop at {self.point!r}; {self.end(0.1)}")
            time.sleep(0.002)

    def _stands_still(self):
        folder = pathlib.Path(f"/proc/{self.process.pid}/task")
        try:
            states = [(thread / "stat").read_text().rpartition(")")[2].split()[0] for thread in folder.iterdir()]
        except OSError:
            return False
        return bool(states) and all(state == "T" for state in states)

    def go_on(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def end(self, seconds=_WAIT_SECONDS):
        """Waits for its end: the exit code, and what it has seen, ``None`` where it could not tell."""
        seen = None
        try:
            if self._told.poll(seconds):
                seen = self._told.recv()
        except EOFError:
            pass  # killed
        self.process.join(seconds)
        code = self.process.exitcode
        self.close()
        return code, seen

    def close(self):
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self._told.close()


def come_and_go(manager_socket, kind, first, stop, told):
    """Clients that come and go until it is stopped, and end by themselves (``normal``), ``killed``, or ``stopped`` for a while.

    Sends through ``told`` how many they were and what they have seen.
    """
    seen = collections.Counter()
    standing = collections.deque()
    number = first

    def ended(client):
        code, saw = client.end()
        want = -signal.SIGKILL if kind == "killed" else 0
        seen["unexpected ends"] += code != want
        if saw is not None:
            seen["wrong"] += saw["wrong"]
            seen["overtaken"] += saw["overtaken"]
            seen["errors"] += bool(saw["error"])

    while not stop.is_set():
        began = time.monotonic()
        point = POINTS[number % len(POINTS)]
        if kind == "stopped":
            client = FaultyClient(manager_socket, number, point, signal.SIGSTOP)
            client.await_stopped()
            standing.append(client)
            if len(standing) > _STOPPED_AT_ONCE:
                standing[0].go_on()
                ended(standing.popleft())
        else:
            ended(FaultyClient(manager_socket, number, point if kind == "killed" else None))
        number += 1
        seen["clients"] += 1
        time.sleep(max(0.0, _PACE_SECONDS - (time.monotonic() - began)))
    for client in standing:
        client.go_on()
    for client in standing:
        ended(client)
    told.send(dict(seen))


def _run(manager_socket, number, point, with_signal, told):
    seen = {"point": point, "wrong": 0, "overtaken": 0, "error": ""}
    try:
        _tour(manager_socket, number, _Point(point, with_signal), seen)
    except BaseException:
        seen["error"] = traceback.format_exc()
    told.send(seen)


class _Point:
    """Where the signal comes: once, when it is reached."""

    def __init__(self, name, with_signal):
        self.name = name
        self._signal = with_signal

    def reached(self, name):
        if name == self.name:
            self.name = None
            os.kill(os.getpid(), self._signal)

    def socket(self):
        """A class of sockets that looks at what is sent."""
        point = self
        names = {template: name for name, template in MESSAGES.items()}

        class Watched(socket.socket):
            def send(self, data, *flags):
                name = names.get(int.from_bytes(data[6:8], "little"))
                if point.name == f"within {name}":
                    half = super().send(data[: len(data) // 2], *flags)
                    point.reached(f"within {name}")
                    return half + super().send(data[half:], *flags)
                gone = super().send(data, *flags)
                point.reached(name)
                return gone

        return Watched


class _Staging:
    """Staging memory of a client that stands still, or ends, in the middle of a copy into it."""

    def __init__(self, memory, point):
        self._memory = memory
        self._point = point

    def __getitem__(self, at):
        return self._memory[at]

    def __setitem__(self, at, content):
        half = len(content) // 2
        self._memory[at.start : at.start + half] = content[:half]
        self._point.reached("copy into staging")
        self._memory[at.start + half : at.stop] = content[half:]


class _Generations:
    """Generations that are looked at behind a copy."""

    def __init__(self, memory, point):
        self._memory = memory
        self._point = point

    def __getitem__(self, at):
        self._point.reached("copy out of the arena")
        return self._memory[at]


def _tour(manager_socket, number, point, seen):
    """Sends every message that there is, and compares what it restores."""
    channel_module.socket.socket = point.socket()
    with CacheManagerClient(manager_socket, instance=f"faulty-{number}", deadline=10.0, transfer_deadline=20.0) as client:
        assert client.wait_connected(_WAIT_SECONDS)
        life = client._life
        life.staging = _Staging(life.staging, point)
        life.generations = _Generations(life.generations, point)
        chat = client.family(family())
        keys = keys_of(1_000_000 + number, BLOCKS)
        content = payload(keys)
        saved = _saved(chat, keys, content)
        match = chat.query(keys)
        match.renew()
        views = match.views()
        point.reached("views held")
        for i, view in enumerate(views):
            right = bytes(view.data) == content[i * BLOCK_BYTES : (i + 1) * BLOCK_BYTES]
            seen["wrong"] += view.is_current and not right
            seen["overtaken"] += not view.is_current
            view.close()
        into = bytearray(match.blocks * BLOCK_BYTES)
        restored = match.restore(into)
        seen["wrong"] += into[: restored * BLOCK_BYTES] != content[: restored * BLOCK_BYTES]
        seen["overtaken"] += match.overtaken
        match.release()
        chat.query(keys).release()
        number_of_query = chat.prefetch(keys)
        client._control(lambda op, epoch: wire.poll(op, epoch, number_of_query))
        chat.cancel(number_of_query)
        _begin_and_abort(client, chat, number)
        client.sync(saved.position, timeout=0.2)
        client.events()
        client.list_blocks()
        client.stats()
        client.ping()
        own = client.family(family(salt=b"%d" % number))
        own.save(keys[:32], content[:BLOCK_BYTES])
        own.clear()
        client._control(wire.bye)


def _saved(chat, keys, content):
    """Saves all of it, where need be once the drive has caught up."""
    until = time.monotonic() + 20
    saved = chat.save(keys, content)
    while saved.dropped and time.monotonic() < until:
        time.sleep(0.01)
        saved = chat.save(keys, content)
    return saved


def _begin_and_abort(client, chat, number):
    """What a save does that was begun and is not gone on with."""
    life = client._life
    if life is None:
        return
    family_number = life.numbers(chat.family, time.monotonic() + 10)[1]
    keys = keys_of(2_000_000 + number, 1)
    begun = client._asked(
        lambda of: of.transfer.call(
            lambda op, epoch: wire.save_begin(op, epoch, family_number, 0, None, keys), time.monotonic() + 10
        )
    )
    if begun is not None:
        save = wire.granted(begun).save
        client._asked(
            lambda of: of.transfer.call(lambda op, epoch: wire.save_abort(op, epoch, save), time.monotonic() + 10)
        )
