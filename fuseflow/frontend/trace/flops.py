"""How much of a model's work is in its program. Work that PyTorch did before import is missing from it.

Both sides count products of two tensors that are summed, a multiplication and an addition each, as if no element were zero. Both leave
out sums of one product, since a program has no dimension of extent 1, and products with a sparse tensor: PyTorch counts some layouts and
not others, and no gather or scatter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from fuseflow.einsum.nodes import Access, Apply, Expr, Keep, Program, Reduce, children, index_names
from fuseflow.einsum.verify import extents

_MATRIX_PRODUCTS = (torch.ops.aten.mm, torch.ops.aten.bmm, torch.ops.aten.addmm, torch.ops.aten.baddbmm)


def flop_counter() -> FlopCounterMode:
    """Return a context that counts the FLOPs of the dense products that PyTorch computes in it, for `get_total_flops`."""
    return FlopCounterMode(display=False, custom_mapping={op: _of_dense(op, count) for op, count in flop_registry.items()})


def flops_notice(evaluated: int, program: Program) -> str:
    """Return the sentence that says how much work PyTorch did before import, where that was any. `evaluated` are its FLOPs."""
    if not evaluated:
        return ""
    share = evaluated / (evaluated + program_flops(program))
    if share > 0.5:
        return (
            f"most of the model's work is not in the program: PyTorch did {evaluated:,} FLOPs before import, {share:.0%} of all. "
            "Cycles of the program are those of the rest"
        )
    return f"what PyTorch evaluated before import took {evaluated:,} FLOPs, {share:.1%} of the model's"


def _of_dense(op: object, count: Callable[..., int]) -> Callable[..., int]:
    """Return the function `count`, which counts the FLOPs of an operator, changed to return 0 if an operand is sparse, or if it is a
    product of matrices whose sums have one term."""

    def counted(*args: Any, **kwargs: Any) -> int:
        operands = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if any(operand.layout != torch.strided for operand in operands):
            return 0
        if op in _MATRIX_PRODUCTS and args[-1].shape[-2] == 1:
            return 0
        if not getattr(count, "_get_raw", False):
            args, kwargs = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.shape, (args, kwargs))
        return count(*args, **kwargs)

    counted._get_raw = True  # type: ignore[attr-defined]
    return counted


def program_flops(program: Program) -> int:
    """Return the FLOPs of all summed products of two tensors or more in a program, without products with a sparse tensor.

    A selection is no factor, and an index that it determines costs nothing: `sum(h) select[i, h] * X[h, j]` is a slice.
    """
    sizes = extents(program)
    sparse = {t.name for t in program.inputs if t.format is not None and not t.format.all_dense and not _is_selection(t.name)}
    return sum(_flops(e.body, sizes[e.name], set(index_names(e.indices)), sparse) for e in program.einsums)


def _is_selection(name: str) -> bool:
    return name == "select" or name.startswith("select_")


def _flops(expr: Expr, sizes: Mapping[str, int], loops: set[str], sparse: set[str]) -> int:
    inner = loops | set(expr.over) if isinstance(expr, Reduce | Keep) else loops
    own = 0
    if isinstance(expr, Reduce) and expr.op == "sum":
        factors = list(_factors(expr.body))
        selected = {factor.names[-1] for factor in factors if _is_selection(factor.tensor)}
        others = [factor for factor in factors if not _is_selection(factor.tensor)]
        if len(others) > 1 and not any(factor.tensor in sparse for factor in others):
            own = 2 * math.prod(sizes[name] for name in inner - selected)
    return own + sum(_flops(child, sizes, inner, sparse) for child in children(expr))


def _factors(expr: Expr) -> Iterator[Access]:
    """Yield the tensors of a product."""
    if isinstance(expr, Access):
        yield expr
    elif isinstance(expr, Apply) and expr.op == "mul":
        for arg in expr.args:
            yield from _factors(arg)
