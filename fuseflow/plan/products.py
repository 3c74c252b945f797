"""The products that have a tensor as a factor, and a program in which the tensor is divided: each product becomes a sum of products.

    Y[i, j] = relu(bias[j] + (sum(k) A[i, k] * B[k, j]))        `sum(k) A[i, k] * B[k, j]` reads B at (k, j)
    Y[i, j] = relu(bias[j] + ((sum(k) A1[i, k] * B1[k, j]) + (sum(l) A[i, l] * B2[l, j])))

It stays one statement, so that one region computes it. Every product has reduction indices of its own, which can be in blocks of other
sizes. The indices that remain are in blocks of one size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.index_names import fresh_indices, substitute, substitute_tensors
from fuseflow.einsum.nodes import (
    Access,
    Apply,
    Einsum,
    Expr,
    Program,
    Reduce,
    Split,
    TensorType,
    accesses,
    children,
    factors,
    index_names,
    map_children,
    stored_index,
    walk,
)
from fuseflow.einsum.text import show_einsum
from fuseflow.errors import PlanError
from fuseflow.plan.partition import Form, common_blocks
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import Block, block_text


@dataclass(frozen=True, slots=True)
class Stored:
    """The numbers of the input `source`, stored in blocks."""

    source: str
    block: Block


@dataclass(slots=True)
class Operands:
    """The tensors of a program that is being divided: their declarations by name, how inputs are stored that divided products read, and in
    which blocks results are needed. An operand beside a divided one is stored once for each block that some part needs:

        B1 in blocks of 32x1, B2 in single elements        A1 in blocks of 1x32, and A in single elements

    An input is copied into other blocks. A tensor that is computed is written once, so that all parts must need it in the same
    blocks. Blocks are declared where they were before. Elsewhere they follow from the blocks of the parts, so that indices without
    parts stay free.
    """

    program: Program
    stored: dict[str, Stored]
    types: dict[str, TensorType] = field(init=False)
    computed: dict[str, Block] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.types = dict(self.program.declared)

    def fresh_name(self, name: str, like: TensorType) -> str:
        """Return a name that no tensor has, and take it for a tensor that is declared like another one."""
        fresh = first_free(name, self.types.keys() | self.program.defined.keys())
        self.types[fresh] = replace(like, name=fresh)
        return fresh

    def in_blocks(self, access: Access, sizes: Mapping[str, int]) -> Access:
        """Return an access to the same numbers, stored in blocks of these sizes along the indices. Along others, blocks stay as they are.

        Raise `PlanError` for a tensor that cannot be stored so.
        """
        declared = self.types.get(access.tensor)
        present = (1,) * len(access.indices) if declared is None or not declared.block else declared.block
        names = (index.inner if isinstance(index, Split) else index for index in map(stored_index, access.indices))
        block = tuple(sizes.get(name, size) for name, size in zip(names, present, strict=True))
        block = block if max(block, default=1) > 1 else ()
        if declared is None or access.tensor in self.program.defined:
            self._compute(access.tensor, block)
            return access
        if block and declared.format is not None and any(level.pads for level in declared.format.levels):
            stored = f"`{access.tensor}` is stored {declared.format.short()}"
            raise PlanError(f"{stored}, and needed in blocks of {block_text(block)}", hint="store it in another format")
        return replace(access, tensor=self._input(declared, block))

    def program_of(self, einsums: Sequence[Einsum], operand: str, parts: Sequence[TensorType]) -> Program:
        """Return the program of divided statements, with `parts` for an operand. Unread inputs go; a lone copy gets the input's name."""
        before = {name for einsum in self.program.einsums for name in einsum.operands}
        read_before = {name for einsum in einsums for name in einsum.operands}
        copied = [stored.source for name, stored in self.stored.items() if name in read_before]
        new = {name: stored.source for name, stored in self.stored.items() if name not in self.program.declared}
        # new copies that are the only one of an input that nothing reads any more
        names = {name: source for name, source in new.items() if source not in read_before and copied.count(source) == 1}
        renamed = tuple(replace(e, body=substitute_tensors(e.body, names)) for e in einsums) if names else tuple(einsums)
        read = {name for einsum in renamed for name in einsum.operands}
        gone = {operand, *names.values()} | (before - read - self.program.defined.keys())
        kept = {names.get(name, name): type for name, type in self.types.items() if name not in gone}
        types = {name: replace(type, name=name) for name, type in kept.items()} | {part.name: part for part in parts}
        self.stored = {names.get(name, name): stored for name, stored in self.stored.items() if name not in gone}
        sources = {part.name: operand for part in parts} | {name: stored.source for name, stored in self.stored.items()}
        places = {name: place for place, name in enumerate(self.program.declared)}
        ordered = sorted(types.values(), key=lambda type: places.get(sources.get(type.name, type.name), len(places)))
        return replace(self.program, tensors=tuple(ordered), einsums=renamed)

    def _compute(self, name: str, block: Block) -> None:
        present = self.computed.setdefault(name, block)
        if present != block:
            blocks = " and ".join(f"blocks of {block_text(sizes)}" if sizes else "single elements" for sizes in (present, block))
            raise PlanError(
                f"`{name}` is computed, and would be needed in {blocks}",
                hint="give all parts the same size along the index that is reduced",
            )
        if name in self.types and self.types[name].block:
            self.types[name] = replace(self.types[name], block=block)

    def _input(self, declared: TensorType, block: Block) -> str:
        """Return the name of the tensor that holds the numbers of the input `declared` in these blocks: itself or a copy."""
        wanted = Stored(self._stored(declared.name).source, block)
        name = next((name for name in self.types if self._stored(name) == wanted), None) or self.fresh_name(
            wanted.source, declared
        )
        self.stored[name] = wanted
        if declared.block:
            self.types[name] = replace(self.types[name], block=block)
        return name

    def _stored(self, name: str) -> Stored:
        return self.stored.get(name, Stored(name, self.types[name].block))


def first_free(name: str, taken: Collection[str]) -> str:
    """Return the first of `W1`, `W2`, ... that is free, for the name `W`."""
    return next(text for n in count(1) if (text := f"{name}{n}") not in taken)


@dataclass(frozen=True, slots=True)
class Product:
    """A sum of products with a matrix as a factor. It stands in the statement `einsum`. `indices` are the indices of the matrix."""

    einsum: Einsum
    reduction: Reduce
    operand: str
    indices: tuple[str, str]

    @property
    def free(self) -> tuple[int, ...]:
        """The dimensions of the matrix that remain in the sum."""
        return tuple(d for d, index in enumerate(self.indices) if index not in self.reduction.over)

    @property
    def others(self) -> tuple[Access, ...]:
        """The accesses to other tensors."""
        return tuple(access for access in accesses(self.reduction) if access.tensor != self.operand)


def products_of(program: Program, operand: str) -> tuple[Product, ...]:
    """Return the products that have a factor, in program order. Raise `PlanError` if there are none, or it is read otherwise."""
    products = [product for einsum in program.einsums for product in _products(einsum, einsum.body, operand)]
    if not products:
        raise PlanError(f"nothing reads `{operand}`", hint="leave it out of the plan")
    return tuple(dict.fromkeys(products))


def _products(einsum: Einsum, node: Expr, operand: str) -> Iterator[Product]:
    if isinstance(node, Reduce) and node.op == "sum":
        reads = [factor for factor in factors(node.body) if isinstance(factor, Access) and factor.tensor == operand]
        if reads and [access.tensor for access in accesses(node)].count(operand) == 1:
            yield Product(einsum, node, operand, _matrix_indices(einsum, reads[0]))
            return
    if isinstance(node, Access) and node.tensor == operand:
        raise PlanError(
            f"`{operand}` is no factor of a sum of products in `{show_einsum(einsum)}`",
            hint="a plan divides operands of products, such as `B` in `sum(k) A[i, k] * B[k, j]`",
        )
    for child in children(node):
        yield from _products(einsum, child, operand)


def _matrix_indices(einsum: Einsum, access: Access) -> tuple[str, str]:
    match access.indices:
        case (str() as row, str() as column) if row != column:
            return row, column
        case _:
            raise PlanError(
                f"`{access.tensor}` is not read as a matrix in `{show_einsum(einsum)}`",
                hint="a plan divides operands with two indices, which are names",
            )


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
        before, now, results = infer(program).declared, divided.declared, {product.einsum.name for product in products}
        types = [
            replace(before[e.name], format=None, block=(), fill=0.0) for e in divided.einsums if e.name in results - now.keys()
        ]
        divided = replace(divided, tensors=(*divided.tensors, *types))  # parts of narrow types do not change dtypes of results
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
    return replace(einsum, body=replaced(einsum.body, sums))


def _sum(product: Product, parts: Sequence[TensorType], operands: Operands, fresh: Iterator[str]) -> Expr:
    """Return the sum of the products of all parts. The first product keeps its reduction indices, and others get `fresh` ones."""
    terms = list[Expr]()
    for part in parts:
        sizes = dict(zip(product.indices, part.block or (1, 1), strict=True))
        accesses: dict[Expr, Expr] = {access: operands.in_blocks(access, sizes) for access in product.others}
        accesses[Access(product.operand, product.indices)] = Access(part.name, product.indices)
        indices = {name: next(fresh) for name in product.reduction.over} if terms else {}
        operands.in_blocks(Access(product.einsum.name, product.einsum.indices), sizes)
        terms.append(substitute(replaced(product.reduction, accesses), indices))
    return reduce(lambda left, right: Apply("add", (left, right)), terms)


def replaced(node: Expr, others: Mapping[Expr, Expr]) -> Expr:
    """Return an expression in which each expression that is a key of `others` is replaced by its value."""
    return others[node] if node in others else map_children(lambda child: replaced(child, others), node)
