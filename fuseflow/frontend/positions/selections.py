"""Gathers and scatters by known positions, as products with selections.

A *selection* is a sparse matrix of ones, one in every row that takes something: row e of `gather` has its one in the column of
the row that position e takes. Its transpose adds up all that goes to one place. So `x[source]` is a product, `scatter_add(target,
messages)` is one, and both with the weights between them, `S diag(w) G x`, are a product with the weighted adjacency matrix,
which is computed here, once: the messages of single edges then exist nowhere.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from fuseflow.frontend.linalg.locations import NameAllocator
from fuseflow.frontend.positions.selection_operators import extreme_along, multiplied_along, overwrite_along, product_along
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.constant_folding import node_values
from fuseflow.frontend.trace.dependence import Dependence, described_tensor, stores_nonzeros
from fuseflow.frontend.trace.fx_origin import named
from fuseflow.frontend.trace.sparsified_tensors import add_marker, keep
from fuseflow.frontend.trace.stored_places import stored_places
from fuseflow.frontend.trace.tracing import Trace
from fuseflow.keep_rules import Largest
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule

Handler: TypeAlias = Callable[..., Node | None]
"""Returns the replacement of a call of an operator, from the `Call` and its arguments as the operator takes them, or None where the call is
left as it is, to be refused with its reason."""
EXTREMES = {"amax": "max", "max": "max", "amin": "min", "min": "min"}
_WITH_SELF = {
    "max": (torch.ops.aten.maximum.default, None),
    "min": (torch.ops.aten.minimum.default, None),
    "prod": (torch.ops.aten.mul.Tensor, 1.0),
}
"""By reduction: the operator that combines the value of a row with the entries that go to it, and the value for a row without
entries; None keeps the value."""
_ENTRIES = (torch.sparse_csr, torch.sparse_csc, torch.sparse_coo)
"""The layouts that store single entries."""


@dataclass(slots=True)
class Selections:
    """The selections of a traced model. Selections that take the same rows are one argument. `kept` has the rules of the markers of values
    of which only a part is kept, and `formats` the formats of arguments that PyTorch holds dense, by name. `masks` are the names of
    arguments that store the true places of a mask. `places` has the sparse values whose entries are at known places, as `stored_places`
    says, and `made_of_dense` those that store what is not 0 in a dense tensor."""

    traced: Trace
    dependences: dict[Node, Dependence]
    kept: dict[str, KeepRule] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    masks: set[str] = field(default_factory=set)
    places: dict[Node, Tensor] = field(init=False)
    made_of_dense: frozenset[Node] = field(init=False)
    _names: NameAllocator = field(init=False)
    _nodes: dict[tuple[Any, ...], Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = stored_places(self.traced, self.dependences)
        nodes, arguments = self.traced.graph_module.graph.nodes, self.traced.arguments
        self.made_of_dense = frozenset(node for node in nodes if stores_nonzeros(node, arguments))
        self._names = self.traced.names()

    def computed(self, origin: Node, function: Callable[..., Any], args: tuple[Any, ...], **kwargs: Any) -> Node:
        """Add a call of a function of tensors, with the module path and the line of the node `origin`."""
        given, options = map_arg((args, kwargs), _without_numbers)
        return self.valued(origin, function(*given, **options), function, args, **kwargs)

    def valued(self, origin: Node, value: Any, target: Any, args: tuple[Any, ...], **kwargs: Any) -> Node:
        """Add a call whose result is described by `value`, with the module path and the line of the node `origin`."""
        result = origin.graph.call_function(target, args, kwargs)
        result.meta = {**origin.meta, "val": value}
        self.dependences[result] = "data"
        return result

    # Known values

    def known(self, node: object) -> Tensor | None:
        """Return the numbers of a value that depends on structure alone, or None for data. Integers that were read out of a sparse matrix
        are the places of its entries."""
        if not isinstance(node, Node):
            return None
        dependence, tensor = self.dependences.get(node), described_tensor(node)
        is_place = dependence == "pattern" and tensor is not None and tensor.dtype in (torch.int32, torch.int64)
        value = node_values(self.traced, [node])[node] if dependence == "structure" or is_place else None
        return value if isinstance(value, Tensor) else None

    def constant(self, node: Node) -> Tensor | None:
        """Return the numbers of a value that follows from structure, weights and constants alone, or None for data."""
        return None if self.dependences.get(node) == "data" else node_values(self.traced, [node])[node]

    def unique(self, name: str) -> str:
        """Return this name, or one like it, for an argument."""
        return self._names.unique(name)

    def argument(self, name: str, tensor: Tensor) -> Node:
        """Return a new argument, which has this name or a name like it."""
        return self.traced.add(self.unique(name), tensor)

    def matrix(self, rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int], name: str) -> Node:
        """Return an argument that is a CSR matrix of the given entries. Entries at one place are added up."""
        matrix = torch.sparse_coo_tensor(torch.stack((rows, columns)), values, shape).coalesce().to_sparse_csr()
        content = _content(matrix)
        key = shape, values.dtype, *(hash(part.view(torch.uint8).numpy().tobytes()) for part in content)
        node = self._nodes.get(key)
        if node is not None and all(map(torch.equal, content, _content(self.tensor_of(node)))):
            return node
        self._nodes[key] = self.argument(name, matrix)
        return self._nodes[key]

    def counted(self, extent: int, dtype: torch.dtype, name: str) -> Node:
        """Return an argument that has the numbers from 0 to `extent` - 1."""
        key = "counted", extent, dtype
        if key not in self._nodes:
            self._nodes[key] = self.argument(name, torch.arange(extent, dtype=dtype))
        return self._nodes[key]

    def in_rows(self, node: Node) -> Node:
        """Let a mask, an argument, store only its true places in rows, unless PyTorch stores it in some way already. Return it."""
        argument = self.traced.arguments[node]
        self.masks.add(argument.name)
        if argument.tensor.layout == torch.strided:
            outer = sum(extent > 1 for extent in argument.tensor.shape[:-1])
            self.formats[argument.name] = f"({'dense, ' * outer}compressed)"
        return node

    def pattern(self, node: Node) -> Node | None:
        """Return an argument that is true where a sparse matrix stores an entry, or None if that is not known."""
        stored = self.places.get(node)
        if stored is None or stored.layout not in _ENTRIES or stored.dim() != 2:
            return None
        stored = stored.to_sparse_csr()
        truths = torch.ones(stored.values().shape, dtype=torch.bool)
        pattern = torch.sparse_csr_tensor(stored.crow_indices(), stored.col_indices(), truths, tuple(stored.shape))
        argument = self.traced.arguments.get(node)
        return self.argument(f"{argument.name}.pattern" if argument else named(node, "pattern"), pattern)

    def tensor_of(self, node: Node) -> Tensor:
        return self.traced.arguments[node].tensor


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator, `node`, that is replaced. What is added for it has the module path and the line of the call."""

    selections: Selections
    node: Node

    def computed(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        """Add a call of a function of tensors."""
        return self.selections.computed(self.node, function, args, **kwargs)

    def valued(self, value: Any, target: Any, *args: Any, **kwargs: Any) -> Node:
        """Add a call whose result is described by `value`."""
        return self.selections.valued(self.node, value, target, args, **kwargs)

    def argument(self, name: str, tensor: Tensor) -> Node:
        """Return a new argument, whose name begins with the module path."""
        return self.selections.argument(named(self.node, name), tensor)

    def matrix(self, rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int], name: str) -> Node:
        """Return an argument that is a CSR matrix of the given entries. Entries at one place are added up."""
        return self.selections.matrix(rows, columns, values, shape, named(self.node, name))

    def counted(self, extent: int, dtype: torch.dtype = torch.int64, name: str = "places") -> Node:
        """Return an argument that has the numbers from 0 to `extent` - 1."""
        return self.selections.counted(extent, dtype, named(self.node, name))

    def kept(self, x: Node, rule: Largest, over: Sequence[int], marks: bool = False) -> Node:
        """Return what a rule over some dimensions, the outermost first, leaves of `x`; with `marks`, ones where an entry is kept."""
        shaped, selections = described(x), self.selections
        if rule.count >= prod(shaped.shape[d] for d in over):
            return self.computed(torch.ones_like, x) if marks else x
        dimensions = tuple(d % shaped.dim() for d in over)
        kept = KeepRule(replace(rule, marks=marks), dimensions)
        name = selections.unique(named(self.node, "marks" if marks else "kept"))
        return self.computed(keep, x, add_marker(selections.traced, selections.kept, name, shaped, kept), marks)

    def mask(self, values: Tensor, name: str, block: Sequence[int] = ()) -> Node:
        """Return an argument that has truth values and stores only the true ones: in each row, or, in a matrix that blocks of this size
        divide, the blocks that have one."""
        if values.dim() == 2:
            is_divided = block and all(n % size == 0 for n, size in zip(values.shape, block, strict=True))
            values = values.to_sparse_bsr(tuple(block)) if is_divided else values.to_sparse_csr()
        return self.selections.in_rows(self.argument(name, values))

    def gathered(self, x: Node, dim: int, positions: Tensor) -> Node:
        """Return a node that takes rows of `x` at known positions (a vector) along `dim`."""
        shaped = described(x)
        extent = shaped.shape[dim]
        positions = torch.where(positions < 0, positions + extent, positions).to(torch.int64)
        ones = torch.ones(len(positions), dtype=shaped.dtype)
        matrix = self.matrix(torch.arange(len(positions)), positions, ones, (len(positions), extent), "gather")
        return self.computed(product_along, matrix, x, dim)

    def scattered(self, source: Node, dim: int, positions: Tensor, rows: int, mean: bool) -> Node:
        """Return a node that adds up (or averages, with `mean`) the entries of `source` along `dim` that go to the same one of `rows`
        rows: `positions` are the rows."""
        values = torch.ones(len(positions), dtype=described(source).dtype)
        if mean:
            values /= torch.bincount(positions, minlength=rows)[positions].to(values.dtype)
        edges = torch.arange(len(positions))
        propagated = self._propagated(source, dim, (positions, edges, values), rows)
        if propagated is not None:
            return propagated
        matrix = self.matrix(positions, edges, values, (rows, len(positions)), "scatter")
        return self.computed(product_along, matrix, source, dim)

    def _propagated(self, source: Node, dim: int, entries: tuple[Tensor, Tensor, Tensor], rows: int) -> Node | None:
        """Return one product in place of a gather, a weighting by known numbers, and the scatter that follows. Return None if the
        operators are others. `entries` are the row, the column and the number of each entry that is scattered."""
        positions, edges, values = entries
        while _is_only_read_by_one(source) and fx_origin.short_name(source.target) == "mul" and len(source.args) == 2:
            weighted = _known_weights(self.selections, source, dim)
            if weighted is None:
                return None
            source, weights = weighted
            values = values * weights[edges].to(values.dtype)
        if source.target is not product_along or not _is_only_read_by_one(source) or source.args[2] != dim:
            return None
        matrix, x, _ = source.args
        assert isinstance(matrix, Node) and isinstance(x, Node)
        taken = torch.Tensor.to_sparse(self.selections.tensor_of(matrix))
        scattered = torch.sparse_coo_tensor(torch.stack((positions, edges)), values, (rows, taken.shape[0]))
        wide = torch.promote_types(values.dtype, torch.float32)  # PyTorch multiplies no sparse matrices of 16-bit floats
        composed = torch.sparse.mm(scattered.to(wide).coalesce(), taken.to(wide)).coalesce()
        (to, origin), numbers = composed.indices(), composed.values().to(values.dtype)
        adjacency = self.matrix(to, origin, numbers, (rows, taken.shape[1]), "adjacency")
        return self.computed(product_along, adjacency, x, dim)

    def combined(self, base: Node, dim: int, positions: Tensor, source: Node, reduce: str, include_self: bool) -> Node | None:
        """Return `base` after the entries of `source` along `dim` were combined with it by `reduce` at known positions; without
        `include_self`, `base` counts only where no entry goes. None for a reduction that cannot be replaced."""
        shaped, zero = described(base), is_zero(base)
        if reduce == "overwrite":
            return self._overwritten(base, dim, positions, source)
        if reduce in EXTREMES or reduce == "prod":
            kind, places = EXTREMES.get(reduce, reduce), (dim, positions, shaped.shape[dim])
            if not include_self:
                return self.reduced(places, source, kind, 0.0 if zero else base)
            combination, neutral = _WITH_SELF[kind]
            result = self.reduced(places, source, kind, base if neutral is None else neutral)
            return self.computed(combination, base, result)
        if reduce not in ("sum", "add", "mean") or (reduce == "mean" and include_self) or not (zero or include_self):
            return None
        result = self.scattered(source, dim, positions, shaped.shape[dim], reduce == "mean")
        return result if zero else self.computed(torch.ops.aten.add.Tensor, base, result)

    def _overwritten(self, base: Node, dim: int, positions: Tensor, source: Node) -> Node:
        """Return `base` with entries of `source` at known positions. Of the entries that go to one place the last one is written, as on
        a CPU."""
        rows = described(base).shape[dim]
        last = torch.full((rows,), -1).scatter_reduce(0, positions.long(), torch.arange(len(positions)), "amax")
        hit = last >= 0
        if len(positions) > int(hit.sum()):  # several go to one place
            positions, kept = hit.nonzero().reshape(-1), last[hit]
            source = self.gathered(source, dim, kept)
        written = self.scattered(source, dim, positions, rows, False)
        if is_zero(base):
            return written
        return self.computed(overwrite_along, self.argument("written", hit.to(torch.int32)), written, base, dim)

    def reduced(self, places: tuple[int, Tensor, int], source: Node, kind: str, start: Node | float) -> Node:
        """Return a node with the largest (`max`), the smallest (`min`) or the product (`prod`) of the entries of `source` that go to the
        same row, and `start` where none goes. `places` are the dimension of the rows, the row of each entry, and how many rows there
        are."""
        dim, positions, rows = places
        ones = torch.ones(len(positions), dtype=described(source).dtype)
        matrix = self.matrix(positions, torch.arange(len(positions)), ones, (rows, len(positions)), "scatter")
        empty = self.argument("empty", (torch.bincount(positions, minlength=rows) == 0).to(torch.int32))
        if kind == "prod":
            return self.computed(multiplied_along, matrix, empty, source, dim, start)
        return self.computed(extreme_along, matrix, empty, source, dim, start, kind == "max")

    def reshaped(self, value: Node, shape: Sequence[int]) -> Node:
        if tuple(described(value).shape) == tuple(shape):
            return value
        return self.computed(torch.ops.aten.reshape.default, value, list(shape))


def _without_numbers(node: Node) -> Tensor:
    tensor = described(node)
    return torch.empty(tuple(tensor.shape), dtype=tensor.dtype, device="meta")


def _content(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return matrix.crow_indices(), matrix.col_indices(), matrix.values()


def _known_weights(selections: Selections, product: Node, dim: int) -> tuple[Node, Tensor] | None:
    """Return the data and the known weights of a product that weighs the entries along `dim`, or None for any other product."""
    for data, weight in (product.args, reversed(product.args)):
        known = selections.known(weight)
        if known is not None and isinstance(data, Node) and selections.dependences.get(data) == "data":
            shape, whole = tuple(known.shape), described(product).shape
            extents = (1,) * (len(whole) - len(shape)) + shape
            along = extents[dim % len(whole)]
            if known.is_floating_point() and along > 1 and known.numel() == along:
                return data, known.reshape(-1)
    return None


def described(node: Node) -> Tensor:
    value = described_tensor(node)
    assert value is not None, f"`{node}` is a tensor"
    return value


def same_beside(dim: int, first: Node, second: Node) -> bool:
    """Return whether two tensors have the same extents in all dimensions but `dim`."""
    pairs = zip(described(first).shape, described(second).shape, strict=True)
    return all(a == b for d, (a, b) in enumerate(pairs) if d != dim)


def is_zero(node: Node) -> bool:
    """Return whether a tensor is made of zeros, or is new memory without content, which may be zeros."""
    name = fx_origin.short_name(node.target)
    fresh = ("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty")
    return name in fresh or (name == "full" and bool(node.args[1] == 0))


def _is_only_read_by_one(node: Node) -> bool:
    return node.op == "call_function" and node.target is not operator.getitem and len(node.users) == 1


def first_operand(node: Node) -> Node:
    operand = node.args[0]
    assert isinstance(operand, Node)
    return operand
