"""Goal: Python and Java agree about families and keys. Method: the vectors that Java's tests read."""

import json
import pathlib
import unittest

from orbitkv import Code, Family, OrbitKvError, key_chain

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "index/src/test/resources/golden"


def read(vector):
    number = ("block_bytes", "block_tokens", "tp_size", "pp_size")
    raw = ("weights_digest", "tokenizer_digest", "layout", "tenant_salt")
    text = ("model_id", "fingerprint", "kv_dtype", "engine", "hash_algorithm", "hash_seed", "scope")
    return Family(
        **{name: vector[name] for name in number + text},
        **{name: bytes.fromhex(vector[name]) for name in raw},
        replicated=bool(vector["replicated"]),
    )


class IdentityTest(unittest.TestCase):
    def test_families_are_encoded_as_in_java(self):
        vectors = json.loads((GOLDEN / "family.json").read_text())
        self.assertGreater(len(vectors), 3)
        for vector in vectors:
            family = read(vector)
            self.assertEqual(vector["encoded"], family.encoded().hex())
            self.assertEqual(vector["id"], family.family_id().hex())

    def test_keys_are_chained_as_in_java(self):
        for vector in json.loads((GOLDEN / "key_chain.json").read_text()):
            with self.subTest(vector["name"]):
                keys = key_chain(
                    vector["tokens"],
                    vector["block_tokens"],
                    bytes.fromhex(vector["parent"]) or None,
                    bytes.fromhex(vector["extra"]),
                )
                self.assertEqual("".join(vector["keys"]), keys.hex())

    def test_a_block_that_is_not_whole_has_no_key(self):
        self.assertEqual(b"", key_chain(range(15), 16))
        self.assertEqual(32, len(key_chain(range(31), 16)))

    def test_what_identity_lacks_is_named(self):
        with self.assertRaises(OrbitKvError) as refused:
            Family("m", b"", "", b"l", 4096, 16, "e", "h")
        self.assertEqual(Code.BAD_FAMILY, refused.exception.code)
        for name in ("tokenizer digest", "kv dtype", "weights digest or fingerprint"):
            self.assertIn(name, str(refused.exception))


if __name__ == "__main__":
    unittest.main()
