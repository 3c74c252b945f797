"""A multilayer perceptron with the weights of a file, which `torch.save(model.state_dict(), "mlp.pt")` wrote."""

import torch
from torch import nn

FORMATS = {"*.weight": "csr"}


def build(*, weights: str = "mlp.pt"):
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    model.load_state_dict(torch.load(weights, weights_only=True))
    return model.eval(), (torch.randn(8, 64),)
