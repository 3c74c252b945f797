"""Message passing of PyTorch Geometric: no message of an edge is stored, and an adjacency means what its edges mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from sources import compiled_at
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.run.result import Result

pyg = pytest.importorskip("torch_geometric.nn")
NODES, FEATURES, HIDDEN, HEADS = 20, 12, 8, 2
ISOLATED = 7


def graph() -> Tensor:
    """Return the edges of a random directed graph, in no order, in which one node has none."""
    generator = torch.Generator().manual_seed(5)
    pattern = torch.rand(NODES, NODES, generator=generator) < 0.4
    pattern[ISOLATED], pattern[:, ISOLATED] = False, False
    edges = pattern.fill_diagonal_(False).nonzero().t()
    return edges[:, torch.randperm(edges.shape[1], generator=generator)]


EDGES = graph()
ADJACENCY = torch.zeros(NODES, NODES).index_put((EDGES[1], EDGES[0]), torch.ones(EDGES.shape[1])).to_sparse_csr()
X = torch.randn(NODES, FEATURES, generator=torch.Generator().manual_seed(1))

CONVOLUTIONS: dict[str, Callable[[], nn.Module]] = {
    "GCN": lambda: pyg.GCNConv(FEATURES, HIDDEN),
    "GraphSAGE, mean": lambda: pyg.SAGEConv(FEATURES, HIDDEN),
    "GraphSAGE, sum": lambda: pyg.SAGEConv(FEATURES, HIDDEN, aggr="sum"),
    "GIN": lambda: pyg.GINConv(nn.Linear(FEATURES, HIDDEN)),
    "GraphConv": lambda: pyg.GraphConv(FEATURES, HIDDEN),
    "GraphConv, mean": lambda: pyg.GraphConv(FEATURES, HIDDEN, aggr="mean"),
    "GAT": lambda: pyg.GATConv(FEATURES, HIDDEN // HEADS, heads=HEADS),
    "GAT without self loops": lambda: pyg.GATConv(FEATURES, HIDDEN // HEADS, heads=HEADS, add_self_loops=False),
    "GATv2": lambda: pyg.GATv2Conv(FEATURES, HIDDEN // HEADS, heads=HEADS, add_self_loops=False),
    "TransformerConv": lambda: pyg.TransformerConv(FEATURES, HIDDEN // HEADS, heads=HEADS),
    "SG": lambda: pyg.SGConv(FEATURES, HIDDEN, K=2),
    "TAG": lambda: pyg.TAGConv(FEATURES, HIDDEN, K=2),
    "ClusterGCN": lambda: pyg.ClusterGCNConv(FEATURES, HIDDEN),
    "APPNP": lambda: pyg.APPNP(2, 0.1),
}
"""Convolutions that PyTorch Geometric gives an `edge_index` or a sparse adjacency."""
NORMALIZED = ("GCN", "SG", "TAG", "APPNP")
"""Convolutions that normalize the weights of edges. The numbers of an adjacency are such weights, and are normalized in the program. Edges
without weights are structure."""
ATTENTION_BY_FEATURE = ("GATv2", "TransformerConv")
"""Attention whose scores are sums over features, each of which depends on both ends of an edge. The terms of the sums are edges x features,
and are written where sums and terms are in different regions."""


def ran(model: nn.Module, edges: Tensor, *granularities: str) -> Iterator[tuple[Result, list[list[str]]]]:
    """Run a model with each of the granularities, compare it with PyTorch, and yield the run and the primitives of each region in order."""
    for compiled in compiled_at(model, (X, edges), *granularities):
        result = compiled.run()
        assert result.check is not None and result.check.passed
        yield result, [[type(node).__name__ for node in region.graph.nodes] for region in compiled.regions]


def written(result: Result) -> dict[str, int]:
    """Return how many bytes of values each tensor was written with."""
    tensors = result.stats["bytes"]["by_tensor"].items()
    return {name: arrays["val"]["write"] for name, arrays in tensors if arrays.get("val", {}).get("write")}


def has_no_messages(name: str, result: Result) -> bool:
    """Whether nothing was written that is as large as a row of the hidden width for each edge, the least that messages could have."""
    moved = written(result)
    return bool(moved) and (name in ATTENTION_BY_FEATURE or max(moved.values()) < 4 * EDGES.shape[1] * HIDDEN)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_an_adjacency_is_the_graph_of_its_edges_and_no_message_is_written(name: str) -> None:
    torch.manual_seed(0)
    model = CONVOLUTIONS[name]().eval()
    *both, (layers, _) = ran(model, EDGES, "none", "full", "layerwise")
    for (of_edges, graphs), (of_adjacency, same) in zip(both, ran(model, ADJACENCY, "none", "full"), strict=True):
        if name not in NORMALIZED:
            assert graphs == same and of_edges.cycles == of_adjacency.cycles
            assert sorted(written(of_edges).values()) == sorted(written(of_adjacency).values())
        assert has_no_messages(name, of_adjacency)
        assert has_no_messages(name, of_edges)
    assert has_no_messages(name, layers)


def test_a_message_that_is_asked_for_is_written() -> None:
    class Messages(nn.Module):
        def forward(self, x: Tensor, edges: Tensor) -> Tensor:
            return x[edges[0]] * 2

    ((result, _),) = ran(Messages(), EDGES, "full")
    (bytes_written,) = written(result).values()
    assert bytes_written == 4 * EDGES.shape[1] * FEATURES


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("lengths", [[2, 1, 3], [2, 0, 4]])
def test_a_segment_goes_to_one_row(reduce: str, lengths: list[int]) -> None:
    class Segments(nn.Module):
        def forward(self, x: Tensor, offsets: Tensor) -> Tensor:
            return torch.segment_reduce(x * 2, reduce, offsets=offsets).relu()

    x, offsets = torch.rand(6, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, *lengths]).cumsum(0)
    if reduce == "mean" and not all(lengths):
        with pytest.raises(ff.FuseFlowError, match="segment_reduce"):
            ff.compile(Segments(), (x, offsets))
        return
    check = ff.compile(Segments(), (x, offsets)).run().check
    assert check is not None and check.passed


NO_EDGES = EDGES[:, :0]


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_graph_without_edges(name: str) -> None:
    torch.manual_seed(0)
    assert list(ran(CONVOLUTIONS[name]().eval(), NO_EDGES, "none", "full"))


@pytest.mark.parametrize("empty", range(3))
@pytest.mark.parametrize("kind", ["SAGE", "GAT", "Graph"])
def test_a_relation_without_edges(kind: str, empty: int) -> None:
    torch.manual_seed(0)
    convolution: Callable[[], nn.Module] = {
        "SAGE": lambda: pyg.SAGEConv((FEATURES, FEATURES), HIDDEN),
        "GAT": lambda: pyg.GATConv((FEATURES, FEATURES), HIDDEN, add_self_loops=False),
        "Graph": lambda: pyg.GraphConv((FEATURES, FEATURES), HIDDEN),
    }[kind]
    relations = ("author", "writes", "paper"), ("paper", "cites", "paper"), ("paper", "by", "author")
    edges = {relation: NO_EDGES if k == empty else EDGES for k, relation in enumerate(relations)}
    model = pyg.HeteroConv({relation: convolution() for relation in relations}).eval()
    for compiled in compiled_at(model, ({"author": X, "paper": X.flip(0)}, edges), "none", "full"):
        check = compiled.run().check
        assert check is not None and check.passed


@pytest.mark.parametrize("blocks", [None, 2, 4])
@pytest.mark.parametrize("name", ["RGCNConv", "FastRGCNConv"])
def test_a_kind_of_edge_that_no_edge_has(name: str, blocks: int | None) -> None:
    torch.manual_seed(0)
    kinds = torch.arange(EDGES.shape[1]) % 2
    model = getattr(pyg, name)(FEATURES, HIDDEN, 3, num_blocks=blocks).eval()
    for compiled in compiled_at(model, (X, EDGES, kinds), "none", "full"):
        check = compiled.run().check
        assert check is not None and check.passed


@pytest.mark.parametrize("edges", [EDGES, NO_EDGES], ids=["edges", "no edges"])
@pytest.mark.parametrize("towers", [2, 4])
def test_towers_of_principal_neighbourhood_aggregation(towers: int, edges: Tensor) -> None:
    torch.manual_seed(0)
    degrees = torch.bincount(torch.bincount(EDGES[1], minlength=NODES))
    model = pyg.PNAConv(FEATURES, HIDDEN, ["mean", "max", "std"], ["identity", "amplification"], degrees, towers=towers).eval()
    for _ in ran(model, edges, "none"):
        pass
