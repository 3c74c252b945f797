"""What makes the tests of this folder cheap: their operators are small, and PyTorch does much around them."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    """An export makes so many objects that the collector searches all of PyTorch again and again."""
    gc.disable()
    yield
    gc.enable()
