"""The names of all tensors of a model that a spec can speak of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fuseflow.sparsity.intermediates import Watch
from fuseflow.sparsity.weights import replica, weight_names


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


def own_name(model: nn.Module, name: str) -> str:
    """Return the name of an intermediate in fuseflow, given that name or the name in `torch.fx`.

    In the layer of a transformer, whose `intermediate` calls the module `act`, whose forward calls `gelu`, the name `intermediate.gelu` of
    `torch.fx` is our `intermediate.act.gelu`. A name that is neither, or is of a module that cannot be traced, stays.
    """
    modules = dict(model.named_modules())
    prefix, _, last = name.rpartition(".")
    if any(mark in name for mark in "*?[") or name in modules or prefix not in modules:
        return name
    try:
        graph = torch.fx.symbolic_trace(modules[prefix]).graph
    except Exception:  # whatever the forward of a user raises when it is called with proxies
        return name
    calls: Counter[str] = Counter()
    names = {}
    for node in graph.nodes:
        if node.op in ("call_function", "call_method"):
            called = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
            inner = [path for path, _ in node.meta.get("nn_module_stack", {}).values()][-1:]
            path = ".".join(part for part in (prefix, *inner, called) if part)
            calls[path] += 1
            names[node.name] = path if calls[path] == 1 else f"{path}_{calls[path]}"
    return name if name in names.values() else names.get(last, name)
