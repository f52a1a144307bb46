"""One life of a manager as a client sees it: two connections and the shared memory. It never comes back once it is over."""

from __future__ import annotations

import collections
import functools
import mmap
import os
import select
import threading
import time
from typing import Callable, Deque, Dict, List, Tuple

from . import wire
from .channel import Channel
from .errors import Unavailable
from .family import Family
from .staging import Ranges


class Life:
    """Queries and leases go over ``control``, blocks over ``transfer``, so that a slow drive delays no query.

    The memory stays mapped for as long as anybody has a view of it, also when the manager is gone.
    """

    def __init__(self, path: str, role: int, instance: str, client: str, deadline: float) -> None:
        self._at_end: List[Callable[[Tuple[memoryview, ...]], None]] = []
        self._ended = False
        self._ending = threading.Lock()
        self._arena_file = -1
        self.control = Channel(path, role, instance, client, False, deadline)
        try:
            self.transfer = Channel(path, role, instance, client, True, deadline)
        except BaseException:
            self.control.close()
            raise
        self.epoch = self.control.epoch
        self.welcome = self.transfer.welcome
        try:
            if self.transfer.epoch != self.epoch or len(self.transfer.descriptors) != 3:
                raise Unavailable("the manager was replaced while this client connected")
            arena, generations, staging = self.transfer.descriptors
            self._arena_file = os.dup(arena)
            welcome = self.welcome
            self.arena = memoryview(
                mmap.mmap(arena, welcome.arena_bytes, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
            )
            self.generations = memoryview(
                mmap.mmap(generations, welcome.generations_bytes, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
            ).cast("I")
            self.staging = memoryview(
                mmap.mmap(
                    staging, welcome.staging_bytes, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE
                )
            )
        except BaseException:
            self.end()
            raise
        finally:
            for descriptor in self.transfer.descriptors:
                os.close(descriptor)
        self.ranges = Ranges(welcome.staging_bytes)
        self.given_up: Deque[int] = collections.deque()  #: saves that were begun, and that the manager is to forget
        # Not a method of this object: in a circle of references the memory would stay mapped until it is found.
        self.transfer.on_late_answer = functools.partial(_note_late, self.given_up)
        self.token = object()  #: names this life and keeps nothing of it
        self._families: Dict[bytes, Tuple[int, int]] = {}
        self._opening = threading.Lock()

    @property
    def is_over(self) -> bool:
        return self.control.broken or self.transfer.broken

    def numbers(self, family: Family, deadline: float) -> Tuple[int, int]:
        """A family's numbers on both connections; opens it where it isn't yet."""
        family_id = family.family_id()
        known = self._families.get(family_id)
        if known is not None:
            return known
        if not self._opening.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise Unavailable("the family is being opened")
        try:
            encoded = family.encoded()
            opened = []
            for channel in (self.control, self.transfer):
                answer = channel.call(lambda op, epoch: wire.open_family(op, epoch, encoded), deadline)
                opened.append(wire.family_opened(answer))
            if opened[0].family_id != family_id:
                raise ValueError("the manager names the family otherwise: client and manager disagree about identity")
            known = (opened[0].family, opened[1].family)
            self._families[family_id] = known
            return known
        finally:
            self._opening.release()

    def wait_for_end(self, seconds: float, wake: int) -> None:
        """Returns when the manager has gone, a byte comes from ``wake``, or the time is over."""
        poll = select.poll()
        try:
            for channel in (self.control, self.transfer):
                poll.register(channel.socket, select.POLLRDHUP | select.POLLHUP)
        except ValueError:
            return  # closed meanwhile
        poll.register(wake, select.POLLIN)
        for descriptor, event in poll.poll(seconds * 1000):
            if descriptor != wake and event:
                self.fail()

    def fail(self) -> None:
        self.control.fail()
        self.transfer.fail()

    def abandon(self) -> None:
        """In a forked process: see :meth:`Channel.abandon`."""
        self.control.abandon()
        self.transfer.abandon()
        self._close_arena_file()  # without the lock, which a thread may have held that this process has not

    def arena_taken(self) -> int:
        """Bytes of the pool that have held blocks and so take memory; it fills from its start. 0 behind the end."""
        with self._ending:
            return os.fstat(self._arena_file).st_blocks * 512 if self._arena_file >= 0 else 0

    def on_end(self, call: Callable[[Tuple[memoryview, ...]], None]) -> bool:
        """Has a function called with the shared memory when this life is over; false where it is already."""
        with self._ending:
            if not self._ended:
                self._at_end.append(call)
            return not self._ended

    def end(self) -> None:
        self.control.close()
        self.transfer.close()
        with self._ending:
            self._ended = True
            calls, self._at_end = self._at_end, []
            self._close_arena_file()
        for call in calls:
            call((self.arena, self.staging))

    def _close_arena_file(self) -> None:
        file, self._arena_file = self._arena_file, -1
        if file >= 0:
            os.close(file)


def _note_late(given_up: Deque[int], frame: wire.Frame) -> None:
    """A save that was begun behind its deadline: nobody goes on with it."""
    if frame.template == wire.SAVE_GRANTED:
        save = wire.granted(frame).save
        if save:
            given_up.append(save)
