"""Models, poolings and norms of PyTorch Geometric, unmodified, and networks as its tutorials write them."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from pyg_convolutions import CLASSES, FEATURES, NODES, graph, sparse_graph
from zoo_registry import Brought, zoo

HIDDEN = 8
model = partial(zoo.model, "pyg")


def batch() -> torch.Tensor:
    """Which of two graphs each node is in."""
    return torch.arange(NODES) * 2 // NODES


class Gcn(torch.nn.Module):
    """The first network of the tutorial of PyTorch Geometric."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = pyg.GCNConv(FEATURES, HIDDEN)
        self.conv2 = pyg.GCNConv(HIDDEN, CLASSES)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index)
        x = F.relu(x)
        x = F.dropout(x, training=self.training)
        x = self.conv2(x, edge_index)
        return F.log_softmax(x, dim=1)


class GraphClassifier(torch.nn.Module):
    """The network of the tutorial of graph classification, with a pooling to choose."""

    def __init__(self, pool) -> None:
        super().__init__()
        self.conv1 = pyg.GraphConv(FEATURES, HIDDEN)
        self.conv2 = pyg.GraphConv(HIDDEN, HIDDEN)
        self.lin = torch.nn.Linear(HIDDEN, CLASSES)
        self.pool = pool

    def forward(self, x, edge_index, batch):
        x = self.conv1(x, edge_index).relu()
        x = self.conv2(x, edge_index)
        return self.lin(self.pool(x, batch))


class LinkPredictor(torch.nn.Module):
    """Scores of pairs of nodes: the dot products of their embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = pyg.GCN(FEATURES, HIDDEN, num_layers=2)

    def forward(self, x, edge_index, edge_label_index):
        z = self.encoder(x, edge_index)
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(dim=-1)


@model(fast=True)
def gcn_tutorial() -> Brought:
    return Gcn(), graph()


@model()
def gcn_model() -> Brought:
    return pyg.GCN(FEATURES, HIDDEN, num_layers=2, out_channels=CLASSES), graph()


@model()
def gcn_model_jumping() -> Brought:
    return pyg.GCN(FEATURES, HIDDEN, num_layers=2, out_channels=CLASSES, jk="cat"), graph()


@model()
def gcn_model_sparse() -> Brought:
    return pyg.GCN(FEATURES, HIDDEN, num_layers=2, out_channels=CLASSES), sparse_graph()


@model()
def graph_sage_model() -> Brought:
    return pyg.GraphSAGE(FEATURES, HIDDEN, num_layers=2, out_channels=CLASSES), graph()


@model()
def gat_model() -> Brought:
    return pyg.GAT(FEATURES, HIDDEN, num_layers=2, out_channels=CLASSES, heads=2), graph()


@model()
def gin_model() -> Brought:
    return pyg.GIN(FEATURES, HIDDEN, num_layers=2, out_channels=CLASSES, norm="batch_norm"), graph()


@model()
def edge_cnn_model() -> Brought:
    return pyg.EdgeCNN(FEATURES, HIDDEN, num_layers=2, out_channels=CLASSES), graph()


@model()
def light_gcn_model() -> Brought:
    _, edge_index = graph()
    return pyg.LightGCN(NODES, HIDDEN, num_layers=2), (edge_index,)


@model()
def label_propagation_model() -> Brought:
    _, edge_index = graph()
    known = torch.rand(NODES) < 0.5
    return pyg.LabelPropagation(num_layers=3, alpha=0.9), (torch.randint(CLASSES, (NODES,)), edge_index, known)


@model()
def graph_autoencoder() -> Brought:
    class Autoencoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gae = pyg.GAE(pyg.GCN(FEATURES, HIDDEN, num_layers=2))

        def forward(self, x, edge_index):
            z = self.gae.encode(x, edge_index)
            return self.gae.decoder.forward_all(z)

    return Autoencoder(), graph()


@model()
def classifier_mean_pool() -> Brought:
    return GraphClassifier(pyg.global_mean_pool), (*graph(), batch())


@model()
def classifier_max_pool() -> Brought:
    return GraphClassifier(pyg.global_max_pool), (*graph(), batch())


@model()
def classifier_add_pool() -> Brought:
    return GraphClassifier(pyg.global_add_pool), (*graph(), batch())


@model()
def attentional_aggregation() -> Brought:
    return pyg.AttentionalAggregation(torch.nn.Linear(FEATURES, 1)), (torch.randn(NODES, FEATURES), batch())


@model()
def top_k_pooling() -> Brought:
    class TopK(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = pyg.GraphConv(FEATURES, HIDDEN)
            self.pool = pyg.TopKPooling(HIDDEN, ratio=0.5)

        def forward(self, x, edge_index, batch):
            x, edge_index, _, batch, *_ = self.pool(self.conv(x, edge_index).relu(), edge_index, batch=batch)
            return pyg.global_mean_pool(x, batch, 2)

    return TopK(), (*graph(), batch())


@model()
def link_predictor() -> Brought:
    return LinkPredictor(), (*graph(), torch.randint(NODES, (2, 10)))


@model()
def gps_conv() -> Brought:
    return pyg.GPSConv(FEATURES, pyg.GraphConv(FEATURES, FEATURES), heads=2), (*graph(), batch())


@model()
def hetero_conv() -> Brought:
    writes, cites = ("author", "writes", "paper"), ("paper", "cites", "paper")
    convs = {writes: pyg.SAGEConv((FEATURES, FEATURES), CLASSES), cites: pyg.GraphConv(FEATURES, CLASSES)}
    features = {"author": torch.randn(NODES, FEATURES), "paper": torch.randn(NODES, FEATURES)}
    return pyg.HeteroConv(convs, aggr="sum"), (features, {writes: graph()[1], cites: graph()[1]})


@model()
def deep_gcn_layer() -> Brought:
    layer = pyg.DeepGCNLayer(pyg.GENConv(FEATURES, FEATURES), torch.nn.LayerNorm(FEATURES), torch.nn.ReLU(), block="res+")
    return layer, graph()


@model(fast=True)
def graph_norm_network() -> Brought:
    network = pyg.Sequential(
        "x, edge_index",
        [(pyg.GCNConv(FEATURES, HIDDEN), "x, edge_index -> x"), (pyg.GraphNorm(HIDDEN), "x -> x"), torch.nn.ReLU()],
    )
    return network, graph()


@model()
def dense_diff_pool() -> Brought:
    class DiffPool(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = pyg.DenseSAGEConv(FEATURES, HIDDEN)
            self.assign = pyg.DenseSAGEConv(FEATURES, 4)

        def forward(self, x, adj):
            x, adj, _, _ = pyg.dense_diff_pool(self.embed(x, adj), adj, self.assign(x, adj))
            return x, adj

    return DiffPool(), (torch.randn(1, NODES, FEATURES), (torch.rand(1, NODES, NODES) < 0.2).float())


@model(fast=True)
def pyg_mlp() -> Brought:
    return pyg.MLP([FEATURES, HIDDEN, CLASSES]), (torch.randn(NODES, FEATURES),)
