"""What can go wrong, by the numbers that the manager and ``docs/operations.md`` use."""

from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """Codes that travel in answers. Others of ``docs/operations.md`` may arrive as plain numbers."""

    OUT_OF_MEMORY = 103
    BLOCK_TOO_LARGE = 602
    CLOSED = 701
    BAD_ARGUMENT = 702
    BAD_BUFFER = 703
    BAD_FAMILY = 704
    BUG = 900
    BAD_FRAME = 1001
    WIRE_VERSION = 1002
    NOT_GREETED = 1003
    STALE_EPOCH = 1004
    UNKNOWN_FAMILY = 1005
    UNKNOWN_LEASE = 1006
    FOREIGN_LEASE = 1007
    LEASE_EXPIRED = 1008
    LEASE_ENDED = 1009
    UNKNOWN_SAVE = 1010
    UNKNOWN_QUERY = 1011
    OUTSIDE_STAGING = 1012
    BUSY = 1013
    STOPPING = 1014
    FOREIGN_USER = 1015
    SOCKET = 1016


#: What a caller did wrong. Everything else that a manager refuses is its own state, and so a miss.
MISTAKES = frozenset(
    (
        Code.BLOCK_TOO_LARGE,
        Code.BAD_ARGUMENT,
        Code.BAD_BUFFER,
        Code.BAD_FAMILY,
        Code.BAD_FRAME,
        Code.WIRE_VERSION,
        Code.FOREIGN_LEASE,
        Code.OUTSIDE_STAGING,
    )
)


def name_of(code: int) -> str:
    """A code as a word, or as ``OKV-nnn`` where this client does not know it."""
    try:
        return Code(code).name
    except ValueError:
        return f"OKV-{code}"


class OrbitKvError(Exception):
    """The manager refused a request, or the caller misused the client.

    Attributes:
        code: the number after ``OKV-``.
        retryable: whether the same request may be answered later.
    """

    def __init__(self, code: int, message: str, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable


class Unavailable(Exception):
    """There is no manager, or it did not answer before the deadline. Calls of the client turn this into a miss."""
