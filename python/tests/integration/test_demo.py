"""Goal: the demonstration keeps its word. Method: run it."""

import json
import os
import subprocess
import sys
import unittest

from .manager_process import BINARY, ROOT


class DemoTest(unittest.TestCase):
    def test_two_processes_share_through_a_kill(self):
        ran = subprocess.run(
            [sys.executable, "-m", "orbitkv.demo", "--seconds", "6", "--json"],
            cwd=ROOT / "python",
            env={**os.environ, "ORBITKV_CACHE_MANAGER_BINARY": BINARY},
            capture_output=True,
            timeout=600,
        )
        self.assertEqual(0, ran.returncode, ran.stderr.decode())
        said = json.loads(ran.stdout.decode().splitlines()[-1])
        self.assertTrue(said["good"])
        self.assertEqual([2, 2], [process["connects"] for process in said["processes"]])


if __name__ == "__main__":
    unittest.main()
