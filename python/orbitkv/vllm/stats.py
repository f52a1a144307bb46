"""The connector's numbers, in the engine's log and in its Prometheus metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from prometheus_client import Counter
from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorPromMetrics, KVConnectorStats

#: Every number and what it counts.
COUNTERS: Dict[str, str] = {
    "lookups": "questions asked for waiting requests",
    "lookup_blocks": "blocks asked for",
    "lookups_given_up": "lookups that became misses because a step had waited for the manager enough",
    "hit_blocks": "blocks that the manager had",
    "declined_blocks": "blocks of hits whose restore would have taken longer than computing them",
    "loads": "loads that were planned",
    "load_blocks": "blocks of them",
    "loads_failed": "loads that failed, after which the engine computes or fails the request",
    "load_blocks_missed": "blocks that a load did not get",
    "loaded_blocks": "blocks that arrived in pages",
    "load_bytes": "bytes of them",
    "load_micros": "microseconds that workers spent on loads",
    "overtaken_blocks": "blocks that moved behind a copy and were asked for again",
    "saved_blocks": "blocks that are stored after a save",
    "save_bytes": "bytes that the manager took in; what it had already is not among them",
    "save_blocks_dropped": "blocks that a save did not bring in",
    "save_blocks_no_room": "blocks not offered because saves held as many pages as they may",
    "save_micros": "microseconds that workers spent on saves",
    "refusals": "requests that the manager refused as mistakes",
}


@dataclass
class OrbitKVStats(KVConnectorStats):  # type: ignore[misc]
    """Sums by name."""

    data: Dict[str, Any] = field(default_factory=dict)

    def reset(self) -> None:
        self.data = {}

    def aggregate(self, other: KVConnectorStats) -> KVConnectorStats:
        for name, count in other.data.items():
            self.data[name] = self.data.get(name, 0) + count
        return self

    def reduce(self) -> Dict[str, Any]:
        return dict(sorted(self.data.items()))

    def is_empty(self) -> bool:
        return not self.data


def stats_of(counts: Dict[str, int]) -> Optional[OrbitKVStats]:
    """``None`` where nothing was counted."""
    return OrbitKVStats(data=dict(counts)) if counts else None


class OrbitKVPromMetrics(KVConnectorPromMetrics):  # type: ignore[misc]
    """``vllm:orbitkv_<name>_total`` for each number."""

    def __init__(
        self, vllm_config: Any, metric_types: Any, labelnames: List[str], per_engine_labelvalues: Dict[int, List[object]]
    ) -> None:
        super().__init__(vllm_config, metric_types, labelnames, per_engine_labelvalues)
        made = metric_types[Counter]
        self._counters = {
            name: made(name=f"vllm:orbitkv_{name}", documentation=f"OrbitKV: {what}.", labelnames=labelnames)
            for name, what in COUNTERS.items()
        }

    def observe(self, transfer_stats_data: Dict[str, Any], engine_idx: int = 0) -> None:
        labels = self.per_engine_labelvalues[engine_idx]
        for name, count in transfer_stats_data.items():
            counter = self._counters.get(name)
            if counter is not None:
                counter.labels(*labels).inc(count)
