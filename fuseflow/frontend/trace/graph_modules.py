"""Graphs of PyTorch as models: graphs of exported programs, and graphs that Dynamo captures for `torch.compile`.

A graph runs node by node. So each operator keeps the module path and the line of the user's code, which the code that PyTorch generates
for a graph does not tell.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Interpreter, Node
from torch.utils import _pytree as pytree

_PART = re.compile(r"\.?_(?:modules|parameters|buffers)\['([^']+)'\]|\.([^.\[]+)")
"""A part of the path of a tensor in the model, as Dynamo writes it: `L['self']._modules['layers']._parameters['weight']`."""


def keep_origins(graph_module: GraphModule) -> GraphModule:
    """Let a graph with a signature run node by node. PyTorch still checks the inputs before."""
    forward = graph_module.forward
    spec = graph_module._in_spec

    @functools.wraps(forward)
    def run(*args: Any, **kwargs: Any) -> Any:
        keywords = spec.child(1).context if spec.num_children == 2 else kwargs
        leaves = pytree.tree_leaves((args, {name: kwargs[name] for name in keywords if name in kwargs}))
        return _run(graph_module, leaves)

    graph_module.forward = run
    return graph_module


class DynamoGraph(nn.Module):
    """A graph that Dynamo captured.

    Parameters and buffers of the user's model, which are inputs of the graph, are parameters and buffers of this module, with the
    names that they have in the model. The other tensors are the arguments of `forward`, in order. Arguments that are numbers keep
    their positions.
    """

    def __init__(self, graph_module: GraphModule, sources: Sequence[str], values: Sequence[Any]) -> None:
        super().__init__()
        object.__setattr__(self, "graph_module", graph_module)  # not a part of this module, which has the user's paths
        owners = {source.partition("]")[0] for source in sources if _state_name(source)}
        prefix = len(owners) > 1  # several models, each in a variable of its own
        self.states = [_state_name(source, prefix) for source in sources]
        self.values = [None if isinstance(value, Tensor) else value for value in values]
        self.inputs: dict[str, Tensor] = {}
        for name, source, value in zip(self.states, sources, values, strict=True):
            if not isinstance(value, Tensor):
                continue
            if name:
                _put(self, name, value)
            else:
                self.inputs[_argument_name(source, self.inputs)] = value

    def forward(self, **inputs: Tensor) -> list[Any]:
        """Run the graph on inputs in their order, and return its outputs in a list."""
        rest = iter(inputs[name] for name in self.inputs)
        arguments = []
        for name, value in zip(self.states, self.values, strict=True):
            if value is not None:
                arguments.append(value)
            else:
                arguments.append(functools.reduce(getattr, name.split("."), self) if name else next(rest))
        outputs: list[Any] = list(_run(self.graph_module, arguments))  # type: ignore[arg-type]
        return outputs


def _run(graph_module: GraphModule, leaves: Sequence[Any]) -> Any:
    with torch.fx.traceback.preserve_node_meta():
        return Interpreter(graph_module).run(*leaves, enable_io_processing=False)


def input_sources(graph_module: GraphModule) -> list[str]:
    """Return the user's expressions for the inputs of a graph, such as `L['x']`. Dynamo drops them when its back end returns."""
    return [_source(node) for node in graph_module.graph.nodes if node.op == "placeholder"]


def _source(node: Node) -> str:
    source = getattr(node.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", node.name)
    return str(name() if callable(name) else name)


def _state_name(source: str, prefix: bool = False) -> str:
    """Return the path of a parameter or a buffer in the model, or '' for any other input. With a prefix, it begins with the variable.

    >>> _state_name("L['self']._modules['layers']._modules['0']._parameters['weight']"), _state_name("L['x']")
    ('layers.0.weight', '')
    """
    if "._parameters[" not in source and "._buffers[" not in source:
        return ""
    owner, _, path = source.partition("]")
    parts = [key or attribute for key, attribute in _PART.findall(path)]
    return ".".join([*re.findall(r"\w+", owner)[1:], *parts] if prefix else parts)


def _argument_name(source: str, taken: dict[str, Tensor]) -> str:
    """Return a name that is not in `taken` for an input of the user: `k_a` for `L['k']['a']`."""
    words = re.findall(r"\w+", source.removeprefix("L"))
    name = base = "_".join(words) or "input"
    number = 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def _put(module: nn.Module, path: str, tensor: Tensor) -> None:
    """Make a tensor a part of a module by its path. The modules on the way are made."""
    *parents, name = path.split(".")
    for parent in parents:
        if parent not in module._modules:
            module.add_module(parent, nn.Module())
        module = module._modules[parent]  # type: ignore[assignment]
    module.register_buffer(name, tensor.detach())
