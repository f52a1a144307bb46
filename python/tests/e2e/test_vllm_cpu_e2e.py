"""Goal: a real vLLM engine gives the same tokens with the connector as without it, and finds blocks again after restarts.

Method: vLLM's CPU build, engines in processes of their own, a real manager, a small random checkpoint whose output depends on
the whole prompt. Needs the CPU build; ``python/tests/run_vllm_cpu`` installs it and runs this.
"""

import importlib.util
import json
import os
import pathlib
import random
import tempfile
import time
import unittest

try:
    import pytest

    pytestmark = pytest.mark.e2e
except ImportError:  # the project's own runner knows no marks, and skips
    pass

from ..integration.manager_process import ManagerProcess
from .engine_process import EngineProcess, connector

BLOCK = 32
LAYERS, KV_HEADS, HEAD = 4, 2, 64
BLOCK_BYTES = LAYERS * BLOCK * KV_HEADS * 2 * HEAD * 4
HAS_VLLM = importlib.util.find_spec("vllm") is not None
CLOSE = 1e-4


def prompt(seed, length):
    return [random.Random(f"{seed}/{i}").randrange(1024) for i in range(length)]


LONG = prompt("long", 600)  # 18 blocks and 24 tokens
WHOLE = prompt("whole", 640)  # 20 blocks exactly
SHARED = LONG[:320] + prompt("other", 200)  # its first 10 blocks are LONG's
SHORT = prompt("short", 20)  # no whole block
PROMPTS = (LONG, WHOLE, SHARED, SHORT)


@unittest.skipUnless(HAS_VLLM, "vLLM's CPU build is not installed: run python/tests/run_vllm_cpu")
class CpuEngineTest(unittest.TestCase):
    """One manager and one folder for all: the tests run in the order of their names."""

    @classmethod
    def setUpClass(cls):
        from .toy_model import make

        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="orbitkv-vllm-"))
        cls.model = str(make(os.environ.get("ORBITKV_TEST_MODEL") or cls.folder / "toy"))
        with EngineProcess(cls.folder / "plain.log", model=cls.model) as plain:
            cls.expected = {tuple(ids): plain.generate(ids)[0] for ids in PROMPTS}
        assert len({tuple(e["tokens"]) for e in cls.expected.values()}) == len(PROMPTS), "outputs that depend on nothing"

    def setUp(self):
        self.manager = ManagerProcess("--hint-value-size", str(BLOCK_BYTES), pool="64mb", capacity="512mb")
        self.addCleanup(self.manager.close)
        self.traces = 0

    def engine(self, name, policy="recompute", engine_options=None, **extra):
        self.trace = self.folder / f"{self.id()}-{name}.trace"
        engine = EngineProcess(
            self.folder / f"{self.id()}-{name}.log",
            model=self.model,
            kv_transfer_config=connector(self.manager.socket, policy, trace=True, **extra),
            environment={"ORBITKV_TEST_TRACE": str(self.trace)},
            **(engine_options or {}),
        )
        self.addCleanup(engine.close)
        self.assertIsNone(engine.refused)
        return engine

    def same(self, ids, got):
        expected = self.expected[tuple(ids)]
        self.assertEqual(expected["tokens"], got["tokens"])
        for one, other in zip(expected["logprobs"], got["logprobs"]):
            self.assertAlmostEqual(one, other, delta=CLOSE)

    def lines(self, what):
        """Checksums by key of what was saved or loaded."""
        found = {}
        for line in self.trace.read_text().splitlines():
            said = json.loads(line)
            if said["what"] == what:
                found[said["key"]] = said["crc"]
        return found

    def await_saved(self, blocks):
        self.manager.await_stats(lambda s: s["saved_blocks"] >= blocks and s["nvme_queued_blocks"] == 0)
        self.manager.await_stats(lambda s: s["written_position"] >= s["accepted_position"])

    def fill(self):
        """A first engine computes and saves everything; its checksums by key."""
        engine = self.engine("first")
        for ids in PROMPTS:
            got = engine.generate(ids)[0]
            self.same(ids, got)
            self.assertEqual(320 if ids is SHARED else 0, got["cached"], "the engine's own cache")
        # 24 tokens are generated: what fills a block on the way is saved as well
        self.await_saved(18 + 20 + 6 + 1)
        saved = self.lines("saved")
        metrics = engine.metrics()
        self.assertEqual(metrics["vllm:orbitkv_save_bytes"], BLOCK_BYTES * metrics["vllm:orbitkv_saved_blocks"])
        self.assertGreater(metrics["vllm:orbitkv_save_bytes"], 0)
        engine.close()
        return saved

    def restores(self, name, saved, policy="recompute"):
        """A new engine finds everything again."""
        engine = self.engine(name, policy)
        for ids, cached in ((LONG, 576), (WHOLE, 639), (SHARED, 320), (SHORT, 0)):
            engine.ask(do="reset")  # the engine's own cache only
            got = engine.generate(ids)[0]
            self.same(ids, got)
            self.assertIn(got["cached"], (cached, cached + 1) if ids is WHOLE else (cached, 512) if ids is SHARED else (cached,))
        metrics = engine.metrics()
        self.assertGreaterEqual(metrics["vllm:orbitkv_load_bytes"], (18 + 20 + 10) * BLOCK_BYTES)
        self.assertEqual(0, metrics.get("vllm:orbitkv_loads_failed", 0))
        loaded = self.lines("loaded")
        self.assertGreaterEqual(len(loaded), 18 + 20)
        for key, crc in loaded.items():
            self.assertEqual(saved[key], crc, f"block {key} came back with other bytes")
        return engine

    def drained(self):
        """Nothing is held once engines have gone."""
        self.manager.await_stats(
            lambda s: not any(s[name] for name in ("client_leases", "client_leased_bytes", "leases", "requests_in_work"))
        )

    def test_a_new_engine_restores_and_gives_the_same_tokens(self):
        saved = self.fill()
        self.restores("second", saved).close()
        self.drained()

    def test_a_killed_manager_finds_it_on_the_drive(self):
        saved = self.fill()
        self.manager.kill()
        self.manager.start()
        self.restores("second", saved).close()
        self.assertGreater(self.manager.stats()["nvme_read_bytes"], 0)
        self.drained()


if __name__ == "__main__":
    unittest.main()
