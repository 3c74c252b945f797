"""How much of the work of a model is in its program, by other measures than FLOPs: the elements that are written, and the tensors of the
program that follow from the numbers of the user."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from zoo_registry import Model

from fuseflow.einsum.nodes import Apply, Expr, Keep, Program, Reduce, children, index_names
from fuseflow.einsum.verify import extents
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.frontend.trace.model_call import model_call, named_leaves

_REPEATED = re.compile(r"_\d+$")
"""The end of the name of a tensor that has the numbers of another one in other places."""


class _Elements(TorchDispatchMode):
    """While it is active, it adds up the elements that operators write. A view writes none."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        if not getattr(func, "is_view", False):
            self.written += sum(leaf.numel() for leaf in pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor))
        return results


def elements_written(model: Model) -> int:
    """The elements of the results of all operators that PyTorch runs for a model, at least 1."""
    module, args, keywords = model.bring()
    with torch.no_grad(), _Elements() as elements:
        module(*args, **keywords)
    return max(elements.written, 1)


def program_elements(program: Program) -> int:
    """The elements of the results of all operators of a program, as if no element were zero. A reduction counts what it reduces,
    since it stands for gathers and scatters, too."""
    sizes = extents(program)
    return sum(_elements(e.body, sizes[e.name], set(index_names(e.indices))) for e in program.einsums)


def _elements(expr: Expr, sizes: Mapping[str, int], loops: set[str]) -> int:
    inner = loops | set(expr.over) if isinstance(expr, Reduce | Keep) else loops
    own = math.prod(sizes[name] for name in inner) if isinstance(expr, Reduce | Keep | Apply) else 0
    return own + sum(_elements(child, sizes, inner) for child in children(expr))


def computed_before_import(model: Model, source: Source) -> list[str]:
    """The names of the tensors of a program that are no inputs of the user and follow from numbers of the user: they are others in an
    import of the model with other numbers in the places of the same floats."""
    module, args, keywords = model.bring()
    args, keywords = pytree.tree_map(_with_other_numbers, (args, keywords))
    given = {name for name, _ in named_leaves(model_call(module, args, keywords))}
    others = load(ModelSpec(module, args, kwargs=keywords)).tensors
    ours = {name: tensor.to_dense() for name, tensor in source.tensors.items() if not {name, _REPEATED.sub("", name)} & given}
    return [n for n, t in ours.items() if n not in others or not np.array_equal(t, others[n].to_dense(), equal_nan=True)]


def _with_other_numbers(leaf: Any) -> Any:
    """A tensor of floats of at least 16 bits with every number changed a little, zeros left as they are, and anything else as it is."""
    if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point() or leaf.element_size() == 1:
        return leaf
    if leaf.layout == torch.strided:
        return leaf * (1 + 0.2 * torch.rand_like(leaf))
    if leaf.layout == torch.sparse_coo:
        leaf = leaf.coalesce()
        return torch.sparse_coo_tensor(leaf.indices(), _with_other_numbers(leaf.values()), leaf.shape).coalesce()
    rows = leaf.layout in (torch.sparse_csr, torch.sparse_bsr)
    places = (leaf.crow_indices(), leaf.col_indices()) if rows else (leaf.ccol_indices(), leaf.row_indices())
    return torch.sparse_compressed_tensor(*places, _with_other_numbers(leaf.values()), leaf.shape, layout=leaf.layout)
