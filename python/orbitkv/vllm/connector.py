"""The class that vLLM loads: it hands each hook to the half that lives in this process."""

from __future__ import annotations

import atexit
import logging
import weakref
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

import vllm
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
    KVConnectorTransferResults,
    KVConnectorWorkerMetadata,
    SupportsHMA,
)
from vllm.v1.metrics.cache_hit_source import CacheHitSource

from ..client import CacheManagerClient
from . import engine
from .checks import check_groups, check_model, check_parallel, check_release
from .identity import family_of
from .known import Removals
from .messages import Report, Step
from .scheduler import SchedulerHalf
from .settings import Settings, settings_of
from .stats import OrbitKVPromMetrics, OrbitKVStats, stats_of
from .worker import WorkerHalf

_LOG = logging.getLogger("vllm.orbitkv")

_START_SECONDS = 2.0


@dataclass
class OrbitKVMetadata(Step, KVConnectorMetadata):  # type: ignore[misc]
    """A step's work for the workers."""


@dataclass
class OrbitKVWorkerMetadata(KVConnectorWorkerMetadata):  # type: ignore[misc]
    """What ranks report of a step."""

    report: Report

    def aggregate(self, other: KVConnectorWorkerMetadata) -> "OrbitKVWorkerMetadata":
        assert isinstance(other, OrbitKVWorkerMetadata)
        self.report.merge(other.report)
        return self


class OrbitKVConnector(KVConnectorBase_V1, SupportsHMA):  # type: ignore[misc]
    """Finds, loads and saves KV blocks through the manager of this host; see ``docs/vllm.md``."""

    def __init__(self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any) -> None:
        check_release(vllm.__version__, KVConnectorBase_V1, SupportsHMA)
        super().__init__(vllm_config, role, kv_cache_config)
        check_parallel(vllm_config.parallel_config)
        check_model(vllm_config)
        check_groups(kv_cache_config)
        self._settings: Settings = settings_of(self._kv_transfer_config.kv_connector_extra_config or {})
        self._family = family_of(engine.facts_of(vllm_config, kv_cache_config))
        self._instance = f"vllm/{self._kv_transfer_config.engine_id}"
        self._kv_caches: Mapping[str, Any] = {}
        self._scheduler: Optional[SchedulerHalf] = None
        self._worker: Optional[WorkerHalf] = None
        tp_size = vllm_config.parallel_config.tensor_parallel_size
        if role == KVConnectorRole.SCHEDULER:
            client = self._connect("scheduler")
            self._scheduler = SchedulerHalf(
                client,
                self._family,
                self._settings,
                tp_size,
                OrbitKVMetadata,
                removals=Removals(client, self._family),
            )
            self._say_what_is_on()
            if self._settings.reads and not self._scheduler.wait_for_manager(_START_SECONDS):
                _LOG.warning(
                    "OrbitKV: no manager answers at %s; until one does, everything is computed and nothing is saved",
                    self._settings.socket,
                )
        else:
            rank = engine.tensor_parallel_rank() if tp_size > 1 else 0
            one = self._family.replicated
            self._worker = WorkerHalf(
                lambda: self._connect("worker"), self._family, self._settings, 0 if one else rank, not one or rank == 0
            )

        # An engine in the main process may be torn down only when its threads can't run any more, and so can't end.
        atexit.register(_shut_down, weakref.ref(self))

    def _connect(self, role: str) -> CacheManagerClient:
        """Does not wait; it connects by itself, whenever there is a manager."""
        return CacheManagerClient(
            self._settings.socket,
            self._instance,
            role,
            self._settings.timeout_ms / 1000,
            self._settings.transfer_timeout_ms / 1000,
        )

    def _say_what_is_on(self) -> None:
        family = self._family
        _LOG.info(
            "OrbitKV: %s through %s, family %s, blocks of %d tokens and %d bytes, %d shard(s)",
            self._settings.mode, self._settings.socket, family.family_id().hex()[:16], family.block_tokens,
            family.block_bytes, family.shards,
        )  # fmt: skip
        if self._settings.reads and self._kv_transfer_config.kv_load_failure_policy == "fail":
            _LOG.warning(
                "OrbitKV: kv_load_failure_policy is 'fail', so vLLM ends a request with an error where a block vanishes"
                " between lookup and load (a manager that is killed, a drive that rots); with 'recompute' it computes it"
            )

    # ---- beside the scheduler

    @property
    def requires_kv_delivery(self) -> bool:
        """A save that is dropped is a miss later, nothing worse."""
        return False

    def bind_gpu_block_pool(self, gpu_block_pool: Any) -> None:
        if self._scheduler is not None:
            self._scheduler.bind_pool(gpu_block_pool)

    def on_new_request(self, request: Any) -> None:
        if self._scheduler is not None:
            self._scheduler.on_new_request(request)

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> Tuple[Optional[int], bool]:
        assert self._scheduler is not None
        return self._scheduler.matched_tokens(request, num_computed_tokens)

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        assert self._scheduler is not None
        self._scheduler.allocated(request, blocks.get_block_ids()[0], num_external_tokens)

    def get_external_cache_hit_sources(self, request: Any, num_external_tokens: int) -> Dict[CacheHitSource, int]:
        assert self._scheduler is not None
        in_memory, on_drives = self._scheduler.hit_sources(request)
        if in_memory + on_drives != num_external_tokens:
            sources: Dict[CacheHitSource, int] = super().get_external_cache_hit_sources(request, num_external_tokens)
            return sources
        return {
            source: tokens
            for source, tokens in ((CacheHitSource.HOST, in_memory), (CacheHitSource.DISK, on_drives))
            if tokens
        }

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        assert self._scheduler is not None
        return self._scheduler.step(scheduler_output)

    def update_connector_output(self, connector_output: Any) -> None:
        if self._scheduler is None:
            return
        meta = connector_output.kv_connector_worker_meta
        report = meta.report if isinstance(meta, OrbitKVWorkerMetadata) else None
        self._scheduler.reported(
            report, connector_output.finished_recving or (), connector_output.failed_recving or ()
        )

    def request_finished(self, request: Any, block_ids: List[int]) -> Tuple[bool, Optional[Dict[str, Any]]]:
        return self.request_finished_all_groups(request, (block_ids,))

    def request_finished_all_groups(
        self, request: Any, block_ids: Tuple[List[int], ...]
    ) -> Tuple[bool, Optional[Dict[str, Any]]]:
        assert self._scheduler is not None
        self._scheduler.finished(request, block_ids[0])
        return False, None

    def has_pending_push_work(self) -> bool:
        return self._scheduler is not None and self._scheduler.has_work

    def reset_cache(self) -> Optional[bool]:
        return self._scheduler.reset() if self._scheduler is not None else None

    def set_xfer_handshake_metadata_pp_aware(self, metadata: Any) -> None:
        """What arrives here is another connector's: halves of this one find each other through the manager."""

    @classmethod
    def get_required_kvcache_layout(cls, vllm_config: Any) -> Optional[str]:
        """Alone on a GPU: a block in one piece, so that it is one copy. Beside others: what they ask for."""
        from vllm.platforms import current_platform

        alone = getattr(vllm_config.kv_transfer_config, "kv_connector", None) == cls.__name__
        return "BLNHC" if alone and current_platform.is_cuda() else None

    # ---- beside the pages

    def register_kv_caches(self, kv_caches: Dict[str, Any]) -> None:
        self._kv_caches = dict(kv_caches)
        self.restore_kv_caches()

    def restore_kv_caches(self) -> None:
        if self._worker is not None and self._kv_caches:
            self._worker.register(
                engine.pages_of(self._kv_caches, self._kv_cache_config.num_blocks, self._family.block_bytes)
            )

    def unregister_kv_caches(self) -> None:
        if self._worker is not None:
            self._worker.unregister()

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        meta = self._connector_metadata
        if self._worker is not None and isinstance(meta, OrbitKVMetadata):
            self._worker.start_loads(meta)

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Loads have ended before the engine uses their pages."""

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        """Blocks are saved whole, behind the step."""

    def wait_for_save(self) -> None:
        """Waits for nothing: the scheduler's half holds the pages until they are saved."""
        meta = self._connector_metadata
        if self._worker is not None and isinstance(meta, OrbitKVMetadata):
            self._worker.start_saves(meta)

    def get_transfer_results(self, finished_req_ids: set[str]) -> KVConnectorTransferResults:
        if self._worker is None:
            return KVConnectorTransferResults()
        received, failed = self._worker.results()
        return KVConnectorTransferResults(finished_recving=received, failed_recving=failed)

    def build_connector_worker_meta(self) -> Optional[KVConnectorWorkerMetadata]:
        report = self._worker.report() if self._worker is not None else None
        return OrbitKVWorkerMetadata(report) if report is not None else None

    # ---- both

    def get_kv_connector_stats(self) -> Optional[OrbitKVStats]:
        if self._scheduler is not None:
            return stats_of(self._scheduler.counters.take())
        return stats_of(self._worker.take_counters()) if self._worker is not None else None

    @classmethod
    def build_kv_connector_stats(cls, data: Optional[Dict[str, Any]] = None) -> OrbitKVStats:
        return OrbitKVStats(data=data or {})

    @classmethod
    def build_prom_metrics(
        cls, vllm_config: Any, metric_types: Any, labelnames: List[str], per_engine_labelvalues: Dict[int, List[object]]
    ) -> OrbitKVPromMetrics:
        return OrbitKVPromMetrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)

    def take_events(self) -> Iterable[Any]:
        return ()

    def shutdown(self) -> None:
        if self._scheduler is not None:
            self._scheduler.close()
        if self._worker is not None:
            self._worker.close()


def _shut_down(connector: "weakref.ref[OrbitKVConnector]") -> None:
    left = connector()
    if left is not None:
        left.shutdown()
