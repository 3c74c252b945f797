"""What makes the tests of this folder cheap: their operators are small, and PyTorch does much around them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import cache

import pytest
import torch
import torch._export.utils
import torch.export.decomp_utils
import torch.export.exported_program


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads would wait for each other on a computer that does other work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    """An export makes so many objects that the collector searches all of PyTorch again and again."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def one_list_of_operators() -> Iterator[None]:
    """Every export lists all operators of PyTorch twice, which takes longer than the export of a small model."""
    name = "_collect_all_valid_cia_ops"
    with pytest.MonkeyPatch.context() as patch:
        listed = cache(getattr(torch._export.utils, name))
        for module in (torch.export.decomp_utils, torch.export.exported_program):
            patch.setattr(module, name, listed)
        yield
