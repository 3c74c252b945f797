"""What the comparison of a run with a reference needs beside the values: the rounding errors that a program is expected to make, and the
elements that depend on a softmax of nothing. Both are other programs, which the interpreter evaluates.

    s[i] = sum(j) A[i, j] * X[j]
    s.variance[i] = (sum(j) A[i, j]^2 * X[j]^2) + (sum(j) abs(A[i, j]) * abs(X[j]))^2

Where positive and negative terms cancel, a result is small and its rounding error is not: the error grows with the magnitudes of terms.
Each operation is taken to make a relative error of its own, of either sign, of one unit roundoff. So variances add up. They are in squares
of a unit. Functions are evaluated at both ends of the range of their rounded operands, `ROUNDING_FACTOR` standard deviations away. So a
variance is infinite where rounding may leave the domain of a function, as in a root of a negative number or a quotient by 0.

The model is from Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019.

A row that a mask covers completely has the maximum -inf. PyTorch subtracts that from every score, and -inf - -inf is NaN there. Here it is
-inf, so that the row is empty. Results of such a row are NaN in PyTorch, too. No other NaN of PyTorch is behind a mask.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import assert_never

from fuseflow.einsum.interpret import InputArray, evaluate_operands
from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, Reduce, free_indices, index_names
from fuseflow.einsum.sparse_arrays import Operand
from fuseflow.einsum.verify import extents
from fuseflow.float32.operator_precision import COMPARISONS
from fuseflow.keep_rules import Largest

ROUNDING_FACTOR = 16
"""An error of at most this many standard deviations of the rounding error is taken for rounding."""
LARGEST_RESULT = 1 << 24
"""The most elements of a result for which variances are cheap: they may be dense where the values are sparse."""
LARGEST_SPACE = 1 << 30
"""The most points that are evaluated in all index spaces together."""


def rounding_variances(
    program: Program, arrays: Mapping[str, InputArray], unit: float = 2.0**-24, most_points: int = LARGEST_SPACE
) -> dict[str, Operand] | None:
    """Return the variance of the rounding error of every element of the outputs, or None if it takes too much to compute. `unit` is the
    roundoff of the arithmetic.

    >>> from fuseflow.einsum.parse import parse
    >>> rounding_variances(parse("tensor A[4]\\n s = sum(i) A[i]\\n output s"), {"A": [1, -1, 3, -3]})["s"].item()
    64.0
    """
    sizes = extents(program)
    result_sizes = [math.prod(sizes[e.name][name] for name in index_names(e.indices)) for e in program.einsums]
    spaces = sum(math.prod(sizes[e.name].values()) for e in program.einsums)
    if max(result_sizes, default=0) > LARGEST_RESULT or spaces > most_points:
        return None
    variances = _Variances(_variance_names(program), unit)
    for einsum in program.einsums:
        variances.add(einsum)
    outputs = {name: variances.names[name] for name in program.outputs}
    noisy = replace(program, einsums=tuple(variances.einsums), outputs=tuple(outputs.values()))
    results = evaluate_operands(noisy, arrays, outputs_only=True, wide=True)
    return {name: results[variance] for name, variance in outputs.items()}


def _variance_names(program: Program) -> dict[str, str]:
    """Return a new name for the variance of each result, with which no name in the program begins."""
    taken = {*program.declared, *program.defined}
    suffix = "variance"
    while any(other.startswith(f"{name}.{suffix}") for name in program.defined for other in taken):
        suffix += "_"
    return {name: f"{name}.{suffix}" for name in program.defined}


Terms = tuple[Expr, ...]
"""A variance, as a sum of terms. An exact value has none."""
CHOOSING = frozenset(("copy", "neg", "abs", "relu", "threshold", "saturate", "nearest", "nearest_finite", "lt", "le", "gt", "ge"))
"""Operators whose result is exact if their operands are."""


@dataclass(slots=True)
class _Variances:
    """The variances of expressions, as expressions. `names` gives the variance of each result. `einsums` are the statements so far."""

    names: Mapping[str, str]
    unit: float
    einsums: list[Einsum] = field(default_factory=list)
    _einsum: str = ""
    _numbers: count[int] = field(default_factory=count)

    def add(self, einsum: Einsum) -> None:
        """Add an Einsum, and its variance. A value that is infinite or no number has none."""
        self.einsums.append(einsum)
        self._einsum = einsum.name
        body = einsum.body
        terms = (
            self._of_marks(body, Access(einsum.name, einsum.indices)) if isinstance(body, Keep) and body.marks else self.of(body)
        )
        finite = Apply("lt", (Apply("abs", (Access(einsum.name, einsum.indices),)), Const(math.inf)))
        variance = Apply("where", (finite, _sum(terms), Const(0.0)))
        self.einsums.append(replace(einsum, name=self.names[einsum.name], body=variance))

    def of(self, node: Expr) -> Terms:
        match node:
            case Const():
                return ()
            case Access():
                return (replace(node, tensor=self.names[node.tensor]),) if node.tensor in self.names else ()
            case Keep():
                return self.of(node.body)  # entries that are not kept get too much
            case Reduce():
                return self._of_reduction(node)
            case Apply():
                return self._of_operator(node)
            case unknown:
                assert_never(unknown)

    def _of_marks(self, node: Keep, marks: Access) -> Terms:
        """Return the variance of marks: an error of 2 where rounding may decide which of two entries is marked."""
        terms = self.of(node.body)
        if not terms or not isinstance(node.rule, Largest) or node.rule.every:
            return ()
        by = {"magnitude": "abs", "greatest": "copy", "least": "neg"}[node.rule.by]
        key, reach = Apply(by, (node.body,)), self._reach(self._once(_sum(terms)))
        low, high = (Apply(side, (key, reach)) for side in ("sub", "add"))
        last = self._once(Reduce("min", node.over, Apply("where", (marks, low, Const(math.inf)))))
        first = self._once(Reduce("max", node.over, Apply("where", (marks, Const(-math.inf), high))))
        unsure = Apply("where", (marks, Apply("le", (low, first)), Apply("ge", (high, last))))
        return (Apply("mul", (unsure, Const((ROUNDING_FACTOR * self.unit / 2) ** -2))),)

    def _of_reduction(self, node: Reduce) -> Terms:
        terms = self.of(node.body)
        match node.op:
            case "sum":
                magnitudes = self._once(replace(node, body=_absolute(node.body)))
                return (*(replace(node, body=_spread(term, node)) for term in terms), _square(magnitudes))
            case "max" | "min":
                return (self._of_extremum(node, self._once(_sum(terms))),) if terms else ()
            case "prod":
                value = self._once(node)
                relative = (Apply("div", (_spread(term, node), _square(node.body))) for term in terms)
                return (*(_scaled(replace(node, op="sum", body=term), value) for term in relative), _square(value))
            case op:
                raise AssertionError(op)

    def _of_extremum(self, node: Reduce, variance: Expr) -> Expr:
        """Return the largest variance of the elements that may be the extremum after rounding."""
        margin, compare = ("add", "ge") if node.op == "max" else ("sub", "le")
        reaches = Apply(compare, (Apply(margin, (node.body, self._reach(variance))), self._once(node)))
        return Reduce("max", node.over, Apply("where", (reaches, _spread(variance, node), Const(0.0))))

    def _of_operator(self, node: Apply) -> Terms:
        of = [self.of(arg) for arg in node.args]
        own = () if node.op in CHOOSING else (_square(node),)
        match node.op, node.args:
            case (("copy" | "neg"), _):
                return of[0]
            case (("add" | "sub"), _):
                return (*of[0], *of[1], *own)
            case "mul", (a, b):
                second, (of_a, of_b) = self.unit**2, (self._factor(terms) for terms in of)
                both = (Apply("mul", (Apply("mul", (of_a, of_b)), Const(second))),) if of_a and of_b else ()
                return (*_scaled_by(of_a, b), *_scaled_by(of_b, a), *both, Apply("mul", (_square(a), _square(b))))
            case "div", (_, b):
                inverse = Apply("div", (Const(1.0), b))
                of_b = self._factor(of[1])
                passing = tuple(_scaled(term, inverse) for term in of[0])
                if of_b is None:
                    return (*passing, *own)
                sure = Apply("ge", (Apply("abs", (b,)), self._reach(of_b)))
                by_divisor = _scaled(_scaled(of_b, node), inverse)
                return (*passing, Apply("where", (sure, by_divisor, Const(math.inf))), *own)
            case (("max" | "min"), (a, b)):
                return self._of_choice(node, a, b, *(self._factor(terms) for terms in of))
            case "where", (condition, a, b):
                chosen = Apply("where", (condition, _sum(of[1]), _sum(of[2])))
                jump = tuple(_scaled(term, Apply("sub", (a, b))) for term in of[0])
                return (*((chosen,) if of[1] or of[2] else ()), *jump)
            case (("eq" | "ne"), (a, b)):
                of_both = self._factor((*of[0], *of[1]))
                if of_both is None:
                    return ()
                close = Apply("lt", (Apply("abs", (Apply("sub", (a, b)),)), self._reach(of_both)))
                return (Apply("where", (close, Const((ROUNDING_FACTOR * self.unit) ** -2), Const(0.0))),)
            case _:
                ends = (self._at_ends(node, at, terms) for at, terms in enumerate(of) if terms)
                return (*ends, *own)

    def _of_choice(self, node: Apply, a: Expr, b: Expr, of_a: Expr | None, of_b: Expr | None) -> Terms:
        """Return the variances, `of_a` and `of_b`, of those of the operands `a` and `b` that may be the extremum."""
        less = "le" if node.op == "max" else "ge"
        terms = []
        for of_one, one, other in ((of_a, a, b), (of_b, b, a)):
            if of_one is not None:
                reach = self._reach(of_one)
                beyond = Apply(less, (Apply("add" if node.op == "max" else "sub", (one, reach)), other))
                terms.append(Apply("where", (beyond, Const(0.0), of_one)))
        return tuple(terms)

    def _at_ends(self, node: Apply, at: int, terms: Terms) -> Expr:
        """Return the variance of an operator from the operand at position `at`, whose variance is `terms`. It follows from both
        ends of the range of the operand, and is infinite where the operator has no value there."""
        reach, value = self._reach(self._once(_sum(terms))), self._once(node)
        moves = list[Expr]()
        for side in ("add", "sub"):
            end = replace(node, args=tuple(Apply(side, (a, reach)) if n == at else a for n, a in enumerate(node.args)))
            moves.append(Apply("abs", (Apply("sub", (end, value)),)))
        move = self._once(Apply("max", (moves[0], moves[1])))
        known = Apply("where", (Apply("eq", (move, move)), move, Const(math.inf)))  # not NaN
        return _square(Apply("mul", (known, Const(1 / (ROUNDING_FACTOR * self.unit)))))

    def _reach(self, variance: Expr) -> Expr:
        """Return the largest error that is taken for rounding: `ROUNDING_FACTOR` standard deviations."""
        return Apply("mul", (Apply("sqrt", (variance,)), Const(ROUNDING_FACTOR * self.unit)))

    def _factor(self, terms: Terms) -> Expr | None:
        """Return a variance as an expression that may occur several times, or None for an exact value."""
        return self._once(_sum(terms)) if terms else None

    def _once(self, node: Expr) -> Expr:
        """Return a value that is computed in a statement of its own, so that it may occur several times."""
        if isinstance(node, Access | Const):
            return node
        indices = free_indices(node)
        name = f"{self.names[self._einsum]}.{next(self._numbers)}"
        self.einsums.append(Einsum(name, indices, node))
        return Access(name, indices)


def _absolute(node: Expr) -> Expr:
    """Return the magnitude of an expression: of a product, as a product, which the interpreter never builds before it is summed."""
    if isinstance(node, Apply) and node.op == "mul":
        return replace(node, args=tuple(map(_absolute, node.args)))
    return Apply("abs", (node,))


def _square(node: Expr) -> Expr:
    """Return the square of an expression, of a product as a product of squares."""
    return Apply("mul", (node, node))


def _scaled(variance: Expr, factor: Expr) -> Expr:
    return Apply("mul", (variance, _square(factor)))


def _scaled_by(variance: Expr | None, factor: Expr) -> Terms:
    return () if variance is None else (_scaled(variance, factor),)


def _spread(term: Expr, node: Reduce) -> Expr:
    """Return `term` as an expression that has all indices which the reduction `node` folds."""
    if set(node.over) <= set(free_indices(term)):
        return term
    return Apply("where", (Apply("eq", (node.body, node.body)), term, term))


def _sum(terms: Terms) -> Expr:
    return _folded("add", terms) or Const(0.0)


def _folded(op: str, terms: Iterable[Expr]) -> Expr | None:
    """Return an operator applied to all terms, from left to right; None if there are none."""
    total: Expr | None = None
    for term in terms:
        total = term if total is None else Apply(op, (total, term))
    return total


# Elements behind a mask ------------------------------------------------------------------------------------------------------


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
            name = f"{einsum.name}.masked"
            while name in program.declared or name in program.defined:
                name += "_"
            names[einsum.name] = name
            whole = Access(einsum.name, einsum.indices)  # which has all indices of the left side
            einsums.append(replace(einsum, name=name, body=Apply("where", (whole, flag, flag))))
    outputs = {name: names[name] for name in program.outputs if name in names}
    if not outputs:
        return {}
    results = evaluate_operands(
        replace(program, einsums=tuple(einsums), outputs=tuple(dict.fromkeys(outputs.values()))), arrays, outputs_only=True
    )
    return {name: results[flag] for name, flag in outputs.items()}


def _flag(node: Expr, names: Mapping[str, str], program: Program) -> Expr | None:
    """Return an expression that is 1 where a mask makes an element NaN, None if it makes none. `names` has the flags of tensors."""
    match node:
        case Const():
            return None
        case Access():
            return replace(node, tensor=names[node.tensor]) if node.tensor in names else None
        case Keep():
            return None if node.marks else _flag(node.body, names, program)
        case Reduce():
            flag = _flag(node.body, names, program)
            # the product has all indices that are folded
            return None if flag is None else Reduce("max", node.over, Apply("max", (flag, Apply("mul", (Const(0.0), node.body)))))
        case Apply():
            if node.op in COMPARISONS:  # it makes a truth value of NaN
                return None
            if node.op == "where":
                condition, *branches = node.args
                first, second = (_flag(branch, names, program) for branch in branches)
                if first is None and second is None:
                    return None
                return Apply("where", (condition, first or Const(0.0), second or Const(0.0)))
            flags = [_flag(arg, names, program) for arg in node.args]
            if node.op == "sub" and _is_maximum(node.args[1], program):
                flags.append(Apply("mul", tuple(Apply("eq", (side, Const(-math.inf))) for side in node.args)))  # both are masked
            return _folded("max", [flag for flag in flags if flag is not None])
        case unknown:
            assert_never(unknown)


def _is_maximum(node: Expr, program: Program) -> bool:
    """Return whether an expression is the maximum of rows."""
    if isinstance(node, Access):
        return node.tensor in program.defined and _is_maximum(program.defined[node.tensor].body, program)
    return isinstance(node, Reduce) and node.op == "max"
