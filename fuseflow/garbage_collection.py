"""Pauses of Python's collector of cyclic garbage while many objects are made that stay.

Lowering makes many small values and hardly any cycles, and so do the layout of a graph with thousands of nodes and the import of modules.
The collector would look again and again at all objects of the process, also at the objects of PyTorch. This takes longer than
half of the lowering itself, and a third of a layout. Garbage is collected afterwards.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARE = 100_000
"""The number of new objects that are still in use after which the collector looks at them. Python's own number is 700."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the collector of garbage in a `with` block, or in a function if this is its decorator. It is reset afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def collection_rare() -> Iterator[None]:
    """Let the collector run only after `RARE` new objects inside the block, and afterwards as often as before. A search lowers
    thousands of regions and keeps them, and its counts are large, so that the collector must not be paused there."""
    before = gc.get_threshold()
    gc.set_threshold(max(RARE, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def collect_what_follows() -> None:
    """Let the collector, which was disabled while modules were imported, run from now on, as seldom as in `collection_rare`. It looks only
    at what is made after this call. So this is for a process that belongs to fuseflow alone."""
    gc.freeze()
    gc.set_threshold(RARE, *gc.get_threshold()[1:])
    gc.enable()
