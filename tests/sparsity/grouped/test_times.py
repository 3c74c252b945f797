"""How long the selection n:m:g of a weight takes, in processor time of one core."""

from __future__ import annotations

import time

import pytest
import torch

from fuseflow.sparsity.grouped.grouping import Method, grouping


@pytest.mark.slow
@pytest.mark.parametrize(("method", "seconds"), [("greedy", 1.0), ("exact", 30.0)])
def test_a_selection_takes_seconds(method: Method, seconds: float) -> None:
    """Of the shape of BERT's first feed-forward layer. The first call compiles the loop, or reads its machine code."""
    torch.manual_seed(0)
    array = torch.randn(768, 3072).numpy()
    for _ in range(2):
        start = time.process_time()
        grouping(array, 2, 4, 4, 0, 1, method)
    assert time.process_time() - start < seconds
