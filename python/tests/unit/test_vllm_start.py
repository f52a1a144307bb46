"""Goal: what an engine is decides which blocks it shares, and what can't be served is refused with reason and remedy."""

import pathlib
import sys
import tempfile
import types
import unittest
from dataclasses import replace

from orbitkv.vllm import checks
from orbitkv.vllm.identity import Facts, family_of
from orbitkv.vllm.settings import DEFAULT_SOCKET, Refused, settings_of


class SettingsTest(unittest.TestCase):
    def test_defaults_and_values(self):
        self.assertEqual(settings_of({}, {}).socket, DEFAULT_SOCKET)
        self.assertEqual(settings_of({}, {"ORBITKV_BOOTSTRAP_SOCKET": "/x"}).socket, "/x")
        settings = settings_of({"orbitkv.mode": "save_only", "orbitkv.timeout_ms": 7, "orbitkv.bootstrap_socket": "/y"}, {})
        self.assertEqual((settings.mode, settings.timeout_ms, settings.socket), ("save_only", 7, "/y"))
        self.assertFalse(settings.reads)

    def test_refusals_name_key_value_and_remedy(self):
        for extra, said in (
            ({"orbitkv.mod": "save_only"}, "'orbitkv.mod'.*orbitkv.mode"),
            ({"orbitkv.mode": "write_only"}, "'write_only'; give 'read_write' or 'save_only'"),
            ({"orbitkv.timeout_ms": "20"}, "orbitkv.timeout_ms is '20'; give a whole number from 1"),
            ({"orbitkv.timeout_ms": 0}, "orbitkv.timeout_ms is 0"),
            ({"orbitkv.timeout_ms": True}, "orbitkv.timeout_ms is True"),
            ({"orbitkv.bootstrap_socket": ""}, "give the path"),
            ({"orbitkv.verify_host": 1}, "give true or false"),
        ):
            with self.subTest(extra), self.assertRaisesRegex(Refused, said):
                settings_of(extra, {})


class IdentityTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.model = pathlib.Path(self.folder.name) / "toy"
        self.model.mkdir()
        for name, content in (
            ("model.safetensors", b"weights"), ("config.json", b"{}"), ("modeling.py", b"pass"), ("tokenizer.json", b"{}"),
            ("README.md", b"hello"),
        ):  # fmt: skip
            (self.model / name).write_bytes(content)
        self.facts = Facts(
            model=str(self.model), tokenizer=str(self.model), revision=None, is_dummy=False, kv_dtype="float32",
            layout={"layout": "LBHNC", "device": "cpu"}, block_bytes=4096, block_tokens=32, engine="vllm 0.33.0",
            hash_algorithm="sha256_cbor", default_seed="seed",
        )  # fmt: skip

    def id_of(self, environment=None, **changed):
        return family_of(replace(self.facts, **changed), environment or {}).family_id()

    def test_the_same_is_the_same_wherever_it_lies(self):
        elsewhere = pathlib.Path(self.folder.name) / "other" / "toy"
        elsewhere.mkdir(parents=True)
        for path in self.model.iterdir():
            (elsewhere / path.name).write_bytes(path.read_bytes())
        (elsewhere / "README.md").write_bytes(b"another text")
        (elsewhere / ".cache").mkdir()
        (elsewhere / ".cache" / "x.json").write_bytes(b"x")
        self.assertEqual(self.id_of(), self.id_of(model=str(elsewhere), tokenizer=str(elsewhere)))

    def test_whatever_changes_bytes_changes_the_name(self):
        ids = {"as it is": self.id_of()}
        for what, changed in (
            ("dtype", {"kv_dtype": "bfloat16"}), ("layout", {"layout": {"layout": "LBNHC", "device": "cpu"}}),
            ("instructions", {"layout": {"layout": "LBHNC", "device": "cpu/AVX2"}}), ("block size", {"block_tokens": 16}),
            ("block bytes", {"block_bytes": 8192}), ("release", {"engine": "vllm 0.33.1"}), ("ranks", {"tp_size": 2}),
            ("hash", {"hash_algorithm": "sha256"}),
        ):  # fmt: skip
            ids[what] = self.id_of(**changed)
        ids["seed"] = self.id_of({"PYTHONHASHSEED": "1"})
        ids["scope"] = self.id_of({"ORBITKV_CACHE_SCOPE": "red"})
        ids["fingerprint"] = self.id_of({"ORBITKV_MODEL_FINGERPRINT": "toy-1"})
        ids["another fingerprint"] = self.id_of({"ORBITKV_MODEL_FINGERPRINT": "toy-2"})
        for name in ("model.safetensors", "config.json", "modeling.py", "tokenizer.json"):
            path = self.model / name
            kept = path.read_bytes()
            path.write_bytes(kept + b" ")
            ids[name] = self.id_of()
            path.write_bytes(kept)
        self.assertEqual(ids["as it is"], self.id_of())
        self.assertEqual(len(set(ids.values())), len(ids), ids)

    def test_no_identity_no_start(self):
        with self.assertRaisesRegex(Refused, "made? up|makes up.*ORBITKV_MODEL_FINGERPRINT"):
            self.id_of(is_dummy=True)
        with self.assertRaisesRegex(Refused, "not to be found.*ORBITKV_MODEL_FINGERPRINT"):
            self.id_of(model="nobody/has-this-model", tokenizer="nobody/has-this-model")
        (self.model / "model.safetensors").unlink()
        with self.assertRaisesRegex(Refused, "no weights.*ORBITKV_MODEL_FINGERPRINT"):
            self.id_of()
        self.id_of({"ORBITKV_MODEL_FINGERPRINT": "toy-1"}, is_dummy=True, model="nobody/has-this-model")

    def test_reported_LMCache_1139_a_random_seed_is_refused(self):
        """Number 20: with a seed that is random in each process, nothing would ever be shared."""
        with self.assertRaisesRegex(Refused, "xxhash.*PYTHONHASHSEED=0"):
            self.id_of(hash_algorithm="xxhash")
        one, other = self.id_of({"PYTHONHASHSEED": "0"}, hash_algorithm="xxhash"), self.id_of({"PYTHONHASHSEED": "1"}, hash_algorithm="xxhash")
        self.assertNotEqual(one, other)
        self.id_of(hash_algorithm="sha256")  # whose root is the same everywhere


class Released:
    """Hooks as the release has them, made from the table."""


for _name, _parameters in checks.HOOKS.items():
    exec(f"def {_name}({', '.join(_parameters.split())}): pass\nsetattr(Released, {_name!r}, {_name})")


class ChecksTest(unittest.TestCase):
    def test_the_release_is_taken(self):
        checks.check_release("0.33.0", Released)
        checks.check_release("0.32.0", type("Older", (), {n: h for n, h in vars(Released).items() if n not in checks.SINCE_0_33}))

    def test_drift_is_refused_and_named(self):
        changed = type("Changed", (), dict(vars(Released)))
        changed.reset_cache = lambda self, hard: None
        changed.brand_new = lambda self: None
        del changed.shutdown
        with self.assertRaises(Refused) as said:
            checks.check_release("0.33.0", changed)
        for part in ("brand_new is new", "shutdown is gone", r"reset_cache takes (self hard), not (self)", "vllm==0.33.0"):
            self.assertIn(part, str(said.exception))
        with self.assertRaisesRegex(Refused, "this is 0.40.0"):
            checks.check_release("0.40.0", Released)

    def test_ways_of_splitting(self):
        checks.check_parallel(types.SimpleNamespace(pipeline_parallel_size=1))
        for name in ("pipeline_parallel_size", "decode_context_parallel_size", "prefill_context_parallel_size"):
            with self.subTest(name), self.assertRaisesRegex(Refused, f"{name} is 2.*set it to 1"):
                checks.check_parallel(types.SimpleNamespace(**{name: 2}))

    def test_reported_vllm_52735_speculation_is_refused(self):
        """Number 58: with speculative decoding blocks were stored and never served; here such an engine does not start."""
        cache = types.SimpleNamespace(calculate_kv_scales=False)
        checks.check_model(types.SimpleNamespace(speculative_config=None, cache_config=cache))
        for method in ("eagle", "mtp", "ngram"):
            config = types.SimpleNamespace(speculative_config=types.SimpleNamespace(method=method), cache_config=cache)
            with self.subTest(method), self.assertRaisesRegex(Refused, f"speculative decoding .*{method}"):
                checks.check_model(config)
        with self.assertRaisesRegex(Refused, "calculate_kv_scales"):
            checks.check_model(types.SimpleNamespace(speculative_config=None, cache_config=types.SimpleNamespace(calculate_kv_scales=True)))

    def test_groups(self):
        def config(*specs, **group):
            return types.SimpleNamespace(kv_cache_groups=[types.SimpleNamespace(kv_cache_spec=spec, **group) for spec in specs])

        def spec(kind, **values):
            return type(kind, (), values)()

        full = spec("FullAttentionSpec", tokens_per_state=1)
        self.assertIs(checks.check_groups(config(full)).kv_cache_spec, full)
        for refused, said in (
            (config(full, spec("MambaSpec")), "2 KV cache groups .FullAttentionSpec, MambaSpec"),
            (config(), "0 KV cache groups"),
            (config(spec("MambaSpec")), "its kind is MambaSpec"),
            (config(spec("SlidingWindowSpec")), "its kind is SlidingWindowSpec"),
            (config(spec("MLAAttentionSpec", topk_buffer_width=2048)), "sparse"),
            (config(spec("FullAttentionSpec", attention_chunk_size=8)), "chunked"),
            (config(spec("FullAttentionSpec", non_causal=True)), "not causal"),
            (config(full, is_eagle_group=True), "drafter"),
            (config(full, enable_kv_transfer=False), "does not let it be moved"),
        ):
            with self.subTest(said), self.assertRaisesRegex(Refused, said):
                checks.check_groups(refused)

    def test_importing_starts_nothing(self):
        import threading

        before = threading.active_count()
        import orbitkv.vllm

        self.assertEqual(threading.active_count(), before)
        if "vllm" not in sys.modules:
            self.assertNotIn("torch", sys.modules)
        with self.assertRaises(AttributeError):
            orbitkv.vllm.Nothing


if __name__ == "__main__":
    unittest.main()
