"""What this connector does not serve, found out before an engine starts: each refusal says why, and what to do."""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, Tuple

from .settings import Refused

RELEASES = ("0.33.", "0.32.0")

#: Parameters of the hooks of ``KVConnectorBase_V1`` and ``SupportsHMA`` in vLLM 0.33.0. A hook that is not in here is news.
HOOKS: Dict[str, str] = {
    "bind_connector_metadata": "self connector_metadata",
    "bind_gpu_block_pool": "self gpu_block_pool",
    "bind_kv_cache_manager": "self kv_cache_manager",
    "build_connector_meta": "self scheduler_output",
    "build_connector_worker_meta": "self",
    "build_kv_connector_stats": "cls data",
    "build_prom_metrics": "cls vllm_config metric_types labelnames per_engine_labelvalues",
    "clear_connector_metadata": "self",
    "finish_forward": "self",
    "get_block_ids_with_load_errors": "self",
    "get_external_cache_hit_sources": "self request num_external_tokens",
    "get_finished": "self finished_req_ids",
    "get_finished_count": "self",
    "get_handshake_metadata": "self",
    "get_kv_connector_kv_cache_events": "self",
    "get_kv_connector_stats": "self",
    "get_loaded_kv_cache_group_ids": "self request",
    "get_mem_pool_context": "self",
    "get_num_new_matched_tokens": "self request num_computed_tokens",
    "get_required_kvcache_layout": "cls vllm_config",
    "get_transfer_results": "self finished_req_ids",
    "handle_preemptions": "self kv_connector_metadata",
    "has_connector_metadata": "self",
    "has_pending_block_frees": "self",
    "has_pending_push_work": "self",
    "on_new_request": "self request",
    "register_finished_partial_tail": "self request block_ids partial_tail_offloads",
    "register_kv_caches": "self kv_caches",
    "request_finished": "self request block_ids",
    "request_finished_all_groups": "self request block_ids",
    "requires_kv_delivery": "self",
    "requires_piecewise_for_cudagraph": "cls extra_config",
    "reset_cache": "self",
    "reset_capture_state": "self",
    "restore_kv_caches": "self",
    "role": "self",
    "save_kv_layer": "self layer_name kv_layer attn_metadata **kwargs",
    "set_host_xfer_buffer_ops": "self copy_operation",
    "set_xfer_handshake_metadata": "self metadata",
    "set_xfer_handshake_metadata_pp_aware": "self metadata",
    "shutdown": "self",
    "start_load_kv": "self forward_context **kwargs",
    "supports_divergent_local_hybrid_hits": "self",
    "supports_sleep_mode": "cls kv_transfer_config",
    "take_events": "self",
    "unregister_kv_caches": "self",
    "update_connector_output": "self connector_output",
    "update_state_after_alloc": "self request blocks num_external_tokens",
    "wait_for_layer_load": "self layer_name",
    "wait_for_save": "self",
}

#: Hooks that 0.32.0, whose CPU build the tests run on, has not got yet.
SINCE_0_33 = frozenset(("restore_kv_caches", "supports_sleep_mode", "unregister_kv_caches"))

_SERVED = ("FullAttentionSpec", "MLAAttentionSpec")


def parameters_of(hook: Any) -> str:
    """A hook's parameters as :data:`HOOKS` writes them."""
    if isinstance(hook, property):
        hook = hook.fget
    if isinstance(hook, classmethod):
        hook = hook.__func__
    marks: Dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return " ".join(marks.get(p.kind, "") + p.name for p in inspect.signature(hook).parameters.values())


def drift(*bases: type) -> List[str]:
    """How hooks differ from those of vLLM 0.33.0, a line each."""
    there = {
        name: parameters_of(hook)
        for base in bases
        for name, hook in vars(base).items()
        if not name.startswith("_") and (callable(hook) or isinstance(hook, (property, classmethod)))
    }
    lines = [f"{name} is new" for name in sorted(set(there) - set(HOOKS))]
    lines += [f"{name} is gone" for name in sorted(set(HOOKS) - set(there) - SINCE_0_33)]
    lines += [
        f"{name} takes ({there[name]}), not ({HOOKS[name]})"
        for name in sorted(set(there) & set(HOOKS))
        if there[name] != HOOKS[name]
    ]
    return lines


def check_release(version: str, *bases: type) -> None:
    """Refuses an engine whose hooks are not those that this connector was built for."""
    differences = drift(*bases)
    if differences or not version.startswith(RELEASES):
        said = "; ".join(differences) or "its hooks look the same, and it was never tried"
        raise Refused(
            f"OrbitKVConnector was built for vLLM 0.33.0, and this is {version}: {said}. Install vllm==0.33.0, or an"
            " orbitkv that knows this release"
        )


def check_parallel(parallel: Any) -> None:
    """Refuses ways of splitting a model that were not proved."""
    for name, what in (
        ("pipeline_parallel_size", "stages hold blocks of different sizes"),
        ("decode_context_parallel_size", "a block's tokens are spread over ranks"),
        ("prefill_context_parallel_size", "a block's tokens are spread over ranks"),
    ):
        size = getattr(parallel, name, 1)
        if size != 1:
            raise Refused(f"{name} is {size}: {what}, which OrbitKV does not store yet; set it to 1")


def check_model(config: Any) -> None:
    """Refuses models whose KV blocks depend on more than their tokens."""
    speculative = getattr(config, "speculative_config", None)
    if speculative is not None:
        method = getattr(speculative, "method", "unknown")
        raise Refused(
            f"speculative decoding (method {method!r}): blocks may then hold draft tokens or lack the drafter's own state,"
            " so they would be stored and never found; start without --speculative-config"
        )
    if getattr(config.cache_config, "calculate_kv_scales", False):
        raise Refused(
            "calculate_kv_scales takes scales from the first prompts, so equal tokens give different bytes in each"
            " process; use a checkpoint with scales"
        )


def check_groups(kv_cache_config: Any) -> Any:
    """The one KV cache group that there may be.

    Raises:
        Refused: there are several, or it is of a kind that was not proved.
    """
    groups = kv_cache_config.kv_cache_groups
    if len(groups) != 1:
        kinds = ", ".join(type(group.kv_cache_spec).__name__ for group in groups) or "none"
        raise Refused(
            f"the model has {len(groups)} KV cache groups ({kinds}); OrbitKV stores models with one group of full"
            " attention. Sliding windows: --disable-hybrid-kv-cache-manager. Recurrent layers: not yet"
        )
    group = groups[0]
    spec = group.kv_cache_spec
    kind = type(spec).__name__
    reasons: List[Tuple[bool, str]] = [
        (kind not in _SERVED, f"its kind is {kind}, and OrbitKV stores {' and '.join(_SERVED)}"),
        (bool(getattr(group, "is_eagle_group", False)), "it holds a drafter's layers"),
        (bool(getattr(group, "host_resident", False)), "its pages are in host memory already"),
        (not getattr(group, "enable_kv_transfer", True), "the engine does not let it be moved"),
        (getattr(spec, "attention_chunk_size", None) is not None, "its attention is chunked"),
        (bool(getattr(spec, "non_causal", False)), "its attention is not causal"),
        (getattr(spec, "topk_buffer_width", None) is not None, "its attention is sparse and needs an index of its own"),
        (getattr(spec, "model_version", None) is not None, f"it is {getattr(spec, 'model_version', '')} sparse attention"),
        (getattr(spec, "tokens_per_state", 1) != 1, "its states cover several tokens"),
    ]
    for applies, reason in reasons:
        if applies:
            raise Refused(f"the model's KV cache can't be stored yet: {reason}. Start without OrbitKVConnector")
    return group
