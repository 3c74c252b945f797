"""Gathers and scatters by known positions are products with selections, and mean what PyTorch says they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from sources import compiled_at
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model
from fuseflow.frontend.imported_program import Source
from fuseflow.run.compiled import Compiled

NODES, EDGES = 6, 11
SOURCE = torch.tensor([0, 1, 2, 5, 5, 3, 0, 2, 2, 1, 0])
TARGET = torch.tensor([1, 1, 0, 2, 3, 3, 3, 0, 5, 5, 1])


def features(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def ran(function: Callable[..., Any], *inputs: Tensor, fuse: Sequence[str] = ("full",)) -> Compiled:
    """Compile a function at each granularity, run it, and compare its outputs with PyTorch. Return the last."""
    for compiled in compiled_at(function, inputs, *fuse):
        result = compiled.run()
        assert result.check is not None and result.check.passed, compiled.schedule
    return compiled


def over_edges(x: Tensor, index: Tensor) -> Tensor:
    return index.view(-1, 1).expand_as(x)


FUNCTIONS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "index_select": lambda x, s, t: x.index_select(0, s) * 2,
    "index": lambda x, s, t: x[s] + x[t],
    "index with negative positions": lambda x, s, t: x[s - NODES] * x[t],
    "the last dimension": lambda x, s, t: x.t()[:, s] * 3,
    "a table of positions": lambda x, s, t: x[s[:10].view(2, 5)].sum(1),
    "truth values": lambda x, s, t: x[torch.arange(NODES) % 2 == 0] @ torch.ones(4, 2),
    "gather": lambda x, s, t: x.gather(0, over_edges(x[s], s)) * 2,
    "embedding of data": lambda x, s, t: torch.nn.functional.embedding(s, x @ torch.ones(4, 3)),
    "index_add": lambda x, s, t: torch.zeros(NODES, 4).index_add(0, t, x[s]),
    "scatter_add": lambda x, s, t: torch.zeros(NODES, 4).scatter_add_(0, over_edges(x[s], t), x[s]),
    "scatter_add to data": lambda x, s, t: (x * 2).scatter_add(0, over_edges(x[s], t), x[s]),
    "mean": lambda x, s, t: x.new_zeros(NODES, 4).scatter_reduce(0, over_edges(x[s], t), x[s], "mean", include_self=False),
    "amax": lambda x, s, t: x.new_zeros(NODES, 4).scatter_reduce(0, over_edges(x[s], t), x[s], "amax", include_self=False),
    "amin": lambda x, s, t: x.new_zeros(NODES, 4).scatter_reduce(0, over_edges(x[s], t), x[s], "amin", include_self=False),
    "two indices": lambda x, s, t: x[s % NODES, t % 4] * 2,
    "truth values of a matrix": lambda x, s, t: x[torch.ones(NODES, 4).tril() > 0] * 2,
    "the last of several is written": lambda x, s, t: (x * 2).index_copy(0, t, x[s]),
    "the last of several is written to zeros": lambda x, s, t: torch.zeros(NODES, 4).index_copy(0, t, x[s]),
    "elements written, some twice": lambda x, s, t: (x * 2).index_put((s, t % 4), x.sum()),
    "rows written": lambda x, s, t: (x * 2).index_put((torch.tensor([1, 3]),), x.sum(0)),
    "a diagonal written": lambda x, s, t: (x * 2).index_put((torch.arange(4), torch.arange(4)), x.sum(0)),
    "added at places": lambda x, s, t: (x * 2).index_put((s,), x[t], accumulate=True),
    "index_copy": lambda x, s, t: (x * 2).index_copy(0, torch.tensor([4, 0]), x[torch.tensor([1, 1])]),
    "scatter": lambda x, s, t: (x * 2).scatter(0, torch.tensor([[4], [0]]).expand(2, 4), x[torch.tensor([1, 1])]),
    "heads": lambda x, s, t: torch.zeros(NODES, 2, 2).index_add(0, t, x.view(NODES, 2, 2)[s] * 0.5),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_what_pytorch_computes(case: str) -> None:
    ran(FUNCTIONS[case], features(NODES, 4), SOURCE, TARGET, fuse=("none", "full"))


def test_messages_are_a_product_with_the_adjacency() -> None:
    """The entries of the adjacency are sums over parallel edges, as NumPy adds them up."""

    def propagate(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        return torch.zeros(NODES, 4).index_add(0, target, x[source] * (source + 1.0).view(-1, 1))

    model = imported(propagate, features(NODES, 4), SOURCE, TARGET)
    assert [einsum.operands for einsum in model.program.einsums] == [("adjacency", "x")]
    dense = np.zeros((NODES, NODES), np.float32)
    np.add.at(dense, (TARGET.numpy(), SOURCE.numpy()), (SOURCE + 1.0).numpy())
    packed = model.tensors["adjacency"]
    assert packed.format.short() == "csr"
    np.testing.assert_array_equal(packed.to_dense(), dense)


def imported(function: Callable[..., Any], *inputs: Any) -> Source:
    return import_model(function, inputs)


def test_weights_that_are_data_stay_on_the_edges() -> None:
    def propagate(x: Tensor, w: Tensor, source: Tensor, target: Tensor) -> Tensor:
        return torch.zeros(NODES, 4).index_add(0, target, x[source] * w.view(-1, 1))

    compiled = ran(propagate, features(NODES, 4), features(EDGES), SOURCE, TARGET)
    assert [t.name for t in compiled.program.inputs] == ["x", "w", "gather", "scatter"]


def test_equal_selections_are_one_tensor() -> None:
    def twice(x: Tensor, s: Tensor) -> Tensor:
        return torch.relu(x[s]) + x.index_select(0, s.clone())

    assert [t.name for t in imported(twice, features(NODES, 4), SOURCE).program.inputs] == ["x", "gather"]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_random_graphs_equal_eager(data: st.DataObject) -> None:
    """Any number of nodes and edges, parallel edges and nodes without one, summed up, averaged, or the largest taken."""
    nodes, edges = data.draw(st.integers(2, 7)), data.draw(st.integers(2, 12))
    ends = st.lists(st.integers(0, nodes - 1), min_size=edges, max_size=edges)
    source, target = torch.tensor(data.draw(ends)), torch.tensor(data.draw(ends))
    reduce = data.draw(st.sampled_from(["sum", "mean", "amax", "amin"]))

    def propagate(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        messages = x[source]
        index = target.view(-1, 1).expand_as(messages)
        if reduce == "sum":
            return torch.zeros(nodes, 3).scatter_add(0, index, messages)
        return torch.zeros(nodes, 3).scatter_reduce(0, index, messages, reduce, include_self=False)

    ran(propagate, features(nodes, 3), source, target)


class TestPyTorchGeometric:
    """Models of PyTorch Geometric with `edge_index`, as they are."""

    pyg = pytest.importorskip("torch_geometric.nn")
    x, edge_index = features(NODES, 4), torch.stack((SOURCE, TARGET))

    @pytest.mark.parametrize(
        ("name", "options"),
        [
            ("GCN", {}),
            ("GraphSAGE", {}),
            ("GraphSAGE", {"aggr": "max"}),
            ("GAT", {}),
            ("GIN", {}),
        ],
    )
    def test_models(self, name: str, options: dict[str, Any]) -> None:
        layers = 1 if name == "GAT" else 2  # two layers of GAT in one region compute the first again for every edge of every edge
        torch.manual_seed(0)
        model = getattr(self.pyg, name)(4, 8, layers, 3, **options).eval()
        ran(model, self.x, self.edge_index, fuse=("none", "full"))

    @pytest.mark.parametrize("fuse", ["none", "full"])
    @pytest.mark.parametrize("machine", ["ideal", "rda"])
    def test_edge_index_takes_the_cycles_of_an_adjacency(self, fuse: str, machine: str) -> None:
        from torch_geometric.nn.conv.gcn_conv import gcn_norm

        torch.manual_seed(0)
        model = self.pyg.GCN(4, 8, 2, 3).eval()

        class WithAdjacency(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.convs, self.act = model.convs, model.act

            def forward(self, x: Tensor, adj: Tensor) -> Tensor:
                x = self.act(adj @ self.convs[0].lin(x) + self.convs[0].bias)
                return adj @ self.convs[1].lin(x) + self.convs[1].bias

        ends, weights = gcn_norm(self.edge_index, None, NODES)
        adjacency = torch.sparse_coo_tensor(ends.flip(0), weights, (NODES, NODES)).coalesce().to_sparse_csr()
        schedule = ff.Schedule.fuse(fuse)
        given = ff.compile(model, (self.x, self.edge_index), schedule=schedule, machine=machine).run()
        written = ff.compile(WithAdjacency(), (self.x, adjacency), schedule=schedule, machine=machine).run()
        assert given.cycles == written.cycles


PLACES = torch.tensor([0, 2, 2, 0])


@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_entries_are_combined_with_what_a_row_has(reduce: str, include_self: bool) -> None:
    class Combined(nn.Module):
        def forward(self, x: Tensor, base: Tensor) -> Tensor:
            index = PLACES[:, None].expand(4, 3)
            return (base * 2).scatter_reduce(0, index, x * 2, reduce, include_self=include_self)

    check = ff.compile(Combined(), (torch.randn(4, 3), torch.randn(4, 3) + 1)).run().check
    assert check is not None and check.passed


def test_rows_are_added_to_in_place() -> None:
    """The rows that are read and those that are written are the same tensor."""

    class Labels(nn.Module):
        def forward(self, x: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
            x = x.clone()
            x[mask] += labels
            return x

    check = ff.compile(Labels(), (torch.randn(4, 3), torch.randn(2, 3), torch.tensor([True, False, True, False]))).run().check
    assert check is not None and check.passed


def test_slices_whose_bounds_are_tensors() -> None:
    """As PyTorch Geometric's layers for nodes of several types have them: an empty tensor, each part of which is written."""

    class Typed(nn.Module):
        def forward(self, x: Tensor, bounds: Tensor, weights: Tensor) -> Tensor:
            y = x.new_empty(4, 2)
            for kind in range(2):
                start, stop = bounds[kind], bounds[kind + 1]
                y[start:stop] = x[start:stop] @ weights[kind]
            return y

    check = ff.compile(Typed(), (torch.randn(4, 3), torch.tensor([0, 1, 4]), torch.randn(2, 3, 2))).run().check
    assert check is not None and check.passed


ALONG_NOTHING: dict[str, Callable[[Tensor], Tensor]] = {
    "gather": lambda x: x.gather(0, torch.tensor(0)),
    "index_select": lambda x: x.index_select(0, torch.tensor([0])),
    "scatter": lambda x: x.scatter(0, torch.tensor(0), x * 2),
    "scatter_add": lambda x: x.scatter_add(0, torch.tensor(0), x * 2),
    "scatter_reduce": lambda x: x.scatter_reduce(0, torch.tensor(0), x * 2, "amax"),
    "index_copy": lambda x: x.index_copy(0, torch.tensor([0]), x.reshape(1)),
    "sort": lambda x: x.sort(0).values,
    "argsort": lambda x: x.argsort(0),
}


@pytest.mark.parametrize("name", ALONG_NOTHING)
def test_a_tensor_without_dimensions_has_none_to_go_along(name: str) -> None:
    """PyTorch takes dimension 0 of it."""

    class Whole(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return ALONG_NOTHING[name](x.sum())

    with pytest.raises(FrontendError, match=name):
        ff.compile(Whole(), (torch.randn(3),))
