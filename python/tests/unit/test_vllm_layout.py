"""Goal: a block's bytes are found wherever a layout of vLLM 0.33.0 puts them, and come back to the same places.

Method: allocations are made as the release makes them, from the order of the dimensions layer (L), block (B), head (H), token
(N) and content (C); each byte that a block owns by the strides is compared with the runs that were found.
"""

import itertools
import random
import unittest

from orbitkv.vllm.layout import Run, View, layout_of
from orbitkv.vllm.pages import HostPages
from orbitkv.vllm.settings import Refused

LAYERS, BLOCKS, HEADS, TOKENS, CONTENT = 3, 5, 2, 4, 6
LAYOUTS = ("LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC")


def views_of(layout, blocks=BLOCKS, split=1, element=2, padding=0):
    """Views and size of an allocation; with ``split`` kernel blocks a block, or ``padding`` bytes behind each page."""
    sizes = {"L": LAYERS, "B": blocks * split, "H": HEADS, "N": TOKENS // split, "C": CONTENT}
    strides, step = {}, element
    for at, dimension in reversed(list(enumerate(layout))):
        strides[dimension] = step
        step *= sizes[dimension]
        if padding and at == 2:
            step += padding  # behind a page: the two outermost dimensions are L and B then
    views = [
        View(
            f"layer.{layer}",
            layer * strides["L"],
            tuple(sizes[d] for d in "BHNC"),
            tuple(strides[d] for d in "BHNC"),
            element,
        )
        for layer in range(LAYERS)
    ]
    return views, step


def bytes_of(view, block, split, element):
    """Every byte of a block of one layer, by the definition of strides."""
    for kernel, head, token, content in itertools.product(range(split), range(HEADS), range(TOKENS // split), range(CONTENT)):
        at = view.offset + (block * split + kernel) * view.strides[0]
        at += head * view.strides[1] + token * view.strides[2] + content * view.strides[3]
        yield from range(at, at + element)


class LayoutTest(unittest.TestCase):
    def check(self, views, size, split=1, element=2):
        layout = layout_of(views, BLOCKS, size)
        for block in range(BLOCKS):
            wanted = {at for view in views for at in bytes_of(view, block, split, element)}
            found = [at for run in layout.runs for at in range(run.offset + block * run.stride, run.offset + block * run.stride + run.length)]
            self.assertEqual(len(found), len(set(found)), "a byte is there twice")
            self.assertEqual(set(found), wanted)
        return layout

    def test_all_layouts_of_the_release(self):
        for name in LAYOUTS:
            with self.subTest(name):
                views, size = views_of(name)
                self.check(views, size)

    def test_block_first_layouts_are_one_run(self):
        for name in ("BLHNC", "BLNHC", "BHLNC"):
            with self.subTest(name):
                views, size = views_of(name)
                self.assertEqual(self.check(views, size).runs, (Run(0, size // BLOCKS, size // BLOCKS),))

    def test_kernels_that_split_blocks(self):
        for name in ("LBHNC", "LBNHC"):
            with self.subTest(name):
                views, size = views_of(name, split=2)
                self.check(views, size, split=2)

    def test_padded_pages_leave_the_padding_out(self):
        for name in ("LBHNC", "BLNHC"):
            with self.subTest(name):
                views, size = views_of(name, padding=8)
                layout = self.check(views, size)
                self.assertEqual(layout.block_bytes, LAYERS * HEADS * TOKENS * CONTENT * 2)

    def test_layers_that_share_memory_count_once(self):
        views, size = views_of("LBNHC")
        shared = View("layer.9", views[0].offset, views[0].shape, views[0].strides, 2)
        self.assertEqual(layout_of([*views, shared], BLOCKS, size), layout_of(views, BLOCKS, size))

    def test_copies_come_back_to_where_they_were(self):
        for name in LAYOUTS:
            with self.subTest(name):
                views, size = views_of(name)
                layout = layout_of(views, BLOCKS, size)
                before = random.Random(7).randbytes(size)
                memory = bytearray(before)
                pages = HostPages(memoryview(memory), layout)
                buffer = pages.buffer(2 * layout.block_bytes)
                pages.read([3, 1], buffer)
                for at in bytes_of(views[0], 3, 1, 2):
                    memory[at] ^= 0xFF
                pages.write([3, 1], buffer)
                self.assertEqual(bytes(memory), before)
                pages.write([0, 2], buffer)  # elsewhere, the same content
                again = pages.buffer(2 * layout.block_bytes)
                pages.read([0, 2], again)
                self.assertEqual(bytes(again.view), bytes(buffer.view))
                untouched = {at for view in views for at in bytes_of(view, 4, 1, 2)}
                self.assertTrue(all(memory[at] == before[at] for at in untouched))

    def test_what_does_not_fit_is_refused(self):
        views, size = views_of("LBNHC")
        with self.assertRaisesRegex(Refused, "does not fit"):
            layout_of(views, BLOCKS, size - 1)
        with self.assertRaisesRegex(Refused, "kernel blocks"):
            layout_of(views, BLOCKS - 1, size)
        overlapping = View("layer.0", 0, (BLOCKS, 2, 4, 6), (96, 8, 12, 2), 2)
        with self.assertRaisesRegex(Refused, "overlapping"):
            layout_of([overlapping], BLOCKS, size)


if __name__ == "__main__":
    unittest.main()
