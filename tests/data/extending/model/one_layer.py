import torch
import torch.nn.functional as F


class OneLayer(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.lin = torch.nn.Linear(features, classes)

    def forward(self, adj, x):
        return F.relu(torch.sparse.mm(adj, self.lin(x)))


def build(data):
    model = OneLayer(data.features.shape[1], data.classes)
    return model.eval(), (data.adjacency, data.features.to_dense())
