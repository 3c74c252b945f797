"""Tensors without elements: what follows from them is what PyTorch computes, at every cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from eager import Function
from torch import Tensor

import fuseflow as ff
from fuseflow.errors import FrontendError

X = torch.arange(12.0).reshape(3, 4) - 5
ROWS = torch.zeros(0, dtype=torch.long)
PLACES = torch.zeros(0, 4, dtype=torch.long)
NOTHING = torch.zeros(0, 4)


def agrees(function: Callable[..., Any], *tensors: Tensor, fuse: str = "none") -> None:
    model = Function(function).eval()
    run = ff.compile(model, tensors, schedule=ff.Schedule.fuse(fuse)).run()
    (computed,) = run.outputs.values()
    expected = model(*tensors).detach().numpy()
    assert run.check is not None and run.check.passed
    np.testing.assert_allclose(np.squeeze(np.asarray(computed)), np.squeeze(expected), rtol=1e-6)


def neighbours_largest(x: Tensor, edges: Tensor) -> Tensor:
    source, target = edges
    index = target[:, None].expand(-1, x.shape[1])
    return torch.zeros_like(x).scatter_reduce(0, index, x[source], "amax", include_self=False)


@pytest.mark.parametrize("fuse", ["none", "full"])
def test_graph_without_edges(fuse: str) -> None:
    edges = torch.zeros(2, 0, dtype=torch.long)
    agrees(lambda x, e: torch.zeros_like(x).index_add(0, e[1], x[e[0]]), X, edges, fuse=fuse)
    agrees(neighbours_largest, X, edges, fuse=fuse)
    agrees(lambda x, rows: x[rows] * 2, X, ROWS, fuse=fuse)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin", "prod"])
def test_scatter_of_no_elements_leaves_its_target(reduce: str, include_self: bool) -> None:
    agrees(lambda x, i, s: x.scatter_reduce(0, i, s, reduce, include_self=include_self) * 2, X, PLACES, NOTHING)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: x.index_copy(0, i, x[i]),
        lambda x, i: x.index_fill(0, i, 2.0),
        lambda x, i: x.index_reduce(0, i, x[i], "amax"),
        lambda x, i: x.clone().index_add_(0, i, x[i]),
        lambda x, i: x.index_put((i,), x[i]),
    ],
)
def test_write_of_no_rows_leaves_its_target(write: Callable[..., Tensor]) -> None:
    agrees(write, X, ROWS)


@pytest.mark.parametrize(
    "reduction",
    [
        lambda s: s.sum(0),
        lambda s: s.mean(0),
        lambda s: s.prod(0),
        lambda s: s.var(0, unbiased=False),
        lambda s: s.logsumexp(0),
        lambda s: s.mean() + torch.ones(3),
    ],
)
def test_reduction_of_nothing_is_that_of_pytorch(reduction: Callable[..., Tensor]) -> None:
    agrees(reduction, NOTHING)


def test_segments_of_nothing_are_those_of_pytorch() -> None:
    for reduce in ("sum", "mean", "max"):
        agrees(
            lambda s, n, kind=reduce: torch.segment_reduce(s, kind, lengths=n, axis=0), NOTHING, torch.zeros(3, dtype=torch.long)
        )


def test_reduction_without_a_neutral_number_fails_in_pytorch_itself() -> None:
    with pytest.raises(FrontendError, match="fails in PyTorch itself"):
        ff.compile(Function(lambda s: s.amax(0)), (NOTHING,))


def test_parts_without_elements_are_left_out_of_a_concatenation() -> None:
    agrees(lambda s: torch.cat([s, s]) * 2, NOTHING)
    agrees(lambda x, s: torch.cat([s, x, s]) * 2, X, NOTHING)


def test_products_convolutions_and_attention_of_nothing() -> None:
    agrees(lambda a, b, c: torch.addmm(c, a, b), torch.zeros(3, 0), torch.zeros(0, 2), torch.ones(2))
    agrees(lambda x: F.conv2d(x, torch.ones(3, 2, 3, 3)), torch.zeros(0, 2, 5, 5))
    agrees(F.scaled_dot_product_attention, torch.ones(1, 2, 3, 4), torch.zeros(1, 2, 0, 4), torch.zeros(1, 2, 0, 4))
    agrees(lambda s: F.softmax(s, 1), torch.zeros(3, 0))
    agrees(lambda i: F.embedding(i, torch.ones(5, 4)) * 2, ROWS)


def test_a_result_that_is_empty_for_these_data_alone_is_refused() -> None:
    for function in (lambda x: x + x[x > 9].sum(), lambda x: x[x.sum(1) > 99], lambda x: (x > 9).nonzero().float()):
        with pytest.raises(FrontendError, match=r"the size of the result of .* depends on data"):
            ff.compile(Function(function), (X,))


def test_a_mask_that_is_structure_may_be_empty() -> None:
    agrees(lambda x, rows: x + x[rows > 9].sum(0), X, torch.tensor([0, 1, 2]))
