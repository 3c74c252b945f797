"""The Einsum program consists of declared tensors and of Einsums in order. This module holds the values alone: text, verification and
meaning are in modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, assert_never

from fuseflow.errors import ProgramError, Span
from fuseflow.keep_rules import Kind, Largest, Rule, kind, show_keep
from fuseflow.ops import canonical
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import Block, block_counts, tile_shape

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Split:
    """A split is a dimension seen as two indices: its coordinate is `outer * size + inner`. A split into heads is written `h*64 + d`."""

    outer: str
    inner: str
    size: int

    def __str__(self) -> str:
        return f"{self.outer}*{self.size} + {self.inner}"


@dataclass(frozen=True, slots=True)
class Affine:
    """An index with an offset or with factors: `2*p + r - 1`. A coordinate outside of the tensor reads 0.

    `terms` are names of indices, each with its factor. Without terms it is one coordinate: `X[3, j]` is a row of `X`. An index `i + 0` may
    run beyond the tensor, which a plain `i` may not.
    """

    terms: tuple[tuple[str, int], ...]
    offset: int = 0

    def __post_init__(self) -> None:
        factors: dict[str, int] = {}
        for name, factor in self.terms:
            factors[name] = factors.get(name, 0) + factor
        object.__setattr__(self, "terms", tuple((name, factor) for name, factor in factors.items() if factor))

    def __str__(self) -> str:
        signed = [(factor, name if abs(factor) == 1 else f"{abs(factor)}*{name}") for name, factor in self.terms]
        constant = [(self.offset, str(abs(self.offset)))]
        if self.offset or not signed or (len(self.terms) == 1 and self.terms[0][1] == 1):  # `i + 0` is no plain `i`
            signed = [*constant, *signed] if signed and signed[0][0] < 0 <= self.offset else [*signed, *constant]
        first, *rest = signed
        return ("-" if first[0] < 0 else "") + first[1] + "".join(f" {'-' if sign < 0 else '+'} {text}" for sign, text in rest)


Index: TypeAlias = str | Split | Affine


@dataclass(frozen=True, slots=True)
class Access:
    """An access is an element of a tensor: `A[i, k]`."""

    tensor: str
    indices: tuple[Index, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the indices, both names of a split among them."""
        return index_names(self.indices)

    @property
    def is_plain(self) -> bool:
        """Whether it reads each dimension along one index of its own."""
        return all(isinstance(index, str) for index in self.indices) and len(set(self.indices)) == len(self.indices)

    @property
    def is_affine(self) -> bool:
        """Whether any of its indices has an offset or a factor."""
        return any(isinstance(index, Affine) for index in self.indices)


@dataclass(frozen=True, slots=True)
class Const:
    """A constant is a number in an expression."""

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", canonical(self.value))


@dataclass(frozen=True, slots=True)
class Apply:
    """An application of a pointwise operator, which is a row of `fuseflow.ops.OPERATORS`, to its operands."""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction of `body` over the indices `over`: `sum(k) A[i, k] * B[k, j]`. Its operator `op` is a row of `fuseflow.ops.REDUCERS`."""

    op: str
    over: tuple[str, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Keep:
    """The entries that a rule keeps of `body`: `keep(2 of 4 over j) relu(A[i, j])`. All other entries are 0, and are not stored. A rule
    that marks, `mark(2 greatest over j) A[i, j]`, keeps ones in their places.

    It stands at the head of a right side only. `over` are the indices along which the rule compares entries, the outermost first;
    a threshold compares nothing and has none. `fuseflow.keep_rules` defines the rules.
    """

    rule: Rule
    over: tuple[str, ...]
    body: Expr

    @property
    def kind(self) -> Kind:
        """How much must be seen before an entry is kept."""
        return kind(self.rule, self.over)

    @property
    def marks(self) -> bool:
        """Whether it is 1 where an entry is kept, and not the entry."""
        return isinstance(self.rule, Largest) and self.rule.marks

    @property
    def keeps_zeros(self) -> bool:
        """Whether an element that is not stored, a 0, may be kept and be told from one that is not."""
        return isinstance(self.rule, Largest) and self.rule.keeps_zeros

    def __str__(self) -> str:
        return show_keep(self.rule, self.over)


Expr: TypeAlias = Access | Const | Apply | Reduce | Keep


@dataclass(frozen=True, slots=True)
class Location:
    """A location says where an Einsum comes from: the module path in the user's model (`layer1.lin`, and '' at the top), the place in a
    file, and the fused region that the file puts it in, or ''.
    """

    path: str = ""
    span: Span | None = None
    region: str = ""


@dataclass(frozen=True, slots=True)
class TensorType:
    """The declaration of a tensor. If `format` is None, it is left to inference. `dtype` is a key of `DTYPES`, and `fill` is the implicit
    value.

    `block` holds the size of a block along each dimension; it is () if the tensor is stored in single elements. With blocks, the levels of
    `format` store blocks, and every value is a tile (`fuseflow.tensors.blocks`). The meaning of the tensor does not depend on its blocks.

    `like` names a tensor with which this one shares its places, or is "" (`fuseflow.einsum.structures`). Only the values are its own.
    """

    name: str
    shape: tuple[int, ...]
    format: Format | None = None
    dtype: str = "f32"
    fill: float = 0.0
    span: Span | None = field(default=None, compare=False)
    block: Block = ()
    like: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fill", canonical(self.fill))

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The number of blocks along each dimension."""
        return block_counts(self.shape, self.block)

    @property
    def tile(self) -> tuple[int, ...]:
        """The shape of one stored value, which is () for a single element."""
        return tile_shape(self.block)


@dataclass(frozen=True)  # with a place for cached values
class Einsum:
    """An Einsum is the statement `name[indices] = body`. Its name is the name of the tensor that it defines. `order` has its loops in the
    order that the user wrote them in, the outermost first; it is () if the user wrote none.
    """

    name: str
    indices: tuple[Index, ...]
    body: Expr
    location: Location = field(default=Location(), compare=False)
    order: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """Every access in the body, left to right."""
        return accesses(self.body)

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """The names of the tensors that the Einsum reads, each once, in order of appearance."""
        return tuple(dict.fromkeys(a.tensor for a in self.accesses))

    @cached_property
    def reshapes(self) -> bool:
        """Whether it sees a dimension as two indices."""
        groups = (self.indices, *[access.indices for access in self.accesses])
        return any(isinstance(index, Split) for indices in groups for index in indices)

    @property
    def materializes(self) -> bool:
        """Whether it must see all of its operand before it keeps an entry: then its operand and its result are stored."""
        return isinstance(self.body, Keep) and self.body.kind == "materializing"


@dataclass(frozen=True)  # with a place for cached values
class Program:
    """A program holds the declarations of its inputs (and of some results), its Einsums in order, and the names of its outputs.
    `region_orders` are the loop orders of regions that its text states, beside the orders of its Einsums.

    >>> import fuseflow as ff
    >>> ff.compile("tensor x[4]\\ny[i] = x[i] + x[i]\\noutput y", {"x": [1, 2, 3, 4]}).program
    <Program program: 1 Einsums, 1 inputs, outputs y>
    """

    tensors: tuple[TensorType, ...]
    einsums: tuple[Einsum, ...]
    outputs: tuple[str, ...]
    name: str = "program"
    region_orders: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        return f"<Program {self.name}: {len(self.einsums)} Einsums, {len(self.inputs)} inputs, outputs {', '.join(self.outputs)}>"

    @cached_property
    def declared(self) -> Mapping[str, TensorType]:
        """The declarations, by name of the tensor."""
        return {t.name: t for t in self.tensors}

    @cached_property
    def defined(self) -> Mapping[str, Einsum]:
        """The Einsums, by name of the result."""
        return {e.name: e for e in self.einsums}

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The position of every Einsum, by name of the result."""
        return {e.name: position for position, e in enumerate(self.einsums)}

    @cached_property
    def inputs(self) -> tuple[TensorType, ...]:
        """The declared tensors that no Einsum defines."""
        return tuple(t for t in self.tensors if t.name not in self.defined)

    @cached_property
    def unordered(self) -> Program:
        """The program without the loop orders that its user wrote."""
        if not self.region_orders and not any(e.order for e in self.einsums):
            return self
        return replace(self, einsums=tuple([replace(e, order=()) for e in self.einsums]), region_orders=())

    def computing(self, tensors: Collection[str]) -> Program:
        """Return the part of the program that computes these tensors. Some of them may be inputs. It has no outputs."""
        needed, einsums = set(tensors), list[Einsum]()
        for einsum in reversed(self.einsums):
            if einsum.name in needed:
                needed.update(einsum.operands)
                einsums.append(einsum)
        needed.update([t.like for t in self.tensors if t.like and t.name in needed])
        kept = tuple(t for t in self.tensors if t.name in needed)
        return replace(self, tensors=kept, einsums=tuple(reversed(einsums)), outputs=())

    @cached_property
    def _known(self) -> dict[Callable[[Program], Any], Any]:
        return {}

    def once(self, fact: Callable[[Program], T]) -> T:
        """Return `fact(self)`, such as the shapes of the program. It is computed once and kept."""
        if fact not in self._known:
            self._known[fact] = fact(self)
        known: T = self._known[fact]
        return known

    def knowing(self, fact: Callable[[Program], T], known: T) -> Program:
        """Return this program after storing `known` as the value of `fact`, for `once`."""
        self._known[fact] = known
        return self


def children(node: Expr) -> tuple[Expr, ...]:
    """Return the direct operands of an expression."""
    match node:
        case Apply():
            return node.args
        case Reduce() | Keep():
            return (node.body,)
        case Access() | Const():
            return ()
        case unknown:
            assert_never(unknown)


def map_children(function: Callable[[Expr], Expr], node: Expr) -> Expr:
    """Return an expression with a function applied to each of its direct operands."""
    match node:
        case Apply():
            return replace(node, args=tuple(map(function, node.args)))
        case Reduce() | Keep():
            return replace(node, body=function(node.body))
        case Access() | Const():
            return node
        case unknown:
            assert_never(unknown)


def map_accesses(function: Callable[[Access], Expr], node: Expr) -> Expr:
    """Return an expression with a function applied to each of its accesses."""
    if isinstance(node, Access):
        return function(node)
    return map_children(lambda child: map_accesses(function, child), node)


def factors(node: Expr) -> tuple[Expr, ...]:
    """Return the factors of a product, left to right; a node that is no product is its only factor."""
    if isinstance(node, Apply) and node.op == "mul":
        return tuple(factor for arg in node.args for factor in factors(arg))
    return (node,)


def walk(node: Expr) -> Iterator[Expr]:
    """Yield the node and everything below it, outermost first, left to right."""
    yield node
    for child in children(node):
        yield from walk(child)


def accesses(node: Expr) -> tuple[Access, ...]:
    """Return every access in an expression, left to right."""
    if isinstance(node, Access):
        return (node,)
    return tuple([access for child in children(node) for access in accesses(child)])


def index_names(indices: tuple[Index, ...]) -> tuple[str, ...]:
    """Return the plain index names of an index list. A split gives two names, and an affine index the names of its terms."""
    names: list[str] = []
    for index in indices:
        if isinstance(index, str):
            names.append(index)
        elif isinstance(index, Split):
            names += (index.outer, index.inner)
        else:
            names += [name for name, _ in index.terms]
    return tuple(names)


def stored_index(index: Index) -> str | Split:
    """Return an index that runs along a stored dimension. Raises `ProgramError` for an affine one, which has no stream."""
    if isinstance(index, Affine):
        hint = "`fuseflow.einsum.selections.replace_affine` makes it a product with a selection"
        raise ProgramError(f"the index `{index}` has an offset or a factor, and no stream of its own", hint=hint)
    return index


def linear_form(index: Index) -> Affine:
    """Return any index as a sum of terms: a split `h*64 + d` is `64*h + d`."""
    match index:
        case str():
            return Affine(((index, 1),))
        case Split():
            return Affine(((index.outer, index.size), (index.inner, 1)))
        case Affine():
            return index
        case unknown:
            assert_never(unknown)


def plain_names(node: Expr) -> frozenset[str]:
    """Return the indices that run along a whole dimension of some operand, alone or as a part of a split. Their extents follow from it."""
    plain = (index for access in accesses(node) for index in access.indices if not isinstance(index, Affine))
    return frozenset(index_names(tuple(plain)))


def free_indices(node: Expr) -> tuple[str, ...]:
    """Return the indices that the value of `node` has, in order of appearance. Indices that are reduced inside of it are left out."""
    if isinstance(node, Access):
        return tuple(dict.fromkeys(node.names))
    bound = node.over if isinstance(node, Reduce) else ()
    return tuple(dict.fromkeys([name for child in children(node) for name in free_indices(child) if name not in bound]))
