"""Lowering without the collector of cyclic garbage.

Lowering makes many small values and hardly any cycles. The collector would look again and again at all values of the process, those of
PyTorch among them, which takes longer than half of the lowering itself. What is garbage is collected afterwards. So it is for a search
under a budget, which lowers thousands of ranges and keeps them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
