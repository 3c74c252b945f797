"""A second meaning of Einsum programs, in PyTorch's numbers: an own operator table, and a bound on what rounding may do.

Written from the documentation of the operators; nothing here asks the package what an operator means. An Einsum is evaluated over its
whole index space: every index is an axis of every value (of length 1 where the value lacks it).

Next to each value stands how far any correct evaluation may be from it: zero for small binary fractions, whose sums and products are
exact in any order, some units in the last place else, carried along by evaluating each operator at the corners of its operands'
bounds. It is infinite where rounding decides (a comparison of rounded numbers, a division by a zero of unknown sign), so that a
generator can leave such programs out, and every entry of the others is a fair test.

Which numbers an operator computes in is asked of PyTorch (`result_type`). All values are held in 64 bits; what has 32 is rounded to them,
operand for operand, and its bound grows by that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from fuseflow.einsum.nodes import (
    Access,
    Affine,
    Apply,
    Const,
    Einsum,
    Expr,
    Index,
    Keep,
    Program,
    Reduce,
    Split,
    accesses,
    index_names,
    walk,
)
from fuseflow.keep_rules import Largest, Threshold

INF = math.inf
ROUNDING = 8 * 2.0**-53
"""Relative: libraries differ by some units in the last place."""
SINGLE = 2.0**-23
"""The same of 32-bit floats."""
GRID, LARGEST = 2.0**-10, 2.0**40
"""Multiples of the one up to the other are exact: sums and products of a few have fewer than 53 bits."""
LARGEST_SINGLE = 2.0**14
"""The same of fewer than 24 bits."""
UNSURE, TINY = 5e-324, 1e-300
"""The bound of a negative zero: whether a zero has a sign depends on the order of additions and on which of two equals is taken.
Bounds below the other say no more than that."""


def number(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def annihilated(fixed: torch.Tensor, to: float, otherwise: torch.Tensor) -> torch.Tensor:
    """An operand that fixes the result does so whatever the others are, NaN and infinities included."""
    return torch.where(fixed, number(to), otherwise)


FLOATS = {
    (2.0**-10, 2.0**-24): torch.float16,
    (2.0**-7, 2.0**-133): torch.bfloat16,
    (2.0**-2, 2.0**-16): torch.float8_e5m2,
    (2.0**-3, 448.0): torch.float8_e4m3fn,
}
"""The types of PyTorch that are rounded to, by the distance of two numbers from 1 on, and the smallest or the greatest number."""


def _cast(a: torch.Tensor, step: float, end: float) -> torch.Tensor:
    """Cast by PyTorch, whose casts from 64 bits round twice: 32 bits come between. So what is no number of 32 bits is moved away from the
    middle of two numbers first, in the direction in which it lies."""
    single = a.float()
    away = torch.nextafter(single, torch.where(a > single.double(), INF, -INF).float())
    odd = (single.view(torch.int32) & 1) == 1
    exact = (single.double() == a) | ~a.isfinite()
    return torch.where(exact | odd, single, away).to(FLOATS[step, end]).double()


def _rounded(a: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
    """A rounding to a type of PyTorch, or to one of two that it does not cast to as a program does: e2m1, the nearest of eight magnitudes,
    and the powers of 2, of which zero and a sign are kept."""
    step, end = (float(p.flatten()[0]) for p in parameters)
    if (step, end) == (0.5, 6.0):
        magnitudes = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], dtype=torch.float64)
        middles = (magnitudes[1:] + magnitudes[:-1]) / 2
        below, above = torch.bucketize(a.abs(), middles), torch.bucketize(a.abs(), middles, right=True)
        even = magnitudes[torch.where(below % 2 == 0, below, above)]
        return torch.where(a.isnan(), a, torch.copysign(even, a))
    if (step, end) == (1.0, 2.0**-127):
        mantissa, exponent = torch.frexp(a)
        power = torch.ldexp(torch.copysign(number(1.0), a), torch.where(mantissa.abs() >= 0.75, exponent, exponent - 1))
        return torch.where((a == 0) | ~a.isfinite(), a, power)
    return _cast(a, step, end)


TABLE: dict[str, Callable[..., torch.Tensor]] = {
    "add": lambda a, b: annihilated((a == -INF) | (b == -INF), -INF, a + b),
    "sub": lambda a, b: annihilated(a == -INF, -INF, a - b),
    "mul": lambda a, b: annihilated((a == 0) | (b == 0), 0.0, a * b),
    "div": lambda a, b: annihilated(a == 0, 0.0, a / b),
    "pow": lambda a, b: annihilated(b == 0, 1.0, torch.pow(a, b)),
    "max": torch.maximum,
    "min": lambda a, b: annihilated((a == -INF) | (b == -INF), -INF, torch.minimum(a, b)),
    "eq": lambda a, b: (a == b).double(),
    "ne": lambda a, b: (a != b).double(),
    "lt": lambda a, b: (a < b).double(),
    "le": lambda a, b: (a <= b).double(),
    "gt": lambda a, b: (a > b).double(),
    "ge": lambda a, b: (a >= b).double(),
    "threshold": lambda a, least: annihilated(a == 0, 0.0, torch.where(torch.isnan(a) | (a.abs() >= least), a, 0.0)),
    "saturate": lambda a, least, greatest: torch.minimum(torch.maximum(a, least), greatest).round(),
    "nearest": _rounded,
    "nearest_finite": _rounded,
    "where": lambda c, a, b: torch.where(c != 0, a, b),
    "copy": lambda a: a,
    "neg": lambda a: -a,
    "abs": torch.abs,
    "relu": torch.relu,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "rsqrt": lambda a: 1.0 / torch.sqrt(a),
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": lambda a: 1.0 / (1.0 + torch.exp(-a)),
}
FRACTIONAL = frozenset(("div", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid"))
"""Operators that make integers fractions."""
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
CHOOSING = frozenset(("max", "min", "threshold", "saturate", "nearest", "nearest_finite", "where", "copy", "neg", "abs", "relu"))
CHOOSING |= COMPARISONS
"""Operators that never round."""

IDENTITY = {"sum": 0.0, "max": -INF, "min": INF, "prod": 1.0}
FOLDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda x: x.sum(-1),
    "max": lambda x: x.amax(-1),
    "min": lambda x: x.amin(-1),
    "prod": lambda x: x.prod(-1),
}
"""Of the last axis, which is not empty."""


@dataclass(frozen=True, slots=True)
class Value:
    """`values` over the index space of an Einsum, the bound of each, and the type that PyTorch has such values in. A constant has none."""

    values: torch.Tensor
    error: torch.Tensor
    dtype: torch.dtype | None = torch.float64

    def as_single(self) -> Value:
        """The values as 32-bit floats."""
        near = self.values.float().double()
        grown = torch.where(
            (near == self.values) & (self.error < TINY) | near.isnan(), self.error, self.error + SINGLE * near.abs()
        )
        beyond = near.isinf() != self.values.isinf()
        return Value(near, torch.where(beyond, number(INF), grown), torch.float32)


@dataclass(slots=True)
class Span:
    """What the nodes of an Einsum were: the largest finite magnitude, the largest bound, whether all were finite."""

    largest: float = 0.0
    error: float = 0.0
    finite: bool = True

    def note(self, value: Value) -> Value:
        is_finite = torch.isfinite(value.values)
        self.finite &= bool(is_finite.all())
        magnitudes = value.values[is_finite].abs()
        self.largest = max(self.largest, float(magnitudes.max()) if magnitudes.numel() else 0.0)
        self.error = max(self.error, float(value.error.max()) if value.error.numel() else 0.0)
        return value


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The value of an Einsum, its dimensions as on the left side, and what its nodes were."""

    value: Value
    span: Span

    @property
    def array(self) -> npt.NDArray[np.float64]:
        return self.value.values.numpy()


TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float32, "bf16": torch.float32}
"""The types of PyTorch in which operators compute on elements. All others are integers."""


def given(array: npt.ArrayLike, dtype: str = "f64") -> Value:
    """An input: exact."""
    values = torch.tensor(np.asarray(array, dtype=np.float64))
    return Value(values, torch.zeros_like(values), TYPES.get(dtype, torch.int64))


def promoted(op: str, args: Sequence[Value]) -> torch.dtype:
    """The type in which PyTorch computes an operator. Constants are Python's numbers: a fraction makes integers floats."""
    ones = [torch.ones(1, dtype=arg.dtype) for arg in args if arg.dtype is not None]
    fractions = [float(arg.values) for arg in args if arg.dtype is None and bool((arg.values % 1 != 0) & arg.values.isfinite())]
    one = torch.ones(1, dtype=torch.int64)
    for other in (*ones, *fractions):
        one = one.to(torch.result_type(one, other))
    power = op == "pow" and args[1].dtype is None and bool((args[1].values >= 0) & (args[1].values % 1 == 0))
    return (one / 1).dtype if op in FRACTIONAL or (op == "pow" and not power) else one.dtype


def evaluate(program: Program, arrays: Mapping[str, npt.ArrayLike]) -> dict[str, Evaluated]:
    """Every result of the program, by name."""
    known = {t.name: given(arrays[t.name], t.dtype) for t in program.inputs}
    shapes = {t.name: t.shape for t in program.tensors}
    dtypes = {t.name: t.dtype for t in program.tensors}
    found: dict[str, Evaluated] = {}
    for einsum in program.einsums:
        dtype = dtypes.get(einsum.name, "")
        evaluated = evaluate_einsum(in_type(einsum, dtype), known, shapes.get(einsum.name), dtype == "f64")
        if dtype == "f32":
            evaluated = replace(evaluated, value=evaluated.value.as_single())
        found[einsum.name] = evaluated
        known[einsum.name] = replace(evaluated.value, dtype=TYPES.get(dtype, torch.int64)) if dtype else evaluated.value
    return found


NARROW: dict[str, tuple[str, float, float]] = {
    "i4": ("saturate", -8, 7),
    "u4": ("saturate", 0, 15),
    "i8": ("saturate", -128, 127),
    "u8": ("saturate", 0, 255),
    "i16": ("saturate", -32768, 32767),
    "f16": ("nearest", 2.0**-10, 2.0**-24),
    "bf16": ("nearest", 2.0**-7, 2.0**-133),
    "e5m2": ("nearest", 2.0**-2, 2.0**-16),
    "e4m3": ("nearest_finite", 2.0**-3, 448.0),
    "e2m1": ("nearest_finite", 2.0**-1, 6.0),
    "e8m0": ("nearest", 1.0, 2.0**-127),
}
"""How a result of each narrow type is rounded."""


def in_type(einsum: Einsum, dtype: str) -> Einsum:
    """An Einsum with its result rounded to its type. What a `keep` compares is rounded."""
    if dtype not in NARROW:
        return einsum
    op, *parameters = NARROW[dtype]
    keep = einsum.body if isinstance(einsum.body, Keep) else None
    rounded = Apply(op, (keep.body if keep else einsum.body, *map(Const, parameters)))
    return replace(einsum, body=replace(keep, body=rounded) if keep else rounded)


def evaluate_einsum(
    einsum: Einsum, known: Mapping[str, Value], shape: tuple[int, ...] | None = None, wide: bool = False
) -> Evaluated:
    """One Einsum; `shape` is that of a result that is spread along an index which its body lacks. One that is `wide` is declared to have
    64 bits, so all of it has."""
    if wide:
        known = {name: replace(value, dtype=torch.float64) for name, value in known.items()}
    left = index_names(einsum.indices)
    sizes = _sizes(einsum.indices, shape) if shape is not None else {}
    for access in accesses(einsum.body):
        sizes.update(_sizes(access.indices, known[access.tensor].values.shape))
    names = tuple(dict.fromkeys((*left, *sizes, *(v for n in walk(einsum.body) if isinstance(n, Reduce) for v in n.over))))
    span = Span()
    value = _evaluate(einsum.body, known, names, sizes, span)
    target = [sizes[v] if v in left else 1 for v in names]
    whole = [math.prod(sizes[v] for v in index_names((index,))) for index in einsum.indices]
    spread = (x.expand(target).reshape(whole) for x in (value.values, value.error))
    return Evaluated(Value(*spread, value.dtype or torch.float32), span)


def _sizes(indices: tuple[Index, ...], shape: Sequence[int]) -> dict[str, int]:
    """The size of every index of dimensions of these sizes; a dimension that is split has two indices. An affine index says nothing: it
    may run beyond its dimension."""
    whole = [(index, size) for index, size in zip(indices, shape, strict=True) if not isinstance(index, Affine)]
    plain = tuple(index for index, _ in whole)
    return dict(zip(index_names(plain), _parts(plain, [size for _, size in whole]), strict=True))


def _parts(indices: tuple[Index, ...], shape: Sequence[int]) -> tuple[int, ...]:
    """A shape with the dimensions that are split in two."""
    pairs = zip(indices, shape, strict=True)
    return tuple(part for i, size in pairs for part in ((size // i.size, i.size) if isinstance(i, Split) else (size,)))


def _evaluate(node: Expr, known: Mapping[str, Value], names: tuple[str, ...], sizes: Mapping[str, int], span: Span) -> Value:
    match node:
        case Const():
            values = number(node.value).reshape([1] * len(names))
            return Value(values, torch.zeros_like(values), None)
        case Access():
            return _read(*_shifted(node, known[node.tensor], sizes), names)
        case Apply():
            return span.note(_promoted(node.op, [_evaluate(a, known, names, sizes, span) for a in node.args]))
        case Reduce():
            value = _evaluate(node.body, known, names, sizes, span)
            for v in node.over:
                value = span.note(_reduce(node.op, value, names.index(v), sizes[v]))
            return value.as_single() if value.dtype == torch.float32 and node.op not in CHOOSING else value
        case Keep():
            return _keep(node, _evaluate(node.body, known, names, sizes, span), [names.index(v) for v in node.over])


def _shifted(node: Access, value: Value, sizes: Mapping[str, int]) -> tuple[Access, Value]:
    """An access without affine indices, and the value that it reads: one dimension for every term, so that all indices are plain."""
    indices = list[Index]()
    for index in node.indices:
        if isinstance(index, Affine):
            factors = [(factor, sizes[name]) for name, factor in index.terms]
            parts = (_slices(x, len(indices), factors, index.offset) for x in (value.values, value.error))
            value = Value(*parts, value.dtype)
            indices += [name for name, _ in index.terms]
        else:
            indices.append(index)
    return Access(node.tensor, tuple(indices)), value


def _slices(x: torch.Tensor, axis: int, factors: Sequence[tuple[int, int]], start: int) -> torch.Tensor:
    """An axis read at `start` plus every multiple of the factors, with one axis for each of them. Outside is 0."""
    if not factors:
        inside = 0 <= start < x.shape[axis]
        return x.select(axis, start) if inside else torch.zeros([*x.shape[:axis], *x.shape[axis + 1 :]], dtype=x.dtype)
    (factor, size), *rest = factors
    if not size:
        return torch.zeros([*x.shape[:axis], *(n for _, n in factors), *x.shape[axis + 1 :]], dtype=x.dtype)
    return torch.stack([_slices(x, axis, rest, start + factor * k) for k in range(size)], axis)


def _read(node: Access, value: Value, names: tuple[str, ...]) -> Value:
    parts = _parts(node.indices, value.values.shape)
    axes = sorted(range(len(parts)), key=lambda d: names.index(node.names[d]))
    shape = [parts[node.names.index(v)] if v in node.names else 1 for v in names]
    values, error = value.values.reshape(parts), value.error.reshape(parts)
    return Value(values.permute(axes).reshape(shape), error.permute(axes).reshape(shape), value.dtype)


def _promoted(op: str, args: list[Value]) -> Value:
    """An operator in the numbers in which PyTorch computes it."""
    computing = promoted(op, args)
    if computing == torch.float32:
        args = [arg.as_single() if arg.dtype is None else arg for arg in args]
    value = _apply(op, args)
    if op in COMPARISONS or op == "saturate":
        return replace(value, dtype=torch.int64)
    if op in ("nearest", "nearest_finite"):
        return replace(value, dtype=torch.float32)
    if op == "where":
        return replace(value, dtype=promoted(op, args[1:]))
    return value.as_single() if computing == torch.float32 and op not in CHOOSING else replace(value, dtype=computing)


def _apply(op: str, args: list[Value]) -> Value:
    function = TABLE[op]
    if op in COMPARISONS or op == "where":  # the sign of a zero does not matter
        args = [Value(a.values, torch.where(a.error < TINY, number(0.0), a.error)) for a in args]
    centre = function(*(a.values for a in args))
    error = torch.zeros_like(centre)
    if op == "where":
        condition, first, second = args
        error = torch.where(condition.values != 0, first.error, second.error).expand(centre.shape)
        unsure = (condition.values != 0) & (condition.values.abs() <= condition.error) | (condition.values == 0) & (
            condition.error > 0
        )
        return Value(centre, torch.where(unsure, number(INF), error))
    rounded = sum((a.error > 0).expand(centre.shape).double() for a in args)
    if any(bool((a.error > 0).any()) for a in args):
        for signs in itertools.product((-1.0, 1.0), repeat=len(args)):
            corner = function(*(a.values + s * a.error for s, a in zip(signs, args, strict=True)))
            same = (corner == centre) | (corner.isnan() & centre.isnan())
            error = torch.maximum(error, torch.where(same, number(0.0), (corner - centre).abs()).nan_to_num(nan=INF, posinf=INF))
        if op in COMPARISONS:
            a, b = args
            error = torch.where((rounded > 0) & ((a.values - b.values).abs() <= a.error + b.error), number(INF), error)
        for a in args:
            error = torch.where(a.error == INF, number(INF), error)
    return Value(centre, _more(centre, error, rounded=op not in CHOOSING))


def _more(values: torch.Tensor, error: torch.Tensor, rounded: bool) -> torch.Tensor:
    """The bound with the rounding of the last step."""
    exact = (error < TINY) & (values.abs() <= LARGEST) & (values % GRID == 0)
    if rounded:
        error = torch.where(exact | ~values.isfinite(), error, error + ROUNDING * values.abs())
    return torch.where((values == 0) & values.signbit(), torch.clamp(error, min=UNSURE), error)


def _keep(node: Keep, value: Value, axes: list[int]) -> Value:
    """What a rule keeps. The bound is infinite where rounding decides what that is."""
    sure = Value(value.values, torch.where(value.error < TINY, number(0.0), value.error))
    match node.rule:
        case Threshold(least):
            magnitude = sure.values.abs()
            mask = (magnitude >= least) | magnitude.isnan()
            unsure = ((magnitude - least).abs() <= sure.error) & (sure.error > 0)
        case Largest(count, every, by):
            last = list(range(value.values.dim() - len(axes), value.values.dim()))
            values, error = (x.movedim(axes, last) for x in (sure.values, sure.error))
            shape = values.shape
            fibers, errors = (x.reshape(*shape[: last[0]], math.prod(shape[last[0] :])) for x in (values, error))
            step = every or max(1, fibers.shape[-1])
            groups = [slice(start, start + step) for start in range(0, fibers.shape[-1], step)]
            parts = [_largest(fibers[..., g], errors[..., g], count, by) for g in groups]
            empty = torch.zeros(fibers.shape, dtype=torch.bool)
            mask, unsure = (
                (torch.cat(p, -1).reshape(shape).movedim(last, axes) for p in zip(*parts, strict=True))
                if parts
                else (empty.reshape(shape).movedim(last, axes),) * 2
            )
    if isinstance(node.rule, Largest) and node.rule.marks:
        return Value(mask.double(), torch.where(unsure, number(INF), number(0.0)))
    kept = torch.where(mask, value.values, number(0.0))
    return replace(value, values=kept, error=torch.where(unsure, number(INF), torch.where(mask, value.error, number(0.0))))


def _largest(values: torch.Tensor, errors: torch.Tensor, count: int, by: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Which of the last axis are the largest in magnitude, the greatest or the least, the first of equal ones, and of which rounding
    decides that. NaN comes first, but last of the least."""
    magnitude = {"magnitude": values.abs(), "greatest": values, "least": -values}[by].nan_to_num(nan=INF, posinf=INF, neginf=-INF)
    order = magnitude.sort(dim=-1, descending=True, stable=True).indices
    at_end = values.isnan() != (by == "least")
    order = order.gather(-1, at_end.gather(-1, order).double().sort(dim=-1, descending=True, stable=True).indices)
    mask = torch.zeros(values.shape, dtype=torch.bool).scatter_(-1, order[..., :count], True)
    least = torch.where(mask, magnitude - errors, number(INF)).amin(-1, keepdim=True)
    most = torch.where(mask, number(-INF), magnitude + errors).amax(-1, keepdim=True)
    close = (least <= most) & (errors > 0).any(-1, keepdim=True)
    return mask, close.expand(values.shape)


def _reduce(op: str, value: Value, axis: int, size: int) -> Value:
    """Fold an axis, over which a value that lacks it is repeated. A sum of 32-bit floats may be rounded to them after each axis."""
    rounding, largest = (SINGLE, LARGEST_SINGLE) if value.dtype == torch.float32 else (ROUNDING, LARGEST)
    shape = list(value.values.shape)
    shape[axis] = size
    values, errors = (x.expand(shape).movedim(axis, -1) for x in (value.values, value.error))
    folded = FOLDS[op](values) if size else torch.full(values.shape[:-1], IDENTITY[op], dtype=torch.float64)
    if not size or not folded.numel():
        error = torch.zeros_like(folded)
    elif op in ("max", "min"):
        error = errors.amax(-1)
    elif op == "sum":
        magnitude = torch.where(values.isfinite(), values.abs(), number(0.0)).sum(-1)
        exact = (errors < TINY).all(-1) & (magnitude <= largest) & (values % GRID == 0).all(-1)
        error = torch.where(exact | ~folded.isfinite(), errors.sum(-1), errors.sum(-1) + size * rounding * magnitude)
    else:
        whole, wide = values.abs(), values.abs() + errors
        exact = (errors < TINY).all(-1) & (values % GRID == 0).all(-1) & (whole.clamp(min=1.0).prod(-1) <= largest)
        error = (wide.prod(-1) - whole.prod(-1)).abs() + size * rounding * wide.prod(-1)
        error = torch.where(exact | ~folded.isfinite() & (errors == 0).all(-1), number(0.0), error.nan_to_num(nan=INF))
    unsure = (folded == 0) & (folded.signbit() | ((values == 0) & values.signbit()).any(-1))
    error = torch.where(unsure, torch.clamp(error, min=UNSURE), error)
    return Value(folded.unsqueeze(axis), error.unsqueeze(axis), value.dtype)
