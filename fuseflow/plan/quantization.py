"""The choice of narrower types: along a program, each factor of a product is stored in fewer bits while the outputs stay close.

This is Algorithm 2 of SparTA (section 4.2). Its rule has no order of its own for tensors that several products share: each tensor is tried
once, where a product first reads it, and bits never rise. The scales of the integers become factors of the program:

    Y[i, j] = relu(sum(k) A[i, k] * B[k, j])

    A1[i, j] = A[i, j] * 21.2                                                    A1 is i8
    Y[i, j] = relu((sum(k) A1[i, k] * B1[k, j]) * 0.0003)                        B1 is i8, and stored so

An integer n stands for the number n * scale. The quantization is symmetric, with one scale for a tensor. It is the same as
`torch.fake_quantize_per_tensor_affine` with the zero point 0: a number is multiplied by the inverse of the scale, rounded to the
nearest integer, ties to even, and saturated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from numbers import Real
from operator import mul
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.index_names import fresh_indices
from fuseflow.einsum.interpret import evaluate, operands_of
from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Program, Reduce, TensorType, children, factors
from fuseflow.errors import PlanError
from fuseflow.plan.block_scales import FORMS, in_blocks
from fuseflow.plan.products import first_free, replaced
from fuseflow.tensors import Tensor
from fuseflow.tensors.dtypes import DTYPES


@dataclass(frozen=True, slots=True)
class Scale:
    """The type of the integers of a tensor, and the number that the integer 1 represents, the step. The step and its inverse are
    32-bit floats, as PyTorch's."""

    dtype: str
    step: float

    @classmethod
    def of(cls, greatest: float, dtype: str) -> Scale:
        """Return the scale with which the greatest integer of a type represents the greatest magnitude in a tensor, not 0."""
        return cls(dtype, float(np.float32(greatest / DTYPES[dtype].range[1])))

    @property
    def inverse(self) -> float:
        """The inverse of the step: the factor from a number to its integer."""
        return float(np.float32(1) / np.float32(self.step))

    def integers(self, tensor: Tensor) -> Tensor:
        """Return the integers that represent the numbers of a tensor, at the entries that it stores."""
        element = DTYPES[self.dtype]
        return replace(tensor, values=element.hold(tensor.values.astype(np.float64) * self.inverse), type=element)


def factors_of_products(program: Program) -> tuple[str, ...]:
    """Return the tensors of floats that are factors of sums of products, in order of the program."""
    declared = infer(program).declared
    names = (access.tensor for einsum in program.einsums for product in _products(einsum.body) for access in _accesses(product))
    return tuple(
        name for name in dict.fromkeys(names) if not DTYPES[declared[name].dtype].is_integer and declared[name].fill == 0
    )


def scaled(
    program: Program, tensors: Mapping[str, Tensor], constants: frozenset[str], scales: Mapping[str, Scale]
) -> tuple[Program, Mapping[str, Tensor]]:
    """Return a program and its tensors with the factors of products that have `scales`, by name, in integers.

    `constants` are stored as integers. Another tensor is rounded by a statement of its own, before it is first read. Results keep the
    types that they had.
    """
    if not scales:
        return program, tensors
    before = infer(program).declared
    names: dict[str, str] = {}
    for name in scales:
        names[name] = first_free(name, {*program.declared, *program.defined, *names.values()})
    einsums = tuple(_einsums(program, constants, scales, names))
    types = {e.name: replace(before[e.name], format=None, block=(), fill=0.0) for e in program.einsums}
    narrow = [_narrow(program, before[name], names[name], scale, name in constants) for name, scale in scales.items()]
    reads = {name for einsum in einsums for name in einsum.operands} | set(program.outputs)
    kept = [t for t in program.tensors if t.name in reads or t.name in program.defined]
    added = [types[e.name] for e in program.einsums if e.name not in program.declared]
    stored = {names[name]: scale.integers(tensors[name]) for name, scale in scales.items() if name in constants}
    others = {name: tensor for name, tensor in tensors.items() if any(t.name == name for t in kept)}
    return replace(program, tensors=(*kept, *narrow, *added), einsums=einsums), {**others, **stored}


def _einsums(
    program: Program, constants: frozenset[str], scales: Mapping[str, Scale], names: Mapping[str, str]
) -> Iterator[Einsum]:
    """Yield the statements of a program whose products read integers. Statements that round to these integers come before their readers."""
    rounded = set(constants)
    for einsum in program.einsums:
        products = tuple(_products(einsum.body))
        sums: dict[Expr, Expr] = {product: _scaled_product(product, scales, names) for product in products}
        read = {access.tensor for product in products for access in _accesses(product)}
        for name in (name for name in scales if name in read and name not in rounded):
            rounded.add(name)
            indices = tuple(islice(fresh_indices(), len(infer(program).declared[name].shape)))
            integers = Apply("mul", (Access(name, indices), Const(scales[name].inverse)))
            yield replace(einsum, name=names[name], indices=indices, body=integers)
        yield replace(einsum, body=replaced(einsum.body, sums))


def _scaled_product(product: Reduce, scales: Mapping[str, Scale], names: Mapping[str, str]) -> Expr:
    """Return a product that reads integers, multiplied by their scales."""
    steps = [scales[access.tensor].step for access in _accesses(product) if access.tensor in scales]
    integers = replace(product, body=_integers(product.body, names))
    return Apply("mul", (integers, Const(reduce(mul, steps)))) if steps else product


def _integers(node: Expr, names: Mapping[str, str]) -> Expr:
    """Return a product in which tensors of integers, `names`, replace the tensors that are scaled."""
    if isinstance(node, Access):
        return replace(node, tensor=names.get(node.tensor, node.tensor))
    if isinstance(node, Apply) and node.op == "mul":
        return replace(node, args=tuple(_integers(arg, names) for arg in node.args))
    return node


def _products(node: Expr) -> Iterator[Reduce]:
    """Yield the outermost sums of products of several tensors."""
    if isinstance(node, Reduce) and node.op == "sum" and len(_accesses(node)) > 1:
        yield node
        return
    for child in children(node):
        yield from _products(child)


def _accesses(product: Reduce) -> tuple[Access, ...]:
    return tuple(factor for factor in factors(product.body) if isinstance(factor, Access))


def _narrow(program: Program, tensor: TensorType, name: str, scale: Scale, constant: bool) -> TensorType:
    """Return the declaration of the integers of a tensor, in its blocks. A constant keeps its format. The format of another
    tensor follows from its statement, because not every format of an input can be the format of a result."""
    if tensor.name not in program.declared:
        return TensorType(name, tensor.shape, dtype=scale.dtype)
    declared = replace(program.declared[tensor.name], name=name, dtype=scale.dtype)
    return declared if constant else replace(declared, format=None)


Array: TypeAlias = npt.NDArray[np.float64]
Metric: TypeAlias = Callable[[Mapping[str, Array]], float]
"""Returns the quality of outputs, which are given by name. Greater is better."""
NARROWER = ("i16", "i8", "i4")
"""The types that are tried one after the other, unless others are named."""
TYPES = (*NARROWER, *FORMS)
"""The types that can be named."""


@dataclass(frozen=True, slots=True)
class TypeTrial:
    """A type that was tried for a tensor.

    `error` is the greatest mean squared error of an output, divided by the mean square of that output. `drop` is the loss of the metric.
    """

    tensor: str
    dtype: str
    error: float
    drop: float
    kept: bool


@dataclass(frozen=True, slots=True, eq=False)
class Quantization:
    """A program in which some factors of products have narrower types, and how they were chosen. `scales` are the scales of the
    integers, by the names that the tensors had before. `blocks` are the forms of constants whose blocks share scales, by name."""

    program: Program
    tensors: Mapping[str, Tensor]
    scales: Mapping[str, Scale]
    trials: tuple[TypeTrial, ...]
    blocks: Mapping[str, str]

    def __str__(self) -> str:
        cells = [("tensor", "type", "error", "drop", ""), *(_cells(trial) for trial in self.trials)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)

    def to_json(self) -> dict[str, Any]:
        """Return the types with their scales, and the trials, as plain values."""
        return {
            "scales": {name: {"dtype": scale.dtype, "step": scale.step} for name, scale in self.scales.items()},
            "blocks": dict(self.blocks),
            "trials": [
                {"tensor": t.tensor, "dtype": t.dtype, "error": t.error, "drop": t.drop, "kept": t.kept} for t in self.trials
            ],
        }


def choose_types(
    program: Program,
    tensors: Mapping[str, Tensor],
    constants: frozenset[str],
    tolerance: float,
    metric: Metric | None,
    types: Sequence[str] = NARROWER,
) -> Quantization:
    """Return a program in the narrowest types whose outputs are close enough, calibrated on its tensors. `constants` are the names
    of its constants. `types` are tried in their order; forms of blocks are tried for constants that they fit. Raise `PlanError` for
    numbers and metrics that are not finite."""
    whole = _evaluated(program, tensors)
    outputs = {name: whole[name] for name in program.outputs}
    factors = factors_of_products(program)
    sizes = {name: _greatest(name, whole[name] if name in whole else tensors[name].values) for name in factors}
    before, scales, blocks, trials = _measured(metric, outputs), dict[str, Scale](), dict[str, str](), list[TypeTrial]()
    for name, greatest in sizes.items():
        fitting = [t for t in types if t not in FORMS or (name in constants and FORMS[t].fits(program.declared[name]))]
        for dtype in fitting if greatest else ():
            other_scales = {n: scale for n, scale in scales.items() if n != name}
            other_blocks = {n: form for n, form in blocks.items() if n != name}
            if dtype in FORMS:
                tried, tried_blocks = other_scales, {**other_blocks, name: dtype}
            else:
                tried, tried_blocks = {**other_scales, name: Scale.of(greatest, dtype)}, other_blocks
            results = _evaluated(*in_blocks(*scaled(program, tensors, constants, tried), tried_blocks))
            error = max(_error(results[output], exact) for output, exact in outputs.items())
            drop = before - _measured(metric, {output: results[output] for output in outputs})
            trials.append(TypeTrial(name, dtype, error, drop, max(error, drop) <= tolerance))
            if not trials[-1].kept:
                break
            scales, blocks = tried, tried_blocks
    chosen = in_blocks(*scaled(program, tensors, constants, scales), blocks)
    return Quantization(*chosen, scales, tuple(trials), blocks)


def _evaluated(program: Program, tensors: Mapping[str, Tensor]) -> dict[str, Array]:
    declared = infer(program).declared
    return evaluate(program, operands_of(program, {name: tensor for name, tensor in tensors.items() if name in declared}))


def _measured(metric: Metric | None, outputs: Mapping[str, Array]) -> float:
    if metric is None:
        return 0.0
    value = metric(outputs)
    if not isinstance(value, Real) or not np.isfinite(value):
        raise PlanError(f"the metric is {value!r}", hint="it is a number for all outputs, which grows with their quality")
    return float(value)


def _greatest(name: str, values: npt.NDArray[Any]) -> float:
    """Return the greatest absolute value of a tensor; 0 if all are 0."""
    greatest = float(np.abs(values).max(initial=0))
    if not np.isfinite(greatest):
        raise PlanError(f"`{name}` has an entry that is {greatest}", hint="only finite numbers have a scale")
    return greatest


def _error(values: Array, exact: Array) -> float:
    """Return the mean squared error over the mean square of `exact`, if not 0; infinite if a value that is not finite changes."""
    finite = np.isfinite(exact)
    if not np.array_equal(values[~finite], exact[~finite], equal_nan=True):
        return float("inf")
    square = float(np.square(exact[finite]).mean()) if finite.any() else 0.0
    error = float(np.square(values[finite] - exact[finite]).mean()) if finite.any() else 0.0
    return error / square if square else error


def _cells(trial: TypeTrial) -> tuple[str, ...]:
    return (trial.tensor, trial.dtype, f"{trial.error:.2e}", f"{trial.drop:.4g}", "kept" if trial.kept else "")
