"""What makes this engine's KV blocks compatible with another's. What can't be found out is refused, never guessed."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ..family import Family
from .settings import Refused

FINGERPRINT = "ORBITKV_MODEL_FINGERPRINT"
SCOPE = "ORBITKV_CACHE_SCOPE"
HASH_SEED = "PYTHONHASHSEED"

_READ_BYTES = 4 << 20
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".npz")
_TOKENIZER = ("tokenizer", "vocab", "merges", "special_tokens", "added_tokens", "spiece", "sentencepiece", "tekken")
_CRYPTOGRAPHIC = ("sha256", "sha256_cbor")


def is_tokenizer_file(name: str) -> bool:
    """Whether a file of a model's folder belongs to its tokenizer."""
    return name.lower().startswith(_TOKENIZER) or name.endswith(".model")


def is_model_file(name: str) -> bool:
    """Whether a file of a model's folder says what the model computes: weights, their index, configuration, code."""
    return not is_tokenizer_file(name) and (name.endswith(_WEIGHTS) or name.endswith((".json", ".py")))


def digest_of_files(folder: pathlib.Path, wanted: Callable[[str], bool]) -> Tuple[bytes, int]:
    """SHA-256 over names and contents of files below a folder, and how many there are. Their times and places don't count."""
    whole = hashlib.sha256()
    count = 0
    for path in sorted(folder.rglob("*"), key=lambda p: p.relative_to(folder).as_posix()):
        name = path.relative_to(folder).as_posix()
        if any(part.startswith(".") for part in name.split("/")) or not path.is_file() or not wanted(path.name):
            continue
        content = hashlib.sha256()
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(_READ_BYTES):
                content.update(piece)
        whole.update(len(name.encode()).to_bytes(4, "little") + name.encode() + content.digest())
        count += 1
    return whole.digest(), count


def canonical(value: Any) -> bytes:
    """JSON in one form only, for values that are compared."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()


def model_folder(model: str, revision: Optional[str]) -> Optional[pathlib.Path]:
    """Where a model's files lie on this machine; ``None`` where that is not known."""
    if os.path.isdir(model):
        return pathlib.Path(model)
    try:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(model, "config.json", revision=revision)
    except (ImportError, ValueError):
        return None
    return pathlib.Path(found).parent if isinstance(found, str) else None


def digests(
    model: str, tokenizer: str, revision: Optional[str], is_dummy: bool, environment: Mapping[str, str]
) -> Tuple[bytes, str, bytes]:
    """Digest of the weights or an empty one, the operator's fingerprint or an empty one, digest of the tokenizer.

    Raises:
        Refused: neither files nor a fingerprint say which model this is.
    """
    fingerprint = environment.get(FINGERPRINT, "")
    if fingerprint:
        named = hashlib.sha256(f"named by {FINGERPRINT}".encode()).digest()
        return b"", fingerprint, named
    remedy = f"set {FINGERPRINT} to a name that changes whenever weights, tokenizer or model code do"
    if is_dummy:
        raise Refused(f"load_format 'dummy' of model {model} makes up weights that no file names; {remedy}")
    folder = model_folder(model, revision)
    if folder is None:
        raise Refused(f"the files of model {model} are not to be found on this machine, so they can't be told apart; {remedy}")
    weights, count = digest_of_files(folder, is_model_file)
    if not any(path.name.endswith(_WEIGHTS) for path in folder.rglob("*")):
        raise Refused(f"{folder}, the folder of model {model}, has {count} files and no weights; {remedy}")
    words = model_folder(tokenizer, None) or folder
    return weights, "", digest_of_files(words, is_tokenizer_file)[0]


def hash_seed(algorithm: str, environment: Mapping[str, str], default: str) -> str:
    """What the engine's chain of block hashes begins with.

    Raises:
        Refused: each process makes up its own.
    """
    seed = environment.get(HASH_SEED)
    if seed is not None:
        return f"{HASH_SEED}={seed}"
    if algorithm not in _CRYPTOGRAPHIC:
        raise Refused(
            f"prefix_caching_hash_algo {algorithm!r} begins with a random number in each process unless {HASH_SEED} is"
            f" set, so nothing could ever be found again; set {HASH_SEED}=0 for every engine, or use sha256_cbor"
        )
    return default


@dataclass(frozen=True)
class Facts:
    """What :func:`family_of` needs to know, without the engine's own types.

    Attributes:
        model: folder or name of the model's files.
        is_dummy: whether weights are made up instead of read.
        layout: everything that decides how the bytes of a block are made and laid out, as plain values.
        default_seed: what the engine's chain of hashes begins with where nothing else is said.
        replicated: whether all ranks hold the same bytes.
    """

    model: str
    tokenizer: str
    revision: Optional[str]
    is_dummy: bool
    kv_dtype: str
    layout: Dict[str, Any]
    block_bytes: int
    block_tokens: int
    engine: str
    hash_algorithm: str
    default_seed: str
    tp_size: int = 1
    replicated: bool = False

    @property
    def model_id(self) -> str:
        """A name for people; a folder's is its last part, so that equal files in two places are one model."""
        name = os.path.basename(self.model.rstrip("/")) if os.path.isdir(self.model) else self.model
        return name or "model"


def family_of(facts: Facts, environment: Mapping[str, str] = os.environ) -> Family:
    """The family of what an engine is and does."""
    weights, fingerprint, words = digests(
        facts.model, facts.tokenizer, facts.revision, facts.is_dummy, environment
    )
    return Family(
        model_id=facts.model_id,
        weights_digest=weights,
        fingerprint=fingerprint,
        tokenizer_digest=words,
        kv_dtype=facts.kv_dtype,
        layout=canonical(facts.layout),
        block_bytes=facts.block_bytes,
        block_tokens=facts.block_tokens,
        engine=facts.engine,
        hash_algorithm=facts.hash_algorithm,
        hash_seed=hash_seed(facts.hash_algorithm, environment, facts.default_seed),
        tp_size=facts.tp_size,
        replicated=facts.replicated,
        scope=environment.get(SCOPE, ""),
    )
