"""Names of intermediates in `torch.fx`, as STen takes them: the node names of the trace of a module, in which the modules inside
it are inlined."""

from __future__ import annotations

from collections import Counter

import torch
from torch import nn


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
