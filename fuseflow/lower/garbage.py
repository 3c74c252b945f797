"""Lowering without the collector of cyclic garbage.

Lowering makes many small values and hardly any cycles. The collector would look again and again at all values of the process, those of
PyTorch among them, which takes longer than half of the lowering itself. What is garbage is collected afterwards.
A search under a budget lowers thousands of ranges and keeps them. Its counts are large, so that the collector looks there too, but rarely.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARE = 100_000
"""After so many values that were made and are still there the collector looks at them. Python's own number is 700."""


@contextmanager
def collector_off() -> Iterator[None]:
    """Turn the collector off, and afterwards on again if it was on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def collector_rare() -> Iterator[None]:
    """Let the collector look only after many more values were made, and afterwards as often as it did."""
    before = gc.get_threshold()
    gc.set_threshold(max(RARE, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
