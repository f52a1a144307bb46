"""Goal: a manager that is told to stop writes what it took in, says so, and the next one has it. ``run_stop`` does it with GiB.
Method: SIGTERM right behind saves that the drive has not had time to write.
"""

import json
import signal
import unittest

from .manager_process import BLOCK_BYTES, ManagerProcess, family, keys_of, payload

PROMPTS, BLOCKS = 8, 48


class StoppingTest(unittest.TestCase):
    def test_what_was_taken_in_is_written_or_told_as_lost(self):
        manager = ManagerProcess(pool="128mb")
        self.addCleanup(manager.close)
        client = manager.client(deadline=20.0)
        self.addCleanup(client.close)
        chat = client.family(family())
        accepted = {}
        for prompt in range(PROMPTS):
            keys = keys_of(prompt, BLOCKS)
            accepted[prompt] = chat.save(keys, payload(keys)).accepted
        self.assertGreater(sum(accepted.values()), 0)
        process = manager.process
        process.send_signal(signal.SIGTERM)
        said = process.stdout.read().splitlines()
        self.assertEqual(0, process.wait(120))
        left = json.loads(said[-1])
        self.assertEqual((0, 0), (left["requests_in_work"], left["prefetches_waiting"]))
        lost = left["nvme_queued_blocks"] + left["nvme_dropped_blocks"]
        self.assertTrue(lost > 0 or left["written_position"] == left["accepted_position"], left)
        manager.kill()  # gives the pipes back
        manager.start()
        self.assertTrue(client.wait_connected(60))
        manager.await_stats(lambda stats: stats["index_filled"] == 1)
        missing = 0
        for prompt, blocks in accepted.items():
            keys = keys_of(prompt, blocks)
            into = bytearray(blocks * BLOCK_BYTES)
            with chat.query(keys) as match:
                restored = match.restore(into) if match else 0
            self.assertEqual(payload(keys[: restored * 32]), into[: restored * BLOCK_BYTES])
            missing += blocks - restored
        self.assertLessEqual(missing, lost)


if __name__ == "__main__":
    unittest.main()
