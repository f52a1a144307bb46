"""One connection to the manager: one request at a time, and none longer than its deadline."""

from __future__ import annotations

import array
import os
import socket
import struct
import threading
import time
from typing import Callable, Dict, List, Optional, Tuple

from . import wire
from .errors import Code, OrbitKvError, Unavailable

_UCRED = struct.Struct("3i")
_TIMEVAL = struct.Struct("@ll")
_RECEIVE_BYTES = 64 << 10
_CLOSE_ENOUGH = 0.0005
_DESCRIPTORS = 3


class Channel:
    """A session. Whoever calls does the work: no thread of its own, so that a round trip is one send and one receive.

    An answer that comes behind its deadline is taken from the socket by a later call; until it has come, calls end at
    once, since the manager would answer them behind it.
    """

    def __init__(self, path: str, role: int, instance: str, client: str, wants_memory: bool, deadline: float) -> None:
        self._lock = threading.Lock()
        self._late: Dict[int, Callable[[], None]] = {}
        self._have = bytearray()
        self._buffer = bytearray(_RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._timeout = -1.0
        self._next_op = 1
        self.broken = False
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        descriptors: List[int] = []
        try:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            self.socket.connect(path)
            self._require_own_user()
            self.socket.settimeout(None)
            frame, descriptors = self._greet(role, instance, client, wants_memory, deadline)
            self.welcome = wire.welcome(frame)
            self.epoch = self.welcome.epoch
            self.descriptors = descriptors
        except BaseException as e:
            self.socket.close()
            for descriptor in descriptors:
                os.close(descriptor)
            if isinstance(e, OSError):
                raise Unavailable(str(e)) from e
            raise

    def _require_own_user(self) -> None:
        """Another user could have made a socket under this name first."""
        raw = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        uid = _UCRED.unpack(raw)[1]
        if uid != os.geteuid():
            raise OrbitKvError(
                Code.FOREIGN_USER, f"OKV-1015: the manager is of user {uid}, this process of {os.geteuid()}"
            )

    def _greet(
        self, role: int, instance: str, client: str, wants_memory: bool, deadline: float
    ) -> Tuple[wire.Frame, List[int]]:
        op = self.next_op()
        try:
            self._send(wire.hello(op, role, wants_memory, instance, client), deadline)
        except BrokenPipeError:
            pass  # refused before it was read: why, stands in the answer
        if not wants_memory:
            return self._answer(self._receive(deadline)), []
        self._set_timeout(deadline)
        numbers = array.array("i")
        data, controls, _, _ = self.socket.recvmsg(
            _RECEIVE_BYTES, socket.CMSG_SPACE(_DESCRIPTORS * numbers.itemsize), socket.MSG_CMSG_CLOEXEC
        )
        for level, kind, content in controls:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
        try:
            if not data:
                raise Unavailable("the manager closed the connection")
            self._have += data
            return self._answer(self._receive(deadline)), list(numbers)
        except BaseException:
            for descriptor in numbers:
                os.close(descriptor)
            raise

    def next_op(self) -> int:
        op = self._next_op
        self._next_op = op + 1
        return op

    def call(
        self, make: Callable[[int, int], bytes], deadline: float, on_late: Optional[Callable[[], None]] = None
    ) -> wire.Frame:
        """Sends a request and waits for its answer.

        Args:
            make: makes the frame of an operation number and the epoch.
            deadline: ``time.monotonic()`` at which it ends, whatever happens.
            on_late: called once the manager has certainly nothing more to do with the request, where that is behind
                the deadline.

        Raises:
            Unavailable: no answer in time, or no connection.
            OrbitKvError: what the manager answered.
        """
        if self.broken or not self._lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            if on_late:
                on_late()
            raise Unavailable("the connection is lost or in use")
        sent = False
        try:
            if self._late:
                self._take_late()
            if time.monotonic() >= deadline:
                raise Unavailable("the deadline is over")
            op = self.next_op()
            try:
                frame = make(op, self.epoch)
            except struct.error as e:
                raise OrbitKvError(Code.BAD_ARGUMENT, f"OKV-702: a number is out of its range: {e}") from e
            sent = True
            self._send(frame, deadline)
            while True:
                try:
                    answer = self._receive(deadline)
                except TimeoutError:
                    self._late[op] = on_late or _nothing
                    raise Unavailable("the manager did not answer in time") from None
                if answer.op == op:
                    return self._answer(answer)
                self._late.pop(answer.op, _nothing)()
        except (OSError, ValueError, struct.error) as e:
            self.fail()
            raise Unavailable(str(e)) from e
        finally:
            self._lock.release()
            if not sent and on_late:
                on_late()

    def _take_late(self) -> None:
        """Takes answers that were waited for in vain, without waiting."""
        while self._late:
            frame = self._next_frame()
            if frame is None:
                try:
                    got = self.socket.recv_into(self._buffer, 0, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    raise Unavailable("the manager has not answered an earlier request yet") from None
                if not got:
                    raise OSError("the manager closed the connection")
                self._have += self._view[:got]
            else:
                self._late.pop(frame.op, _nothing)()

    def _answer(self, frame: wire.Frame) -> wire.Frame:
        if frame.template == wire.ERROR:
            error = wire.error(frame)
            raise OrbitKvError(error.code, error.message, error.retryable)
        return frame

    def _send(self, frame: bytes, deadline: float) -> None:
        self._set_timeout(max(deadline, time.monotonic() + 2 * _CLOSE_ENOUGH))
        sent = self.socket.send(frame)
        while sent < len(frame):
            if time.monotonic() > deadline:
                raise OSError("a request was sent in part")
            sent += self.socket.send(frame[sent:])

    def _receive(self, deadline: float) -> wire.Frame:
        if not self._have:
            self._set_timeout(deadline)
            got = self._receive_some()
            if got >= wire.LENGTH_BYTES and wire.frame_bytes(self._buffer) == got:
                return wire.parse(bytes(self._view[:got]))
            self._have += self._view[:got]
        while True:
            frame = self._next_frame()
            if frame is not None:
                return frame
            self._set_timeout(deadline)
            self._have += self._view[: self._receive_some()]

    def _receive_some(self) -> int:
        try:
            got = self.socket.recv_into(self._buffer)
        except BlockingIOError:
            raise TimeoutError from None
        if not got:
            raise ConnectionResetError("the manager closed the connection")
        return got

    def _next_frame(self) -> Optional[wire.Frame]:
        if len(self._have) < wire.LENGTH_BYTES:
            return None
        size = wire.frame_bytes(self._have)
        if len(self._have) < size:
            return None
        frame = bytes(self._have[:size])
        del self._have[:size]
        return wire.parse(frame)

    def _set_timeout(self, deadline: float) -> None:
        """The kernel ends the wait, so that a receive is one system call; set again only where it differs."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if not -_CLOSE_ENOUGH < self._timeout - left < _CLOSE_ENOUGH:
            value = _TIMEVAL.pack(int(left), int(left % 1 * 1e6) or 1)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)
            self._timeout = left

    def fail(self) -> None:
        """Ends the connection; whoever waits on it is woken. Any thread."""
        self.broken = True
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def abandon(self) -> None:
        """Leaves the connection to the process that this one was forked from, which goes on with it."""
        self.broken = True
        self.socket.close()

    def close(self) -> None:
        self.fail()
        with self._lock:
            self.socket.close()
            for done in self._late.values():
                done()
            self._late.clear()


def _nothing() -> None:
    pass
