"""The operators of a model: what `torch.export` gives after the core decompositions of PyTorch, whether or not fuseflow takes it."""

from __future__ import annotations

import operator
from typing import Any

import torch
from zoo_compile import taken
from zoo_registry import Model


def operators(model: Model) -> dict[str, int]:
    """How often each operator stands in the exported graph, by its overload name, such as `aten.index_select.default`.

    A model that PyTorch cannot export has the one operator `not exported: REASON`.
    """
    module, args, keywords = model.bring()
    try:
        with torch.no_grad():
            module, args = taken(module, args, keywords, module(*args, **keywords))
            exported = torch.export.export(module, args, strict=False).run_decompositions()
    except Exception as error:
        return {f"not exported: {type(error).__name__}: {str(error).strip().splitlines()[0][:120]}": 1}
    counts: dict[str, int] = {}
    for node in exported.graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem:
            name = _name(node.target)
            counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))


def _name(target: Any) -> str:
    return str(target) if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))
