"""Goal: both halves of the vLLM connector move the right bytes through a real manager, whatever happens to it.

Method: a small engine without vLLM: pages in plain memory whose bytes are a function of prompt and block, a pool that counts
references, requests that are computed or loaded. Every page that a load has filled is compared.
"""

import random
import time
import unittest

from orbitkv import CacheManagerClient, Family
from orbitkv.vllm.layout import View, layout_of
from orbitkv.vllm.messages import Report
from orbitkv.vllm.pages import HostPages
from orbitkv.vllm.scheduler import SchedulerHalf
from orbitkv.vllm.settings import Settings
from orbitkv.vllm.worker import WorkerHalf

from ..direct_double import DirectPages
from ..unit.test_vllm_scheduler import TOKENS, Pool, output, request
from .manager_process import ManagerProcess

BLOCKS, LAYERS, PAGE = 48, 3, 4096
SECONDS = 60


def family(scope="", **more):
    return Family(
        **{
            "model_id": "toy", "tokenizer_digest": b"t" * 32, "kv_dtype": "f32", "layout": b"x", "block_bytes": LAYERS * PAGE,
            "block_tokens": TOKENS, "engine": "fake", "hash_algorithm": "sha256", "weights_digest": b"w" * 32, "scope": scope, **more,
        }
    )  # fmt: skip


class Rank:
    """A worker and its pages; layers lie apart, as in the layout LBNHC."""

    def __init__(self, socket, instance, of, settings, shard=0, worker_family=None, pages=HostPages):
        self.memory = bytearray(LAYERS * BLOCKS * PAGE)
        views = [View(f"layer.{i}", i * BLOCKS * PAGE, (BLOCKS, PAGE), (PAGE, 1), 1) for i in range(LAYERS)]
        self.pages = pages(memoryview(self.memory), layout_of(views, BLOCKS, len(self.memory)))
        self.shard = shard
        self.half = WorkerHalf(
            lambda: connected(socket, instance, "worker"), worker_family or of, settings, shard
        )
        self.half.register(self.pages)

    def content(self, key):
        return random.Random(key + bytes([self.shard])).randbytes(LAYERS * PAGE)

    def fill(self, page, content):
        buffer = self.pages.buffer(len(content))
        buffer.view[:] = content
        self.pages.write([page], buffer)

    def read(self, page):
        buffer = self.pages.buffer(LAYERS * PAGE)
        self.pages.read([page], buffer)
        return bytes(buffer.view)


def connected(socket, instance, role):
    client = CacheManagerClient(socket, instance, role, 10.0, 30.0)
    assert client.wait_connected(60)
    return client


class Engine:
    """A scheduler's half, ranks, and just enough of an engine around them."""

    def __init__(self, manager, instance="e", ranks=1, settings=Settings(timeout_ms=10_000, buffer_bytes=1 << 16), pages=HostPages, **more):
        of = family(tp_size=ranks, **more)
        self.pool = Pool(BLOCKS)
        self.half = SchedulerHalf(connected(manager.socket, instance, "scheduler"), of, settings, ranks)
        assert self.half.wait_for_manager(30)
        self.half.bind_pool(self.pool)
        self.half._pays = lambda lookup, blocks: True  # this engine computes a block in no time
        self.half._pinned_blocks_max = BLOCKS
        self.ranks = [Rank(manager.socket, instance, of, settings, rank, pages=pages) for rank in range(ranks)]
        self.next = 0

    def serve(self, tokens, prompt=0, salt=""):
        """Runs a request to its end; blocks that were loaded. What it computes it puts into its pages."""
        self.next += 1
        one = request(f"r{self.next}", tokens, prompt=f"{prompt}/{salt}")
        until = time.monotonic() + SECONDS
        while True:
            count, _ = self.half.matched_tokens(one, 0)
            if count is not None:
                break
            self.step()
            assert time.monotonic() < until, "asked for ever"
        pages = random.sample(range(1, BLOCKS), tokens // TOKENS)
        for rank in self.ranks:
            for page in pages:
                rank.fill(page, bytes(LAYERS * PAGE))
        self.half.allocated(one, pages, count)
        loaded = count // TOKENS
        if count:
            failed = self.load(one, until)
            if failed:
                return self.recompute(one, pages)
            for rank in self.ranks:
                for page, key in list(zip(pages, one.block_hashes))[:loaded]:
                    assert rank.read(page) == rank.content(key), "wrong bytes"
        self.compute(one, pages, loaded)
        return loaded

    def recompute(self, one, pages):
        """Asks once more, as vLLM does; the answer is that it has to compute all of it."""
        assert self.half.matched_tokens(one, 0) == (0, False)
        self.half.allocated(one, pages, 0)
        self.compute(one, pages, 0)
        return -1

    def compute(self, one, pages, loaded):
        for rank in self.ranks:
            for page, key in list(zip(pages, one.block_hashes))[loaded:]:
                rank.fill(page, rank.content(key))
        one.num_computed_tokens = loaded * TOKENS
        scheduled = one.num_tokens - one.num_computed_tokens
        self.step({one.request_id: scheduled} if scheduled else {}, {one.request_id: pages})
        one.num_computed_tokens = one.num_tokens
        self.half.finished(one, pages)
        self.settle()

    def load(self, one, until):
        left = set(range(len(self.ranks)))
        failures = set()
        self.step()
        while left:
            for rank in list(left):
                received, failed = self.results[rank] if self.results else (set(), set())
                if one.request_id in received:
                    left.discard(rank)
                    failures |= failed
            if left:
                time.sleep(0.002)
                self.step()
            assert time.monotonic() < until, "a load was never reported"
        self.half.reported(None, {one.request_id}, failures)
        return failures

    def step(self, scheduled=None, tables=None):
        step = self.half.step(output(scheduled or {}, tables))
        whole = Report()
        self.results = []
        for rank in self.ranks:
            rank.half.start_loads(step)
            rank.half.start_saves(step)
            self.results.append(rank.half.results())
            report = rank.half.report()
            if report is not None:
                whole.merge(report)
        self.half.reported(whole, (), ())

    def settle(self):
        """Until every save has been reported."""
        until = time.monotonic() + SECONDS
        while self.half.has_work:
            self.step()
            time.sleep(0.002)
            assert time.monotonic() < until, "a save was never reported"
        assert self.pool.held == 0

    def close(self):
        self.half.close()
        for rank in self.ranks:
            rank.half.close()


class HalvesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.manager = ManagerProcess("--segment-bytes", "1mb", pool="16mb", capacity="64mb")
        cls.addClassCleanup(cls.manager.close)

    def setUp(self):
        if self.manager.process.poll() is not None:
            self.manager.start()
        self.scope = self.id()

    def engine(self, instance="e", **more):
        engine = Engine(self.manager, f"{self.id()}/{instance}", scope=self.scope, **more)
        self.addCleanup(engine.close)
        return engine

    def written(self):
        self.manager.await_stats(lambda s: s["nvme_queued_blocks"] == 0 and s["written_position"] >= s["accepted_position"])

    def test_another_engine_restores_what_one_has_saved(self):
        one, other = self.engine("one"), self.engine("other")
        self.assertEqual(0, one.serve(40))
        self.assertEqual(10, one.serve(40))
        self.assertEqual(10, other.serve(40))
        self.assertEqual(10, other.serve(62), "longer: the prefix is a hit, the rest is saved")
        self.assertEqual(15, one.serve(63))
        self.assertEqual(0, other.serve(40, salt="someone"))
        counters = other.half.counters.take()
        self.assertEqual(0, counters.get("loads_failed", 0))
        moved = other.ranks[0].half.take_counters()
        self.assertEqual(20 * LAYERS * PAGE, moved["load_bytes"])
        self.assertEqual((5 + 10) * LAYERS * PAGE, moved["save_bytes"])

    def test_a_gpu_fetches_blocks_by_itself(self):
        """And lets a manager's memory go when that has gone."""
        one, other = self.engine("one", pages=DirectPages), self.engine("other", pages=DirectPages)
        self.assertEqual(0, one.serve(40))
        self.assertEqual(10, other.serve(40))
        self.assertEqual(10, other.serve(62))
        driver = other.ranks[0].pages.driver
        self.assertGreaterEqual(driver.copies, 20)
        self.assertTrue(driver.registered)
        self.assertEqual(20 * LAYERS * PAGE, other.ranks[0].half.take_counters()["load_bytes"])
        self.written()
        self.manager.kill()
        until = time.monotonic() + SECONDS
        while driver.registered:
            self.assertLess(time.monotonic(), until, "memory of a manager that has gone is still registered")
            time.sleep(0.01)
        self.manager.start()
        for half in (other.half._client, other.ranks[0].half._saver.client, other.ranks[0].half._loader.client):
            self.assertTrue(half.wait_connected(30))
        self.assertEqual(15, other.serve(62), "from the drive, through memory of the connection")
        self.assertTrue(driver.registered)
        self.assertEqual(0, other.ranks[0].pages.slow)

    def test_ranks_have_shards_of_their_own(self):
        """And a block that one rank lacks is nobody's hit: number 42, ranks that disagree."""
        one = self.engine("one", ranks=2)
        self.assertEqual(0, one.serve(40))
        self.assertEqual(10, one.serve(40))
        alone = one.ranks[1]
        alone.half._stores = False  # this rank says that it saved, and did not
        self.assertEqual(0, one.serve(40, prompt=2))
        self.assertEqual(0, one.serve(40, prompt=2))

    def test_a_killed_manager_finds_blocks_on_its_drive(self):
        engine = self.engine()
        engine.serve(40)
        self.written()
        self.manager.kill()
        self.assertEqual(0, engine.serve(40), "without a manager everything is computed")
        self.assertEqual(0, engine.serve(32, prompt=3), "and nothing saved")
        self.manager.start()
        for half in (engine.half._client, engine.ranks[0].half._saver.client, engine.ranks[0].half._loader.client):
            self.assertTrue(half.wait_connected(30))
        self.assertEqual(10, engine.serve(40))
        self.assertEqual(0, engine.serve(32, prompt=3))
        self.assertEqual(8, engine.serve(32, prompt=3))

    def test_a_manager_that_dies_between_lookup_and_load_is_a_failed_load(self):
        engine = self.engine()
        engine.serve(40)
        self.written()
        allocated = engine.half.allocated

        def die(*arguments):
            engine.half.allocated = allocated
            self.manager.kill()
            allocated(*arguments)

        engine.half.allocated = die
        self.assertEqual(-1, engine.serve(40))
        self.assertEqual(1, engine.half.counters.take()["loads_failed"])

    def test_reported_vllm_49250_a_damaged_block_is_computed_and_saved_anew(self):
        """Numbers 36 and 45: whichever block of a load fails, pages end up with the right bytes."""
        engine = self.engine()
        for broken in (0, 4, 9):
            with self.subTest(broken=broken):
                engine.serve(40, broken, "damaged")
                self.written()
                self.assertEqual(0, self.manager.stop())
                key = request("x", 40, prompt=f"{broken}/damaged").block_hashes[broken]
                self.assertEqual(1, self.flip(engine.ranks[0].content(key)))
                self.manager.start()
                for client in (engine.half._client, engine.ranks[0].half._saver.client, engine.ranks[0].half._loader.client):
                    self.assertTrue(client.wait_connected(30))
                self.assertIn(engine.serve(40, broken, "damaged"), (broken, -1))
                self.assertEqual(1, self.manager.stats()["corrupt_blocks"])
                self.assertEqual(10, engine.serve(40, broken, "damaged"))

    def flip(self, content):
        """Damages a byte of every copy of a block on the drive; how many there were."""
        copies = 0
        for path in sorted((self.manager.folder / "data" / "segments").iterdir()):
            data = path.read_bytes()
            at = data.find(content)
            while at >= 0:
                copies += 1
                with open(path, "r+b") as file:
                    file.seek(at + 4321)
                    file.write(bytes([data[at + 4321] ^ 0x10]))
                at = data.find(content, at + 1)
        return copies

    def test_halves_that_disagree_move_nothing(self):
        engine = self.engine()
        engine.serve(40)
        engine.ranks[0].half._family = family(self.scope, kv_dtype="bf16", tp_size=1)
        with self.assertLogs("orbitkv.vllm", "ERROR"):
            self.assertEqual(-1, engine.serve(40))

    def test_a_reset_forgets_and_other_engines_do_not(self):
        engine, other = self.engine("one"), self.engine("other")
        engine.serve(40)
        self.assertTrue(engine.half.reset())
        self.assertEqual(0, engine.serve(40))
        self.assertEqual(10, engine.serve(40), "its own, saved since")
        self.assertEqual(10, other.serve(40))

    def test_without_a_manager_a_start_waits_a_moment_and_goes_on(self):
        with CacheManagerClient("/nowhere/m.sock", "x") as client:
            started = time.monotonic()
            self.assertFalse(SchedulerHalf(client, family(), Settings(), 1).wait_for_manager(0.3))
            self.assertLess(time.monotonic() - started, 20)

    def test_many_requests_leave_nothing_behind(self):
        engine = self.engine()
        rng = random.Random(5)
        hits = sum(engine.serve(rng.randrange(4, 120), prompt=rng.randrange(4)) for _ in range(60))
        self.assertGreater(hits, 300)
        self.assertEqual({name: 0 for name in engine.half.gauges}, engine.half.gauges)
        self.manager.await_stats(lambda s: s["client_leases"] == 0 and s["leases"] == 0)


if __name__ == "__main__":
    unittest.main()
