"""Where the bytes of a block lie in the engine's memory, for every layout of the release.

A block is the pages that all layers have for one block id. Its bytes are opaque: they go into the store in the order in which
they lie in memory, and come back to where they were. How pages look inside is a part of the family's identity, and not
looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Sequence, Tuple

from .settings import Refused


@dataclass(frozen=True)
class View:
    """A layer's cache as the engine sees it: ``shape[0]`` blocks, or a multiple of them where kernels split blocks.

    Attributes:
        name: the layer.
        offset: of its first byte within the allocation.
        shape: elements in each dimension; the first counts blocks.
        strides: bytes in each dimension.
        element_bytes: bytes of one element.
    """

    name: str
    offset: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    element_bytes: int


@dataclass(frozen=True)
class Run:
    """Bytes that lie together: those of block ``b`` start at ``offset + b * stride``."""

    offset: int
    stride: int
    length: int


@dataclass(frozen=True)
class BlockLayout:
    """The runs of a block, in order."""

    runs: Tuple[Run, ...]
    blocks: int

    @property
    def block_bytes(self) -> int:
        return sum(run.length for run in self.runs)


def layout_of(views: Sequence[View], blocks: int, allocation_bytes: int) -> BlockLayout:
    """Finds the runs.

    Args:
        views: one for each layer; layers that share memory may be there twice.
        blocks: how many the engine's pool has.
        allocation_bytes: the views are all within so many.

    Raises:
        Refused: the views are not what the release makes.
    """
    found: List[Run] = []
    seen = set()
    for view in views:
        if (view.offset, view.shape, view.strides) not in seen:
            seen.add((view.offset, view.shape, view.strides))
            found += _runs(view, blocks)
    merged: List[Run] = []
    for run in sorted(found, key=lambda run: run.offset):
        last = merged[-1] if merged else None
        if last is not None and last.stride == run.stride and last.offset + last.length == run.offset:
            merged[-1] = Run(last.offset, last.stride, last.length + run.length)
        else:
            merged.append(run)
    for run in merged:
        end = run.offset + (blocks - 1) * run.stride + run.length
        if run.length > run.stride or run.offset < 0 or end > allocation_bytes:
            raise Refused(
                f"a run of {run.length} bytes at {run.offset}, {run.stride} apart, does not fit {blocks} blocks in an"
                f" allocation of {allocation_bytes} bytes; OrbitKV does not know this KV cache layout"
            )
    return BlockLayout(tuple(merged), blocks)


def _runs(view: View, blocks: int) -> List[Run]:
    split, left = divmod(view.shape[0], blocks)
    if left or not split:
        raise Refused(
            f"layer {view.name} has {view.shape[0]} kernel blocks for {blocks} blocks; OrbitKV needs a whole number each"
        )
    dimensions = [(split, view.strides[0])] if split > 1 else []
    dimensions += list(zip(view.shape[1:], view.strides[1:]))
    inner = [(count, stride) for count, stride in dimensions if count > 1]
    if any(stride <= 0 for _, stride in inner):
        raise Refused(f"layer {view.name} has strides {view.strides}; OrbitKV does not know such views")
    length = view.element_bytes
    inner.sort(key=lambda dimension: dimension[1])
    while inner and inner[0][1] == length:
        length *= inner.pop(0)[0]
    if inner and inner[0][1] < length:
        raise Refused(f"layer {view.name} has overlapping strides {view.strides}; OrbitKV does not know such views")
    offsets = [view.offset]
    for count, stride in reversed(inner):
        offsets = [offset + i * stride for offset in offsets for i in range(count)]
    return [Run(offset, view.strides[0] * split, length) for offset in offsets]
