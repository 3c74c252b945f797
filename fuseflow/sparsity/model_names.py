"""The names of all tensors of a model that a spec can speak of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fuseflow.sparsity.intermediates import Watch
from fuseflow.sparsity.stored_weights import replica
from fuseflow.sparsity.weights import weight_names


@dataclass(frozen=True, slots=True)
class Names:
    """The qualified names of the weights of a model, and the names of the intermediates of one run of it, in order."""

    weights: tuple[str, ...]
    intermediates: tuple[str, ...]

    def __str__(self) -> str:
        sections = (("weights", self.weights), ("intermediates", self.intermediates))
        return "\n".join(f"{title}:" + "".join(f"\n  {name}" for name in names) for title, names in sections)


def names(model: nn.Module, *inputs: Any, **kwargs: Any) -> Names:
    """Run a copy of a model on its inputs and return the names of its weights and intermediates. Nothing is traced, so that the
    model may do whatever Python can.

    >>> print(names(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), torch.ones(1, 2)))
    weights:
      0.weight
      0.bias
    intermediates:
      0.linear
      0
      1.relu
      1
    """
    order: dict[str, None] = {}

    def visit(name: str, tensor: Tensor) -> Tensor:
        order.setdefault(name)
        return tensor

    copied = replica(model)
    Watch(copied, visit, begin=lambda: None, end=lambda: None)
    with torch.no_grad(), torch.random.fork_rng(devices=()):
        copied(*inputs, **kwargs)
    return Names(tuple(name for group in weight_names(model).values() for name in group), tuple(order))
