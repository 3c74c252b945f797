"""The convolutions of PyTorch Geometric, unmodified, on a small graph with an `edge_index`."""

from __future__ import annotations

from functools import partial

import torch
import torch_geometric.nn as pyg
from torch_geometric.utils import erdos_renyi_graph
from zoo_registry import Brought, zoo

NODES, FEATURES, CLASSES = 16, 8, 4
model = partial(zoo.model, "pyg")


def graph() -> tuple[torch.Tensor, torch.Tensor]:
    """Features of nodes and the edges of an undirected random graph."""
    return torch.randn(NODES, FEATURES), erdos_renyi_graph(NODES, 0.2)


def weighted_graph() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x, edge_index = graph()
    return x, edge_index, torch.rand(edge_index.shape[1])


def attributed_graph(width: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x, edge_index = graph()
    return x, edge_index, torch.rand(edge_index.shape[1], width)


def sparse_graph() -> tuple[torch.Tensor, torch.Tensor]:
    """Features of nodes and the adjacency as a CSR tensor of PyTorch, which PyTorch Geometric takes in place of an `edge_index`."""
    x, edge_index = graph()
    weights = torch.ones(edge_index.shape[1])
    return x, torch.sparse_coo_tensor(edge_index, weights, (NODES, NODES)).coalesce().to_sparse_csr()


def mlp(inputs: int, outputs: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(inputs, 16), torch.nn.ReLU(), torch.nn.Linear(16, outputs))


@model(fast=True)
def gcn_conv() -> Brought:
    return pyg.GCNConv(FEATURES, CLASSES), graph()


@model()
def gcn_conv_weighted() -> Brought:
    return pyg.GCNConv(FEATURES, CLASSES), weighted_graph()


@model()
def gcn_conv_cached() -> Brought:
    return pyg.GCNConv(FEATURES, CLASSES, cached=True), graph()


@model()
def gcn_conv_sparse() -> Brought:
    return pyg.GCNConv(FEATURES, CLASSES), sparse_graph()


@model()
def gcn_conv_sparse_plain() -> Brought:
    return pyg.GCNConv(FEATURES, CLASSES, normalize=False), sparse_graph()


@model(fast=True)
def sage_conv_mean() -> Brought:
    return pyg.SAGEConv(FEATURES, CLASSES), graph()


@model()
def sage_conv_max() -> Brought:
    return pyg.SAGEConv(FEATURES, CLASSES, aggr="max"), graph()


@model()
def sage_conv_sum_sparse() -> Brought:
    return pyg.SAGEConv(FEATURES, CLASSES, aggr="sum"), sparse_graph()


@model()
def sage_conv_mean_sparse() -> Brought:
    return pyg.SAGEConv(FEATURES, CLASSES), sparse_graph()


@model()
def sage_conv_lstm() -> Brought:
    x, edge_index = graph()
    return pyg.SAGEConv(FEATURES, CLASSES, aggr="lstm"), (x, edge_index[:, edge_index[1].argsort(stable=True)])


@model(fast=True)
def gat_conv() -> Brought:
    return pyg.GATConv(FEATURES, CLASSES, heads=2), graph()


@model()
def gat_conv_edge_attributes() -> Brought:
    return pyg.GATConv(FEATURES, CLASSES, heads=2, concat=False, edge_dim=3), attributed_graph(3)


@model()
def gatv2_conv() -> Brought:
    return pyg.GATv2Conv(FEATURES, CLASSES, heads=2), graph()


@model()
def super_gat_conv() -> Brought:
    return pyg.SuperGATConv(FEATURES, CLASSES, heads=2), graph()


@model()
def gin_conv() -> Brought:
    return pyg.GINConv(mlp(FEATURES, CLASSES), train_eps=True), graph()


@model(fast=True)
def gin_conv_sparse() -> Brought:
    return pyg.GINConv(mlp(FEATURES, CLASSES)), sparse_graph()


@model()
def gine_conv() -> Brought:
    return pyg.GINEConv(mlp(FEATURES, CLASSES), edge_dim=3), attributed_graph(3)


@model()
def pna_conv() -> Brought:
    x, edge_index = graph()
    degrees = torch.bincount(torch.bincount(edge_index[1], minlength=NODES))
    conv = pyg.PNAConv(FEATURES, CLASSES, ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"], degrees)
    return conv, (x, edge_index)


@model()
def graph_conv() -> Brought:
    return pyg.GraphConv(FEATURES, CLASSES), weighted_graph()


@model()
def graph_conv_max() -> Brought:
    return pyg.GraphConv(FEATURES, CLASSES, aggr="max"), graph()


@model()
def graph_conv_sparse() -> Brought:
    return pyg.GraphConv(FEATURES, CLASSES), sparse_graph()


@model()
def cheb_conv() -> Brought:
    return pyg.ChebConv(FEATURES, CLASSES, K=3), graph()


@model()
def sg_conv() -> Brought:
    return pyg.SGConv(FEATURES, CLASSES, K=2), graph()


@model()
def ssg_conv() -> Brought:
    return pyg.SSGConv(FEATURES, CLASSES, alpha=0.1, K=2), graph()


@model()
def tag_conv() -> Brought:
    return pyg.TAGConv(FEATURES, CLASSES, K=2), graph()


@model()
def arma_conv() -> Brought:
    return pyg.ARMAConv(FEATURES, CLASSES, num_stacks=2, num_layers=2), graph()


@model()
def appnp() -> Brought:
    return pyg.APPNP(K=3, alpha=0.1), graph()


@model()
def transformer_conv() -> Brought:
    return pyg.TransformerConv(FEATURES, CLASSES, heads=2), graph()


@model()
def edge_conv() -> Brought:
    return pyg.EdgeConv(mlp(2 * FEATURES, CLASSES)), graph()


@model()
def nn_conv() -> Brought:
    return pyg.NNConv(FEATURES, CLASSES, mlp(3, FEATURES * CLASSES)), attributed_graph(3)


@model()
def gmm_conv() -> Brought:
    return pyg.GMMConv(FEATURES, CLASSES, dim=2, kernel_size=3), attributed_graph(2)


@model()
def rgcn_conv() -> Brought:
    x, edge_index = graph()
    return pyg.RGCNConv(FEATURES, CLASSES, num_relations=3), (x, edge_index, torch.randint(3, (edge_index.shape[1],)))


@model()
def film_conv() -> Brought:
    return pyg.FiLMConv(FEATURES, CLASSES), graph()


@model()
def gated_graph_conv() -> Brought:
    return pyg.GatedGraphConv(FEATURES, num_layers=2), graph()


@model()
def res_gated_graph_conv() -> Brought:
    return pyg.ResGatedGraphConv(FEATURES, CLASSES), graph()


@model()
def cluster_gcn_conv() -> Brought:
    return pyg.ClusterGCNConv(FEATURES, CLASSES), graph()


@model()
def gcn2_conv() -> Brought:
    x, edge_index = graph()
    return pyg.GCN2Conv(FEATURES, alpha=0.1, theta=0.5, layer=1), (x, torch.randn(NODES, FEATURES), edge_index)


@model()
def le_conv() -> Brought:
    return pyg.LEConv(FEATURES, CLASSES), graph()


@model()
def feast_conv() -> Brought:
    return pyg.FeaStConv(FEATURES, CLASSES, heads=2), graph()


@model()
def agnn_conv() -> Brought:
    return pyg.AGNNConv(), graph()


@model()
def gen_conv() -> Brought:
    return pyg.GENConv(FEATURES, CLASSES, aggr="softmax"), graph()


@model(fast=True)
def lg_conv() -> Brought:
    return pyg.LGConv(), graph()


@model()
def eg_conv() -> Brought:
    return pyg.EGConv(FEATURES, CLASSES, num_heads=2, num_bases=2), graph()


@model()
def fa_conv() -> Brought:
    x, edge_index = graph()
    return pyg.FAConv(FEATURES), (x, torch.randn(NODES, FEATURES), edge_index)


@model()
def hypergraph_conv() -> Brought:
    return pyg.HypergraphConv(FEATURES, CLASSES), graph()


@model()
def cg_conv() -> Brought:
    return pyg.CGConv(FEATURES, dim=3), attributed_graph(3)


@model()
def point_net_conv() -> Brought:
    x, edge_index = graph()
    return pyg.PointNetConv(mlp(FEATURES + 3, CLASSES)), (x, torch.randn(NODES, 3), edge_index)


@model()
def simple_conv() -> Brought:
    return pyg.SimpleConv(aggr="mean"), graph()


@model()
def dense_gcn_conv() -> Brought:
    adjacency = (torch.rand(1, NODES, NODES) < 0.2).float()
    return pyg.DenseGCNConv(FEATURES, CLASSES), (torch.randn(1, NODES, FEATURES), adjacency)
