"""Products whose factors are stored in narrow integers, with their scales as factors of the program.

    Y[i, j] = relu(sum(k) A[i, k] * B[k, j])

    A1[i, j] = A[i, j] * 21.2                                                    A1 is i8
    Y[i, j] = relu((sum(k) A1[i, k] * B1[k, j]) * 0.0003)                        B1 is i8, and stored so

An integer n stands for the number n * scale. The quantization is symmetric, with one scale for a tensor. It is the same as
`torch.fake_quantize_per_tensor_affine` with the zero point 0: a number is multiplied by the inverse of the scale, rounded to the
nearest integer, ties to even, and saturated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count, islice
from operator import mul
from typing import assert_never

import numpy as np

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.indices import fresh_indices
from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, Reduce, TensorType, children
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
    names = dict(zip(scales, _fresh_names(program, scales), strict=True))
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
        body = _body(einsum.body, scales, names)
        read = {access.tensor for product in _products(einsum.body) for access in _accesses(product)}
        for name in (name for name in scales if name in read and name not in rounded):
            rounded.add(name)
            indices = tuple(islice(fresh_indices(), len(infer(program).declared[name].shape)))
            integers = Apply("mul", (Access(name, indices), Const(scales[name].inverse)))
            yield replace(einsum, name=names[name], indices=indices, body=integers)
        yield replace(einsum, body=body)


def _body(node: Expr, scales: Mapping[str, Scale], names: Mapping[str, str]) -> Expr:
    """Return an expression in which products read integers, and are multiplied by the scales."""
    match node:
        case Reduce() if _is_product(node):
            steps = [scales[access.tensor].step for access in _accesses(node) if access.tensor in scales]
            product = replace(node, body=_integers(node.body, scales, names))
            return Apply("mul", (product, Const(reduce(mul, steps)))) if steps else node
        case Apply():
            return replace(node, args=tuple(_body(arg, scales, names) for arg in node.args))
        case Reduce() | Keep():
            return replace(node, body=_body(node.body, scales, names))
        case Access() | Const():
            return node
        case unknown:
            assert_never(unknown)


def _integers(node: Expr, scales: Mapping[str, Scale], names: Mapping[str, str]) -> Expr:
    """Return a product in which tensors of integers, `names`, replace the tensors that are scaled."""
    match node:
        case Access():
            return replace(node, tensor=names.get(node.tensor, node.tensor))
        case Apply():
            factors = tuple(_integers(arg, scales, names) for arg in node.args)
            return replace(node, args=factors) if node.op == "mul" else node
        case Const() | Reduce() | Keep():
            return node
        case unknown:
            assert_never(unknown)


def _products(node: Expr) -> Iterator[Reduce]:
    if isinstance(node, Reduce) and _is_product(node):
        yield node
        return
    for child in children(node):
        yield from _products(child)


def _is_product(node: Reduce) -> bool:
    return node.op == "sum" and len(_accesses(node)) > 1


def _accesses(product: Reduce) -> tuple[Access, ...]:
    return tuple(factor for factor in _factors(product.body) if isinstance(factor, Access))


def _factors(node: Expr) -> Iterator[Expr]:
    if isinstance(node, Apply) and node.op == "mul":
        for arg in node.args:
            yield from _factors(arg)
    else:
        yield node


def _narrow(program: Program, tensor: TensorType, name: str, scale: Scale, constant: bool) -> TensorType:
    """Return the declaration of the integers of a tensor, in its blocks. A constant keeps its format. The format of another
    tensor follows from its statement, because not every format of an input can be the format of a result."""
    if tensor.name not in program.declared:
        return TensorType(name, tensor.shape, dtype=scale.dtype)
    declared = replace(program.declared[tensor.name], name=name, dtype=scale.dtype)
    return declared if constant else replace(declared, format=None)


def _fresh_names(program: Program, names: Mapping[str, Scale]) -> Iterator[str]:
    """Yield a new name for each tensor: the first of `W1`, `W2`, ... that is free."""
    used = {*program.declared, *program.defined}
    for name in names:
        fresh = next(text for n in count(1) if (text := f"{name}{n}") not in used)
        used.add(fresh)
        yield fresh
