"""Goal: saves whose turns overlap end as if they had been done one after the other, whatever happens to some of them.
Method: real managers that drop blocks, stand still, or serve several threads of one client.
"""

import os
import random
import signal
import sys
import threading
import time
import unittest

from orbitkv import KEY_BYTES
from orbitkv.saving import _TURN_BYTES

from .manager_process import BLOCK_BYTES, ManagerProcess, family, keys_of, payload

SEED = int(os.environ.get("ORBITKV_SEED", random.randrange(1 << 32)))
TURN_BLOCKS = _TURN_BYTES // BLOCK_BYTES
# No drive that could be behind, so that nothing is dropped but what a test wants dropped.
OPTIONS = ("--ssd-write-policy", "reuse")


class SavingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"seed {SEED}: repeat with ORBITKV_SEED", file=sys.stderr)
        cls.manager = ManagerProcess(*OPTIONS, pool="64mb")

    @classmethod
    def tearDownClass(cls):
        cls.manager.close()

    def setUp(self):
        self.client = self.manager.client()
        self.addCleanup(self.client.close)
        self.chat = self.client.family(family())

    def tearDown(self):
        life = self.client._life
        self.assertEqual(life.welcome.staging_bytes, life.ranges.free_bytes())
        self.assertFalse(life.given_up)
        self.assertEqual(1, self.client.connects)

    def key(self, keys, block):
        return keys[block * KEY_BYTES : (block + 1) * KEY_BYTES]

    def assert_stored(self, keys, blocks):
        with self.chat.query(keys, query_id=1) as match:
            self.assertEqual(blocks, match.blocks)
            into = bytearray(blocks * BLOCK_BYTES)
            self.assertEqual(blocks, match.restore(into))
        self.assertEqual(payload(keys[: blocks * KEY_BYTES]), into)

    def test_behind_a_block_that_is_dropped_none_is_taken_in(self):
        """A key that begins as a stored one is refused; the turns behind its turn are on their way by then."""
        keys = keys_of(1, 5 * TURN_BLOCKS)
        refused = TURN_BLOCKS + 8
        twin = self.key(keys, refused)[:8] + bytes(24)
        self.assertEqual(1, self.chat.save(twin, bytes(BLOCK_BYTES)).accepted)
        saved = self.chat.save(keys, payload(keys))
        self.assertEqual(
            (0, refused, 5 * TURN_BLOCKS - refused, "KEY_COLLISION"),
            (saved.present, saved.accepted, saved.dropped, saved.reason),
        )
        self.assert_stored(keys, refused)
        for block in range(refused, 5 * TURN_BLOCKS):
            self.assertFalse(self.chat.query(self.key(keys, block), query_id=2), f"block {block} lies behind a hole")
        # It is no hole any more once somebody has filled it.
        last = 2 * TURN_BLOCKS - 1  # of the turn that was dropped
        behind, turn = keys[(last + 1) * KEY_BYTES :], keys[(refused + 1) * KEY_BYTES : (last + 1) * KEY_BYTES]
        parent = self.key(keys, last)
        self.assertEqual("KEY_COLLISION", self.chat.save(behind, payload(behind), parent=parent).reason)
        self.assertEqual("", self.chat.save(turn, payload(turn), parent=self.key(keys, refused)).reason)
        self.assertEqual("", self.chat.save(behind, payload(behind), parent=parent).reason)
        self.assert_stored(turn + behind, len(turn + behind) // KEY_BYTES)

    def test_what_is_stored_is_not_copied_again_wherever_it_lies(self):
        keys = keys_of(2, 4 * TURN_BLOCKS)
        rng = random.Random(SEED)
        there = sorted(rng.sample(range(4 * TURN_BLOCKS), 40)) + list(range(2 * TURN_BLOCKS, 3 * TURN_BLOCKS))
        for block in sorted(set(there)):
            self.chat.save(self.key(keys, block), payload(self.key(keys, block)))
        saved = self.chat.save(keys, payload(keys))
        self.assertEqual(
            (len(set(there)), 4 * TURN_BLOCKS - len(set(there)), 0, ""),
            (saved.present, saved.accepted, saved.dropped, saved.reason),
        )
        self.assert_stored(keys, 4 * TURN_BLOCKS)

    def test_several_threads_save_long_prompts_at_once(self):
        blocks = 3 * TURN_BLOCKS + 5
        outcomes = {}

        def work(prompt):
            keys = keys_of(prompt, blocks)
            outcomes[prompt] = self.chat.save(keys, payload(keys))

        threads = [threading.Thread(target=work, args=(10 + i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        for prompt in range(10, 14):
            self.assertEqual((blocks, 0), (outcomes[prompt].accepted, outcomes[prompt].dropped), outcomes[prompt])
            self.assert_stored(keys_of(prompt, blocks), blocks)

    def test_a_buffer_that_cannot_be_read_ends_the_save_and_leaves_nothing(self):
        keys = keys_of(20, 4 * TURN_BLOCKS)
        blocks = [memoryview(payload(keys[at : at + KEY_BYTES])) for at in range(0, len(keys), KEY_BYTES)]

        original = self.client._life.staging
        filled = []

        class Staging:
            def __setitem__(self, at, content):
                filled.append(at)
                if len(filled) == 2 * TURN_BLOCKS:
                    raise BufferError("the engine has taken its memory away")
                original[at] = content

        self.client._life.staging = Staging()
        try:
            with self.assertRaises(BufferError):
                self.chat.save(keys, blocks)
        finally:
            self.client._life.staging = original
        saved = self.chat.save(keys, payload(keys))
        self.assertEqual(0, saved.dropped, saved)
        self.assert_stored(keys, 4 * TURN_BLOCKS)


class StoppedManagerTest(unittest.TestCase):
    def test_a_manager_that_stops_in_the_middle_of_a_save_costs_its_rest_and_no_more(self):
        """At any moment of it: the call ends at its deadline, and nothing is left behind once the manager goes on."""
        print(f"seed {SEED}: repeat with ORBITKV_SEED", file=sys.stderr)
        rng = random.Random(SEED)
        manager = ManagerProcess(*OPTIONS, pool="256mb")
        self.addCleanup(manager.close)
        client = manager.client()
        self.addCleanup(client.close)
        chat = client.family(family())
        count = 8 * TURN_BLOCKS
        for prompt in range(10):
            keys = keys_of(prompt, count)
            content = payload(keys)
            stop = threading.Timer(rng.uniform(0, 0.02), manager.process.send_signal, (signal.SIGSTOP,))
            stop.start()
            began = time.monotonic()
            saved = chat.save(keys, content, deadline=0.3)
            took = time.monotonic() - began
            stop.join()
            manager.process.send_signal(signal.SIGCONT)
            self.assertLess(took, 5.0)
            self.assertEqual(count, saved.present + saved.accepted + saved.dropped, saved)
            self.assertIn(saved.reason, ("", "UNAVAILABLE"))
            until = time.monotonic() + 60
            while True:  # until the late answers have come
                again = chat.save(keys, content)
                if again.reason != "UNAVAILABLE":
                    break
                self.assertLess(time.monotonic(), until)
            self.assertEqual((count, 0), (again.present + again.accepted, again.dropped), again)
            self.assertGreaterEqual(again.present, saved.present + saved.accepted)
            into = bytearray(len(content))
            with chat.query(keys) as match:
                self.assertEqual(count, match.blocks, f"prompt {prompt}: {saved}, {again}, {manager.stats()}")
                self.assertEqual(count, match.restore(into))
            self.assertEqual(content, into)
            life = client._life
            self.assertEqual(life.welcome.staging_bytes, life.ranges.free_bytes())
            self.assertFalse(life.given_up)
        self.assertEqual(1, client.connects)


if __name__ == "__main__":
    unittest.main()
