"""The Einsum program: declared tensors and Einsums in order. Values only; text, verification and meaning stand beside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from fuseflow.errors import Span
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import Block, block_counts, tile_shape
from fuseflow.tensors.dtypes import DTYPES

__all__ = [
    "DTYPES",
    "Access",
    "Apply",
    "Const",
    "Einsum",
    "Expr",
    "Index",
    "Location",
    "Program",
    "Reduce",
    "Split",
    "TensorType",
    "accesses",
    "children",
    "free_indices",
    "index_names",
    "walk",
]


@dataclass(frozen=True, slots=True)
class Split:
    """A dimension seen as two indices: its coordinate is `outer * size + inner` (a head split, written `h*64 + d`)."""

    outer: str
    inner: str
    size: int

    def __str__(self) -> str:
        return f"{self.outer}*{self.size} + {self.inner}"


Index: TypeAlias = str | Split


@dataclass(frozen=True, slots=True)
class Access:
    """An element of a tensor: `A[i, k]`."""

    tensor: str
    indices: tuple[Index, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return index_names(self.indices)


@dataclass(frozen=True, slots=True)
class Const:
    """A number."""

    value: float


@dataclass(frozen=True, slots=True)
class Apply:
    """A pointwise operator (a row of `fuseflow.ops.OPERATORS`) on its operands."""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction (a row of `fuseflow.ops.REDUCERS`) of `body` over the indices `over`: `sum(k) A[i, k] * B[k, j]`."""

    op: str
    over: tuple[str, ...]
    body: Expr


Expr: TypeAlias = Access | Const | Apply | Reduce


@dataclass(frozen=True, slots=True)
class Location:
    """Where an Einsum comes from: the module path in the user's model (`layer1.lin`, '' at the top) and the place in a file."""

    path: str = ""
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class TensorType:
    """A declaration: `format` None leaves it to inference; `dtype` is a key of `DTYPES`; `fill` is the implicit value.

    `block` are the sizes, one for each dimension, of the blocks in which it is stored, () for single elements: the levels of
    `format` then store blocks, and every value is a tile (`tensors.blocks`). What the tensor means does not depend on it.
    """

    name: str
    shape: tuple[int, ...]
    format: Format | None = None
    dtype: str = "f32"
    fill: float = 0.0
    span: Span | None = field(default=None, compare=False)
    block: Block = ()

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """How many blocks there are along each dimension."""
        return block_counts(self.shape, self.block)

    @property
    def tile(self) -> tuple[int, ...]:
        """The shape of a value: () for a single element."""
        return tile_shape(self.block)


@dataclass(frozen=True, slots=True)
class Einsum:
    """`name[indices] = body`. Its name is the name of the tensor it defines."""

    name: str
    indices: tuple[Index, ...]
    body: Expr
    location: Location = field(default=Location(), compare=False)

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the tensors it reads, each once, in order of appearance."""
        return tuple(dict.fromkeys(a.tensor for a in accesses(self.body)))


@dataclass(frozen=True, slots=True)
class Program:
    """Tensors that come from outside (and declared intermediates), Einsums in order, and which results leave."""

    tensors: tuple[TensorType, ...]
    einsums: tuple[Einsum, ...]
    outputs: tuple[str, ...]
    name: str = "program"

    @property
    def declared(self) -> dict[str, TensorType]:
        return {t.name: t for t in self.tensors}

    @property
    def defined(self) -> dict[str, Einsum]:
        return {e.name: e for e in self.einsums}

    @property
    def inputs(self) -> tuple[TensorType, ...]:
        """The declared tensors that no Einsum defines."""
        made = {e.name for e in self.einsums}
        return tuple(t for t in self.tensors if t.name not in made)


def children(node: Expr) -> tuple[Expr, ...]:
    match node:
        case Apply():
            return node.args
        case Reduce():
            return (node.body,)
        case Access() | Const():
            return ()
        case unknown:
            assert_never(unknown)


def walk(node: Expr) -> Iterator[Expr]:
    """The node and everything below it, outermost first, left to right."""
    yield node
    for child in children(node):
        yield from walk(child)


def accesses(node: Expr) -> tuple[Access, ...]:
    return tuple(n for n in walk(node) if isinstance(n, Access))


def index_names(indices: tuple[Index, ...]) -> tuple[str, ...]:
    """The plain index names of an index list, splits taken apart."""
    return tuple(name for i in indices for name in ((i.outer, i.inner) if isinstance(i, Split) else (i,)))


def free_indices(node: Expr) -> tuple[str, ...]:
    """Indices of the value of `node`, in order of appearance (those reduced inside are left out)."""
    match node:
        case Access():
            return tuple(dict.fromkeys(node.names))
        case Const():
            return ()
        case Apply():
            return tuple(dict.fromkeys(name for arg in node.args for name in free_indices(arg)))
        case Reduce():
            return tuple(name for name in free_indices(node.body) if name not in node.over)
        case unknown:
            assert_never(unknown)
