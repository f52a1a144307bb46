"""Goal: what follows a manager's events knows exactly what it holds. Method: a real manager that is too small for what it is given."""

import time
import unittest

from orbitkv import Residents
from orbitkv.vllm.known import KnownKeys, Removals

from .manager_process import BLOCK_BYTES, ManagerProcess, family, keys_of, payload

PROMPT_BLOCKS = 16
SMALL_BYTES = 4096
RING = 1 << 16


def await_true(condition, what, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(what)
        time.sleep(0.05)


class EventsTest(unittest.TestCase):
    def setUp(self):
        self.manager = ManagerProcess(pool="16mb", capacity="64mb")
        self.addCleanup(self.manager.close)
        self.client = self.manager.client()
        self.addCleanup(self.client.close)
        self.chat = self.client.family(family())
        self.follower = self.manager.client(instance="router")
        self.addCleanup(self.follower.close)
        self.residents = Residents(self.follower)
        self.manager.await_stats(lambda stats: stats["pool_condition"] == "WHOLE")

    def save(self, keys, chat=None, block_bytes=BLOCK_BYTES):
        chat = chat or self.chat
        content = payload(keys, block_bytes)

        def all_in():
            saved = chat.save(keys, content)
            self.client.sync(saved.position, timeout=60)
            return not saved.dropped

        await_true(all_in, "saves are refused for good")

    def await_exact(self, prompts, of=None):
        """Until what is believed is what a query finds, block by block."""
        of = of or family()
        chat = self.client.family(of)

        def differing():
            self.assertTrue(self.residents.update())
            count = 0
            for keys in prompts:
                for at in range(0, len(keys), 32):
                    key = keys[at : at + 32]
                    with chat.query(key) as match:
                        count += bool(match) != self.residents.holds(of.family_id(), key)
            return count

        await_true(lambda: not differing(), "what is believed is not what is held")

    def test_evicted_blocks_are_told_block_by_block(self):
        self.assertTrue(self.residents.wait_whole(60))
        prompts = [keys_of(number, PROMPT_BLOCKS) for number in range(160)]
        for keys in prompts:
            self.save(keys)
        self.await_exact(prompts)
        held = len(self.residents)
        self.assertTrue(PROMPT_BLOCKS < held < 1200, f"{held} blocks of 64 KiB in 64 MiB and 16 MiB")
        self.assertEqual(1, self.residents.resyncs)
        self.save(prompts[0])  # gone, and stored again
        self.assertTrue(self.residents.update())
        self.await_exact(prompts)
        late = Residents(self.follower, families=[family().family_id()])
        self.assertTrue(late.wait_whole(60))
        self.assertEqual(len(self.residents), len(late))
        self.chat.clear()
        self.assertTrue(self.residents.update())
        self.assertEqual(0, len(self.residents))

    def test_a_restart_voids_what_was_believed(self):
        prompts = [keys_of(number, PROMPT_BLOCKS) for number in range(20)]
        self.assertTrue(self.residents.wait_whole(60))
        for keys in prompts:
            self.save(keys)
        self.await_exact(prompts)
        self.assertEqual(20 * PROMPT_BLOCKS, len(self.residents))
        self.manager.kill()
        await_true(lambda: not self.residents.update(), "nobody notices")
        self.manager.start()
        await_true(lambda: self.residents.update() and self.client.is_connected, "it is not followed any more")
        self.manager.await_stats(lambda stats: stats["index_filled"] == 1)
        self.await_exact(prompts)
        self.assertEqual(20 * PROMPT_BLOCKS, len(self.residents), "written blocks survive a kill")
        self.assertGreater(self.residents.resyncs, 1)

    def test_who_falls_behind_sees_a_gap_and_begins_anew(self):
        self.assertTrue(self.residents.wait_whole(60))
        small = family(block_bytes=SMALL_BYTES)
        chat = self.client.family(small)
        start = self.client.events().next_sequence
        prompts = []
        number = 1000
        while True:
            prompts.append(keys_of(number, 512))
            self.save(prompts[-1], chat, SMALL_BYTES)
            number += 1
            first = self.client.events(start).first_sequence
            if first > start:
                break
            self.assertLess(number, 1400, "events never leave the ring")
        self.await_exact(prompts[-8:] + prompts[:2], small)
        self.assertEqual(2, self.residents.resyncs)

    def test_a_known_key_is_forgotten_when_its_block_is_gone(self):
        known = KnownKeys()
        removals = Removals(self.follower, family())
        self.addCleanup(removals.close)
        first = keys_of(0, PROMPT_BLOCKS)
        self.save(first)
        known.add([first[at : at + 32] for at in range(0, len(first), 32)], self.manager.epoch)
        number = [1]

        def forgotten():
            self.save(keys_of(number[0], PROMPT_BLOCKS))
            number[0] += 1
            removals.take_into(known)
            return first[:32] not in known

        await_true(forgotten, "it is believed to be stored for ever")
        self.assertFalse(self.chat.query(first[:32]))


if __name__ == "__main__":
    unittest.main()
