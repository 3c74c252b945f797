"""One layer that averages the features of the neighbours of a node."""

import torch
from torch import nn


class MeanOfNeighbours(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.linear = nn.Linear(features, classes)

    def forward(self, adj, x):
        return torch.relu(self.linear(torch.sparse.mm(adj, x)))


def build(data):
    edges = data.raw.to_sparse_coo()
    rows = edges.indices()[0]
    degrees = torch.zeros(data.nodes).index_add(0, rows, edges.values()).clamp(min=1)
    adj = torch.sparse_coo_tensor(edges.indices(), edges.values() / degrees[rows], edges.shape).to_sparse_csr()
    model = MeanOfNeighbours(data.features.shape[1], data.classes)
    return model.eval(), (adj, data.features.to_dense())
