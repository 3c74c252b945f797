"""Sparse tensors of known places whose numbers a model computes: what is computed with them means what PyTorch says it means, and they are
values of edges like any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from sources import compiled_at
from torch import Tensor, nn
from torch import sparse as sp
from torch.nn import functional as F

from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model
from fuseflow.run.compiled import Compiled

NODES = 5
EDGES = torch.tensor([[3, 0, 1, 3, 4, 4], [2, 1, 0, 0, 3, 1]])
"""The rows and columns of entries in no order. Row 2 and column 4 are empty."""
REPEATED = torch.cat((EDGES[:, :5], EDGES[:, 1:2]), 1)
CROW, COL = torch.tensor([0, 1, 2, 2, 4, 6]), torch.tensor([1, 0, 0, 2, 1, 3])
SQUARE = (NODES, NODES)


def draws(*shapes: tuple[int, ...]) -> list[list[Tensor]]:
    """Return two lists of random tensors of some shapes. In the first, some numbers are 0."""
    generator = torch.Generator().manual_seed(7)
    lists = [[torch.randn(shape, generator=generator) for shape in shapes] for _ in range(2)]
    lists[0][0] = lists[0][0].relu()
    return lists


def runs(function: Callable[..., Any], inputs: Sequence[Sequence[Tensor]], *fuse: str) -> Compiled:
    """Compile a function of w and h, or of x, for each list of inputs, run it, and compare its outputs with PyTorch. Require that all
    tensors of the programs that have other names are equal, as nothing is evaluated before. Return the last."""
    others = []
    for tensors in inputs:
        for compiled in compiled_at(function, tensors, *(fuse or ("none", "best", "full"))):
            result = compiled.run()
            assert result.check is not None and result.check.passed, compiled.schedule
        given = compiled.source.tensors
        others.append({name: given[name].to_dense() for name in given if name.partition("_")[0] not in ("w", "h", "x")})
    first, second = others
    assert first.keys() == second.keys()
    for name, numbers in first.items():
        np.testing.assert_array_equal(numbers, second[name])
    return compiled


def coo(values: Tensor, places: Tensor = EDGES, shape: tuple[int, ...] = SQUARE) -> Tensor:
    return torch.sparse_coo_tensor(places, values, shape)


def csr(values: Tensor) -> Tensor:
    return torch.sparse_csr_tensor(CROW, COL, values, SQUARE)


class Function(nn.Module):
    """A function of the numbers of entries and of features as a module."""

    def __init__(self, function: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, w: Tensor, h: Tensor) -> Any:
        return self.function(w, h)


FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "a product": lambda w, h: coo(w.sin()) @ h,
    "a product with the transpose": lambda w, h: coo(w.sin()).t() @ h,
    "repeated places": lambda w, h: coo(w.sin(), REPEATED) @ h,
    "repeated places are one in a softmax": lambda w, h: sp.mm(sp.softmax(coo(w.sin(), REPEATED), 1), h),
    "values of repeated places": lambda w, h: coo(w.sin(), REPEATED).coalesce().values() * 2,
    "places that are read beside": lambda w, h: csr(w * h[COL].sum(1)) @ h,
    "a softmax": lambda w, h: sp.mm(sp.softmax(coo(w.relu()), 1), h),
    "a softmax of columns": lambda w, h: sp.softmax(coo(w.sin()), 0).to_dense(),
    "a log softmax": lambda w, h: sp.log_softmax(coo(w.sin()), -1).to_dense(),
    "values of a log softmax": lambda w, h: sp.log_softmax(coo(w.sin()), 1).coalesce().values(),
    "places of a softmax": lambda w, h: h[sp.softmax(coo(w.sin()), 1).coalesce().indices()[1]] * 2,
    "a softmax transposed": lambda w, h: sp.softmax(coo((h @ h.t()).sum(1)[EDGES[0]] + w), 1).t() @ h,
    "sums": lambda w, h: sp.sum(coo(w.sin(), REPEATED), 0).to_dense(),
    "one sum": lambda w, h: sp.sum(coo(w.sin())),
    "a sparse output": lambda w, h: coo(w.sin()),
    "a vector": lambda w, h: coo(w.sin(), torch.tensor([[4, 1, 0, 4, 2, 1]]), (NODES,)).to_dense(),
    "three dimensions": lambda w, h: coo(w.sin(), torch.cat((EDGES, EDGES[:1])), (NODES, NODES, NODES)).to_dense(),
    "entries that are vectors": lambda w, h: coo(w[:, None] * h[EDGES[0]], shape=(*SQUARE, 3)).to_dense(),
    "a softmax of vectors": lambda w, h: sp.softmax(coo(w[:, None] * h[EDGES[0]], shape=(*SQUARE, 3)), 1).to_dense(),
    "a sum of two": lambda w, h: (coo(w.sin()) + coo(w.cos()).t()) @ h,
    "a product of two": lambda w, h: sp.mm(coo(w.sin()), coo(w.cos()).t()) @ h,
    "squares of entries": lambda w, h: coo(w.sin(), REPEATED).coalesce().pow(2) @ h,
    "CSR": lambda w, h: csr(w.sin()) @ h,
    "CSR transposed": lambda w, h: csr(w.sin()).t() @ h,
    "CSC": lambda w, h: torch.sparse_csc_tensor(CROW, COL, w.sin(), SQUARE) @ h,
    "values of CSR": lambda w, h: (csr(w.sin()) * 2).values().cos(),
    "places of CSR": lambda w, h: csr(w.sin()[csr(w).col_indices()]) @ h,
    "the largest of each row": lambda w, h: sp.mm(csr(w.sin()), h, "amax"),
    "the mean of each row": lambda w, h: sp.mm(csr(w.relu()), h, "mean"),
    "no entries": lambda w, h: coo(w[:0].sin(), EDGES[:, :0]) @ h,
    "self loops": lambda w, h: coo(w[:5].exp(), torch.arange(NODES).expand(2, NODES)) @ h,
    "a dense product made sparse": lambda w, h: sp.softmax((h @ h.t()).relu().triu(1).to_sparse(), 1).to_dense(),
    "its log softmax": lambda w, h: sp.log_softmax((h @ h.t()).relu().triu(1).to_sparse(), 1).to_dense(),
}
"""Functions of the numbers of six entries and of features of five nodes."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_sparse_tensors_are_those_of_pytorch(name: str) -> None:
    runs(FUNCTIONS[name], draws((6,), (NODES, 3)))


def test_blocks_that_are_computed() -> None:
    crow, col = torch.tensor([0, 1, 3]), torch.tensor([1, 0, 2])
    runs(lambda w, h: torch.sparse_bsr_tensor(crow, col, w.sin(), (4, 6)) @ h, draws((3, 2, 2), (6, 3)))


def test_blocks_that_are_weights_are_stored_as_blocks() -> None:
    class Linear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.Parameter(torch.arange(1.0, 13.0).reshape(3, 2, 2))

        def forward(self, x: Tensor) -> Tensor:
            return torch.sparse_bsr_tensor(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 2]), self.blocks, (4, 6)) @ x

    compiled = runs(Linear(), draws((6, 3)))
    (weight,) = [tensor for tensor in compiled.source.program.inputs if tensor.shape == (4, 6)]
    assert weight.block == (2, 2)


def test_doubles_stay_doubles() -> None:
    inputs = [[tensor.double() for tensor in tensors] for tensors in draws((6,), (NODES, 3))]
    runs(FUNCTIONS["a softmax"], inputs)


class Attention(nn.Module):
    """A graph attention layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.W = nn.Linear(3, 4, bias=False)
        self.target, self.source = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h = self.W(x)
        scores = F.leaky_relu((h @ self.target)[edges[0]] + (h @ self.source)[edges[1]], 0.2)
        return self.propagate(scores, h, edges)

    def propagate(self, scores: Tensor, h: Tensor, edges: Tensor) -> Tensor:
        """Add up the features of sources by the softmax of the scores."""
        raise NotImplementedError


class OfSparseTensors(Attention):
    def propagate(self, scores: Tensor, h: Tensor, edges: Tensor) -> Tensor:
        return sp.mm(sp.softmax(coo(scores, edges), 1), h)


class OfEdges(Attention):
    def propagate(self, scores: Tensor, h: Tensor, edges: Tensor) -> Tensor:
        zeros = torch.zeros(NODES)
        largest = zeros.scatter_reduce(0, edges[0], scores, "amax", include_self=False)
        exponentials = torch.exp(scores - largest[edges[0]])
        weights = exponentials / zeros.index_add(0, edges[0], exponentials)[edges[0]]
        return torch.zeros_like(h).index_add(0, edges[0], weights[:, None] * h[edges[1]])


@pytest.mark.parametrize("fuse", ["none", "best", "full"])
def test_attention_of_sparse_tensors_is_attention_over_edges(fuse: str) -> None:
    loops = torch.cat((EDGES, torch.tensor([[2], [2]])), 1)
    inputs = [[x, loops] for (x,) in draws((NODES, 3))]
    sparse, edges = runs(OfSparseTensors(), inputs, fuse), runs(OfEdges(), inputs, fuse)
    assert sparse.run().cycles == edges.run().cycles
    graphs, expected = str(sparse.emit("samml")), str(edges.emit("samml"))
    names = [(einsum.name, other.name) for einsum, other in zip(sparse.program.einsums, edges.program.einsums, strict=True)]
    assert [name for name, other in names if name != other] == ["matmul_3"]
    assert graphs.replace("matmul_3", dict(names)["matmul_3"]) == expected


OF_INPUTS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "values": lambda a, h: a.coalesce().values().sin(),
    "sums": lambda a, h: sp.sum(a, 1).to_dense().square() * h[:, 0],
    "a softmax": lambda a, h: sp.mm(sp.softmax(a, 1), h),
    "the same places": lambda a, h: coo(a.coalesce().values().exp(), a.coalesce().indices()) @ h,
    "sampled elements": lambda a, h: sp.mm(sp.softmax((h @ h.t()).sparse_mask(a.coalesce()), 1), h),
    "values of a sampled product": lambda a, h: sp.sampled_addmm(a.to_sparse_csr(), h, h.t(), beta=0.5).values().exp(),
}


@pytest.mark.parametrize("name", OF_INPUTS)
def test_numbers_of_a_sparse_input_are_data(name: str) -> None:
    inputs = [[coo(w), h] for w, h in draws((6,), (NODES, 3))]
    runs(lambda w, h: OF_INPUTS[name](w, h), inputs)


REFUSED: dict[str, tuple[Callable[[Tensor, Tensor], Any], str]] = {
    "computed places": (lambda w, h: coo(w, w.argsort().clamp(max=4).expand(2, 6)) @ h, "made inside the model"),
    "places of a dense product": (lambda w, h: (h @ h.t()).to_sparse().indices() * 2, "stored pattern"),
    "values of a dense product": (lambda w, h: (h @ h.t()).to_sparse().values() * 2, "stored pattern"),
    "a softmax of a product": (lambda w, h: sp.softmax(sp.mm(coo(w), coo(w)), 1).to_dense(), "stored pattern"),
    "places outside": (lambda w, h: coo(w, EDGES + 1) @ h, "size is inconsistent with indices"),
    "columns outside": (lambda w, h: torch.sparse_csr_tensor(CROW, COL + 3, w, SQUARE) @ h, "col_indices < ncols"),
    "repeated columns": (lambda w, h: torch.sparse_csr_tensor(CROW, COL * 0, w, SQUARE) @ h, "sorted and distinct"),
}
"""Functions that are refused, or that PyTorch refuses, with a part of the message."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_names_the_line(name: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises(FrontendError, match=message) as caught:
        import_model(Function(function), draws((6,), (NODES, 3))[1])
    assert caught.value.span is not None and caught.value.span.file.endswith("test_sparse_values.py")
