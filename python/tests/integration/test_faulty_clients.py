"""Goal: a client that is killed or stopped wherever harms only itself: its leases, staging and sessions end, others are served.
Method: real clients that get SIGKILL or SIGSTOP behind each kind of message, within some, and in the middle of their copies.
"""

import signal
import unittest

from orbitkv import wire

from ..faulty_client import COPIES, MESSAGES, POINTS, FaultyClient
from .manager_process import BLOCK_BYTES, ManagerProcess, family, keys_of, payload

HELD = ("sessions", "instances", "client_leases", "client_leased_bytes", "session_bytes", "leases", "leased_bytes")


def held(stats):
    return {name: stats[name] for name in HELD}


class FaultyClientsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Smaller than what the tests save, so that blocks move and are given up behind readers that stand still.
        cls.manager = ManagerProcess("--lease-ms", "500", "--staging-size", "4mb", pool="16mb")

    @classmethod
    def tearDownClass(cls):
        cls.manager.close()

    def setUp(self):
        self.client = self.manager.client()
        self.addCleanup(self.client.close)
        self.chat = self.client.family(family())
        self.manager.await_stats(lambda stats: stats["client_leases"] == 0 and stats["sessions"] == 2)
        self.prompt = 0

    def faulty(self, number, point, with_signal):
        client = FaultyClient(self.manager.socket, number, point, with_signal)
        self.addCleanup(client.close)
        return client

    def chat_on(self):
        """Another client, to which nothing may happen."""
        self.prompt += 1
        keys = keys_of(self.prompt, 16)
        content = payload(keys)
        saved = self.chat.save(keys, content)
        self.assertEqual((16, ""), (saved.accepted + saved.present, saved.reason))
        self.assertTrue(self.client.sync(saved.position, timeout=60))
        into = bytearray(len(content))
        with self.chat.query(keys) as match:
            self.assertEqual(16, match.restore(into))
        self.assertEqual(content, into)

    def test_every_message_is_a_point(self):
        requests = {wire.HELLO, wire.BYE, wire.LIST_BLOCKS} | set(range(wire.OPEN_FAMILY, wire.ERROR))
        answers = {
            wire.FAMILY_OPENED, wire.QUERY_ANSWER, wire.LOCATED, wire.SAVE_GRANTED, wire.SAVE_ANSWER, wire.LEASE_CODES,
            wire.SYNC_ANSWER, wire.STATS_ANSWER, wire.EVENTS_ANSWER, wire.ACK,
        }  # fmt: skip
        self.assertEqual(requests - answers, set(MESSAGES.values()))

    def test_what_a_killed_client_had_ends_with_it(self):
        self.chat_on()
        before = held(self.manager.stats())
        for number, point in enumerate(POINTS):
            with self.subTest(point):
                code, seen = self.faulty(number, point, signal.SIGKILL).end()
                self.assertEqual(-signal.SIGKILL, code, f"{point} was not reached: {seen}")
        self.chat_on()
        self.manager.await_stats(lambda stats: held(stats) == before)
        self.assertEqual(1, self.client.connects)

    def test_a_stopped_client_holds_nothing_and_nobody(self):
        before = held(self.manager.stats())
        stopped = []
        for number, point in enumerate(POINTS):
            stopped.append(self.faulty(100 + number, point, signal.SIGSTOP))
            stopped[-1].await_stopped()
        # Their leases end by themselves though they hold their sessions.
        self.manager.await_stats(lambda stats: (stats["client_leases"], stats["client_leased_bytes"]) == (0, 0))
        self.assertGreater(self.manager.stats()["sessions"], before["sessions"] + len(POINTS))
        for _ in range(3 * (16 << 20) // (16 * BLOCK_BYTES)):  # three pools
            self.chat_on()
        for client in stopped:
            client.go_on()
        overtaken = {}
        for client in stopped:
            code, seen = client.end()
            self.assertEqual(0, code, client.point)
            self.assertEqual((0, ""), (seen["wrong"], seen["error"]), client.point)
            overtaken[client.point] = seen["overtaken"]
        for point in COPIES[1:]:
            self.assertGreater(overtaken[point], 0, f"nothing was overtaken at {point!r}: the test shows nothing")
        self.manager.await_stats(lambda stats: held(stats) == before)
        self.assertEqual(1, self.client.connects)


if __name__ == "__main__":
    unittest.main()
