"""Multilayer perceptron that is pruned in its own file: weights by magnitude, in CSR, and activations by a threshold."""

import torch
from torch import Tensor, nn

import fuseflow.sparsity as sp

FEATURES, HIDDEN, CLASSES = 64, 256, 10
SMALL_HIDDEN = 32


class MLP(nn.Module):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.layer1 = nn.Linear(features, hidden)
        self.layer2 = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.layer1(x))
        x = torch.relu(self.layer2(x))
        return self.head(x)


def build(*, small: bool = False, fraction: float = 0.9, threshold: float = 0.1, batch: int = 8):
    """The pruned model, a batch of random inputs, and a target of training: classes in turn. Of both layers, `fraction` of the weights is
    left out, and so are activations whose magnitude is below `threshold`."""
    model = MLP(FEATURES, SMALL_HIDDEN if small else HIDDEN, CLASSES).eval()
    rules = sp.SparsityBuilder()
    rules.set_weight("layer*.weight", initial_sparsifier=sp.Magnitude(fraction), out_format=sp.CSR)
    rules.set_interm("relu*", external_sparsifier=sp.Threshold(threshold))
    return rules.get_sparse_model(model), (torch.randn(batch, FEATURES),), torch.arange(batch) % CLASSES


loss, optimizer = "cross_entropy", "sgd:lr=0.1,momentum=0.9"  # of `--train`
