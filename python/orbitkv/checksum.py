"""CRC32C (Castagnoli), in C where ``google-crc32c`` or ``crc32c`` is installed and slowly in Python otherwise."""

from __future__ import annotations

from typing import Callable

_POLYNOMIAL = 0x82F63B78


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def _in_python(data: bytes, start: int = 0) -> int:
    crc = start ^ 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _choose() -> tuple[Callable[[bytes, int], int], bool]:
    try:
        import google_crc32c  # type: ignore[import-not-found]

        return (lambda data, start: google_crc32c.extend(start, bytes(data))), True
    except ImportError:
        pass
    try:
        import crc32c as castagnoli  # type: ignore[import-not-found]

        return (lambda data, start: castagnoli.crc32c(data, start)), True
    except ImportError:
        return _in_python, False


_extend, is_fast = _choose()


def block_checksum(key: bytes, payload: memoryview) -> int:
    """What a block with this key and payload must have: CRC32C over the key, then the payload."""
    return _extend(payload, _extend(key, 0))
