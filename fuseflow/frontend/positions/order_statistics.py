"""Elements of a given rank, and the first elements in order, by selection: a rule of `keep` marks them in one pass over the elements.

The element of rank r is where the first r + 1 elements are marked and the first r are not. So thresholds, quantiles and medians take time
in proportion to the elements. So does the position of an extreme, the first that equals it, which needs no rule, and has a circuit. Where
the k first elements are written back to their places, as in `zeros.scatter(-1, top.indices, top.values)`, they are what is kept, whatever
their order. Only results whose order is read are compared pair by pair (`ranking`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.gathers import nothing_of
from fuseflow.frontend.positions.ranking import RESULTS, ranking, wanted_results
from fuseflow.frontend.positions.selections import Call, Handler, described, first_operand, is_zero
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import written_by
from fuseflow.frontend.trace.operator_support import PATTERN_KEEPING
from fuseflow.keep_rules import By, Largest

Nan: TypeAlias = Literal["greatest", "any"]
"""The order of NaN among numbers: the greatest, or, with `any`, the greatest and the result of any rank with a NaN."""
_EXACT_PLACES = 2**24
"""The most positions that floats of 32 bits tell apart."""
MOST_RANKS = 4
"""The most ranks of an ordered result that are selected one by one. More are compared pair by pair."""


# Marks ----------------------------------------------------------------------------------------------------------------------


def marked_in(x: Tensor, marks: Tensor, dim: int) -> Tensor:
    """Return the elements of x that are marked, one along `dim`, which stays."""
    return torch.where(marks != 0, x, nothing_of(x)).sum(dim, keepdim=True, dtype=x.dtype)


def position_of(positions: Tensor, marks: Tensor, dim: int) -> Tensor:
    """Return the positions of the elements that are marked, one along `dim`, which stays. `positions` counts from 0."""
    return marked_in(positions.reshape(-1, *[1] * (marks.dim() - 1 - dim)), marks, dim)


def first_position(x: Tensor, positions: Tensor, dim: int, largest: bool) -> Tensor:
    """Return the position of the first of the largest or smallest elements along `dim`, which stays, or of the first NaN."""
    extreme = x.amax(dim, keepdim=True) if largest else x.amin(dim, keepdim=True)
    wanted = torch.where(x == extreme, 1.0, 0.0)
    if x.is_floating_point():
        is_nan = torch.where(x != x, 1.0, 0.0)
        wanted = torch.where(is_nan.amax(dim, keepdim=True) > 0, is_nan, wanted)
    exact = torch.float32 if len(positions) <= _EXACT_PLACES else torch.float64
    places = positions.to(exact).reshape(-1, *[1] * (x.dim() - 1 - dim))
    first = torch.where(wanted > 0, places, math.inf).amin(dim, keepdim=True)
    return position_of(positions, torch.where(places == first, 1, 0), dim)


def marks_of_nan(x: Tensor, marks: Tensor, first: Tensor, dim: int) -> Tensor:
    """Return the marks of the `first` element in order where that is NaN, and the other marks elsewhere."""
    has_nan = torch.where(x != x, 1.0, 0.0).amax(dim, keepdim=True) > 0
    return torch.where(has_nan, first, marks)


def _marks_of_rank(call: Call, x: Node, dim: int, rank: int, largest: bool, nan: Nan) -> Node:
    """Return ones where the elements stand that are at place `rank` in order along `dim`: 0 is the first of the largest or smallest."""
    by: By = "greatest" if largest else "least"
    marks = call.kept(x, Largest(rank + 1, by=by), (dim,), marks=True)
    if rank:
        marks = call.computed(torch.sub, marks, call.kept(x, Largest(rank, by=by), (dim,), marks=True))
    if nan == "any" and described(x).is_floating_point():
        first = call.kept(x, Largest(1, by="greatest"), (dim,), marks=True)
        marks = call.computed(marks_of_nan, x, marks, first, dim)
    return marks


def _of_rank(
    call: Call,
    x: Node,
    dim: int,
    rank: int,
    largest: bool,
    wanted: tuple[str, ...],
    keep: bool = True,
    nan: Nan = "greatest",
) -> dict[str, Node]:
    """Return the `wanted` results of the elements at place `rank` in order along `dim`: the values, the positions or both. There are
    none if they cannot be compared. With `keep`, the dimension stays with one element."""
    shaped = described(x)
    if shaped.dtype == torch.bool or shaped.dim() == 0 or not wanted or not 0 <= rank < shaped.shape[dim]:
        return {}
    dim %= shaped.dim()
    if wanted == ("values",) and 2 * rank >= shaped.shape[dim]:  # it is nearer to the other end
        rank, largest = shaped.shape[dim] - 1 - rank, not largest
    marks = _marks_of_rank(call, x, dim, rank, largest, nan)
    nodes: dict[str, Node] = {}
    for what in wanted:
        if what == "values":
            node = call.computed(marked_in, x, marks, dim)
        else:
            node = call.computed(position_of, call.counted(shaped.shape[dim], name="positions"), marks, dim)
        nodes[what] = node if keep else call.computed(torch.ops.aten.squeeze.dim, node, dim)
    return nodes


# First elements that are written back -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _First:
    """The first `count` elements of `x` in order along `dim`, the largest or smallest."""

    x: Node
    count: int
    dim: int
    largest: bool

    @classmethod
    def of(cls, index: object) -> _First | None:
        """Return the elements whose positions a node has, or None for other nodes."""
        if not isinstance(index, Node) or index.target is not operator.getitem or index.args[1] != 1:
            return None
        chosen = index.args[0]
        if not isinstance(chosen, Node) or fx_origin.short_name(chosen.target) != "topk":
            return None
        arguments: Any = chosen.args
        return cls._of_call(*arguments, **chosen.kwargs)

    @classmethod
    def _of_call(cls, x: Any, k: Any, dim: Any = -1, largest: Any = True, sorted: Any = True) -> _First | None:
        shaped = described(x)
        if shaped.dim() == 0 or k < 1 or shaped.dtype == torch.bool:
            return None
        return cls(x, k, dim % shaped.dim(), largest)

    @property
    def rule(self) -> Largest:
        return Largest(self.count, by="greatest" if self.largest else "least")


def _is_written_back(user: Node) -> bool:
    """Return whether an operator writes the first elements in order to their own places."""
    if fx_origin.short_name(user.target).rstrip("_") != "scatter" or len(user.args) < 4 or user.kwargs:
        return False
    base, dim, index, source = (_argument(user, number) for number in range(4))
    first = _First.of(index)
    if first is None:
        return False
    fits = described(base).shape == described(first.x).shape and dim % described(base).dim() == first.dim
    return fits and (not isinstance(source, Node) or _changes(source, index) is not None)


def _only_written_back(reader: Node) -> bool:
    """Return whether an operator writes the first elements in order to their own places, or changes them for one that does."""
    if reader.users and fx_origin.short_name(reader.target) in PATTERN_KEEPING and len(reader.all_input_nodes) == 1:
        return all(map(_only_written_back, reader.users))
    return _is_written_back(reader)


def _changes(source: Node, index: Node) -> list[Node] | None:
    """Return the entrywise operators, the first one first, that change the values of the elements whose positions are `index` to
    `source`, and leave 0 as it is. None for another source."""
    changes = list[Node]()
    while fx_origin.short_name(source.target) in PATTERN_KEEPING and len(source.all_input_nodes) == 1:
        changes.insert(0, source)
        source = source.all_input_nodes[0]
    is_value = source.target is operator.getitem and source.args == (index.args[0], 0)
    return changes if is_value else None


def kept_in_place(call: Call) -> Node | None:
    """Return the replacement of a scatter that writes the first elements in order to their own places, or None for another."""
    if not _is_written_back(call.node):
        return None
    base, index, source = (_argument(call.node, number) for number in (0, 2, 3))
    first = _First.of(index)
    assert first is not None
    if not isinstance(source, Node):
        marks = call.kept(first.x, first.rule, (first.dim,), marks=True)
        return call.computed(_filled, None if is_zero(base) else base, marks, source, described(base).dtype)
    kept = _kept_of_all(call, first) if is_zero(base) else first.x
    for change in _changes(source, index) or ():
        function: Any = change.target
        kept = call.computed(function, kept, *change.args[1:], **change.kwargs)
    if is_zero(base):
        return kept
    return call.computed(_written, base, call.kept(first.x, first.rule, (first.dim,), marks=True), kept)


def _kept_of_all(call: Call, first: _First) -> Node:
    """Return the first elements in order, and 0 elsewhere. Where all dimensions were flattened before, they are kept as they were."""
    whole, x = first.x, first.x
    while fx_origin.short_name(x.target) in ("view", "reshape", "flatten"):
        x = x.all_input_nodes[0]
    if described(whole).dim() != 1 or x is whole:
        return call.kept(whole, first.rule, (first.dim,))
    kept = call.kept(x, first.rule, range(described(x).dim()))
    return call.reshaped(kept, described(whole).shape)


def _filled(base: Tensor | None, marks: Tensor, value: float, dtype: torch.dtype) -> Tensor:
    if base is not None:
        return torch.where(marks != 0, value, base).to(dtype)
    return marks != 0 if dtype == torch.bool else (marks * value).to(dtype)


def _written(base: Tensor, marks: Tensor, values: Tensor) -> Tensor:
    return torch.where(marks != 0, values, base)


# Operators ------------------------------------------------------------------------------------------------------------------


def _put(node: Node, results: dict[str, Node]) -> None:
    """Replace the two results of an operator, wherever they are read, but for elements that are written back to their places."""
    for user in list(node.users) if results else []:
        if user.target is operator.getitem and user.users:
            result = results.get(RESULTS[_position(user)])
            if result is not None:
                user.replace_all_uses_with(result, delete_user_cb=lambda reader: not _only_written_back(reader))


def _ordered(call: Call, x: Node, dim: int, count: int, largest: bool) -> Node | None:
    """Replace what is read of a sort, or of the first elements in order."""
    shaped = described(x)
    if shaped.dtype == torch.bool or shaped.dim() == 0:
        return None
    dim %= shaped.dim()
    for result in [user for user in call.node.users if user.target is operator.getitem]:
        _replace_ranks(call, x, result, dim, count, largest)
    others = [user for user in call.node.users if not all(map(_only_written_back, user.users))]
    wanted = tuple(what for n, what in enumerate(RESULTS) if any(_position(user) == n for user in others))
    if count == 1:
        _put(call.node, _of_rank(call, x, dim, 0, largest, wanted))
    else:
        _put(call.node, ranking(call, x, dim, count, largest, wanted))
    return None


def _replace_ranks(call: Call, x: Node, result: Node, dim: int, count: int, largest: bool) -> None:
    """Replace the readers of an ordered result that read single ranks, if these are few."""
    readers = list(_readers_of_ranks(result, dim, count))
    values = [result, *(reader for reader, *_ in readers)]
    is_written_to = any(value in written_by(user) for value in values for user in value.users)
    if is_written_to or len({rank for _, rank, _ in readers}) > MOST_RANKS:
        return
    for reader, rank, keep in readers:
        what = RESULTS[_position(result)]
        reader.replace_all_uses_with(_of_rank(call, x, dim, rank, largest, (what,), keep)[what])
        while not reader.users and reader is not result:  # full slices stand between
            call.selections.dependences.pop(reader, None)
            reader, read = first_operand(reader), reader
            read.graph.erase_node(read)


def _readers_of_ranks(result: Node, dim: int, count: int) -> Iterator[tuple[Node, int, bool]]:
    """Yield the operators that read a single rank of a result along `dim`, with the rank, and whether the dimension stays."""
    shape = described(result).shape
    for reader in list(result.users):
        if reader.target is torch.ops.aten.slice.Tensor:
            along, span = _span(shape, *reader.args[1:])
            if span == range(shape[along]):
                yield from _readers_of_ranks(reader, dim, count)
            elif along == dim and len(span) == 1:
                yield reader, span[0], True
        elif reader.target is torch.ops.aten.select.int and _argument(reader, 1) % len(shape) == dim:
            yield reader, _argument(reader, 2) % count, False


def _span(shape: Sequence[int], dim: Any = 0, start: Any = None, end: Any = None, step: Any = 1) -> tuple[int, range]:
    """Return the dimension that a slice of a tensor of this shape cuts, and the coordinates that it takes."""
    along = dim % len(shape)
    return along, range(*slice(start, end, step).indices(shape[along]))


def _argument(node: Node, number: int) -> Any:
    return node.args[number]


def _position(result: Node) -> int:
    """Return which result of an operator a node takes."""
    position = result.args[1]
    assert isinstance(position, int)
    return position


def _topk(call: Call, x: Node, k: int, dim: int = -1, largest: bool = True, *_: Any, **__: Any) -> Node | None:
    return _ordered(call, x, dim, k, largest)


def _sort(call: Call, x: Node, dim: int = -1, descending: bool = False, **_: Any) -> Node | None:
    shaped = described(x)
    if "argsort" not in str(call.node.target):
        return _ordered(call, x, dim, shaped.shape[dim], descending)
    if shaped.dtype == torch.bool:
        return None
    return ranking(call, x, dim % shaped.dim(), shaped.shape[dim], descending, ("positions",))["positions"]


def _sorted_rows(call: Call, x: Node) -> Node | None:
    shaped = described(x)
    if shaped.dim() == 0 or shaped.dtype == torch.bool:
        return None
    return ranking(call, x, 0, shaped.shape[0], False, ("values",))["values"]


def _extreme(call: Call, x: Node, dim: object = None, keep: bool = False) -> Node | None:
    """Return the replacement of `argmax(x, dim)`, or replace the positions of `max(x, dim)`, whose values have an Einsum form; with `keep`,
    the dimension stays."""
    name = fx_origin.short_name(call.node.target)
    is_position = name.startswith("arg")
    if dim is None and is_position and not keep:
        x, dim = _flat(call, x), 0
    if not isinstance(dim, int) or not (is_position or "positions" in wanted_results(call.node)):
        return None
    shaped, largest = described(x), "max" in name
    if shaped.dtype == torch.bool or shaped.dim() == 0 or not shaped.shape[dim]:
        return None
    dim %= shaped.dim()
    position = call.computed(first_position, x, call.counted(shaped.shape[dim], name="positions"), dim, largest)
    position = position if keep else call.computed(torch.ops.aten.squeeze.dim, position, dim)
    if is_position:
        return position
    extreme = torch.ops.aten.amax.default if largest else torch.ops.aten.amin.default
    _put(call.node, {"values": call.computed(extreme, x, [dim], keep), "positions": position})
    return None


def _flat(call: Call, x: Node) -> Node:
    return call.computed(torch.ops.aten.reshape.default, x, [-1])


def _median(call: Call, x: Node, dim: int | None = None, keep: bool = False) -> Node | None:
    """Return the replacement of `median(x, dim)`, which is the lower one of two middle elements."""
    if dim is None:
        flat = _flat(call, x)
        middle = (described(flat).shape[0] + 1) // 2 - 1
        return _of_rank(call, flat, 0, middle, False, ("values",), False, "any").get("values")
    return _kth_value(call, x, (described(x).shape[dim] + 1) // 2, dim, keep, "any")


def _kth_value(call: Call, x: Node, k: int, dim: int = -1, keep: bool = False, nan: Nan = "greatest") -> Node | None:
    _put(call.node, _of_rank(call, x, dim, k - 1, False, wanted_results(call.node), keep, nan))
    return None


def _quantile(
    call: Call, x: Node, q: Any, dim: int | None = None, keep: bool = False, *, interpolation: str = "linear"
) -> Node | None:
    """Return the replacement of `quantile(x, q, dim)`, a number between two neighbours in order. `q` is a known number, or a vector of
    numbers that are known."""
    known = torch.tensor(q, dtype=described(x).dtype) if isinstance(q, float) else call.selections.constant(q)
    if known is None or known.dim() > 1 or (dim is None and keep):
        return None
    x, dim = (_flat(call, x), 0) if dim is None else (x, dim % described(x).dim())
    quantiles = [_single_quantile(call, x, share, dim, keep, interpolation) for share in known.reshape(-1)]
    return quantiles[0] if known.dim() == 0 else call.computed(_stacked, *quantiles)


def _single_quantile(call: Call, x: Node, share: Tensor, dim: int, keep: bool, interpolation: str) -> Node:
    place = share * (described(x).shape[dim] - 1)
    rounded = {"lower": place.floor(), "higher": place.ceil(), "nearest": place.round()}.get(interpolation)
    place = place if rounded is None else rounded
    low, high = (
        _of_rank(call, x, dim, rank, False, ("values",), keep, "any")["values"] for rank in (math.floor(place), math.ceil(place))
    )
    if rounded is not None:
        return low
    return call.computed(_between, low, high, 0.5 if interpolation == "midpoint" else float(place - place.floor()))


def _between(low: Tensor, high: Tensor, weight: float) -> Tensor:
    """Return the number that has this weight between two numbers, as `torch.lerp` computes it."""
    return low + (high - low) * weight if weight < 0.5 else high - (high - low) * (1 - weight)


def _stacked(*values: Tensor) -> Tensor:
    return torch.stack(values)


ORDERED: dict[str, Handler] = {
    "median": _median,
    "kthvalue": _kth_value,
    "quantile": _quantile,
    "msort": _sorted_rows,
    "topk": _topk,
    **dict.fromkeys(("sort", "argsort"), _sort),
    **dict.fromkeys(("argmax", "argmin", "max", "min"), _extreme),
}
"""The replacement of each operator, by its name."""
