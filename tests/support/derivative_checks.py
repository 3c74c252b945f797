"""Checks of derivative rules against `torch.autograd` of PyTorch's own operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from fuseflow.frontend.decompositions.backward_operators import BACKWARD_DECOMPOSITIONS
from fuseflow.frontend.decompositions.operator_formulas import INNER_IDENTITIES
from fuseflow.frontend.decompositions.slices_and_windows import SLICE_WRITES
from fuseflow.frontend.derivatives.rules import RULES
from fuseflow.frontend.trace.fx_origin import short_name
from fuseflow.frontend.trace.operator_support import LOWERABLE, MOVEMENTS


def check_rule(target: Any, *args: Any, witness: Callable[..., Any] | None = None, **kwargs: Any) -> list[str]:
    """Compare the gradients of a rule with those of PyTorch, and return the operators of the rule. All of them have an Einsum form. The
    `witness` computes in PyTorch what the target does, if that is a function of fuseflow."""
    operands = pytree.tree_map(lambda x: x.detach() if isinstance(x, Tensor) else x, (args, kwargs))
    tensors = [x for x in pytree.tree_leaves(operands) if isinstance(x, Tensor)]
    differentiable = [x.requires_grad_() for x in tensors if x.is_floating_point()]
    results = _tuple((witness or target)(*operands[0], **operands[1]))
    generator = torch.Generator().manual_seed(7)
    gradients = tuple(
        torch.randn(x.shape, generator=generator, dtype=x.dtype) if x.is_floating_point() else None for x in results
    )
    pairs = [(x, g) for x, g in zip(results, gradients, strict=True) if g is not None]
    expected = iter(torch.autograd.grad([x for x, _ in pairs], differentiable, [g for _, g in pairs], allow_unused=True))
    with torch.no_grad():
        actual = RULES[target](gradients, results, *operands[0], **operands[1])
    assert len(actual) == len(tensors)
    for x, gradient in zip(tensors, actual, strict=True):
        wanted = next(expected) if x.is_floating_point() else None
        if gradient is None:
            assert wanted is None or not wanted.any()
        else:
            wanted = torch.zeros_like(x) if wanted is None else wanted
            torch.testing.assert_close(gradient, wanted, equal_nan=True)
    leaves, structure = pytree.tree_flatten((gradients, results, *operands))
    given = [x for x in leaves if isinstance(x, Tensor)]

    def rule(*tensors: Tensor) -> list[Tensor]:
        rest = iter(tensors)
        values = [next(rest) if isinstance(x, Tensor) else x for x in leaves]
        gradients, results, args, kwargs = pytree.tree_unflatten(values, structure)
        return [x for x in RULES[target](gradients, results, *args, **kwargs) if x is not None]

    return operators(rule, given)


def operators(function: Any, tensors: list[Tensor]) -> list[str]:
    """Return the operators of a function in the dense trace, but for movements. All of them have an Einsum form."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        fake = [torch.empty(tuple(x.shape), dtype=x.dtype) for x in tensors]
        table = {**get_decomposition_table(), **SLICE_WRITES, **INNER_IDENTITIES, **BACKWARD_DECOMPOSITIONS}
        graph = make_fx(function, decomposition_table=table)(*fake).graph
    graph.eliminate_dead_code()
    names = [short_name(node.target) for node in graph.nodes if node.op == "call_function"]
    accepted = LOWERABLE | {"getitem"}
    assert set(names) <= accepted, set(names) - accepted
    return [name for name in names if name not in MOVEMENTS | {"getitem"}]


def _tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)
