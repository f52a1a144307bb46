"""What the connector finds out about the engine that has loaded it."""

from __future__ import annotations

import platform
from typing import Any, Dict, List, Mapping

import torch
import vllm
from vllm.v1.core import kv_cache_utils

from .checks import check_groups
from .identity import Facts
from .layout import BlockLayout, View, layout_of
from .pages import CudaPages, HostPages, Pages
from .settings import Refused

_NOT_THE_MODEL = ("_name_or_path", "transformers_version", "_attn_implementation_autoset")


def facts_of(config: Any, kv_cache_config: Any) -> Facts:
    """Everything that decides which bytes a block has. Both halves find the same."""
    group = check_groups(kv_cache_config)
    spec = group.kv_cache_spec
    model = config.model_config
    cache = config.cache_config
    tp_size = config.parallel_config.tensor_parallel_size
    layers = sum(len(tensor.layers) for tensor in kv_cache_config.kv_cache_tensors)
    page_bytes = spec.num_heads * spec.num_states * spec.state_content_size_bytes
    replicas = getattr(kv_cache_config, "kv_tp_replicas", 1)
    dtype = str(spec.dtype).removeprefix("torch.")
    quantized = str(getattr(getattr(spec, "kv_quant_mode", None), "name", "NONE"))
    computed = {name: value for name, value in model.hf_text_config.to_dict().items() if name not in _NOT_THE_MODEL}
    layout: Dict[str, Any] = {
        "kind": type(spec).__name__,
        "layout": kv_cache_config.kv_cache_layout or cache.kv_cache_layout,
        "layers": layers,
        "heads": spec.num_heads,
        "states": spec.num_states,
        "state_bytes": spec.state_content_size_bytes,
        "cache_dtype": str(cache.cache_dtype),
        "quantized": quantized,
        "device": device_kind(),
        "model_dtype": str(model.dtype),
        "quantization": str(model.quantization),
        "config": computed,
    }
    if "longrope" in str(computed):  # whose factors follow the longest length that the engine serves
        layout["max_model_len"] = model.max_model_len
    return Facts(
        model=model.model,
        tokenizer=model.tokenizer or model.model,
        revision=getattr(model, "revision", None),
        is_dummy=str(config.load_config.load_format).rpartition(".")[2].lower() == "dummy",
        kv_dtype=f"{dtype}/{quantized}",
        layout=layout,
        block_bytes=page_bytes * layers,
        block_tokens=spec.block_size,
        engine=f"vllm {vllm.__version__}",
        hash_algorithm=str(cache.prefix_caching_hash_algo),
        default_seed=str(getattr(kv_cache_utils, "DEFAULT_NONE_HASH_SEED", "")),
        tp_size=tp_size,
        replicated=tp_size > 1 and replicas == tp_size,
    )


def device_kind() -> str:
    """On a processor pages are packed for its instructions, so these belong to the name of a block."""
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        return f"cpu/{platform.machine()}/{torch.backends.cpu.get_cpu_capability()}"
    return str(current_platform.device_type)


def pages_of(kv_caches: Mapping[str, torch.Tensor], blocks: int, block_bytes: int) -> Pages:
    """The engine's pages, ready to be copied.

    Raises:
        Refused: the memory does not look as the release lays it out.
    """
    tensors = list(kv_caches.items())
    if not tensors:
        raise Refused("the engine has registered no KV cache; OrbitKV has nothing to store")
    storage = tensors[0][1].untyped_storage()
    views: List[View] = []
    for name, tensor in tensors:
        if tensor.untyped_storage().data_ptr() != storage.data_ptr():
            raise Refused(f"layer {name} has its KV cache in an allocation of its own; OrbitKV knows one for all layers")
        size = tensor.element_size()
        views.append(
            View(
                name,
                tensor.storage_offset() * size,
                tuple(tensor.shape),
                tuple(stride * size for stride in tensor.stride()),
                size,
            )
        )
    layout: BlockLayout = layout_of(views, blocks, storage.nbytes())
    if layout.block_bytes != block_bytes:
        raise Refused(
            f"a block takes {layout.block_bytes} bytes in memory and {block_bytes} by the engine's description; OrbitKV does"
            " not know this layout"
        )
    device = tensors[0][1].device
    if device.type == "cpu":
        return HostPages.at(storage.data_ptr(), storage.nbytes(), layout, tensors[0][1])
    if device.type == "cuda":
        flat = torch.empty(0, dtype=torch.uint8, device=device).set_(storage)
        return CudaPages(flat, layout)
    raise Refused(f"the KV cache lies on {device}; OrbitKV copies from and to cpu and cuda")


def tensor_parallel_rank() -> int:
    """Which rank this worker is."""
    from vllm.distributed.parallel_state import get_tensor_model_parallel_rank

    return int(get_tensor_model_parallel_rank())
