"""A program in which an operand is divided: each product with it becomes a sum of products, one for each part.

    Y[i, j] = sum(k) A[i, k] * B[k, j]
    Y[i, j] = (sum(k) A1[i, k] * B1[k, j]) + (sum(l) A[i, l] * B2[l, j])

It stays one statement, so that one region computes it. Every product has reduction indices of its own, which can be in blocks of other
sizes. The indices that remain are in blocks of one size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import assert_never

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.indices import fresh_indices, substitute
from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, Reduce, TensorType, index_names, walk
from fuseflow.plan.form import Form, common_blocks
from fuseflow.plan.operands import Operands, Stored
from fuseflow.plan.products import Product, products_of
from fuseflow.tensors import Format


@dataclass(frozen=True, slots=True)
class DividedProgram:
    """A program in which an operand is divided into `parts`, which are names of tensors. `stored` says, by the name of another
    operand, which input its numbers are from, and its blocks."""

    program: Program
    parts: tuple[str, ...]
    stored: Mapping[str, Stored]


def divide(program: Program, operand: str, forms: Sequence[Form], stored: Mapping[str, Stored]) -> DividedProgram:
    """Return the program with an input divided into parts of these forms. A single part keeps the name of the input. `stored` is what
    divisions before this one said.

    Raise `PlanError` if a statement reads the input other than as a factor of a sum of products, and if a tensor would have to be stored
    in blocks that it cannot have.
    """
    products = products_of(program, operand)
    operands = Operands(program, dict(stored))
    parts = _part_types(operands, program.declared[operand], forms, {d for product in products for d in product.free})
    einsums = tuple(_divided(e, [p for p in products if p.einsum is e], parts, operands) for e in program.einsums)
    divided = operands.program_of(einsums, operand, parts)
    if any(form.dtype for form in forms):
        divided = _with_results_of(program, divided, {product.einsum.name for product in products})
    return DividedProgram(divided, tuple(part.name for part in parts), operands.stored)


def _part_types(operands: Operands, declared: TensorType, forms: Sequence[Form], free: Collection[int]) -> tuple[TensorType, ...]:
    names = [declared.name] if len(forms) == 1 else [operands.fresh_name(declared.name, declared) for _ in forms]
    format = declared.format or Format.dense(len(declared.shape))
    return tuple(
        replace(declared, name=name, format=form.format(format), dtype=form.dtype or declared.dtype, block=block)
        for name, form, block in zip(names, forms, common_blocks(forms, free), strict=True)
    )


def _divided(einsum: Einsum, products: Sequence[Product], parts: Sequence[TensorType], operands: Operands) -> Einsum:
    """Return a statement in which each of `products` is a sum over the parts."""
    if not products:
        return einsum
    bound = {name for node in walk(einsum.body) if isinstance(node, Reduce) for name in node.over}
    fresh = (name for name in fresh_indices() if name not in bound.union(index_names(einsum.indices)))
    sums: dict[Expr, Expr] = {product.reduction: _sum(product, parts, operands, fresh) for product in products}
    return replace(einsum, body=_replaced(einsum.body, sums))


def _sum(product: Product, parts: Sequence[TensorType], operands: Operands, fresh: Iterator[str]) -> Expr:
    """Return the sum of the products of all parts. The first product keeps its reduction indices, and others get `fresh` ones."""
    terms = list[Expr]()
    for part in parts:
        sizes = dict(zip(product.indices, part.block or (1, 1), strict=True))
        accesses: dict[Expr, Expr] = {access: operands.in_blocks(access, sizes) for access in product.others}
        accesses[Access(product.operand, product.indices)] = Access(part.name, product.indices)
        indices = {name: next(fresh) for name in product.reduction.over} if terms else {}
        operands.in_blocks(Access(product.einsum.name, product.einsum.indices), sizes)
        terms.append(substitute(_replaced(product.reduction, accesses), indices))
    return reduce(lambda left, right: Apply("add", (left, right)), terms)


def _replaced(node: Expr, others: Mapping[Expr, Expr]) -> Expr:
    """Return an expression in which each expression that is a key of `others` is replaced by its value."""
    if node in others:
        return others[node]
    match node:
        case Apply():
            return replace(node, args=tuple(_replaced(arg, others) for arg in node.args))
        case Reduce() | Keep():
            return replace(node, body=_replaced(node.body, others))
        case Access() | Const():
            return node
        case unknown:
            assert_never(unknown)


def _with_results_of(program: Program, divided: Program, results: Collection[str]) -> Program:
    """Return a divided program with the dtypes that its results had: parts of narrow types do not change them."""
    before, now = infer(program).declared, divided.declared
    types = {name: replace(before[name], format=None, block=(), fill=0.0) for name in results if name not in now}
    return replace(divided, tensors=(*divided.tensors, *(types[e.name] for e in divided.einsums if e.name in types)))
