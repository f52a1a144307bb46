"""Goal: whatever a manager does, a call ends in time. Method: a manager of some lines that answers badly."""

import os
import pathlib
import socket
import tempfile
import threading
import time
import unittest

from orbitkv import wire
from orbitkv.channel import Channel
from orbitkv.errors import OrbitKvError, Unavailable

from .test_wire import EPOCH, golden


class BadManager:
    """Greets as a manager does, then does what the test says with each request."""

    def __init__(self, behave):
        self.folder = tempfile.TemporaryDirectory(prefix="orbitkv-test-")
        self.path = str(pathlib.Path(self.folder.name) / "m.sock")
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(self.path)
        self.listening.listen(4)
        self.behave = behave
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        try:
            peer, _ = self.listening.accept()
            with peer:
                hello = wire.parse(peer.recv(4096))
                self.answer(peer, "Welcome", hello.op)
                while True:
                    request = peer.recv(65536)
                    if not request or self.behave(self, peer, wire.parse(request)):
                        return
        except OSError:
            pass

    def answer(self, peer, name, op, keep=None):
        frame = bytearray(golden()[name])
        frame[wire.MESSAGE : wire.MESSAGE + 8] = op.to_bytes(8, "little")
        peer.sendall(frame[:keep])

    def close(self):
        self.listening.close()
        self.folder.cleanup()


class ChannelTest(unittest.TestCase):
    def channel(self, behave):
        manager = BadManager(behave)
        self.addCleanup(manager.close)
        channel = Channel(manager.path, wire.TOOL, "test", "test", False, time.monotonic() + 30)
        self.addCleanup(channel.close)
        self.assertEqual(EPOCH, channel.epoch)
        return channel

    def assert_ends(self, channel, seconds, on_late=None):
        began = time.monotonic()
        with self.assertRaises(Unavailable):
            channel.call(wire.ping, began + seconds, on_late)
        self.assertLess(time.monotonic() - began, seconds + 5)

    def test_reported_LMCache_651_a_cut_in_the_middle_of_a_frame_ends_the_call_at_once(self):
        for keep in (0, 3, 4, 11, 15):
            with self.subTest(keep):

                def cut(manager, peer, request, keep=keep):
                    manager.answer(peer, "Ack", request.op, keep)
                    return True

                channel = self.channel(cut)
                began = time.monotonic()
                self.assert_ends(channel, 30)
                self.assertLess(time.monotonic() - began, 20)
                self.assertTrue(channel.broken)
                self.assert_ends(channel, 0.1)

    def test_a_late_answer_is_taken_by_a_later_call(self):
        go = threading.Event()
        late = []

        def slow(manager, peer, request):
            if not go.is_set():
                go.wait(60)
            manager.answer(peer, "Ack", request.op)

        channel = self.channel(slow)
        self.assert_ends(channel, 0.05, lambda: late.append("ended"))
        self.assertEqual([], late, "the manager may still be at it")
        began = time.monotonic()
        self.assert_ends(channel, 30)  # at once: it would be answered behind the other
        self.assertLess(time.monotonic() - began, 20)
        go.set()
        until = time.monotonic() + 60
        while True:
            try:
                channel.call(wire.ping, time.monotonic() + 30)
                break
            except Unavailable:
                self.assertLess(time.monotonic(), until)
        self.assertEqual(["ended"], late)
        self.assertFalse(channel.broken)

    def ask(self, channel, seconds=30):
        op = channel.next_op()
        return channel.ask(op, wire.ping(op, channel.epoch), time.monotonic() + seconds, wire.FIXED_QUERY_ANSWER)

    def test_answers_are_read_however_they_come(self):
        """At once, in pieces, behind a late one, after a while, or with fields that this version does not know."""
        whole = bytearray(golden()["QueryAnswer"])
        longer = bytearray(whole)
        fixed = int.from_bytes(whole[4:6], "little")
        longer[wire.MESSAGE + fixed : wire.MESSAGE + fixed] = b"new fields"
        longer[0:4] = (len(longer) - 4).to_bytes(4, "little")
        longer[4:6] = (fixed + 10).to_bytes(2, "little")
        fields = wire.query_answer(wire.parse(bytes(whole)))[1:]
        for frame, pieces, wait in ((whole, 1, 0), (whole, 1, 0.05), (whole, 3, 0.01), (longer, 1, 0), (longer, 2, 0.01)):
            with self.subTest(frame=bytes(frame), pieces=pieces, wait=wait):

                def answer(manager, peer, request, frame=frame, pieces=pieces, wait=wait):
                    mine = bytearray(frame)
                    mine[wire.MESSAGE : wire.MESSAGE + 8] = request.op.to_bytes(8, "little")
                    step = -(-len(mine) // pieces)
                    for at in range(0, len(mine), step):
                        time.sleep(wait)
                        peer.sendall(mine[at : at + step])

                channel = self.channel(answer)
                for _ in range(3):
                    self.assertEqual(fields, self.ask(channel)[1:])

    def test_a_wrong_answer_to_a_question_ends_the_connection(self):
        channel = self.channel(lambda manager, peer, request: manager.answer(peer, "Ack", request.op))
        with self.assertRaises(Unavailable):
            self.ask(channel)
        self.assertTrue(channel.broken)

    def test_a_question_ends_at_its_deadline_and_its_answer_is_taken_later(self):
        go = threading.Event()

        def slow(manager, peer, request):
            go.wait(60)
            manager.answer(peer, "QueryAnswer", request.op)

        channel = self.channel(slow)
        for seconds in (0.00001, 0.05):
            began = time.monotonic()
            with self.assertRaises(Unavailable):
                self.ask(channel, seconds)
            self.assertLess(time.monotonic() - began, seconds + 5)
        go.set()
        until = time.monotonic() + 60
        while True:
            try:
                self.ask(channel)
                break
            except Unavailable:
                self.assertLess(time.monotonic(), until)
                time.sleep(0.01)
        self.assertFalse(channel.broken)

    def test_looks_in_vain_are_rare(self):
        """A manager that takes longer than a look keeps its clients asleep, not a processor busy."""

        def slow(manager, peer, request):
            time.sleep(0.003)
            manager.answer(peer, "QueryAnswer", request.op)

        channel = self.channel(slow)
        looks = []
        look = channel._look
        channel._look = lambda left: looks.append(look(left)) or looks[-1]
        for _ in range(34):
            self.ask(channel)
        self.assertEqual([0, 0], looks)

    def test_requests_that_are_sent_ahead_are_answered_whoever_receives_it(self):
        """The manager answers none before it has the last; the last one's caller receives the others' answers."""
        waiting = []

        def all_at_once(manager, peer, request):
            waiting.append(request.op)
            if len(waiting) == 4:
                for op in waiting:
                    manager.answer(peer, "Ack", op)

        channel = self.channel(self.one_by_one(all_at_once))
        until = time.monotonic() + 60
        ahead = [channel.send(wire.ping, until) for _ in range(3)]
        channel.call(wire.ping, until)
        self.assertEqual([sent.op for sent in ahead], [channel.answer_to(sent, until).op for sent in ahead])
        self.assertFalse(channel.broken)

    def one_by_one(self, behave):
        """What was sent ahead may arrive in one piece."""

        def each(manager, peer, request):
            frame = request
            while frame is not None:
                behave(manager, peer, frame)
                rest = frame.body[frame.rest :]
                frame = wire.parse(rest) if rest else None

        return each

    def test_the_answer_to_a_request_that_was_sent_ahead_may_be_late(self):
        go = threading.Event()
        late = []

        def slow(manager, peer, request):
            go.wait(60)
            manager.answer(peer, "Ack", request.op)

        channel = self.channel(self.one_by_one(slow))
        sent = channel.send(wire.ping, time.monotonic() + 30, lambda: late.append("ended"))
        with self.assertRaises(Unavailable):
            channel.answer_to(sent, time.monotonic() + 0.05)
        self.assertEqual([], late, "the manager may still be at it")
        with self.assertRaises(Unavailable):
            channel.send(wire.ping, time.monotonic() + 30)
        go.set()
        until = time.monotonic() + 60
        while not late:
            self.assertLess(time.monotonic(), until)
            try:
                channel.call(wire.ping, time.monotonic() + 30)
            except Unavailable:
                time.sleep(0.001)
        self.assertEqual(["ended"], late)
        self.assertFalse(channel.broken)

    def test_what_was_sent_ahead_ends_with_the_connection(self):
        def leave(manager, peer, request):
            return True

        channel = self.channel(leave)
        ended = []
        began = time.monotonic()
        sent = channel.send(wire.ping, began + 60, lambda: ended.append(1))
        with self.assertRaises(Unavailable):
            channel.answer_to(sent, began + 60)
        self.assertLess(time.monotonic() - began, 30)
        self.assertTrue(channel.broken)
        channel.close()
        self.assertEqual([1], ended)

    def test_what_cannot_be_a_frame_ends_the_connection(self):
        for garbage in (b"\xff" * 64, b"\x08\0\0\0" + b"\xff" * 8, b"\x08\0\0\0" + golden()["Ack"][4:12]):
            with self.subTest(garbage):

                def lie(manager, peer, request, garbage=garbage):
                    peer.sendall(garbage)

                channel = self.channel(lie)
                self.assert_ends(channel, 30)
                self.assertTrue(channel.broken)

    def test_an_error_is_typed(self):
        def refuse(manager, peer, request):
            manager.answer(peer, "Error", request.op)

        channel = self.channel(refuse)
        with self.assertRaises(OrbitKvError) as refused:
            channel.call(wire.ping, time.monotonic() + 30)
        self.assertEqual(1004, refused.exception.code)
        self.assertFalse(channel.broken)

    def test_why_a_connection_is_refused_is_told_though_nobody_reads_the_greeting(self):
        with tempfile.TemporaryDirectory(prefix="orbitkv-test-") as folder:
            path = str(pathlib.Path(folder) / "m.sock")
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(path)
                listening.listen(1)

                def refuse():
                    peer, _ = listening.accept()
                    peer.sendall(golden()["Error"])
                    peer.close()

                thread = threading.Thread(target=refuse)
                thread.start()
                with self.assertRaises(OrbitKvError) as refused:
                    Channel(path, wire.TOOL, "test", "test", True, time.monotonic() + 30)
                self.assertEqual(1004, refused.exception.code)
                thread.join(30)

    def test_descriptors_are_given_back(self):
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            with self.assertRaises(Unavailable):
                Channel("/nonexistent/orbitkv.sock", wire.TOOL, "test", "test", True, time.monotonic() + 1)
        self.assertLess(len(os.listdir("/proc/self/fd")), before + 10)  # other tests' threads may open some meanwhile


if __name__ == "__main__":
    unittest.main()
