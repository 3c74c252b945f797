"""The rounding errors that a program is expected to make, as another program that the interpreter evaluates.

    s[i] = sum(j) A[i, j] * X[j]
    s.variance[i] = (sum(j) (A[i, j] * X[j]) * (A[i, j] * X[j])) + (sum(j) abs(A[i, j] * X[j])) * (sum(j) abs(A[i, j] * X[j]))

Where positive and negative terms cancel, a result is small and its rounding error is not: that goes with the magnitudes of the terms. Each
operation is taken to make a relative error of its own, of either sign, of one unit roundoff. So variances add up. They are in squares of a
unit. An operator without a rule below begins anew, as if its operands were exact.

The model is that of Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from fuseflow.einsum.interpret import InputArray, evaluate_operands
from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, Reduce, index_names
from fuseflow.einsum.sparse_arrays import Operand
from fuseflow.einsum.verify import extents

LARGEST_RESULT = 1 << 24
"""The most elements of a result for which variances are cheap: they may be dense where the values are sparse."""
LARGEST_SPACE = 1 << 30
"""The most points that are evaluated in all index spaces together."""


def rounding_variances(program: Program, arrays: Mapping[str, InputArray]) -> dict[str, Operand] | None:
    """Return the variance of the rounding error of every element of the outputs, or None if it takes too much to compute.

    >>> from fuseflow.einsum.parse import parse
    >>> rounding_variances(parse("tensor A[4]\\n s = sum(i) A[i]\\n output s"), {"A": [1, -1, 3, -3]})["s"].item()
    64.0
    """
    if not _is_cheap(program):
        return None
    variances = _Variances(_variance_names(program))
    einsums = list[Einsum]()
    for einsum in program.einsums:
        body = einsum.body.body if isinstance(einsum.body, Keep) else einsum.body  # of what is not kept, it is too large
        variance = variances.of(body) or Apply("mul", (body, Const(0.0)))  # what is exact, in the same dimensions
        einsums += [einsum, replace(einsum, name=variances.names[einsum.name], body=variance)]
    outputs = {name: variances.names[name] for name in program.outputs}
    results = evaluate_operands(
        replace(program, einsums=tuple(einsums), outputs=tuple(outputs.values())), arrays, outputs_only=True
    )
    return {name: results[variance] for name, variance in outputs.items()}


def _is_cheap(program: Program) -> bool:
    sizes = extents(program)
    results = (math.prod(sizes[e.name][name] for name in index_names(e.indices)) for e in program.einsums)
    spaces = sum(math.prod(sizes[e.name].values()) for e in program.einsums)
    return max(results, default=0) <= LARGEST_RESULT and spaces <= LARGEST_SPACE


def _variance_names(program: Program) -> dict[str, str]:
    """Return a new name for the variance of each result."""
    taken = {*program.declared, *program.defined}
    suffix = "variance"
    while any(f"{name}.{suffix}" in taken for name in program.defined):
        suffix += "_"
    return {name: f"{name}.{suffix}" for name in program.defined}


@dataclass(frozen=True, slots=True)
class _Variances:
    """The variances of expressions, as expressions. `names` gives the variance of each result. None is that of what is exact."""

    names: Mapping[str, str]

    def of(self, node: Expr) -> Expr | None:
        match node:
            case Const():
                return None
            case Access():
                return replace(node, tensor=self.names[node.tensor]) if node.tensor in self.names else None
            case Keep():
                return self.of(node.body)
            case Reduce():
                return self._of_reduction(node)
            case Apply():
                return self._of_operator(node)
            case unknown:
                assert_never(unknown)

    def _of_reduction(self, node: Reduce) -> Expr | None:
        body = self.of(node.body)
        match node.op:
            case "sum":
                magnitudes = replace(node, body=Apply("abs", (node.body,)))
                return _sum(None if body is None else replace(node, body=body), _square(magnitudes))
            case "max" | "min":
                return None if body is None else Reduce("max", node.over, body)
            case _:
                return _square(node)

    def _of_operator(self, node: Apply) -> Expr | None:
        variances = [self.of(arg) for arg in node.args]
        match node.op:
            case "add" | "sub":
                return _sum(*variances, _square(node))
            case "mul":
                (a, b), (of_a, of_b) = node.args, variances
                return _sum(_scaled(of_a, b), _scaled(of_b, a), _square(node))
            case "div":
                (_, b), (of_a, of_b) = node.args, variances
                inverse = Apply("div", (Const(1.0), b))
                return _sum(_scaled(of_a, inverse), _scaled(_scaled(of_b, node), inverse), _square(node))
            case "exp":
                return _sum(_scaled(variances[0], node), _square(node))
            case "copy" | "neg" | "abs" | "relu":
                return variances[0]
            case "max" | "min":
                return _sum(*variances)
            case "where":
                return _sum(*variances[1:])
            case _:
                return _square(node)


def _square(node: Expr) -> Expr:
    return Apply("mul", (node, node))


def _scaled(variance: Expr | None, factor: Expr) -> Expr | None:
    return None if variance is None else Apply("mul", (variance, _square(factor)))


def _sum(*variances: Expr | None) -> Expr | None:
    total: Expr | None = None
    for variance in variances:
        if variance is not None:
            total = variance if total is None else Apply("add", (total, variance))
    return total
