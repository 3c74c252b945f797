"""Values of edges are stored as matrices at the places of the edges, and mean what PyTorch says they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from sources import compiled_at
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.nodes import TensorType
from fuseflow.frontend import import_model
from fuseflow.run.compiled import Compiled

pyg = pytest.importorskip("torch_geometric.nn")
NODES, HEADS, WIDTH = 9, 2, 3
ISOLATED = 4


def graph() -> Tensor:
    """Return the edges of a random directed graph without parallel edges, in no order, in which one node has no edges."""
    generator = torch.Generator().manual_seed(3)
    pattern = torch.rand(NODES, NODES, generator=generator) < 0.35
    pattern[ISOLATED], pattern[:, ISOLATED] = False, False
    edges = pattern.fill_diagonal_(False).nonzero().t()
    return edges[:, torch.randperm(edges.shape[1], generator=generator)]


EDGES = graph()
COUNT = EDGES.shape[1]
X = torch.randn(NODES, 4, generator=torch.Generator().manual_seed(1))
ATTRIBUTES = torch.randn(COUNT, 5, generator=torch.Generator().manual_seed(2))


def ran(model: nn.Module, *inputs: Tensor, fuse: Sequence[str] = ("full",)) -> Compiled:
    """Compile a model at each granularity, run it, and compare its outputs with PyTorch. Return the last."""
    for compiled in compiled_at(model, inputs, *fuse):
        result = compiled.run()
        assert result.check is not None and result.check.passed, compiled.schedule
    return compiled


def types(model: nn.Module, *inputs: Tensor) -> list[TensorType]:
    """Return the types of all tensors of a program."""
    return list(infer(import_model(model, inputs).program).tensors)


class Gat(nn.Module):
    """Two layers of attention as PyTorch Geometric writes it, over an `edge_index`."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = pyg.GATConv(4, WIDTH, heads=HEADS), pyg.GATConv(HEADS * WIDTH, WIDTH, heads=HEADS)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        result: Tensor = self.second(self.first(x, edges).relu(), edges)
        return result


class MaskedGat(nn.Module):
    """The same two layers, written as masked attention with a sparse adjacency matrix."""

    def __init__(self, gat: Gat) -> None:
        super().__init__()
        self.gat = gat

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        return self.layer(self.gat.second, self.layer(self.gat.first, x, adjacency).relu(), adjacency)

    def layer(self, conv: Any, x: Tensor, adjacency: Tensor) -> Tensor:
        h = conv.lin(x).reshape(-1, HEADS, WIDTH)
        source, target = (h * conv.att_src).sum(-1), (h * conv.att_dst).sum(-1)
        ones = adjacency.to_dense().unsqueeze(-1)
        scores = nn.functional.leaky_relu(ones * source[None] + ones * target[:, None], conv.negative_slope)
        weights = torch.softmax(scores.masked_fill(ones == 0, float("-inf")), 1)
        heads = torch.matmul(weights.permute(2, 0, 1), h.permute(1, 0, 2))
        result: Tensor = heads.permute(1, 0, 2).reshape(-1, HEADS * WIDTH) + conv.bias
        return result


@pytest.mark.parametrize("fuse", ["none", "full"])
def test_attention_over_edges_takes_the_cycles_of_attention_over_an_adjacency(fuse: str) -> None:
    gat = Gat().eval()
    adjacency = torch.eye(NODES).index_put((EDGES[1], EDGES[0]), torch.ones(COUNT)).to_sparse_csr()
    edges, masked = ran(gat, X, EDGES, fuse=[fuse]), ran(MaskedGat(gat).eval(), X, adjacency, fuse=[fuse])
    assert edges.run().cycles == masked.run().cycles
    primitives = [[[type(node) for node in region.graph.nodes] for region in c.regions] for c in (edges, masked)]
    assert primitives[0] == primitives[1]


def test_attention_weights_never_leave_the_chip() -> None:
    compiled = ran(Gat().eval(), X, EDGES)
    written = [compiled.program.declared[name].shape for region in compiled.regions for name in region.graph.outputs]
    assert all(shape.count(NODES) == 1 for shape in written), written
    unfused = ran(Gat().eval(), X, EDGES, fuse=["none"])
    assert any(unfused.program.declared[name].shape == (NODES, NODES, HEADS) for r in unfused.regions for name in r.graph.outputs)


CONVOLUTIONS: dict[str, tuple[Callable[[], nn.Module], tuple[Tensor, ...]]] = {
    "GCN": (lambda: pyg.GCNConv(4, 3), ()),
    "GraphSAGE, mean": (lambda: pyg.SAGEConv(4, 3), ()),
    "GraphSAGE, max": (lambda: pyg.SAGEConv(4, 3, aggr="max"), ()),
    "GIN": (lambda: pyg.GINConv(nn.Linear(4, 3)), ()),
    "GINE": (lambda: pyg.GINEConv(nn.Linear(4, 3), edge_dim=5), (ATTRIBUTES,)),
    "GAT": (lambda: pyg.GATConv(4, 3, heads=2), ()),
    "GAT without self loops": (lambda: pyg.GATConv(4, 3, heads=2, add_self_loops=False), ()),
    "GAT with attributes": (lambda: pyg.GATConv(4, 3, edge_dim=5, add_self_loops=False), (ATTRIBUTES,)),
    "GATv2": (lambda: pyg.GATv2Conv(4, 3, heads=2), ()),
    "TransformerConv": (lambda: pyg.TransformerConv(4, 3, heads=2), ()),
    "ResGatedGraphConv": (lambda: pyg.ResGatedGraphConv(4, 3), ()),
}
"""Convolutions over a graph with an isolated node, with what they get beside the features and the edges."""


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_no_tensor_has_a_dimension_of_edges(name: str) -> None:
    make, more = CONVOLUTIONS[name]
    torch.manual_seed(0)
    compiled = ran(make().eval(), X, EDGES, *more, fuse=("none", "full"))
    for tensor in infer(compiled.source.program).tensors:
        assert not {COUNT, COUNT + NODES} & set(tensor.shape), tensor
        assert tensor.format is not None
        if tensor.shape[:2] == (NODES, NODES):
            assert "compressed" in str(tensor.format), tensor


def test_messages_to_other_nodes() -> None:
    """A bipartite graph has a matrix that is not square."""
    edges = torch.tensor([[0, 3, 5, 1, 3], [0, 0, 2, 3, 2]])
    model = pyg.GATConv((4, 4), 3, add_self_loops=False).eval()

    def propagate(x: Tensor, y: Tensor, edges: Tensor) -> Tensor:
        result: Tensor = model((x, y), edges)
        return result

    compiled = ff.compile(propagate, (X[:6], X[:4], edges))
    result = compiled.run()
    assert result.check is not None and result.check.passed
    assert any(tensor.shape == (4, 6) for tensor in compiled.program.inputs)


def test_parallel_edges_stay_edges() -> None:
    doubled = torch.cat((EDGES, EDGES[:, :2]), 1)
    model = pyg.GATConv(4, 3, add_self_loops=False).eval()
    ran(model, X, doubled)
    assert any(COUNT + 2 in tensor.shape for tensor in types(model, X, doubled))


def test_what_is_returned_for_each_edge_stays_so() -> None:
    class Scores(nn.Module):
        def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
            scores = (x[edges[0]] * x[edges[1]]).relu()
            return scores, torch.zeros(NODES, 4).index_add(0, edges[1], scores)

    ran(Scores(), X, EDGES)


@pytest.mark.parametrize("dim", [0, 1])
def test_operands_beside_the_edges(dim: int) -> None:
    """A bias, a scale for each feature and a function that is not zero at zero are cut to the edges."""

    class Messages(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.bias, self.layer = nn.Parameter(torch.randn(4)), nn.Linear(4, 3)

        def forward(self, x: Tensor, edges: Tensor, attributes: Tensor) -> Tensor:
            source, target = edges
            if dim == 1:
                messages = torch.exp(x.t()[:, source] - x.t()[:, target] + self.bias[:, None])
                return torch.zeros(4, NODES).index_add(1, target, messages * attributes)
            messages = self.layer(torch.sigmoid(x[source] + x[target] * self.bias) + attributes)
            return torch.zeros(NODES, 3).index_add(0, target, messages)

    attributes = ATTRIBUTES[:, 0] if dim else ATTRIBUTES[:, :4]
    ran(Messages().eval(), X, EDGES, attributes, fuse=("none", "full"))
    assert not any(COUNT in tensor.shape for tensor in types(Messages().eval(), X, EDGES, attributes))
