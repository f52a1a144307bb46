"""What an operator can set, in ``kv_connector_extra_config``; all of it has a default."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Tuple

READ_WRITE = "read_write"
SAVE_ONLY = "save_only"

DEFAULT_SOCKET = "/run/orbitkv/orbitkv.sock"


class Refused(ValueError):
    """The engine can't start with this connector; the message says why, and what to do."""


@dataclass(frozen=True)
class Settings:
    """The connector's settings.

    Attributes:
        socket: path of the manager's socket.
        mode: ``read_write``, or ``save_only``, which never asks for anything.
        timeout_ms: longest that the scheduler waits for one answer of the manager, in milliseconds.
        lookup_wait_ms: longest that a request waits for blocks that are on their way into host memory, in milliseconds;
            then it is loaded from where they are.
        transfer_timeout_ms: longest that one load, or one save, may take, in milliseconds.
        pinned_blocks_max: most blocks of the engine that saves hold at once; 0 is an eighth of its pool.
        buffer_bytes: memory of a worker through which blocks go, in bytes, for loads and for saves each.
        verify_host: prove the checksum of blocks from host memory as well. The manager has compared their keys. Loads then go
            through memory of the worker.
        direct_load: let the GPU fetch blocks from the manager's memory by itself, which is registered with CUDA for that.
    """

    socket: str = DEFAULT_SOCKET
    mode: str = READ_WRITE
    timeout_ms: int = 50
    lookup_wait_ms: int = 500
    transfer_timeout_ms: int = 5000
    pinned_blocks_max: int = 0
    buffer_bytes: int = 16 << 20
    verify_host: bool = False
    direct_load: bool = True

    @property
    def reads(self) -> bool:
        """Whether lookups are made at all."""
        return self.mode == READ_WRITE


def _number(low: int, high: int) -> Callable[[str, Any], int]:
    def check(key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Refused(f"{key} is {value!r}; give a whole number from {low} to {high}")
        return value

    return check


def _mode(key: str, value: Any) -> str:
    if value not in (READ_WRITE, SAVE_ONLY):
        raise Refused(f"{key} is {value!r}; give {READ_WRITE!r} or {SAVE_ONLY!r}")
    return str(value)


def _path(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise Refused(f"{key} is {value!r}; give the path of the manager's socket")
    return value


def _truth(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refused(f"{key} is {value!r}; give true or false")
    return value


_KEYS: Dict[str, Tuple[str, Callable[[str, Any], Any]]] = {
    "orbitkv.bootstrap_socket": ("socket", _path),
    "orbitkv.mode": ("mode", _mode),
    "orbitkv.timeout_ms": ("timeout_ms", _number(1, 10_000)),
    "orbitkv.lookup_wait_ms": ("lookup_wait_ms", _number(0, 60_000)),
    "orbitkv.transfer_timeout_ms": ("transfer_timeout_ms", _number(10, 600_000)),
    "orbitkv.pinned_blocks_max": ("pinned_blocks_max", _number(0, 1 << 30)),
    "orbitkv.buffer_bytes": ("buffer_bytes", _number(1 << 16, 1 << 30)),
    "orbitkv.verify_host": ("verify_host", _truth),
    "orbitkv.direct_load": ("direct_load", _truth),
}


def settings_of(extra: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Settings:
    """Reads the settings.

    Raises:
        Refused: a key is unknown or a value out of its range.
    """
    unknown = sorted(set(extra) - set(_KEYS))
    if unknown:
        raise Refused(
            f"kv_connector_extra_config has {', '.join(map(repr, unknown))}, which OrbitKVConnector does not know; it"
            f" knows {', '.join(_KEYS)}"
        )
    values = {field: check(key, extra[key]) for key, (field, check) in _KEYS.items() if key in extra}
    values.setdefault("socket", environment.get("ORBITKV_BOOTSTRAP_SOCKET") or DEFAULT_SOCKET)
    return Settings(**values)
