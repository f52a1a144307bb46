"""Goal: a real vLLM engine gives the same tokens with the connector as without it, and finds blocks again after restarts.

Method: vLLM's CPU build, engines in processes of their own, a real manager, a small random checkpoint whose output depends on
the whole prompt. Needs the CPU build; ``python/tests/run_vllm_cpu`` installs it and runs this.
"""

import importlib.util
import json
import os
import pathlib
import random
import shutil
import signal
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
ROTTEN = prompt("rotten", 320)
PROMPTS = (LONG, WHOLE, SHARED, SHORT, ROTTEN)
GENERATED = 24

# Four at once need 68 blocks of 32 tokens at their end, and have 40.
CROWD = [prompt(f"crowd/{i}", 320) for i in range(4)]
CROWD_GENERATED = 200

ONE_PROCESS = {"distributed_executor_backend": "uni", "environment": {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}}


@unittest.skipUnless(HAS_VLLM, "vLLM's CPU build is not installed: run python/tests/run_vllm_cpu")
class CpuEngineTest(unittest.TestCase):
    """One engine has computed and saved everything before: its halves in two processes. Those that restore have one process."""

    @classmethod
    def setUpClass(cls):
        from .toy_model import make

        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="orbitkv-vllm-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.manager = ManagerProcess("--hint-value-size", str(BLOCK_BYTES), pool="64mb", capacity="512mb")
        cls.addClassCleanup(cls.manager.close)
        cls.model = str(make(os.environ.get("ORBITKV_TEST_MODEL") or cls.folder / "toy"))
        with EngineProcess(cls.folder / "plain.log", model=cls.model) as plain:
            cls.expected = {tuple(ids): plain.generate(ids)[0] for ids in PROMPTS}
            cls.crowd = [plain.generate(ids, tokens=CROWD_GENERATED)[0]["tokens"] for ids in CROWD]
        assert len({tuple(e["tokens"]) for e in cls.expected.values()}) == len(PROMPTS), "outputs that depend on nothing"
        trace = cls.folder / "first.trace"
        with EngineProcess(
            cls.folder / "first.log",
            model=cls.model,
            kv_transfer_config=cls.connector(),
            environment={"ORBITKV_TEST_TRACE": str(trace)},
        ) as first:
            cls.cold = {tuple(ids): first.generate(ids)[0] for ids in PROMPTS}
            cls.await_saved(sum(cls.blocks_of(ids) for ids in PROMPTS) - 10)
            cls.metrics_of_first = first.metrics()
        cls.saved = lines(trace, "saved")

    @staticmethod
    def blocks_of(ids):
        """Blocks that are whole once the last token is computed; the last one that is sampled never is."""
        return (len(ids) + GENERATED - 1) // BLOCK

    @classmethod
    def connector(cls, policy="recompute", **extra):
        """With time for answers, since the machine may be crowded."""
        return connector(cls.manager.socket, policy, trace=True, **{"orbitkv.timeout_ms": 5000, **extra})

    @classmethod
    def await_saved(cls, blocks):
        cls.manager.await_stats(lambda s: s["saved_blocks"] >= blocks and s["nvme_queued_blocks"] == 0)
        cls.manager.await_stats(lambda s: s["written_position"] >= s["accepted_position"])

    def engine(self, environment=None, policy="recompute", options=None, **extra):
        self.trace = self.folder / f"{self.id()}.trace"
        engine = EngineProcess(
            self.folder / f"{self.id()}.log",
            model=self.model,
            kv_transfer_config=self.connector(policy, **extra),
            **{
                **ONE_PROCESS,
                **(options or {}),
                "environment": {**ONE_PROCESS["environment"], "ORBITKV_TEST_TRACE": str(self.trace), **(environment or {})},
            },
        )
        self.addCleanup(engine.close)
        self.assertIsNone(engine.refused)
        self.await_connected(4 if extra else 6)
        return engine

    def await_connected(self, sessions):
        """Two sessions for the scheduler's half, two for saves, two for loads: on a crowded machine they may come late."""
        self.manager.await_stats(lambda s: s["sessions"] >= sessions)

    def same(self, ids, got):
        expected = self.expected[tuple(ids)]
        self.assertEqual(expected["tokens"], got["tokens"])
        for one, other in zip(expected["logprobs"], got["logprobs"]):
            self.assertAlmostEqual(one, other, delta=CLOSE)

    def restores(self, engine):
        """The engine finds everything that is stored, and nothing else."""
        for ids in PROMPTS:
            engine.ask(do="reset")  # the engine's own cache only
            got = engine.generate(ids)[0]
            self.same(ids, got)
            whole = len(ids) // BLOCK * BLOCK
            self.assertIn(got["cached"], (whole, whole - 1) if whole == len(ids) else (whole,))
        for key, said in lines(self.trace, "loaded").items():
            self.assertEqual(self.saved[key]["crc"], said["crc"], f"block {key} came back with other bytes")

    def drained(self):
        """Nothing is held once engines have gone."""
        held = ("client_leases", "client_leased_bytes", "leases", "requests_in_work", "sessions")
        self.manager.await_stats(lambda s: not any(s[name] for name in held))

    def test_cold_outputs_are_those_of_an_engine_without_a_connector(self):
        for ids in PROMPTS:
            self.same(ids, self.cold[tuple(ids)])
            self.assertEqual(320 if ids is SHARED else 0, self.cold[tuple(ids)]["cached"], "the engine's own cache")
        metrics = self.metrics_of_first
        self.assertEqual(len(self.saved), metrics["vllm:orbitkv_saved_blocks"])
        self.assertEqual(len(self.saved) * BLOCK_BYTES, metrics["vllm:orbitkv_save_bytes"])
        self.assertEqual(0, metrics.get("vllm:orbitkv_load_bytes", 0))

    def test_a_new_engine_restores_and_gives_the_same_tokens(self):
        engine = self.engine()
        self.restores(engine)
        metrics = engine.metrics()
        self.assertEqual(sum(len(ids) // BLOCK for ids in PROMPTS) * BLOCK_BYTES, metrics["vllm:orbitkv_load_bytes"])
        self.assertEqual(0, metrics.get("vllm:orbitkv_loads_failed", 0))
        self.assertEqual(0, metrics.get("vllm:orbitkv_save_bytes", 0), "all of it was there")
        engine.close()
        self.drained()

    def test_a_killed_manager_finds_it_on_the_drive_and_one_that_is_away_costs_hits_only(self):
        self.manager.kill()
        self.manager.start()
        engine = self.engine()
        self.restores(engine)
        stats = self.manager.stats()
        self.assertGreaterEqual(stats["nvme_read_bytes"], 40 * BLOCK_BYTES, "it was read from the drive")

        self.manager.kill()
        engine.ask(do="reset")
        for ids in PROMPTS:
            got = engine.generate(ids)[0]
            self.same(ids, got)
            self.assertEqual(320 if ids is SHARED else 0, got["cached"])

        self.manager.start()
        self.await_connected(6)
        self.restores(engine)

        self.manager.process.send_signal(signal.SIGSTOP)
        try:
            engine.ask(do="reset")
            got = engine.generate(LONG)[0]  # waits for an answer once, and then no more
            self.same(LONG, got)
            self.assertEqual(0, got["cached"])
        finally:
            self.manager.process.send_signal(signal.SIGCONT)
        self.assertGreaterEqual(engine.metrics()["vllm:orbitkv_lookups"], 1)
        engine.close()
        self.drained()

    def test_a_damaged_byte_is_computed_again_and_counted(self):
        self.assertEqual(0, self.manager.stop())
        pattern = bytes.fromhex(self.saved[self.key_of(ROTTEN, 4)]["start"])
        places = [
            (path, at)
            for path in sorted((self.manager.folder / "data" / "segments").iterdir())
            for at in occurrences(path.read_bytes(), pattern)
        ]
        self.assertTrue(places, "the block is not on the drive")
        for path, at in places:
            with open(path, "r+b") as file:
                file.seek(at + 4321)
                byte = file.read(1)[0]
                file.seek(at + 4321)
                file.write(bytes([byte ^ 0x10]))
        self.manager.start()
        engine = self.engine()
        got = engine.generate(ROTTEN)[0]
        self.same(ROTTEN, got)
        # What lies before the damage is a hit if that was known at the lookup; after a load that failed all is computed.
        self.assertIn(got["cached"], (0, 4 * BLOCK))
        # Whoever read the block first has counted it: a restore, or the scrub, which tells of it in the log only.
        os.set_blocking(self.manager.process.stderr.fileno(), False)
        told = (self.manager.process.stderr.read() or b"").decode()
        self.assertTrue(self.manager.stats()["corrupt_blocks"] == 1 or "scrub: " in told, told)
        engine.ask(do="reset")
        got = engine.generate(ROTTEN)[0]
        self.same(ROTTEN, got)
        self.assertIn(got["cached"], (319, 320), "it was saved anew")
        engine.close()
        self.drained()

    def key_of(self, ids, block):
        """The key of a block of a prompt: saved keys stand in the trace in the order of prompts and blocks."""
        at = 0
        for other in PROMPTS:
            if other is ids:
                return list(self.saved)[at + block]
            at += self.blocks_of(other) - (10 if other is SHARED else 0)
        raise AssertionError("no such prompt")

    def test_requests_that_wait_for_memory_give_the_same_tokens_and_a_killed_engine_holds_nothing(self):
        """All prompts at once, in 40 blocks, of which they need 60: leases last while requests wait."""
        engine = self.engine(options={"num_gpu_blocks_override": 41, "max_model_len": 1024})
        for ids, got in zip(PROMPTS, engine.generate(*PROMPTS)):
            self.same(ids, got)
        metrics = engine.metrics()
        self.assertGreater(metrics["vllm:orbitkv_load_bytes"], 0)
        for key, said in lines(self.trace, "loaded").items():
            self.assertEqual(self.saved[key]["crc"], said["crc"], f"block {key} came back with other bytes")
        self.awaits_reset(engine)
        engine.tell(do="generate", prompts=[LONG, WHOLE])
        time.sleep(0.2)
        engine.kill()
        self.drained()

    def awaits_reset(self, engine):
        """The engine's cache can be emptied: no page is pinned, once saves have drained."""
        until = time.monotonic() + 30
        while not engine.ask(do="reset")["reset"]:
            self.assertLess(time.monotonic(), until, "pages are left pinned")
            time.sleep(0.1)

    def test_preempted_requests_give_the_same_tokens(self):
        engine = self.engine(options={"num_gpu_blocks_override": 41, "max_model_len": 1024})
        for turn in range(2):  # computed and saved, then loaded
            got = engine.generate(*CROWD, tokens=CROWD_GENERATED)
            self.assertEqual(self.crowd, [one["tokens"] for one in got], f"turn {turn}")
            self.awaits_reset(engine)
            self.await_saved(0)
        metrics = engine.metrics()
        self.assertGreater(metrics["vllm:num_preemptions"], 0)
        self.assertGreater(metrics["vllm:orbitkv_load_bytes"], 0)
        engine.close()
        self.drained()

    def test_requests_that_are_given_up_in_the_middle_of_loads_leave_nothing(self):
        engine = self.engine()
        rng = random.Random(7)
        for turn in range(30):
            prompts = rng.sample(PROMPTS, 4)
            aborted = rng.sample(range(4), rng.randrange(1, 4))
            told = {"name": turn, "prompts": prompts, "aborted": aborted, "steps": rng.randrange(6)}
            done = engine.ask(do="abort", **told)["done"]
            for i, ids in enumerate(prompts):
                if i not in aborted:
                    self.assertEqual(self.expected[tuple(ids)]["tokens"], done[str(i)]["tokens"], told)
            self.awaits_reset(engine)
        metrics = engine.metrics()
        self.assertGreater(metrics["vllm:orbitkv_load_bytes"], 0)
        self.assertEqual(0, metrics.get("vllm:orbitkv_loads_failed", 0))
        for key, said in lines(self.trace, "loaded").items():
            self.assertEqual(self.saved[key]["crc"], said["crc"], f"block {key} came back with other bytes")
        engine.close()
        self.drained()

    def test_two_engines_at_once(self):
        """Each computes what the other will want, at the same time; then each finds all of it."""
        first, second = self.engine(), self.engine()
        self.await_connected(12)
        mine, yours = [prompt(f"first/{i}", 400) for i in range(3)], [prompt(f"second/{i}", 400) for i in range(3)]
        before = self.manager.stats()["saved_blocks"]
        first.tell(do="generate", prompts=[*mine, LONG])
        second.tell(do="generate", prompts=[*yours, LONG])
        computed = {"mine": first.answer(), "yours": second.answer()}
        for said in computed.values():
            self.same(LONG, said[3])
            self.assertEqual(576, said[3]["cached"])
        self.await_saved(before + 6 * ((400 + GENERATED - 1) // BLOCK))
        first.tell(do="generate", prompts=yours)
        second.tell(do="generate", prompts=mine)
        for got, expected in ((first.answer(), computed["yours"]), (second.answer(), computed["mine"])):
            for one, other in zip(got, expected):
                self.assertEqual(other["tokens"], one["tokens"])
                self.assertEqual(384, one["cached"])
        first.kill()
        self.assertEqual([one["tokens"] for one in computed["mine"][:3]], [g["tokens"] for g in second.generate(*mine)])
        second.close()
        self.drained()

    def test_save_only_saves_and_never_asks(self):
        before = self.manager.stats()
        ids = prompt("only saved", 200)
        engine = self.engine(**{"orbitkv.mode": "save_only"})
        for one in (LONG, ids):
            got = engine.generate(one)[0]
            self.assertEqual(0, got["cached"])
            if one is LONG:
                self.same(LONG, got)
        self.await_saved(before["saved_blocks"] + 6)
        after = self.manager.stats()
        self.assertEqual(before["queries"], after["queries"])
        self.assertEqual({}, lines(self.trace, "loaded"))
        self.assertEqual(0, engine.metrics().get("vllm:orbitkv_lookups", 0))
        engine.close()
        self.drained()

    def test_wrong_bytes_would_be_seen(self):
        """The negative control: with a page of zeros instead of what was loaded the output is another one."""
        engine = self.engine({"ORBITKV_TEST_SPOIL": "1"})
        got = engine.generate(LONG)[0]
        self.assertEqual(576, got["cached"])
        self.assertNotEqual(self.expected[tuple(LONG)]["tokens"], got["tokens"])


def lines(trace, what):
    """What the trace says of blocks that were saved or loaded, by key."""
    found = {}
    if trace.exists():
        for line in trace.read_text().splitlines():
            said = json.loads(line)
            if said["what"] == what:
                found[said["key"]] = said
    return found


def occurrences(data, pattern):
    at = data.find(pattern)
    while at >= 0:
        yield at
        at = data.find(pattern, at + 1)


if __name__ == "__main__":
    unittest.main()
