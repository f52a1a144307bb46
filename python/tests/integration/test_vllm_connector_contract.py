"""Goal: the connector keeps the contract of vLLM's own schedulers: nothing that they assert on ever happens, and nothing leaks.

Method: the installed release's ``Scheduler`` and ``AsyncScheduler`` run without a device. The connector's scheduler half is the
real one over a fake manager; the workers are played by this test, one or two ranks of them, through the release's own
aggregation. Needs vLLM (0.33.0, or 0.32.0's CPU build); skipped without it.
"""

import ast
import importlib.util
import os
import pathlib
import random
import tempfile
import unittest

try:
    import pytest

    pytestmark = pytest.mark.integration
except ImportError:
    pass

HAS_VLLM = importlib.util.find_spec("vllm") is not None
TOKENS = 16
SEED = os.environ.get("ORBITKV_SEED")
STEPS = int(os.environ.get("ORBITKV_CONTRACT_STEPS", "1500"))

if HAS_VLLM:
    import torch
    import vllm
    from vllm.config import (
        CacheConfig,
        DeviceConfig,
        KVTransferConfig,
        ModelConfig,
        ParallelConfig,
        SchedulerConfig,
        VllmConfig,
    )
    from vllm.distributed.kv_transfer.kv_connector.utils import KVOutputAggregator
    from vllm.distributed.kv_transfer.kv_connector.v1.base import (
        KVConnectorBase_V1,
        KVConnectorMetadata,
        KVConnectorRole,
        SupportsHMA,
    )
    from vllm.sampling_params import SamplingParams
    from vllm.utils.hashing import sha256_cbor
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec, KVCacheTensor
    from vllm.v1.outputs import KVConnectorOutput, ModelRunnerOutput
    from vllm.v1.request import Request, RequestStatus
    from vllm.v1.structured_output import StructuredOutputManager

    from orbitkv.vllm import checks
    from orbitkv.vllm.connector import OrbitKVConnector, OrbitKVWorkerMetadata
    from orbitkv.vllm.messages import Report, SaveReport

    from ..unit.test_vllm_scheduler import Clock, FakeManager

    class ContractConnector(OrbitKVConnector):
        """The connector over a fake manager."""

        manager = None

        def _connect(self, role):
            return type(self).manager

    class OtherConnector(KVConnectorBase_V1, SupportsHMA):
        """A second child for MultiConnector: it sometimes has tokens, sometimes needs time, and always loads later."""

        rng = random.Random(0)
        loads = []

        def get_num_new_matched_tokens(self, request, computed):
            choice = self.rng.random()
            left = (request.num_tokens - computed) // TOKENS * TOKENS
            if choice < 0.1:
                return None, False
            return (left, True) if choice < 0.4 and left else (0, False)

        def update_state_after_alloc(self, request, blocks, tokens):
            if tokens:
                type(self).loads.append(request.request_id)

        def build_connector_meta(self, output):
            return KVConnectorMetadata()

        def request_finished_all_groups(self, request, pages):
            return False, None

        def start_load_kv(self, *a, **k):
            raise AssertionError("a worker's hook")

        wait_for_layer_load = save_kv_layer = wait_for_save = start_load_kv


def model_folder():
    """A configuration and something that passes for weights; nothing is computed."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="orbitkv-contract-"))
    (folder / "config.json").write_text(
        '{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 64, "intermediate_size": 64,'
        ' "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 128,'
        ' "max_position_embeddings": 4096, "torch_dtype": "float32"}'
    )
    (folder / "model.safetensors").write_bytes(b"weights")
    return str(folder)


class Engine:
    """The release's scheduler, and workers that answer late, in any order, and not always well."""

    def __init__(self, rng, asynchronous=False, blocks=40, policy="recompute", ranks=1, multi=None, **extra):
        self.rng = rng
        self.ranks = ranks
        self.clock = Clock()
        self.manager = FakeManager(self.clock)
        ContractConnector.manager = self.manager
        OtherConnector.loads, OtherConnector.rng = [], rng
        ours = {
            "kv_connector": "ContractConnector",
            "kv_connector_module_path": __name__,
            "kv_role": "kv_both",
            "kv_connector_extra_config": extra,
        }
        other = {"kv_connector": "OtherConnector", "kv_connector_module_path": __name__, "kv_role": "kv_both"}
        if multi is not None:
            children = [ours, other] if multi == "ours first" else [other, ours]
            ours = {
                "kv_connector": "MultiConnector", "kv_role": "kv_both", "kv_connector_extra_config": {"connectors": children},
            }  # fmt: skip
        model = ModelConfig(model=model_folder(), skip_tokenizer_init=True, dtype="float32", seed=0, max_model_len=1024)
        cache = CacheConfig(block_size=TOKENS, enable_prefix_caching=True, prefix_caching_hash_algo="sha256_cbor")
        scheduling = SchedulerConfig(
            max_num_seqs=8, max_num_batched_tokens=256, max_model_len=1024, is_encoder_decoder=False,
            enable_chunked_prefill=True, async_scheduling=asynchronous,
        )  # fmt: skip
        config = VllmConfig(
            model_config=model, cache_config=cache, scheduler_config=scheduling, device_config=DeviceConfig("cpu"),
            parallel_config=ParallelConfig(), kv_transfer_config=KVTransferConfig(kv_load_failure_policy=policy, **ours),
        )  # fmt: skip
        cache.num_gpu_blocks = blocks
        spec = FullAttentionSpec(block_size=TOKENS, num_kv_heads=2, head_size=32, dtype=torch.float32)
        layers = ["model.layers.0.self_attn.attn", "model.layers.1.self_attn.attn"]
        page = spec.page_size_bytes
        kv = KVCacheConfig(
            num_blocks=blocks,
            kv_cache_tensors=[KVCacheTensor(size=2 * page * blocks, layers=layers, layer_stride=page * blocks, block_stride=page)],
            kv_cache_groups=[KVCacheGroupSpec(layers, spec)],
            kv_cache_layout="LBHNC",
            hash_block_size=TOKENS,
        )
        init_none_hash(sha256_cbor)
        self.hasher = get_request_block_hasher(TOKENS, sha256_cbor)
        self.scheduler = (AsyncScheduler if asynchronous else Scheduler)(
            vllm_config=config, kv_cache_config=kv, structured_output_manager=StructuredOutputManager(config),
            block_size=TOKENS, hash_block_size=TOKENS, log_stats=True,
        )  # fmt: skip
        connector = self.scheduler.connector
        self.children = getattr(connector, "_connectors", [connector])
        self.connector = next(c for c in self.children if isinstance(c, ContractConnector))
        self.ours = self.children.index(self.connector)
        self.half = self.connector._scheduler
        # the connector was asked which family this is; the fake manager keys by scope only
        self.half._clock = self.clock
        self.aggregator = KVOutputAggregator(ranks)
        self.half._ranks = ranks
        self.number = 0
        self.steps = []
        self.loads = {}
        self.saves = []
        self.finished = {}
        self.preemptions = 0
        self.blocks = blocks
        self.never_fails = self.always_fails = self.stalled = False
        self.is_async = asynchronous
        self.taken = {}
        take = self.half.counters.take

        def note():
            taken = take()
            for name, count in taken.items():
                self.taken[name] = self.taken.get(name, 0) + count
            return taken

        self.half.counters.take = note

    def fails(self):
        """Whether the next load is to fail."""
        return self.always_fails or (not self.never_fails and self.rng.random() < 0.2)

    def counts(self):
        """The half's counters, as far as the engine has not taken them, and what it took."""
        return {**self.taken, **{n: c + self.taken.get(n, 0) for n, c in self.half.counters.values.items()}}

    def hits(self):
        """Tokens that the connector brought, and that it was asked for, since the start."""
        counts = self.counts()
        return counts.get("load_blocks", 0) * TOKENS, counts.get("lookup_blocks", 0) * TOKENS

    @property
    def free_blocks(self):
        return self.scheduler.kv_cache_manager.block_pool.get_num_free_blocks()

    def add(self, tokens, prompt, max_tokens=4, salt=None):
        self.number += 1
        ids = [random.Random(f"{prompt}/{i // TOKENS}").randrange(100) for i in range(tokens)]
        one = Request(
            request_id=f"r{self.number}", prompt_token_ids=ids,
            sampling_params=SamplingParams(max_tokens=max_tokens, ignore_eos=True), pooling_params=None,
            block_hasher=self.hasher, cache_salt=salt,
        )  # fmt: skip
        self.scheduler.add_request(one)
        return one

    def schedule(self):
        self.clock.now += 0.01
        before = sum(one.num_preemptions for one in self.scheduler.requests.values())
        output = self.scheduler.schedule()
        self.preemptions += sum(one.num_preemptions for one in self.scheduler.requests.values()) > before
        meta = output.kv_connector_metadata
        step = meta.metadata[self.ours] if len(self.children) > 1 else meta
        for load in step.loads:
            assert load.request not in self.loads, "loaded twice at once"
            assert len(set(load.pages)) == len(load.pages) and 0 not in load.pages
            assert load.lease in self.manager.leases, "a lease that is not"
            self.loads[load.request] = [load, {rank: self.rng.randrange(4) for rank in range(self.ranks)}, self.fails()]
        for name in OtherConnector.loads:
            self.loads[name] = [None, {rank: self.rng.randrange(4) for rank in range(self.ranks)}, self.fails()]
        OtherConnector.loads = []
        for save in step.saves:
            self.saves.append([save, set(range(self.ranks))])
            pool = self.scheduler.kv_cache_manager.block_pool
            assert all(pool.blocks[page].ref_cnt > 0 for page in save.pages), "a page that is saved may be reused"
        samples = {n for n in output.num_scheduled_tokens if not self.scheduler.requests[n].is_prefill_chunk}
        self.steps.append((output, samples))
        return output

    def results(self):
        """What each rank reports with a step."""
        outputs = []
        for rank in range(self.ranks):
            received, failed, report = set(), set(), Report()
            for name, (load, left, fails) in list(self.loads.items()):
                if rank not in left:
                    continue
                left[rank] -= 1
                if left[rank] < 0:
                    del left[rank]
                    received.add(name)
                    if fails and rank == 0:
                        failed.add(name)
                        if load is not None:
                            report.missed[name] = self.rng.randrange(len(load.pages))
                    if not left:
                        del self.loads[name]
                        if load is not None and not fails:
                            self.manager.leases.pop(load.lease, None)
            for waiting in list(self.saves):
                save, ranks = waiting
                if rank in ranks and not self.stalled and self.rng.random() < 0.5:
                    ranks.discard(rank)
                    dropped = not self.never_fails and self.rng.random() < 0.1
                    report.saves[save.number] = SaveReport(
                        stored=0 if dropped else len(save.pages), dropped=len(save.pages) if dropped else 0, epoch=7
                    )
                    if not ranks:
                        self.saves.remove(waiting)
                        if not dropped:
                            scope = f"\0{save.detached}" if save.detached else ""
                            for i in range(len(save.pages)):
                                self.manager.stored.add((scope, save.keys[i * 32 : i * 32 + 32]))
            meta = OrbitKVWorkerMetadata(report) if report.saves or report.missed else None
            if len(self.children) > 1 and meta is not None:
                from vllm.distributed.kv_transfer.kv_connector.v1.multi_connector import MultiKVConnectorWorkerMetadata

                both = [None, None]
                both[self.ours] = meta
                meta = MultiKVConnectorWorkerMetadata(metadata=tuple(both))
            outputs.append(
                KVConnectorOutput(finished_recving=received, failed_recving=failed, kv_connector_worker_meta=meta)
            )
        return outputs

    def update(self):
        """The oldest step has run."""
        output, samples = self.steps.pop(0)
        names = list(output.num_scheduled_tokens)
        made = [
            ModelRunnerOutput(
                req_ids=names,
                req_id_to_index={name: i for i, name in enumerate(names)},
                sampled_token_ids=[[self.rng.randrange(100)] if name in samples else [] for name in names],
                kv_connector_output=kv,
            )
            for kv in self.results()
        ]
        whole = self.aggregator.aggregate(made)
        for outputs in self.scheduler.update_from_output(output, whole).values():
            for out in outputs.outputs:
                if out.finish_reason is not None:
                    assert out.request_id not in self.finished, "finished twice"
                    self.finished[out.request_id] = str(out.finish_reason)

    def step(self):
        self.schedule()
        while len(self.steps) > (1 if self.is_async and self.rng.random() < 0.7 else 0):
            self.update()

    def drain(self, steps=600):
        while (self.scheduler.has_requests() or self.steps or self.loads) and steps:
            steps -= 1
            self.step()
        assert steps, f"still {list(self.scheduler.requests)} {self.half.gauges}"
        while self.steps:
            self.update()


@unittest.skipUnless(HAS_VLLM, "vLLM is not installed: pip install vllm==0.33.0, or run python/tests/run_vllm_cpu")
class ContractTest(unittest.TestCase):
    """See the module."""

    def seed(self):
        """A source of chance that says with a failure how to run it again."""
        seed = int(SEED) if SEED else random.randrange(1 << 32)
        rng = random.Random(seed)
        rng.said = f"ORBITKV_SEED={seed}"
        return rng

    def drained(self, engine):
        gauges = engine.half.gauges
        self.assertEqual({name: 0 for name in gauges}, gauges)
        self.assertEqual({}, engine.manager.leases, "leases are left")
        self.assertEqual(engine.blocks - 1, engine.free_blocks, "pages are left")
        self.assertTrue(engine.scheduler.reset_prefix_cache())

    def stir(self, engine, steps):
        """Requests of few prompts, short of memory: preempted, aborted, restored, failed."""
        rng = engine.rng
        live = []
        for _ in range(steps):
            engine.manager.is_away = rng.random() < 0.05
            engine.manager.pends = rng.choice((0, 0, 0, 1, 2))
            if len(live) < 10 and rng.random() < 0.3:
                live.append(engine.add(rng.randrange(1, 300), rng.randrange(5), rng.randrange(1, 60)).request_id)
            if live and rng.random() < 0.08:
                engine.scheduler.finish_requests(live.pop(rng.randrange(len(live))), RequestStatus.FINISHED_ABORTED)
            engine.step()
            live = [name for name in live if name not in engine.finished]
        for name in live:
            if rng.random() < 0.5:
                engine.scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)
        engine.manager.is_away = False
        engine.manager.pends = 0
        engine.drain()

    def test_any_interleaving_keeps_the_contract(self):
        for asynchronous in (False, True):
            for ranks in (1, 2):
                rng = self.seed()
                with self.subTest(rng.said, asynchronous=asynchronous, ranks=ranks):
                    engine = Engine(rng, asynchronous, ranks=ranks)
                    self.stir(engine, STEPS)
                    counts = engine.counts()
                    self.assertGreater(engine.preemptions, 0, "memory was never short")
                    for name in ("loads", "loads_failed", "saved_blocks", "hit_blocks"):
                        self.assertGreater(counts.get(name, 0), 0, name)
                    self.drained(engine)

    def test_interleavings_beside_another_connector(self):
        """Numbers 36, 40, 42 and 45 meet here as well: MultiConnector, both orders."""
        for order in ("ours first", "other first"):
            for asynchronous in (False, True):
                rng = self.seed()
                with self.subTest(rng.said, order=order, asynchronous=asynchronous):
                    engine = Engine(rng, asynchronous, multi=order)
                    self.stir(engine, STEPS)
                    self.drained(engine)

    def test_policy_fail_ends_requests_and_nothing_else(self):
        engine = Engine(self.seed(), policy="fail")
        self.stir(engine, STEPS // 2)
        self.assertIn("error", {reason.lower().rpartition(".")[2] for reason in engine.finished.values()})
        self.drained(engine)

    def one_hit(self, tokens=80, **options):
        """An engine in which a prompt is stored, and the engine's own cache is empty."""
        engine = Engine(self.seed(), **options)
        engine.never_fails = True
        engine.add(tokens, 1)
        engine.drain()
        self.assertTrue(engine.scheduler.reset_prefix_cache())
        return engine

    def test_a_whole_prompt_is_loaded_and_its_last_token_computed(self):
        engine = self.one_hit(80)
        one = engine.add(80, 1)
        engine.schedule()
        self.assertEqual(RequestStatus.WAITING_FOR_REMOTE_KVS, one.status)
        self.assertEqual(80, one.num_computed_tokens)
        engine.drain()
        self.assertEqual(80, engine.hits()[0])
        self.assertEqual({"length"}, {reason.lower().rpartition(".")[2] for reason in engine.finished.values()})
        self.drained(engine)

    def test_an_abort_while_loading_is_reported_once_and_frees_the_pages(self):
        engine = self.one_hit(160)
        one = engine.add(160, 1)
        engine.schedule()
        self.assertEqual(RequestStatus.WAITING_FOR_REMOTE_KVS, one.status)
        engine.scheduler.finish_requests(one.request_id, RequestStatus.FINISHED_ABORTED)
        self.assertLess(engine.free_blocks, engine.blocks - 1, "pages that are being written are not free")
        engine.drain()
        self.drained(engine)

    def test_a_failed_load_is_computed(self):
        engine = self.one_hit(160)
        engine.never_fails = False
        engine.always_fails = True
        one = engine.add(160, 1)
        engine.drain()
        self.assertEqual("length", engine.finished[one.request_id].lower().rpartition(".")[2])
        self.assertEqual(1, engine.counts()["loads_failed"], "a second load could wait for pages that the engine keeps for itself")
        self.drained(engine)

    def test_salts_do_not_meet(self):
        engine = self.one_hit(160)
        engine.add(160, 1, salt="someone")
        engine.drain()
        self.assertEqual(0, engine.hits()[0])

    def test_a_reset_of_the_connector_forgets(self):
        engine = self.one_hit(160)
        self.assertTrue(engine.scheduler.reset_prefix_cache(reset_connector=True))
        engine.add(160, 1)
        engine.drain()
        self.assertEqual(0, engine.hits()[0])
        self.drained(engine)

    def test_a_reset_while_loading_is_refused(self):
        engine = self.one_hit(160)
        engine.add(160, 1)
        engine.schedule()
        self.assertFalse(engine.scheduler.reset_prefix_cache(reset_connector=True))
        engine.drain()
        self.drained(engine)

    def test_pinned_pages_hold_a_reset_up_until_they_are_saved(self):
        engine = Engine(self.seed())
        engine.stalled = True
        engine.add(160, 1)
        for _ in range(30):
            engine.step()
        self.assertTrue(engine.half.has_work)
        self.assertTrue(engine.scheduler.has_requests(), "the engine must go on stepping")
        self.assertFalse(engine.scheduler.reset_prefix_cache())
        engine.stalled = False
        engine.drain()
        self.drained(engine)

    def test_save_only_never_asks(self):
        engine = Engine(self.seed(), **{"orbitkv.mode": "save_only"})
        engine.never_fails = True
        engine.add(160, 1)
        engine.drain()
        engine.add(160, 1)
        engine.drain()
        self.assertEqual([], engine.manager.asked)
        self.assertEqual(10, len({key for _, key in engine.manager.stored}))
        self.drained(engine)

    def test_hit_sources_add_up(self):
        engine = self.one_hit(160)
        seen = []
        ask = engine.connector.get_external_cache_hit_sources
        engine.connector.get_external_cache_hit_sources = lambda *a: seen.append((a[1], ask(*a))) or seen[-1][1]
        engine.add(160, 1)
        engine.drain()
        self.assertTrue(seen)
        for tokens, sources in seen:
            self.assertEqual(tokens, sum(sources.values()))
            self.assertEqual({"host", "disk"}, {source.value for source in sources})

    def test_its_statistics_survive_the_trip_to_the_front_end(self):
        from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorStats

        engine = self.one_hit(160)
        engine.half.counters.add("saved_blocks", 3)
        stats = engine.connector.get_kv_connector_stats()
        self.assertIsInstance(stats, KVConnectorStats)
        again = OrbitKVConnector.build_kv_connector_stats(dict(stats.to_dict()))
        doubled = again.aggregate(OrbitKVConnector.build_kv_connector_stats(dict(stats.to_dict())))
        self.assertEqual(2 * stats.reduce()["saved_blocks"], doubled.reduce()["saved_blocks"])
        self.assertIsNone(engine.connector.get_kv_connector_stats(), "taken once")

    def test_names_of_the_release(self):
        self.assertEqual([], checks.drift(KVConnectorBase_V1, SupportsHMA))
        self.assertFalse(OrbitKVConnector.__abstractmethods__)
        checks.check_release(vllm.__version__, KVConnectorBase_V1, SupportsHMA)

    def test_it_is_registered_by_name(self):
        import orbitkv.vllm
        from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory

        orbitkv.vllm.register()
        orbitkv.vllm.register()
        self.assertIs(OrbitKVConnector, KVConnectorFactory.get_connector_class_by_name("OrbitKVConnector"))
        for name in ("OrbitKVConnector", "ContractConnector"):
            path = "orbitkv.vllm" if name == "OrbitKVConnector" else __name__
            config = KVTransferConfig(kv_connector=name, kv_connector_module_path=path, kv_role="kv_both")
            self.assertTrue(issubclass(KVConnectorFactory.get_connector_class(config), OrbitKVConnector))

    def test_messages_are_picklable(self):
        import pickle

        engine = self.one_hit(160)
        engine.add(160, 1)
        output = engine.schedule()
        step = output.kv_connector_metadata
        self.assertEqual(step, pickle.loads(pickle.dumps(step)))
        self.assertTrue(step.loads)
        report = OrbitKVWorkerMetadata(Report({1: SaveReport(stored=1)}, {"a": 2}))
        self.assertEqual(report, pickle.loads(pickle.dumps(report)))

    def test_unknown_settings_keep_the_engine_from_starting(self):
        with self.assertRaisesRegex(ValueError, "orbitkv.mod"):
            Engine(self.seed(), **{"orbitkv.mod": "save_only"})


class SignatureTest(unittest.TestCase):
    """Against the released wheel, without importing it: ``ORBITKV_VLLM_SOURCE`` names the folder that it was unpacked to."""

    @unittest.skipUnless(os.environ.get("ORBITKV_VLLM_SOURCE"), "ORBITKV_VLLM_SOURCE names no unpacked wheel of vLLM 0.33.0")
    def test_hooks_of_the_released_wheel(self):
        from orbitkv.vllm.checks import HOOKS

        folder = pathlib.Path(os.environ["ORBITKV_VLLM_SOURCE"])
        self.assertTrue(list(folder.glob("vllm-0.33.0.dist-info")), "not the wheel of 0.33.0")
        source = (folder / "vllm/distributed/kv_transfer/kv_connector/v1/base.py").read_text()
        found = {}
        for made in ast.parse(source).body:
            if isinstance(made, ast.ClassDef) and made.name in ("KVConnectorBase_V1", "SupportsHMA"):
                for hook in made.body:
                    if isinstance(hook, ast.FunctionDef) and not hook.name.startswith("_"):
                        names = [a.arg for a in hook.args.args]
                        names += ["**" + hook.args.kwarg.arg] if hook.args.kwarg else []
                        found[hook.name] = " ".join(names)
        self.assertEqual(HOOKS, found)


if __name__ == "__main__":
    unittest.main()
