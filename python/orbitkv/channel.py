"""One connection to the manager: requests are answered in order, and nobody waits for longer than a deadline."""

from __future__ import annotations

import array
import itertools
import os
import socket
import struct
import threading
from time import monotonic as _now
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import wire
from .errors import Code, OrbitKvError, Unavailable

_UCRED = struct.Struct("3i")
_TIMEVAL = struct.Struct("@ll")
_RECEIVE_BYTES = 64 << 10
_CLOSE_ENOUGH = 0.0005
_DESCRIPTORS = 3
_NOW = socket.MSG_DONTWAIT
_LOOK_SECONDS = 50e-6  # a query takes half of that where both sides have a processor
_REST = 16
_ALONE = (os.cpu_count() or 1) == 1


class Sent:
    """A request that is on its way, for :meth:`Channel.answer_to`."""

    __slots__ = ("answer", "on_late", "op")

    def __init__(self, op: int, on_late: Callable[[], None]) -> None:
        self.op = op
        self.on_late = on_late
        self.answer: Optional[wire.Frame] = None


class Channel:
    """A session. Whoever calls does the work: no thread of its own, so that a round trip is one send and one receive.

    An answer that comes behind its deadline is taken from the socket by a later call; until it has come, calls end at
    once, since the manager would answer them behind it. Answers that are still waited for, of requests that were sent
    ahead, hold nobody up: whoever receives them keeps them for their senders.
    """

    def __init__(self, path: str, role: int, instance: str, client: str, wants_memory: bool, deadline: float) -> None:
        self._lock = threading.Lock()
        self._late: Dict[int, Callable[[], None]] = {}
        self._ahead: Dict[int, Sent] = {}  # requests whose sender does something else meanwhile
        self._settling = threading.Lock()  # an answer that comes ahead is its sender's, or late: never both
        self._have = bytearray()
        self._buffer = bytearray(_RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._timeout = -1.0
        self._look_seconds = 0.0 if _ALONE else _LOOK_SECONDS
        self._rest = 0
        self._ops = itertools.count(1)
        self.next_op: Callable[[], int] = self._ops.__next__  #: a number for a request; any thread
        self.broken = False
        self.on_late_answer: Optional[Callable[[wire.Frame], None]] = None  #: is shown answers that nobody waits for
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._send_some = self.socket.send
        self._receive_into = self.socket.recv_into
        descriptors: List[int] = []
        try:
            self.socket.settimeout(max(0.001, deadline - _now()))
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
        op = next(self._ops)
        try:
            self._send_rest(wire.hello(op, role, wants_memory, instance, client), 0, deadline)
        except BrokenPipeError:
            pass  # refused before it was read: why, stands in the answer
        if not wants_memory:
            return self._answer(self._receive(deadline)), []
        self._set_timeout(deadline - _now())
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

    def call(
        self,
        make: Callable[[int, int], bytes],
        deadline: float,
        on_late: Optional[Callable[[], None]] = None,
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
        op, frame = self._made(make, on_late)
        return self._exchange(op, frame, deadline, on_late, None)  # type: ignore[return-value]

    def _made(self, make: Callable[[int, int], bytes], on_late: Optional[Callable[[], None]]) -> Tuple[int, bytes]:
        op = next(self._ops)
        try:
            return op, make(op, self.epoch)
        except struct.error as e:
            if on_late:
                on_late()
            raise out_of_range(e) from e

    def send(
        self, make: Callable[[int, int], bytes], deadline: float, on_late: Optional[Callable[[], None]] = None
    ) -> Sent:
        """Sends a request whose answer is waited for later, with :meth:`answer_to`; arguments and errors as of :meth:`call`.

        A few may be on their way: what the manager answers while nobody reads has to fit into the socket.
        """
        op, frame = self._made(make, on_late)
        sent = Sent(op, on_late or _nothing)
        gone = False
        if not self.broken and self._enter(deadline):
            try:
                if self._late:
                    self._take_late()
                self._ahead[op] = sent
                gone = True
                self._send(frame, deadline)
                return sent
            except (OSError, ValueError, struct.error) as e:
                self.fail()
                raise Unavailable(str(e)) from e
            finally:
                self._lock.release()
                if not gone:
                    sent.on_late()
        sent.on_late()
        raise Unavailable("the connection is lost or in use")

    def answer_to(self, sent: Sent, deadline: float) -> wire.Frame:
        """Waits for the answer to a request that was sent. Once for each.

        Raises:
            Unavailable: no answer in time, or no connection; where it comes late, ``on_late`` of the request is called.
            OrbitKvError: what the manager answered.
        """
        while sent.answer is None:
            if self.broken or not self._enter(deadline):
                self._give_up(sent)
                break
            try:
                while sent.answer is None:
                    self._came(self._receive(deadline))
            except (BlockingIOError, TimeoutError):
                self._give_up(sent)
                break
            except (OSError, ValueError, struct.error) as e:
                self.fail()
                raise Unavailable(str(e)) from e
            finally:
                self._lock.release()
        if sent.answer is None:
            raise Unavailable("the manager did not answer in time")
        return self._answer(sent.answer)

    def _give_up(self, sent: Sent) -> None:
        """Its answer is late, unless another thread has just received it."""
        with self._settling:
            if self._ahead.pop(sent.op, None) is not None:
                self._late[sent.op] = sent.on_late

    def ask(self, op: int, frame: bytes, deadline: float, answer: wire.Fixed) -> Tuple[Any, ...]:
        """As :meth:`call`, for answers whose fixed part says all: their fields. The frame has a number of :meth:`next_op`."""
        return self._exchange(op, frame, deadline, None, answer)  # type: ignore[return-value]

    def _exchange(
        self,
        op: int,
        frame: bytes,
        deadline: float,
        on_late: Optional[Callable[[], None]],
        answer: Optional[wire.Fixed],
    ) -> Union[wire.Frame, Tuple[Any, ...]]:
        """The straight path is one send that never waits and one receive that the kernel ends in time (decision 0029)."""
        if self.broken or not self._enter(deadline):
            if on_late:
                on_late()
            raise Unavailable("the connection is lost or in use")
        sent = False
        try:
            if self._late:
                self._take_late()
            sent = True
            self._send(frame, deadline)
            try:
                if not self._have:
                    left = deadline - _now()
                    if not -_CLOSE_ENOUGH < self._timeout - left < _CLOSE_ENOUGH:
                        self._set_timeout(left)
                    got = 0
                    if self._rest:
                        self._rest -= 1
                    elif answer is not None:
                        got = self._look(left)
                    if not got:
                        got = self._receive_into(self._buffer)
                    if answer is not None and got == answer.size and self._buffer.startswith(answer.head):
                        fields = answer.unpack_from(self._buffer, wire.MESSAGE)
                        if fields[0] == op:
                            return fields
                    if not got:
                        raise ConnectionResetError("the manager closed the connection")
                    self._have += self._view[:got]
                received = self._receive(deadline)
                while received.op != op:
                    self._came(received)
                    received = self._receive(deadline)
            except (BlockingIOError, TimeoutError):
                self._late[op] = on_late or _nothing
                raise Unavailable("the manager did not answer in time") from None
            received = self._answer(received)
            return received if answer is None else answer.of(received)
        except (OSError, ValueError, struct.error) as e:
            self.fail()
            raise Unavailable(str(e)) from e
        finally:
            self._lock.release()
            if not sent and on_late:
                on_late()

    def _look(self, left: float) -> int:
        """Looks for an answer for a moment before it sleeps, since waking up takes as long as a query; 0 where none came.

        Where it came later than that, the next ones sleep at once: a manager that is slow, or has no processor, is not
        helped by a client that keeps one busy.
        """
        until = _now() + min(left, self._look_seconds)
        while True:
            try:
                return self._receive_into(self._buffer, 0, _NOW)
            except BlockingIOError:
                if _now() >= until:
                    self._rest = _REST
                    return 0

    def _enter(self, deadline: float) -> bool:
        """Waits for its turn; whether there is time left."""
        if self._lock.acquire(False) or self._lock.acquire(timeout=max(0.0, deadline - _now())):
            if _now() < deadline:
                return True
            self._lock.release()
        return False

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
                self._came(frame)

    def _came(self, frame: wire.Frame) -> None:
        """An answer that the receiver has not asked for: its sender comes for it, or doesn't any more."""
        with self._settling:
            sent = self._ahead.pop(frame.op, None)
            if sent is not None:
                sent.answer = frame
                return
        self._late.pop(frame.op, _nothing)()
        if self.on_late_answer is not None:
            self.on_late_answer(frame)

    def _answer(self, frame: wire.Frame) -> wire.Frame:
        if frame.template == wire.ERROR:
            error = wire.error(frame)
            raise OrbitKvError(error.code, error.message, error.retryable)
        return frame

    def _send(self, frame: bytes, deadline: float) -> None:
        try:
            gone = self._send_some(frame, _NOW)
        except BlockingIOError:
            gone = 0
        if gone < len(frame):
            self._send_rest(frame, gone, deadline)

    def _send_rest(self, frame: bytes, gone: int, deadline: float) -> None:
        """Sends what the manager has not taken at once."""
        self._set_timeout(max(deadline - _now(), 2 * _CLOSE_ENOUGH))
        while gone < len(frame):
            if gone and _now() > deadline:
                raise OSError("a request was sent in part")
            gone += self._send_some(frame[gone:])

    def _receive(self, deadline: float) -> wire.Frame:
        while True:
            frame = self._next_frame()
            if frame is not None:
                return frame
            self._set_timeout(deadline - _now())
            got = self._receive_into(self._buffer)
            if not got:
                raise ConnectionResetError("the manager closed the connection")
            self._have += self._view[:got]

    def _next_frame(self) -> Optional[wire.Frame]:
        if len(self._have) < wire.LENGTH_BYTES:
            return None
        size = wire.frame_bytes(self._have)
        if len(self._have) < size:
            return None
        frame = bytes(self._have[:size])
        del self._have[:size]
        return wire.parse(frame)

    def _set_timeout(self, left: float) -> None:
        """The kernel ends the wait, so that a receive is one system call; set again only where it differs."""
        if not -_CLOSE_ENOUGH < self._timeout - left < _CLOSE_ENOUGH or left <= 0:
            if left <= 0:
                raise TimeoutError
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
            for sent in list(self._ahead.values()):
                self._give_up(sent)
            for done in self._late.values():
                done()
            self._late.clear()


def out_of_range(error: struct.error) -> OrbitKvError:
    return OrbitKvError(Code.BAD_ARGUMENT, f"OKV-702: a number is out of its range: {error}")


def _nothing() -> None:
    pass
