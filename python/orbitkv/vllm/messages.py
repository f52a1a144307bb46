"""What the halves tell each other, once a step. Plain values: they travel by reference or pickled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple


@dataclass(frozen=True)
class Load:
    """Blocks that a worker is to put into pages of a request.

    Attributes:
        request: the request that waits for them.
        detached: the scope that a reset of the cache put this instance into; empty before the first one.
        lease: number of the lease, good in the manager's life ``epoch``.
        keys: keys of all leased blocks.
        first: the first leased block that is wanted; as many follow as there are pages.
        on_drives: whether the lease has blocks that lie on drives only.
        pages: where block by block goes.
    """

    request: str
    detached: str
    lease: int
    epoch: int
    keys: bytes
    first: int
    on_drives: bool
    pages: Tuple[int, ...]


@dataclass(frozen=True)
class Save:
    """Pages whose blocks are whole once this step has run; the scheduler keeps them until every rank has reported.

    Attributes:
        number: names the save in reports.
        parent: the key of the block before the first; ``None`` at a prompt's start.
    """

    number: int
    detached: str
    parent: Optional[bytes]
    keys: bytes
    pages: Tuple[int, ...]


@dataclass
class Step:
    """From the scheduler to each worker.

    Attributes:
        family: id of the family that the scheduler found, before any reset. A worker that has another one moves nothing.
        number: names a step that computes something, so that its end can be told; 0 where none is computed.
    """

    family: bytes = b""
    number: int = 0
    loads: List[Load] = field(default_factory=list)
    saves: List[Save] = field(default_factory=list)


@dataclass
class SaveReport:
    """What became of a save, over all ranks that have reported so far."""

    ranks: int = 1
    stored: int = 0
    dropped: int = 0
    epoch: int = 0

    def merge(self, other: "SaveReport") -> None:
        """A block counts as stored when all ranks have stored their part."""
        self.ranks += other.ranks
        self.stored = min(self.stored, other.stored)
        self.dropped = max(self.dropped, other.dropped)
        self.epoch = self.epoch if self.epoch == other.epoch else 0


@dataclass
class Report:
    """From each worker to the scheduler; :meth:`merge` puts those of all ranks together.

    Attributes:
        saves: by the number of the save.
        missed: for each failed load, which of its blocks was the first that was missing.
        step: the last step that has been computed; 0 where none was since the last report.
    """

    saves: Dict[int, SaveReport] = field(default_factory=dict)
    missed: Dict[str, int] = field(default_factory=dict)
    step: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.saves or self.missed or self.step)

    def merge(self, other: "Report") -> None:
        for number, theirs in other.saves.items():
            ours = self.saves.get(number)
            if ours is None:
                self.saves[number] = theirs
            else:
                ours.merge(theirs)
        self.step = max(self.step, other.step)
        for request, block in other.missed.items():
            self.missed[request] = min(block, self.missed.get(request, block))

