"""Goal: the scheduler's half asks, leases, pins and gives back exactly as it should, whatever the manager does.

Method: a fake manager that is told what it holds, a fake engine with a pool that counts references; seeded interleavings.
"""

import hashlib
import random
import types
import unittest
from unittest import mock

from orbitkv import Code, Family, OrbitKvError, wire
from orbitkv.match import Match
from orbitkv.vllm.known import KnownKeys
from orbitkv.vllm.known import Removals as KeyRemovals
from orbitkv.vllm.messages import Report, SaveReport
from orbitkv.vllm.pace import PrefillPace
from orbitkv.vllm.scheduler import SchedulerHalf, key_of
from orbitkv.vllm.settings import Settings
from orbitkv.wire import Removals

TOKENS = 4


def family():
    return Family(
        model_id="toy", tokenizer_digest=b"t" * 32, kv_dtype="f32", layout=b"x", block_bytes=64, block_tokens=TOKENS,
        engine="fake", hash_algorithm="sha256", weights_digest=b"w" * 32,
    )  # fmt: skip


class FakeLife:
    epoch = 7
    is_over = False
    welcome = types.SimpleNamespace(lease_ms=30_000)


class FakeManager:
    """A client and the manager behind it, as far as the scheduler's half sees them."""

    def __init__(self, clock):
        self.clock = clock
        self.stored = set()
        self.leases = {}
        self.asked = []
        self.is_away = False
        self.pends = 0
        self.error = None
        self.slow = 0.0
        self.micros = 10
        self.renewed = []
        self.cancelled = []
        self._life = FakeLife()
        self._next = 0

    # what CacheManagerClient has
    @property
    def epoch(self):
        return 0 if self.is_away else self._life.epoch

    @property
    def is_connected(self):
        return not self.is_away

    def family(self, of):
        return types.SimpleNamespace(query=lambda *a, **k: self.query(of, *a, **k), cancel=self.cancelled.append, open=lambda seconds: True)

    def query(self, of, keys, may_wait=False, query_id=None, deadline=None):
        self.clock.now += self.slow
        self._next += 1
        number = query_id or self._next
        if self.error:
            raise self.error
        if self.is_away:
            return Match(self, None, of, keys, number, None)
        self.asked.append((of.scope, len(keys) // 32, may_wait))
        if may_wait and self.pends:
            return FakeMatch(self, self._life, of, keys, number, wire.QueryAnswer(0, number, 0, 0, 0, 0, 0, 1, wire.PENDING))
        return FakeMatch(self, self._life, of, keys, number, self.answer(of, keys, number))

    def answer(self, of, keys, number):
        blocks = 0
        while blocks * 32 < len(keys) and (of.scope, keys[blocks * 32 : blocks * 32 + 32]) in self.stored:
            blocks += 1
        if not blocks:
            return wire.QueryAnswer(0, number, 0, 0, 0, 0, 0, 0, wire.MISS)
        self._next += 1
        self.leases[self._next] = blocks
        return wire.QueryAnswer(0, number, self._next, self.micros, blocks, blocks - 1, 1, 0, wire.READY)

    def close(self):
        self.leases.clear()


class FakeMatch(Match):
    def poll(self):
        manager = self._client
        if not self.is_pending:
            return True
        if manager.pends:
            manager.pends -= 1
        if not manager.pends:
            self._take(manager.answer(self._family, self._keys, self.query_id))
        return not self.is_pending

    def renew(self):
        self._client.renewed.append(self.lease)
        return self.lease in self._client.leases

    def release(self):
        if self.lease:
            self._client.leases.pop(self.lease, None)
            self.lease = 0


class Pool:
    """Blocks with references, as the engine's pool counts them."""

    def __init__(self, count):
        self.blocks = [types.SimpleNamespace(block_id=i, refs=0) for i in range(count)]

    def touch(self, blocks):
        for block in blocks:
            block.refs += 1

    def free_blocks(self, blocks):
        for block in blocks:
            block.refs -= 1
            assert block.refs >= 0, "freed twice"

    @property
    def held(self):
        return sum(block.refs for block in self.blocks)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def request(name, tokens, prompt=0, **more):
    hashes = [hashlib.sha256(f"{prompt}/{i}".encode()).digest() for i in range(tokens // TOKENS)]
    return types.SimpleNamespace(
        **{
            "request_id": name, "num_tokens": tokens, "block_hashes": hashes, "num_computed_tokens": 0, "resumable": False,
            "skip_reading_prefix_cache": False, "num_in_flight_tokens": 0, **more,
        }
    )  # fmt: skip


def output(scheduled=(), tables=None):
    tables = tables or {}
    state = types.SimpleNamespace(get_block_ids=lambda name: (tables[name],) if name in tables else None)
    return types.SimpleNamespace(num_scheduled_tokens=dict(scheduled), kv_connector_block_state=state)


class SchedulerHalfTest(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.manager = FakeManager(self.clock)
        self.pool = Pool(64)
        self.half = self.made()

    def made(self, **settings):
        half = SchedulerHalf(self.manager, family(), Settings(**settings), 1, clock=self.clock)
        half.bind_pool(self.pool)
        return half

    def store(self, of, blocks, scope=""):
        self.manager.stored |= {(scope, key_of(h)) for h in of.block_hashes[:blocks]}

    def drained(self, half=None):
        half = half or self.half
        self.assertEqual({name: 0 for name in half.gauges}, half.gauges)
        self.assertEqual({}, self.manager.leases)
        self.assertEqual(0, self.pool.held)

    def test_a_hit_is_loaded_behind_the_engines_own(self):
        one = request("a", 18)
        self.store(one, 3)
        self.assertEqual((8, True), self.half.matched_tokens(one, 4))
        self.half.allocated(one, [10, 11, 12, 13, 14], 8)
        step = self.half.step(output())
        load = step.loads[0]
        self.assertEqual(("a", (11, 12), 0, 7), (load.request, load.pages, load.first, load.epoch))
        self.assertEqual(b"".join(one.block_hashes[1:3]), load.keys)
        self.assertEqual((4, 4), self.half.hit_sources(one))
        self.half.reported(None, {"a"}, set())
        self.manager.leases.clear()  # the workers were done
        self.half.finished(one, [10, 11, 12])
        self.drained()

    def test_the_whole_prompt_may_be_a_hit(self):
        one = request("a", 16)
        self.store(one, 4)
        self.assertEqual((16, True), self.half.matched_tokens(one, 0))

    def test_the_answer_is_kept_and_its_lease_renewed(self):
        one = request("a", 16)
        self.store(one, 2)
        for _ in range(5):
            self.assertEqual((8, True), self.half.matched_tokens(one, 0))
            self.half.step(output())
        self.assertEqual(1, len(self.manager.asked))
        self.clock.now += 11
        self.half.step(output())
        self.assertEqual(1, len(self.manager.renewed))
        self.assertEqual((4, True), self.half.matched_tokens(one, 4), "the engine has found a block meanwhile")
        self.half.allocated(one, [1, 2], 4)
        self.assertEqual(1, self.half.step(output()).loads[0].first)

    def test_a_lease_that_is_lost_is_asked_for_again(self):
        one = request("a", 16)
        self.store(one, 2)
        self.half.matched_tokens(one, 0)
        self.clock.now += 11
        self.manager.leases.clear()
        self.manager.stored.clear()
        self.half.step(output())
        self.assertEqual((0, False), self.half.matched_tokens(one, 0))

    def test_a_hit_that_does_not_pay_is_declined(self):
        def measure(seconds):
            for _ in range(4):
                step = self.half.step(output({"x": 64}))
                self.clock.now += seconds
                self.half.reported(Report(step=step.number), (), ())

        one = request("a", 16)
        self.store(one, 4)
        self.manager.micros = 20_000
        self.assertEqual((16, True), self.half.matched_tokens(one, 0), "nothing is measured yet")
        self.half.allocated(one, [1, 2, 3, 4], 0)
        measure(0.128)  # 2 ms a token: 32 ms for 16
        self.assertEqual((16, True), self.half.matched_tokens(one, 0))
        self.half.allocated(one, [1, 2, 3, 4], 0)
        self.manager.micros = 40_000
        self.assertEqual((0, False), self.half.matched_tokens(one, 0))
        self.assertEqual((0, False), self.half.matched_tokens(one, 0), "it stays declined while it waits")
        self.assertEqual(4, self.half.counters.values["declined_blocks"])
        self.assertEqual({}, self.manager.leases)

    def test_the_pace_of_steps_that_overlap(self):
        pace = PrefillPace()
        now = 10.0
        pace.begin(1, now, 100, 100)
        for number in range(2, 9):
            pace.begin(number, now, 100, 100)  # handed over while the one before runs
            now += 0.1
            pace.end(number - 1, now)
        self.assertAlmostEqual(0.05, pace.seconds(50), places=6)
        pace.begin(20, now, 8, 300)  # decoding: says nothing of prefill
        pace.end(20, now + 9)
        self.assertAlmostEqual(0.05, pace.seconds(50), places=6)

    def test_a_loser_gives_its_lease_back(self):
        """Another child of MultiConnector loads: the request is admitted with none of ours."""
        one = request("a", 16)
        self.store(one, 2)
        self.half.matched_tokens(one, 0)
        self.half.allocated(one, [1, 2], 0)
        self.half.finished(one, [])
        self.drained()

    def test_a_miss_is_zero_and_not_asynchronous(self):
        self.assertEqual((0, False), self.half.matched_tokens(request("a", 16), 0))
        self.assertEqual((0, False), self.half.matched_tokens(request("b", 3), 0))
        self.assertEqual((0, False), self.half.matched_tokens(request("c", 16), 16))
        skipped = request("d", 16, skip_reading_prefix_cache=True)
        self.store(skipped, 4)
        self.assertEqual((0, False), self.half.matched_tokens(skipped, 0))
        self.assertEqual((0, False), self.half.matched_tokens(request("e", 16, resumable=True), 0))

    def test_pending_is_asked_again_and_bounded(self):
        one = request("a", 16)
        self.store(one, 3)
        self.manager.pends = 2
        self.assertEqual((None, False), self.half.matched_tokens(one, 0))
        self.assertEqual((None, False), self.half.matched_tokens(one, 0))
        self.assertEqual((12, True), self.half.matched_tokens(one, 0))
        self.assertEqual(1, len(self.manager.asked), "polls send no keys")
        other = request("b", 16, prompt=2)
        self.manager.pends = 1 << 30
        self.assertEqual((None, False), self.half.matched_tokens(other, 0))
        self.clock.now += 0.6
        self.assertEqual((0, False), self.half.matched_tokens(other, 0), "there is an end to waiting")
        self.store(other, 1)
        third = request("c", 16, prompt=2)
        self.assertEqual((None, False), self.half.matched_tokens(third, 0))
        self.clock.now += 0.6
        self.assertEqual((4, True), self.half.matched_tokens(third, 0), "then it is loaded from where it is")

    def test_without_a_manager_nothing_is_a_hit_and_nobody_waits(self):
        one = request("a", 16)
        self.store(one, 4)
        self.manager.is_away = True
        self.assertEqual((0, False), self.half.matched_tokens(one, 0))
        self.half.allocated(one, [1, 2, 3, 4], 0)
        self.half.finished(one, [])
        self.drained()

    def test_a_slow_manager_costs_a_step_its_budget_at_most(self):
        self.half = self.made(timeout_ms=20)
        self.manager.slow = 0.015
        for i in range(20):
            self.half.matched_tokens(request(f"r{i}", 16, prompt=i), 0)
        self.assertLess(self.clock.now - 100.0, 0.05)
        self.assertLessEqual(len(self.manager.asked), 2)
        self.clock.now += 1
        self.assertEqual((0, False), self.half.matched_tokens(request("r19", 16, prompt=19), 0), "late ones are misses")

    def test_a_manager_that_refuses_is_a_miss(self):
        self.manager.error = OrbitKvError(Code.BAD_FAMILY, "OKV-704: contradicts what is stored")
        with self.assertLogs("orbitkv.vllm", "ERROR") as said:
            self.assertEqual((0, False), self.half.matched_tokens(request("a", 16), 0))
            self.assertEqual((0, False), self.half.matched_tokens(request("b", 16), 0))
        self.assertEqual(1, len(said.output))

    def test_a_client_that_is_confused_is_a_miss(self):
        for error in (ValueError("the manager names the family otherwise"), OSError("no more descriptors")):
            self.manager.error = error
            with self.subTest(error), self.assertLogs("orbitkv.vllm", "ERROR"):
                self.half.counters.take()
                self.assertEqual((0, False), self.half.matched_tokens(request("a", 16), 0))
                self.half.allocated(request("a", 16), [], 0)

    def test_save_only_never_asks(self):
        half = self.made(mode="save_only")
        one = request("a", 16)
        self.store(one, 4)
        self.assertEqual((0, False), half.matched_tokens(one, 0))
        self.assertEqual([], self.manager.asked)
        half.allocated(one, [1, 2, 3, 4], 0)
        self.assertEqual(1, len(half.step(output({"a": 16}, {"a": [1, 2, 3, 4]})).saves))

    def test_saves_pin_pages_until_every_rank_has_reported(self):
        half = SchedulerHalf(self.manager, family(), Settings(), 2, clock=self.clock)
        half.bind_pool(self.pool)
        one = request("a", 18)
        half.on_new_request(one)
        first = half.step(output({"a": 10}, {"a": [5, 6, 7]})).saves
        self.assertEqual([(None, (5, 6))], [(s.parent, s.pages) for s in first])
        one.num_computed_tokens = 10
        second = half.step(output({"a": 8}, {"a": [5, 6, 7, 8, 9]})).saves
        self.assertEqual([(one.block_hashes[1], (7, 8))], [(s.parent, s.pages) for s in second])
        self.assertEqual(4, self.pool.held)
        one.num_computed_tokens = 18
        half.finished(one, [5, 6, 7, 8, 9])
        self.assertTrue(half.has_work)
        half.reported(Report({1: SaveReport(stored=2, epoch=7)}), (), ())
        self.assertEqual(4, self.pool.held, "one of two ranks has reported")
        half.reported(Report({1: SaveReport(stored=1, dropped=1, epoch=7), 2: SaveReport(2, 2, 0, 7)}), (), ())
        self.assertFalse(half.has_work)
        self.drained(half)
        self.assertEqual((3, 1), (half.counters.values["saved_blocks"], half.counters.values["save_blocks_dropped"]))

    def test_what_has_no_bytes_yet_is_not_saved(self):
        """The last sampled token is hashed, and its KV comes with the next step; the null page is nobody's."""
        one = request("a", 16)
        self.half.on_new_request(one)
        self.half.step(output({"a": 15}, {}))
        one.num_computed_tokens = 15
        self.half.finished(one, [1, 2, 3, 4])
        self.assertEqual([(1, 2, 3)], [s.pages for s in self.half.step(output()).saves])
        other = request("b", 16, prompt=1)
        self.half.on_new_request(other)
        self.half.step(output({"b": 16}, {}))
        other.num_computed_tokens, other.num_in_flight_tokens = 16, 8
        self.half.finished(other, [5, 6, 7, 8])
        self.assertEqual([(5, 6)], [s.pages for s in self.half.step(output()).saves])
        third = request("c", 16, prompt=2)
        self.half.on_new_request(third)
        self.assertEqual([(9,)], [s.pages for s in self.half.step(output({"c": 16}, {"c": [9, 0, 11, 12]})).saves])

    def test_what_another_connector_loads_is_not_saved_before_it_has_arrived(self):
        """An abort while somebody else's load is on its way: the engine counts those tokens as computed already."""
        one = request("a", 16)
        self.assertEqual((0, False), self.half.matched_tokens(one, 0))
        self.half.allocated(one, [1, 2, 3, 4], 0)
        one.num_computed_tokens = 16
        self.half.finished(one, [1, 2, 3, 4])
        self.assertEqual([], self.half.step(output()).saves)
        other = request("b", 16, prompt=1)  # it ran, was preempted, and is loaded by somebody else into other pages
        self.half.matched_tokens(other, 0)
        self.assertEqual([], self.half.step(output({"b": 8}, {})).saves)
        self.half.matched_tokens(other, 0)
        self.half.allocated(other, [5, 6, 7, 8], 0)
        other.num_computed_tokens = 16
        self.half.finished(other, [5, 6, 7, 8])
        self.assertEqual([], self.half.step(output()).saves)

    def test_what_another_connector_loads_within_a_step_is_saved_later(self):
        one = request("a", 16)
        self.half.on_new_request(one)
        now = output({"a": 1}, {"a": [1, 2, 3, 4]})
        now.has_sync_kv_loads = True
        one.num_computed_tokens = 12
        self.assertEqual([], self.half.step(now).saves)
        self.assertEqual([], self.half.step(output({"a": 1}, {"a": [1, 2, 3, 4]})).saves)
        one.num_computed_tokens = 4  # it had failed, and the engine went back
        self.assertEqual([], self.half.step(output({"a": 1}, {"a": [1, 2, 3, 4]})).saves)
        self.assertEqual([(1,)], [s.pages for s in self.half.step(output({"a": 1}, {"a": [1, 2, 3, 4]})).saves])

    def test_pins_are_bounded(self):
        half = self.made(pinned_blocks_max=3)
        one = request("a", 32)
        half.on_new_request(one)
        self.assertEqual([(1, 2, 3)], [s.pages for s in half.step(output({"a": 32}, {"a": list(range(1, 9))})).saves])
        one.num_computed_tokens = 32
        self.assertEqual([], half.step(output({"a": 1}, {"a": list(range(1, 9))})).saves)
        half.reported(Report({1: SaveReport(stored=3, epoch=7)}), (), ())
        half.finished(one, list(range(1, 9)))
        self.assertEqual([(4, 5, 6)], [s.pages for s in half.step(output()).saves])
        self.assertEqual(2, half.counters.values["save_blocks_no_room"])

    def test_what_is_known_to_be_stored_is_not_offered_again(self):
        one = request("a", 16)
        self.half.on_new_request(one)
        self.half.step(output({"a": 16}, {"a": [1, 2, 3, 4]}))
        self.half.reported(Report({1: SaveReport(stored=4, epoch=7)}), (), ())
        again = request("b", 16)
        self.half.on_new_request(again)
        self.assertEqual([], self.half.step(output({"b": 16}, {"b": [1, 2, 3, 4]})).saves)
        self.half._known.live(8)  # a restarted manager has lost its host memory
        third = request("c", 16)
        self.half.on_new_request(third)
        self.assertEqual(1, len(self.half.step(output({"c": 16}, {"c": [1, 2, 3, 4]})).saves))

    def test_a_request_whose_load_failed_is_computed(self):
        one = request("a", 16)
        self.store(one, 4)
        self.assertEqual((16, True), self.half.matched_tokens(one, 0))
        self.half.allocated(one, [1, 2, 3, 4], 16)
        self.half.reported(Report({}, {"a": 2}), {"a"}, {"a"})
        self.assertEqual({}, self.manager.leases)
        self.assertEqual([(1, 2, 3, 4)], [load.pages for load in self.half.step(output()).loads])
        self.assertEqual((0, False), self.half.matched_tokens(one, 0))
        self.half.allocated(one, [1, 2, 3, 4], 0)
        saves = self.half.step(output({"a": 16}, {"a": [1, 2, 3, 4]})).saves
        self.assertEqual([(3, 4)], [save.pages for save in saves], "what was missing is saved anew")
        self.half.reported(Report({save.number: SaveReport(1, 2, 0, 7) for save in saves}), (), ())
        self.half.finished(one, [1, 2, 3, 4])
        self.drained()

    def test_an_aborted_load_is_waited_for_and_never_saved(self):
        one = request("a", 16)
        self.store(one, 4)
        self.half.matched_tokens(one, 0)
        self.half.allocated(one, [1, 2, 3, 4], 16)
        one.num_computed_tokens = 16
        self.half.finished(one, [1, 2, 3, 4])
        self.assertEqual([], self.half.step(output()).saves)
        self.half.reported(Report({}, {"a": 1}), {"a"}, {"a"})
        self.drained()

    def test_a_reset_puts_everything_out_of_reach(self):
        one = request("a", 16)
        self.store(one, 4)
        self.half.matched_tokens(one, 0)
        self.assertTrue(self.half.reset())
        self.assertEqual({}, self.manager.leases)
        self.assertEqual((0, False), self.half.matched_tokens(one, 0))
        scope = self.manager.asked[-1][0]
        self.assertIn("reset-", scope)
        save = self.half.step(output({"a": 16}, {"a": [1, 2, 3, 4]})).saves[0]
        self.assertTrue(save.detached and scope.endswith(save.detached))
        self.store(one, 4, scope)
        other = request("b", 16)
        self.assertEqual((16, True), self.half.matched_tokens(other, 0), "what is saved from now on is found")
        self.half.allocated(other, [5, 6, 7, 8], 16)
        self.assertFalse(self.half.reset(), "a load of old bytes is on its way")

    def test_any_interleaving_ends_with_nothing_held(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        with self.subTest(seed=seed):
            half = self.made(pinned_blocks_max=20)
            live, loading, saves = {}, {}, []
            for i in range(4000):
                self.clock.now += rng.random() * 3
                self.manager.is_away = rng.random() < 0.1
                self.manager.pends = rng.choice((0, 0, 1, 3))
                choice = rng.random()
                if choice < 0.3 and len(live) < 12:
                    one = request(f"r{i}", rng.randrange(1, 40), prompt=rng.randrange(6))
                    half.on_new_request(one)
                    live[one.request_id] = [one, None]
                    if rng.random() < 0.4:
                        self.store(one, rng.randrange(0, 6))
                elif choice < 0.6 and live:
                    name = rng.choice(list(live))
                    one, pages = live[name]
                    if pages is None and name not in loading:
                        tokens, later = half.matched_tokens(one, 0)
                        self.assertEqual(bool(tokens), later)
                        if tokens is not None and rng.random() < 0.8:
                            won = rng.random() < 0.8
                            pages = rng.sample(range(1, 64), -(-one.num_tokens // TOKENS))
                            half.allocated(one, pages, tokens if won else 0)
                            live[name][1] = pages
                            if tokens and won:
                                one.num_computed_tokens = tokens
                                loading[name] = one, half._loading[name].match.lease
                elif choice < 0.75 and loading:
                    name = rng.choice(list(loading))
                    one, lease = loading.pop(name)
                    failed = rng.random() < 0.3
                    if not failed:
                        self.manager.leases.pop(lease)  # as the workers do when they are done
                    half.reported(Report({}, {name: rng.randrange(3)} if failed else {}), {name}, {name} if failed else set())
                    if failed and name in live:
                        one.num_computed_tokens = 0
                        live[name][1] = None
                elif choice < 0.9:
                    running = {n: p for n, (o, p) in live.items() if p is not None and n not in loading}
                    step = half.step(output({n: live[n][0].num_tokens - live[n][0].num_computed_tokens for n in running}, running))
                    for name in running:
                        live[name][0].num_computed_tokens = live[name][0].num_tokens
                        if rng.random() < 0.2:  # preempted
                            live[name][0].num_computed_tokens, live[name][1] = 0, None
                    saves += step.saves
                elif live:
                    name = rng.choice(list(live))
                    one, pages = live.pop(name)
                    half.finished(one, pages or [])
                while saves and rng.random() < 0.4:
                    save = saves.pop(rng.randrange(len(saves)))
                    report = SaveReport(stored=len(save.pages), epoch=7)
                    half.reported(Report({save.number: report}), (), ())
                self.assertLessEqual(self.pool.held, 20)
            for name, (one, pages) in list(live.items()):
                half.finished(one, pages or [])
            saves += half.step(output()).saves
            for save in saves:
                half.reported(Report({save.number: SaveReport(dropped=1)}), (), ())
            for name in list(loading):
                half.reported(None, {name}, {name})
            self.drained(half)


class KnownKeysTest(unittest.TestCase):
    def test_bounded_and_of_one_life(self):
        known = KnownKeys(most=3)
        known.add([b"1", b"2", b"3", b"4"], epoch=1)
        self.assertEqual(3, len(known))
        self.assertNotIn(b"1", known)
        known.forget([b"3", b"9"])
        self.assertNotIn(b"3", known)
        known.live(0)
        self.assertIn(b"4", known)
        known.live(2)
        self.assertEqual(0, len(known))

    def test_what_is_gone_is_forgotten_by_its_head(self):
        known = KnownKeys(most=64)
        keys = [bytes([n]) * 32 for n in range(8)]
        known.add(keys[:2], epoch=1)
        known.removed([keys[0][:16], keys[2][:16]])
        self.assertNotIn(keys[0], known)
        self.assertIn(keys[1], known)
        known.add(keys[:3], epoch=1)  # the report of a save whose block was told to be gone before
        self.assertIn(keys[0], known)
        self.assertNotIn(keys[2], known)
        known.add(keys[2:3], epoch=1)
        self.assertIn(keys[2], known)
        known.removed(key[:16] for key in keys[3:8])  # more than are remembered
        known.add(keys[3:4], epoch=1)
        self.assertIn(keys[3], known)

    def test_removals_are_taken_by_the_thread_that_steps(self):
        told = [
            Removals(7, 5, 9, [b"a" * 16]), Removals(7, 9, 10, []), Removals(7, 10, 12, [b"b" * 16]), None,
            Removals(7, 15, 16, []), Removals(7, 16, 17, [b"c" * 16]), Removals(8, 3, 3, []),
        ]  # fmt: skip
        asked = []

        class Client:
            def removals(self, of, from_sequence):
                asked.append(from_sequence)
                if not told:
                    raise ValueError("that was all")
                return told.pop(0)

        with mock.patch("orbitkv.vllm.known._POLL_SECONDS", 0.001), self.assertLogs("orbitkv.vllm"):
            removals = KeyRemovals(Client(), family())
            removals._thread.join(30)
        self.assertEqual([0, 9, 10, 12, 12, 16, 17, 3], asked)
        self.assertEqual([[b"a" * 16], [b"b" * 16], None, [b"c" * 16], None], list(removals._told))
        known = KnownKeys()
        known.add([b"d" * 32], epoch=1)
        removals.take_into(known)
        self.assertEqual(0, len(known))
        removals.close()

    def test_a_step_forgets_what_is_gone(self):
        clock = Clock()
        manager = FakeManager(clock)
        removals = types.SimpleNamespace(take_into=lambda known: known.clear(), close=lambda: None)
        half = SchedulerHalf(manager, family(), Settings(), 1, clock=clock, removals=removals)
        half._known.add([b"k" * 32], epoch=1)
        half.step(output())
        self.assertEqual(0, len(half._known))


if __name__ == "__main__":
    unittest.main()
