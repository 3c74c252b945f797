"""A pause of Python's garbage collection while many objects are made that stay.

The layout of a graph with thousands of nodes is more than a hundred thousand objects. As they are made, the collector walks through all
objects of the process several times, those of an imported torch among them, and finds nothing: a third of the time that a layout takes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Let the collector rest in a `with` block, or in a function if this is its decorator. It goes on as it was set before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
