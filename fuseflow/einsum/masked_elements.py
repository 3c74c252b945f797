"""The elements that depend on a softmax of nothing, as another program that the interpreter evaluates.

A row that a mask covers completely has the maximum -inf. PyTorch subtracts that from every score, and -inf - -inf is NaN there. Here it is
-inf, so that the row is empty. Results of such a row are NaN in PyTorch, too. No other NaN of PyTorch is behind a mask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from fuseflow.einsum.interpret import InputArray, evaluate_operands
from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Keep, Program, Reduce
from fuseflow.einsum.sparse_arrays import Operand

COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
"""Operators that make a truth value of NaN."""


def masked_elements(program: Program, arrays: Mapping[str, InputArray]) -> dict[str, Operand]:
    """Return for every output which of its elements depend on a softmax of nothing: 1 where one does, and 0 elsewhere. Outputs that have
    none at all are left out.

    >>> from fuseflow.einsum.parse import parse
    >>> text = "tensor A[2, 2]\\n m[i] = max(j) A[i, j]\\n y[i, j] = exp(A[i, j] - m[i])\\n output y"
    >>> masked_elements(parse(text), {"A": [[1.0, -math.inf], [-math.inf, -math.inf]]})["y"].tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    names, einsums = dict[str, str](), list(program.einsums)
    for einsum in program.einsums:
        flag = _flag(einsum.body, names, program)
        if flag is not None:
            names[einsum.name] = _fresh(f"{einsum.name}.masked", program)
            whole = Access(einsum.name, einsum.indices)  # which has all indices of the left side
            einsums.append(replace(einsum, name=names[einsum.name], body=Apply("where", (whole, flag, flag))))
    outputs = {name: names[name] for name in program.outputs if name in names}
    if not outputs:
        return {}
    results = evaluate_operands(
        replace(program, einsums=tuple(einsums), outputs=tuple(dict.fromkeys(outputs.values()))), arrays, outputs_only=True
    )
    return {name: results[flag] for name, flag in outputs.items()}


def _fresh(name: str, program: Program) -> str:
    while name in program.declared or name in program.defined:
        name += "_"
    return name


def _flag(node: Expr, names: Mapping[str, str], program: Program) -> Expr | None:
    """Return an expression that is 1 where an element is NaN because of a mask, or None if no element can be. `names` has the
    flags of tensors."""
    match node:
        case Const():
            return None
        case Access():
            return replace(node, tensor=names[node.tensor]) if node.tensor in names else None
        case Keep():
            return _flag(node.body, names, program)
        case Reduce():
            flag = _flag(node.body, names, program)
            # the product has all indices that are folded
            return None if flag is None else Reduce("max", node.over, Apply("max", (flag, Apply("mul", (Const(0.0), node.body)))))
        case Apply():
            if node.op in COMPARISONS:
                return None
            if node.op == "where":
                condition, *branches = node.args
                first, second = (_flag(branch, names, program) for branch in branches)
                if first is None and second is None:
                    return None
                return Apply("where", (condition, first or Const(0.0), second or Const(0.0)))
            flags = [_flag(arg, names, program) for arg in node.args]
            if node.op == "sub" and _is_maximum(node.args[1], program):
                flags.append(_both_masked(*node.args))
            return _any(*flags)
        case unknown:
            assert_never(unknown)


def _is_maximum(node: Expr, program: Program) -> bool:
    """Return whether an expression is the maximum of rows."""
    match node:
        case Reduce():
            return node.op == "max"
        case Access():
            return node.tensor in program.defined and _is_maximum(program.defined[node.tensor].body, program)
        case _:
            return False


def _both_masked(scores: Expr, maximum: Expr) -> Expr:
    return Apply("mul", tuple(Apply("eq", (side, Const(-math.inf))) for side in (scores, maximum)))


def _any(*flags: Expr | None) -> Expr | None:
    total: Expr | None = None
    for flag in flags:
        if flag is not None:
            total = flag if total is None else Apply("max", (total, flag))
    return total
