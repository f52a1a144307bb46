"""OrbitKV's connector for vLLM 0.33.0.

Give vLLM ``kv_connector="OrbitKVConnector"`` and ``kv_connector_module_path="orbitkv.vllm"`` (``docs/vllm.md``). Importing
this package starts nothing and does not import vLLM: the API server imports it too, only to look at class methods.
"""

from __future__ import annotations

import sys
from typing import Any

CONNECTOR = "OrbitKVConnector"
_FACTORY = "vllm.distributed.kv_transfer.kv_connector.factory"

__all__ = ["OrbitKVConnector", "register"]


def register() -> None:
    """Makes vLLM know the connector by its name alone; vLLM's plugin loader calls it through an entry point.

    MultiConnector's statistics find the classes of its children by name, in every process that shows them. Safe to call
    twice.
    """
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory

    try:
        KVConnectorFactory.register_connector(CONNECTOR, "orbitkv.vllm.connector", CONNECTOR)
    except ValueError:
        pass  # it is known already


def __getattr__(name: str) -> Any:
    if name != CONNECTOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .connector import OrbitKVConnector

    return OrbitKVConnector


if _FACTORY in sys.modules:  # a vLLM that loads us by module path; anywhere else the entry point does it
    register()
