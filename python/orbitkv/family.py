"""Identity: what makes blocks compatible, and how keys are made. The same bytes as in Java, by golden vectors."""

from __future__ import annotations

import hashlib
import struct
from array import array
from dataclasses import dataclass
from typing import Iterable, Optional

from .errors import Code, OrbitKvError

_MAGIC = b"OKVFAM01"
_FIELDS = 17
_NUMBER = struct.Struct("<I")
_FIELD = struct.Struct("<HI")

KEY_BYTES = 32


@dataclass(frozen=True)
class Family:
    """Everything that makes stored bytes compatible, except the shard. Blocks of different families never meet.

    What was not given is empty; what identity needs and is missing is refused, never guessed.

    Attributes:
        model_id: the model's name, for people.
        weights_digest: a digest of the weights; or ``fingerprint``, what the operator vouches to name them.
        tokenizer_digest: a digest of the tokenizer.
        kv_dtype: data type of keys and values, for example ``bf16``.
        layout: describes how a block's bytes are laid out; only compared.
        block_bytes: bytes of one block of one shard.
        block_tokens: tokens of a block.
        engine: the inference engine.
        hash_algorithm: how keys are made.
        replicated: whether all tensor-parallel ranks hold the same bytes.
    """

    model_id: str
    tokenizer_digest: bytes
    kv_dtype: str
    layout: bytes
    block_bytes: int
    block_tokens: int
    engine: str
    hash_algorithm: str
    weights_digest: bytes = b""
    fingerprint: str = ""
    tp_size: int = 1
    pp_size: int = 1
    replicated: bool = False
    hash_seed: str = ""
    scope: str = ""
    tenant_salt: bytes = b""

    def __post_init__(self) -> None:
        missing = [
            name
            for name, value in (
                ("model id", self.model_id),
                ("weights digest or fingerprint", self.weights_digest or self.fingerprint),
                ("tokenizer digest", self.tokenizer_digest),
                ("kv dtype", self.kv_dtype),
                ("layout", self.layout),
                ("engine", self.engine),
                ("hash algorithm", self.hash_algorithm),
                ("block bytes", self.block_bytes),
                ("block tokens", self.block_tokens),
            )
            if not value
        ]
        if missing:
            raise OrbitKvError(
                Code.BAD_FAMILY,
                f"OKV-704: the family of model {self.model_id} lacks {', '.join(missing)}; without it two models could"
                " share bytes, so it is not guessed",
            )

    @property
    def shards(self) -> int:
        """How many shards each block has."""
        return self.pp_size if self.replicated else self.tp_size * self.pp_size

    def encoded(self) -> bytes:
        """The canonical encoding, which the manager reads."""
        values = (
            self.model_id.encode(),
            self.weights_digest,
            self.fingerprint.encode(),
            self.tokenizer_digest,
            self.kv_dtype.encode(),
            self.layout,
            _NUMBER.pack(self.block_bytes),
            _NUMBER.pack(self.block_tokens),
            _NUMBER.pack(self.tp_size),
            _NUMBER.pack(self.pp_size),
            _NUMBER.pack(1 if self.replicated else 0),
            self.engine.encode(),
            self.hash_algorithm.encode(),
            self.hash_seed.encode(),
            self.scope.encode(),
            self.tenant_salt,
            _NUMBER.pack(0),
        )
        parts = [_MAGIC, struct.pack("<H", _FIELDS)]
        for number, value in enumerate(values, 1):
            parts += (_FIELD.pack(number, len(value)), value)
        return b"".join(parts)

    def family_id(self) -> bytes:
        """SHA-256 of the canonical encoding."""
        known: Optional[bytes] = self.__dict__.get("_family_id")
        if known is None:
            known = hashlib.sha256(self.encoded()).digest()
            object.__setattr__(self, "_family_id", known)
        return known


def key_chain(
    tokens: Iterable[int], block_tokens: int, parent: Optional[bytes] = None, extra: bytes = b""
) -> bytes:
    """Keys of the whole blocks of some tokens, 32 bytes each, back to back.

    Args:
        tokens: token ids, each an unsigned number of 32 bits.
        block_tokens: tokens of a block.
        parent: the key of the block before; ``None`` at a prompt's start.
        extra: what else the blocks' bytes depend on, hashed into each key.
    """
    ids = array("I", tokens)
    if ids.itemsize != 4:  # pragma: no cover: no such machine is supported
        raise OrbitKvError(Code.BAD_ARGUMENT, "OKV-702: this Python has no 32-bit numbers")
    raw = ids.tobytes()
    step = block_tokens * 4
    keys = []
    key = parent or bytes(KEY_BYTES)
    for at in range(0, len(raw) - step + 1, step):
        key = hashlib.sha256(key + raw[at : at + step] + extra).digest()
        keys.append(key)
    return b"".join(keys)
