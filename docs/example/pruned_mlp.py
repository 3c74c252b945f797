"""A multilayer perceptron that PyTorch pruned: nine of ten weights of each layer are 0."""

import torch
from torch import nn
from torch.nn.utils import prune


def build(*, amount: float = 0.9):
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    for layer in (model[0], model[2]):
        prune.l1_unstructured(layer, "weight", amount=amount)
    return model.eval(), (torch.randn(8, 64),)
