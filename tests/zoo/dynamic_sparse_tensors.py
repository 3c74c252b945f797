"""Sparse tensors that a model makes of known places and computed values, operators on stored values, and embedding bags."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from zoo_registry import Brought, zoo

NODES, EDGES, WIDTH, OUT = 10, 30, 8, 6
model = partial(zoo.model, "dynamic")


def edges() -> torch.Tensor:
    """Edges between different nodes, with a loop at every node, in the order of targets and sources."""
    adjacency = (torch.rand(NODES, NODES) < EDGES / NODES**2) | torch.eye(NODES, dtype=torch.bool)
    return adjacency.nonzero().t().contiguous()


def features() -> torch.Tensor:
    return torch.randn(NODES, WIDTH)


class GraphAttention(nn.Module):
    """The projections of a graph attention layer."""

    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Linear(WIDTH, OUT, bias=False)
        self.a_target, self.a_source = nn.Parameter(torch.randn(OUT)), nn.Parameter(torch.randn(OUT))

    def scores(self, h, target, source):
        return F.leaky_relu((h @ self.a_target)[target] + (h @ self.a_source)[source], 0.2)


@model(fast=True)
def graph_attention_coo() -> Brought:
    class Layer(GraphAttention):
        def forward(self, x, edge_index):
            h = self.W(x)
            attention = torch.sparse_coo_tensor(edge_index, self.scores(h, *edge_index), (NODES, NODES))
            return F.elu(torch.sparse.mm(torch.sparse.softmax(attention, dim=1), h))

    return Layer(), (features(), edges())


@model()
def graph_attention_csr() -> Brought:
    class Layer(GraphAttention):
        """Exponentials in CSR, divided by their sums in each row."""

        def forward(self, x, crow, col):
            h = self.W(x)
            rows = torch.arange(NODES).repeat_interleave(crow.diff())
            weights = torch.exp(self.scores(h, rows, col))
            attention = torch.sparse_csr_tensor(crow, col, weights, (NODES, NODES))
            return (attention @ h) / (attention @ torch.ones(NODES, 1))

    target, source = edges()
    crow = F.pad(torch.bincount(target, minlength=NODES).cumsum(0), (1, 0))
    return Layer(), (features(), crow, source)


@model()
def edge_network() -> Brought:
    class Network(nn.Module):
        """Messages weighted by a small network of the features of edges. Two edges between the same nodes add up."""

        def __init__(self) -> None:
            super().__init__()
            self.edge, self.node = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), nn.Linear(WIDTH, OUT)

        def forward(self, x, edge_index, edge_attr):
            weights = self.edge(edge_attr).squeeze(-1)
            adjacency = torch.sparse_coo_tensor(edge_index, weights, (NODES, NODES)).coalesce()
            return torch.relu(adjacency @ self.node(x)) + adjacency.t() @ self.node(x)

    places = torch.randint(NODES, (2, EDGES))
    return Network(), (features(), places, torch.randn(EDGES, 3))


@model()
def block_sparse_linear() -> Brought:
    class Linear(nn.Module):
        """A weight of dense blocks at fixed places, which is put together for each call."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("crow", torch.tensor([0, 2, 3, 5]))
            self.register_buffer("col", torch.tensor([0, 2, 1, 0, 3]))
            self.blocks, self.bias = nn.Parameter(torch.randn(5, 4, 4)), nn.Parameter(torch.randn(12))

        def forward(self, x):
            weight = torch.sparse_bsr_tensor(self.crow, self.col, self.blocks, (12, 16))
            return (weight @ x.t()).t() + self.bias

    return Linear(), (torch.randn(6, 16),)


@model()
def masked_product_to_sparse() -> Brought:
    class Attention(nn.Module):
        def forward(self, q, k, v, mask):
            scores = ((q @ k.t()) * mask).to_sparse()
            return torch.sparse.mm(torch.sparse.softmax(scores, dim=1), v)

    mask = torch.ones(NODES, NODES).tril().triu(-2)
    return Attention(), (*torch.randn(3, NODES, WIDTH), mask)


@model()
def sparse_mask_attention() -> Brought:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v = nn.Linear(WIDTH, OUT), nn.Linear(WIDTH, OUT), nn.Linear(WIDTH, OUT)

        def forward(self, x, adjacency):
            scores = (self.q(x) @ self.k(x).t() / OUT**0.5).sparse_mask(adjacency)
            return torch.sparse.mm(torch.sparse.softmax(scores, 1), self.v(x))

    adjacency = torch.sparse_coo_tensor(places := edges(), torch.ones(places.shape[1]), (NODES, NODES)).coalesce()
    return Attention(), (features(), adjacency)


@model()
def sampled_product_attention() -> Brought:
    class Attention(nn.Module):
        """Scores sampled at the entries of a CSR matrix, and a softmax written on its values."""

        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v = nn.Linear(WIDTH, OUT), nn.Linear(WIDTH, OUT), nn.Linear(WIDTH, OUT)

        def forward(self, x, pattern):
            scores = torch.sparse.sampled_addmm(pattern, self.q(x), self.k(x).t(), beta=0.0)
            crow, col = scores.crow_indices(), scores.col_indices()
            exponentials = torch.exp(scores.values() - scores.values().max())
            weights = torch.sparse_csr_tensor(crow, col, exponentials, scores.shape)
            return (weights @ self.v(x)) / (weights @ x.new_ones(NODES, 1))

    target, source = edges()
    crow = F.pad(torch.bincount(target, minlength=NODES).cumsum(0), (1, 0))
    pattern = torch.sparse_csr_tensor(crow, source, torch.zeros(len(source)), (NODES, NODES))
    return Attention(), (features(), pattern)


@model()
def normalized_adjacency_sums() -> Brought:
    class Layer(nn.Module):
        """A graph convolution that divides by sums of the weights of its input."""

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(WIDTH, OUT)

        def forward(self, x, adjacency):
            degree = torch.sparse.sum(adjacency, dim=1).to_dense()
            scale = degree.pow(-0.5)
            return scale[:, None] * torch.sparse.mm(adjacency, scale[:, None] * self.linear(x))

    places = edges()
    adjacency = torch.sparse_coo_tensor(places, torch.rand(places.shape[1]) + 0.1, (NODES, NODES)).coalesce()
    return Layer(), (features(), adjacency)


@model()
def mean_of_computed_neighbours() -> Brought:
    class Layer(nn.Module):
        """A mean over neighbours with weights that follow from distances."""

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(WIDTH, OUT)

        def forward(self, x, position, crow, col):
            rows = torch.arange(NODES).repeat_interleave(crow.diff())
            weights = torch.exp(-(position[rows] - position[col]).square().sum(-1))
            adjacency = torch.sparse_csr_tensor(crow, col, weights, (NODES, NODES))
            return torch.sparse.mm(adjacency, self.linear(x), reduce="mean")

    target, source = edges()
    crow = F.pad(torch.bincount(target, minlength=NODES).cumsum(0), (1, 0))
    return Layer(), (features(), torch.randn(NODES, 3), crow, source)


@model()
def hypergraph_convolution() -> Brought:
    class Layer(nn.Module):
        """Nodes to hyperedges and back, by an incidence matrix with learned weights of the hyperedges."""

        def __init__(self, hyperedges: int = 4) -> None:
            super().__init__()
            self.hyperedges = hyperedges
            self.theta, self.weight = nn.Linear(WIDTH, OUT, bias=False), nn.Parameter(torch.rand(hyperedges))

        def forward(self, x, hyperedge_index):
            node, hyperedge = hyperedge_index
            ones = x.new_ones(len(node))
            shape = (x.shape[0], self.hyperedges)
            incidence = torch.sparse_coo_tensor(hyperedge_index, ones, shape).coalesce()
            weighted = torch.sparse_coo_tensor(hyperedge_index, self.weight[hyperedge], shape).coalesce()
            size = torch.sparse.sum(incidence, dim=0).to_dense().clamp(min=1)
            degree = torch.sparse.sum(weighted, dim=1).to_dense().clamp(min=1e-6)
            messages = torch.sparse.mm(incidence.t(), self.theta(x)) / size[:, None]
            return torch.sparse.mm(weighted, messages) / degree[:, None]

    incidence = torch.rand(NODES, 4) < 0.4
    incidence[torch.arange(NODES), torch.arange(NODES) % 4] = True
    return Layer(), (features(), incidence.nonzero().t())


@model(fast=True)
def embedding_bag_offsets() -> Brought:
    class Ranking(nn.Module):
        """Bags of different lengths, with a weight for each item, beside dense features: the sparse part of DLRM."""

        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(20, WIDTH, mode="sum") for _ in range(2))
            self.bottom, self.top = nn.Linear(5, WIDTH), nn.Linear(WIDTH + 3, 1)

        def forward(self, dense, items, offsets, weights):
            parts = [F.relu(self.bottom(dense))]
            for table, i, o, w in zip(self.tables, items, offsets, weights, strict=True):
                parts.append(table(i, o, per_sample_weights=w))
            x = torch.stack(parts, dim=1)
            row, column = torch.tril_indices(3, 3, offset=-1)
            pairs = torch.bmm(x, x.transpose(1, 2))[:, row, column]
            return torch.sigmoid(self.top(torch.cat([parts[0], pairs], dim=1)))

    items = [torch.randint(20, (11,)), torch.randint(20, (9,))]
    offsets = [torch.tensor([0, 3, 3, 8]), torch.tensor([0, 2, 5, 6])]
    return Ranking(), (torch.randn(4, 5), items, offsets, [torch.rand(11), torch.rand(9)])


@model()
def embedding_bag_padded() -> Brought:
    class TwoTowers(nn.Module):
        """Means over the words of queries and the largest elements over those of documents; padding does not count."""

        def __init__(self) -> None:
            super().__init__()
            self.query = nn.EmbeddingBag(20, WIDTH, mode="mean", padding_idx=0)
            self.document = nn.EmbeddingBag(20, WIDTH, mode="max", padding_idx=0)

        def forward(self, queries, documents):
            return F.normalize(self.query(queries), dim=-1) @ F.normalize(self.document(documents), dim=-1).t()

    queries, documents = torch.randint(1, 20, (3, 4)), torch.randint(1, 20, (5, 6))
    queries[0, 2:] = documents[1, 4:] = 0
    return TwoTowers(), (queries, documents)
