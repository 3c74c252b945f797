"""Recipes: how a trained model becomes sparse step by step, so that it loses little.

Each takes the dense model, a spec, the optimizer of the model, and `train`, a function that trains the model for a while with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import nn
from torch.optim import Optimizer

from fuseflow.errors import SparsityError
from fuseflow.sparsity.spec import SparseSpec
from fuseflow.sparsity.training.holding import Handle, attach
from fuseflow.sparsity.weights import weight_entries


def one_shot(model: nn.Module, spec: SparseSpec, optimizer: Optimizer, train: Callable[[], object]) -> Handle:
    """Prune all weights at once, then train."""
    handle = attach(model, spec, optimizer)
    train()
    return handle


def iterative(
    model: nn.Module, spec: SparseSpec, optimizer: Optimizer, train: Callable[[], object], fractions: Sequence[float]
) -> Handle:
    """Prune all weights by one fraction after the other, and train after each."""
    if not fractions:
        raise SparsityError("there is no fraction to prune by", hint="pass several, such as 0.5, 0.7 and 0.8")
    handle = attach(model, spec.with_fraction(fractions[0]), optimizer)
    for fraction in fractions:
        handle.select(fraction)
        train()
    return handle


def layer_wise(model: nn.Module, spec: SparseSpec, optimizer: Optimizer, train: Callable[[], object]) -> Handle:
    """Prune one weight after the other, in the order of the model, and train after each."""
    handle = attach(model, SparseSpec(intermediates=spec.intermediates), optimizer)
    for name, entry in weight_entries(model, spec).items():
        handle.remove()
        handle = attach(model, SparseSpec(((name, entry),)), optimizer)
        train()
    return handle
