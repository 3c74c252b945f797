"""Gathers and scatters by known positions, as products with selections.

A *selection* is a sparse matrix of ones, one in every row that takes something: row e of `gather` has its one in the column of the row
that position e takes. Its transpose adds up what goes to one place. So `x[source]` is a product, `scatter_add(target, messages)` is
one, and what a graph network does between them, `S diag(w) G x`, is a product with the weighted adjacency matrix, which is computed
here, once: the messages of single edges then exist nowhere.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend import fx_origin
from fuseflow.frontend.constant_folding import node_values
from fuseflow.frontend.dependence import Dependence, described_tensor, remove_unused, written_by
from fuseflow.frontend.einsum_names import NameAllocator
from fuseflow.frontend.trace import Trace

_SUMS = {"sum": "sum", "add": "sum", "mean": "mean"}
_EXTREMES = {"amax": "max", "max": "max", "amin": "min", "min": "min"}


# What the rewritten operators compute; the second, dense trace runs these ---------------------------------------------------


def product_along(selection: Tensor, x: Tensor, dim: int) -> Tensor:
    """Multiply dimension `dim` of `x` by a matrix from the left, which takes or adds up rows."""
    if x.dim() == 1:
        return torch.mm(selection, x.unsqueeze(1)).squeeze(1)
    x = x.movedim(dim, -2)
    if x.dim() == 2:
        return torch.mm(selection, x).movedim(-2, dim)
    batch, rest = x.shape[:-2], x.shape[-2:]
    flat = x.reshape(prod(batch), *rest)
    taken = torch.bmm(selection.expand(flat.shape[0], *selection.shape), flat)
    return taken.reshape(*batch, selection.shape[0], rest[-1]).movedim(-2, dim)


def extreme_along(selection: Tensor, empty: Tensor, x: Tensor, dim: int, start: Tensor | float, largest: bool) -> Tensor:
    """Return the largest or the smallest of the entries along `dim` that each row of a selection has, and `start` where it has none."""
    x = x.movedim(dim, 0)
    absent = float("-inf") if largest else float("inf")
    stored = selection.reshape(*selection.shape, *[1] * (x.dim() - 1))
    candidates = torch.where(stored == 0, absent, x.unsqueeze(0))
    extreme = candidates.amax(1) if largest else candidates.amin(1)
    base = start.movedim(dim, 0) if isinstance(start, Tensor) else start
    return torch.where(empty.reshape(-1, *[1] * (x.dim() - 1)) == 0, extreme, base).movedim(0, dim)


def overwrite_along(hit: Tensor, written: Tensor, base: Tensor, dim: int) -> Tensor:
    """Return `written` in those rows along `dim` that are hit, and `base` in all others."""
    shape = [1] * base.dim()
    shape[dim] = -1
    return torch.where(hit.reshape(shape) == 0, base, written)


# Rewriting ------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Selections:
    """The selections of a traced model. Those that take the same rows are one argument."""

    traced: Trace
    dependences: dict[Node, Dependence]
    names: NameAllocator
    _nodes: dict[tuple[Any, ...], Node]

    @classmethod
    def of(cls, traced: Trace, dependences: dict[Node, Dependence]) -> Selections:
        names = NameAllocator()
        for argument in traced.arguments.values():
            names.unique(argument.name)
        return cls(traced, dependences, names, {})

    def rewrite(self) -> None:
        """Replace every gather and scatter of data whose positions are known, in place."""
        graph = self.traced.graph_module.graph
        for node in list(graph.nodes):
            handler = _HANDLERS.get(fx_origin.short_name(node.target).rstrip("_")) if node.op == "call_function" else None
            if handler is not None and self.dependences.get(node) == "data" and not _is_read_as_it_was(node):
                with graph.inserting_before(node):
                    result = handler(self, node)
                if result is not None:
                    result.meta = {**node.meta, "val": node.meta["val"]}
                    node.replace_all_uses_with(result)
                    graph.erase_node(node)
        remove_unused(self.traced)

    def call(self, origin: Node, target: Any, args: tuple[Any, ...], shape: Any) -> Node:
        """Add a call that has the module path and the line of the node `origin`."""
        result = origin.graph.call_function(target, args)
        result.meta = {**origin.meta, "val": torch.empty(tuple(shape), dtype=_described(origin).dtype, device="meta")}
        self.dependences[result] = "data"
        return result

    # What is known

    def known(self, node: object) -> Tensor | None:
        """Return the numbers of a value that depends on structure alone, or None for data."""
        if isinstance(node, Node) and self.dependences.get(node) == "structure":
            value = node_values(self.traced, [node])[node]
            return value if isinstance(value, Tensor) else None
        return None

    def matrix(self, rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int], name: str) -> Node:
        """Return an argument that is a CSR matrix of the given entries. Entries at one place are added up."""
        matrix = torch.sparse_coo_tensor(torch.stack((rows, columns)), values, shape).coalesce().to_sparse_csr()
        content = matrix.crow_indices(), matrix.col_indices(), matrix.values()
        key = shape, values.dtype, *(hash(part.numpy().tobytes()) for part in content)
        for node, tensor in self._same(key):
            if all(torch.equal(a, b) for a, b in zip(content, _content(tensor), strict=True)):
                return node
        node = self.traced.add(self.names.unique(name), matrix, torch.empty(shape, dtype=values.dtype, device="meta"))
        self._nodes[key] = node
        return node

    def _same(self, key: tuple[Any, ...]) -> list[tuple[Node, Tensor]]:
        node = self._nodes.get(key)
        return [] if node is None else [(node, self.traced.arguments[node].tensor)]

    def vector(self, values: Tensor, name: str) -> Node:
        """Return an argument that is a known dense vector."""
        return self.traced.add(self.names.unique(name), values, torch.empty_like(values, device="meta"))

    def tensor_of(self, node: Node) -> Tensor:
        return self.traced.arguments[node].tensor


def _content(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return matrix.crow_indices(), matrix.col_indices(), matrix.values()


def _is_read_as_it_was(node: Node) -> bool:
    """Return whether an operator writes to a value that something else reads, too."""
    return any(len(target.users) > 1 or target.op == "placeholder" for target in written_by(node))


def _gathered(selections: Selections, node: Node, x: Node, dim: int, positions: Tensor) -> Node:
    """Return a node that takes rows of `x` at known positions (a vector) along `dim`."""
    described = _described(x)
    extent = described.shape[dim]
    positions = torch.where(positions < 0, positions + extent, positions).to(torch.int64)
    ones = torch.ones(len(positions), dtype=described.dtype)
    matrix = selections.matrix(torch.arange(len(positions)), positions, ones, (len(positions), extent), _named(node, "gather"))
    return selections.call(node, product_along, (matrix, x, dim), _shape_with(described, dim, len(positions)))


def _scattered(selections: Selections, node: Node, source: Node, dim: int, positions: Tensor, rows: int, mean: bool) -> Node:
    """Return a node that adds up the entries of `source` along `dim` that go to the same of so many rows."""
    described = _described(source)
    values = torch.ones(len(positions), dtype=described.dtype)
    if mean:
        values /= torch.bincount(positions, minlength=rows)[positions].to(values.dtype)
    edges = torch.arange(len(positions))
    propagated = _propagated(selections, node, source, dim, (positions, edges, values), rows)
    if propagated is not None:
        return propagated
    matrix = selections.matrix(positions, edges, values, (rows, len(positions)), _named(node, "scatter"))
    return selections.call(node, product_along, (matrix, source, dim), _shape_with(described, dim, rows))


def _propagated(
    selections: Selections, node: Node, source: Node, dim: int, entries: tuple[Tensor, Tensor, Tensor], rows: int
) -> Node | None:
    """Return one product in place of a gather, a weighting by known numbers, and the scatter that follows. None if it is not that."""
    positions, edges, values = entries
    while _is_only_read_by_one(source) and fx_origin.short_name(source.target) == "mul" and len(source.args) == 2:
        weighted = _known_weights(selections, source, dim)
        if weighted is None:
            return None
        source, weights = weighted
        values = values * weights[edges].to(values.dtype)
    if source.target is not product_along or not _is_only_read_by_one(source) or source.args[2] != dim:
        return None
    matrix, x, _ = source.args
    assert isinstance(matrix, Node) and isinstance(x, Node)
    taken = torch.Tensor.to_sparse(selections.tensor_of(matrix))
    scattered = torch.sparse_coo_tensor(torch.stack((positions, edges)), values, (rows, taken.shape[0]))
    composed = torch.sparse.mm(scattered.coalesce(), taken.to(values.dtype)).coalesce()
    (to, origin), numbers = composed.indices(), composed.values()
    adjacency = selections.matrix(to, origin, numbers, (rows, taken.shape[1]), _named(node, "adjacency"))
    return selections.call(node, product_along, (adjacency, x, dim), _shape_with(_described(x), dim, rows))


def _known_weights(selections: Selections, product: Node, dim: int) -> tuple[Node, Tensor] | None:
    """Return the data and the known weights of a product that weighs the entries along `dim`, or None for any other product."""
    for data, weight in (product.args, reversed(product.args)):
        known = selections.known(weight)
        if known is not None and isinstance(data, Node) and selections.dependences.get(data) == "data":
            shape, whole = tuple(known.shape), _described(product).shape
            extents = (1,) * (len(whole) - len(shape)) + shape
            along = dim % len(whole)
            if (
                known.is_floating_point()
                and all(size == 1 for d, size in enumerate(extents) if d != along)
                and extents[along] > 1
            ):
                return data, known.reshape(-1)
    return None


# The operators -----------------------------------------------------------------------------------------------------------------


def _index_select(selections: Selections, node: Node) -> Node | None:
    x, dim, index = _arguments(node, "self", "dim", "index")
    positions = selections.known(index)
    return None if positions is None else _gathered(selections, node, x, dim % max(1, _described(x).dim()), positions.reshape(-1))


def _index(selections: Selections, node: Node) -> Node | None:
    """`x[:, index]`, or `x[i, j]`, with integers or truth values."""
    x, indices = _arguments(node, "self", "indices")
    places = _places(selections, x, indices)
    if places is None:
        return None
    merged = _reshaped(selections, node, x, places.merged)
    return _reshaped(selections, node, _gathered(selections, node, merged, places.dim, places.positions), _described(node).shape)


def _index_put(selections: Selections, node: Node) -> Node | None:
    """`x[i, j] = values`, and `+=` with `accumulate`."""
    x, indices, values = _arguments(node, "self", "indices", "values")
    places = _places(selections, x, indices)
    if places is None:
        return None
    accumulate = node.args[3] if len(node.args) > 3 else node.kwargs.get("accumulate", False)
    outer, rest = places.merged[: places.dim], places.merged[places.dim + 1 :]
    whole = selections.call(
        node, torch.ops.aten.expand.default, (values, [*outer, *places.shape, *rest]), (*outer, *places.shape, *rest)
    )
    source = _reshaped(selections, node, whole, (*outer, len(places.positions), *rest))
    merged = _reshaped(selections, node, x, places.merged)
    reduce = "sum" if accumulate else "overwrite"
    result = _combined(selections, node, merged, places.dim, places.positions, source, reduce, True)
    return None if result is None else _reshaped(selections, node, result, _described(node).shape)


@dataclass(frozen=True, slots=True)
class _Places:
    """Known positions in adjacent dimensions, as positions along dimension `dim` of a tensor that has the shape `merged`, in which these
    dimensions are one. The positions were given as an array of this `shape`."""

    dim: int
    positions: Tensor
    shape: tuple[int, ...]
    merged: tuple[int, ...]


def _places(selections: Selections, x: Node, indices: Sequence[object]) -> _Places | None:
    """Return the positions that a list of indices names, or None if they are data or in dimensions that are not adjacent."""
    columns: list[tuple[int, Tensor]] = []
    dim = 0
    for index in indices:
        positions = None if index is None else selections.known(index)
        if index is not None and positions is None:
            return None
        if positions is None:
            dim += 1
        elif positions.dtype == torch.bool:
            columns += [(dim + n, column) for n, column in enumerate(positions.nonzero().t())]
            dim += positions.dim()
        else:
            columns.append((dim, positions.to(torch.int64)))
            dim += 1
    dims, shape = [d for d, _ in columns], tuple(_described(x).shape)
    if not dims or dims != list(range(dims[0], dims[0] + len(dims))):
        return None
    first, behind = dims[0], dims[-1] + 1
    linear = torch.zeros((), dtype=torch.int64)
    for d, column in columns:
        linear = linear * shape[d] + torch.where(column < 0, column + shape[d], column)
    merged = (*shape[:first], prod(shape[first:behind]), *shape[behind:])
    return _Places(first, linear.reshape(-1), tuple(linear.shape), merged)


def _embedding(selections: Selections, node: Node) -> Node | None:
    weight, index = _arguments(node, "weight", "indices")
    positions = selections.known(index)
    if positions is None:
        return None
    return _reshaped(selections, node, _gathered(selections, node, weight, 0, positions.reshape(-1)), _described(node).shape)


def _gather(selections: Selections, node: Node) -> Node | None:
    x, dim, index = _arguments(node, "self", "dim", "index")
    positions, described = selections.known(index), _described(x)
    if positions is None:
        return None
    along = _vector_along(positions, dim, described.shape)
    return None if along is None else _gathered(selections, node, x, dim % described.dim(), along)


def _scatter_add(selections: Selections, node: Node) -> Node | None:
    base, dim, index, source = _arguments(node, "self", "dim", "index", "src")
    return _scatter(selections, node, base, dim, index, source, "sum", True)


def _index_add(selections: Selections, node: Node) -> Node | None:
    base, dim, index, source = _arguments(node, "self", "dim", "index", "source")
    if node.kwargs.get("alpha", 1) != 1 or len(node.args) > 4:
        return None
    return _scatter(selections, node, base, dim, index, source, "sum", True)


def _index_copy(selections: Selections, node: Node) -> Node | None:
    base, dim, index, source = _arguments(node, "self", "dim", "index", "source")
    return _scatter(selections, node, base, dim, index, source, "overwrite", True)


def _scatter_source(selections: Selections, node: Node) -> Node | None:
    if node.target not in (torch.ops.aten.scatter.src, torch.ops.aten.scatter_.src):
        return None
    base, dim, index, source = _arguments(node, "self", "dim", "index", "src")
    return _scatter(selections, node, base, dim, index, source, "overwrite", True)


def _scatter_reduce(selections: Selections, node: Node) -> Node | None:
    base, dim, index, source, reduce = _arguments(node, "self", "dim", "index", "src", "reduce")
    include_self = node.args[5] if len(node.args) > 5 else node.kwargs.get("include_self", True)
    return _scatter(selections, node, base, dim, index, source, reduce, bool(include_self))


def _scatter(
    selections: Selections, node: Node, base: Node, dim: int, index: Node, source: Any, reduce: str, include_self: bool
) -> Node | None:
    positions = selections.known(index)
    if positions is None or not isinstance(source, Node):
        return None
    described = _described(base)
    dim %= described.dim()
    along = _vector_along(positions, dim, _described(source).shape) if positions.dim() > 1 else positions
    if along is None or any(
        a != b for d, (a, b) in enumerate(zip(_described(source).shape, described.shape, strict=True)) if d != dim
    ):
        return None
    return _combined(selections, node, base, dim, along, source, reduce, include_self)


def _combined(
    selections: Selections, node: Node, base: Node, dim: int, positions: Tensor, source: Node, reduce: str, include_self: bool
) -> Node | None:
    """Return what becomes of `base` where the entries of `source` along `dim` are combined with it at known positions. None if there is no
    form of it."""
    described, zero = _described(base), _is_zero(base)
    if reduce == "overwrite":
        return _overwritten(selections, node, base, dim, positions, source)
    if reduce in _EXTREMES and not (include_self and not zero):
        return _extreme(selections, node, base, dim, positions, source, _EXTREMES[reduce] == "max", zero, include_self)
    if reduce not in _SUMS or (reduce == "mean" and include_self) or not (zero or include_self):
        return None
    result = _scattered(selections, node, source, dim, positions, described.shape[dim], _SUMS[reduce] == "mean")
    return result if zero else selections.call(node, torch.ops.aten.add.Tensor, (base, result), described.shape)


def _overwritten(selections: Selections, node: Node, base: Node, dim: int, positions: Tensor, source: Node) -> Node | None:
    rows = _described(base).shape[dim]
    counts = torch.bincount(positions, minlength=rows)
    if bool((counts > 1).any()):  # which of several is written is not determined
        return None
    written = _scattered(selections, node, source, dim, positions, rows, False)
    if _is_zero(base):
        return written
    hit = selections.vector((counts > 0).to(torch.int32), _named(node, "written"))
    return selections.call(node, overwrite_along, (hit, written, base, dim), _described(base).shape)


def _extreme(
    selections: Selections,
    node: Node,
    base: Node,
    dim: int,
    positions: Tensor,
    source: Node,
    largest: bool,
    zero: bool,
    floor: bool,
) -> Node | None:
    if floor:  # the zeros of the base count as entries
        return None
    rows, dtype = _described(base).shape[dim], _described(source).dtype
    ones = torch.ones(len(positions), dtype=dtype)
    matrix = selections.matrix(positions, torch.arange(len(positions)), ones, (rows, len(positions)), _named(node, "scatter"))
    empty = selections.vector((torch.bincount(positions, minlength=rows) == 0).to(torch.int32), _named(node, "empty"))
    start = 0.0 if zero else base
    return selections.call(node, extreme_along, (matrix, empty, source, dim, start, largest), _described(base).shape)


_HANDLERS: dict[str, Callable[[Selections, Node], Node | None]] = {
    "index_select": _index_select,
    "index": _index,
    "embedding": _embedding,
    "gather": _gather,
    "scatter_add": _scatter_add,
    "scatter_reduce": _scatter_reduce,
    "index_add": _index_add,
    "index_put": _index_put,
    "index_copy": _index_copy,
    "scatter": _scatter_source,
}
"""For each operator, by name, what replaces it. None where it is left as it is, to be refused with its reason."""


def _arguments(node: Node, *names: str) -> list[Any]:
    """Return the first arguments of a call, which may be given by name."""
    return [node.args[p] if p < len(node.args) else node.kwargs[name] for p, name in enumerate(names)]


def _vector_along(positions: Tensor, dim: int, shape: torch.Size) -> Tensor | None:
    """Return the positions along `dim` if they are the same for all other coordinates, as those of `index.expand_as(x)` are."""
    dim %= positions.dim()
    if positions.shape[:dim] != shape[:dim] or positions.shape[dim + 1 :] != shape[dim + 1 :]:
        return None
    moved = positions.movedim(dim, 0).reshape(positions.shape[dim], -1)
    if not moved.shape[1]:
        return None
    return moved[:, 0] if bool((moved == moved[:, :1]).all()) else None


def _described(node: Node) -> Tensor:
    described = described_tensor(node)
    assert described is not None, f"`{node}` is a tensor"
    return described


def _shape_with(tensor: Tensor, dim: int, extent: int) -> tuple[int, ...]:
    shape = list(tensor.shape)
    shape[dim] = extent
    return tuple(shape)


def _is_zero(node: Node) -> bool:
    name = fx_origin.short_name(node.target)
    return name in ("zeros", "zeros_like") or (name == "full" and bool(node.args[1] == 0))


def _is_only_read_by_one(node: Node) -> bool:
    return node.op == "call_function" and node.target is not operator.getitem and len(node.users) == 1


def _named(node: Node, name: str) -> str:
    path = fx_origin.module_path(node)
    return f"{path}.{name}" if path else name


def _reshaped(selections: Selections, origin: Node, value: Node, shape: Sequence[int]) -> Node:
    if tuple(_described(value).shape) == tuple(shape):
        return value
    return selections.call(origin, torch.ops.aten.reshape.default, (value, list(shape)), shape)
