"""The tile axes of every node of a fused tree, which are the indices that run inside a value, and how reductions fold them.

An index over blocks is two loops: that over the blocks is a row of the table, that inside a block is an axis of the tiles. A value has two
axes at most. A sum of products over an index that both sides have is a product of matrices,

    sum(k) A[i, k] * B[k, j]      tiles (i, k) and (k, j) -> matmul -> (i, j)

and every other reduction folds the rows or the columns of its operand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from fuseflow.einsum.blocks import tile_indices
from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FusionError
from fuseflow.fusion.tree import Constant, Operation, Reduction, Selection, Tree, View, nodes

Axes: TypeAlias = tuple[str, str]
"""The indices that the rows and the columns of a tile run over; "" if there is a single row or column."""

NO_AXES: Axes = ("", "")


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum of products inside the tiles, as a product of matrices.

    `left` and `right` are the sides, each an elementwise product, and the sum runs over `over`. `rows` is the index that remains
    of the left side, and `columns` the one that remains of the right side. The result is multiplied by the factors `rest`,
    divided by `divisors` and, if `negative`, negated.
    """

    left: tuple[Tree, ...]
    right: tuple[Tree, ...]
    over: str
    rows: str
    columns: str
    rest: tuple[Tree, ...] = ()
    divisors: tuple[Tree, ...] = ()
    negative: bool = False

    @property
    def operands(self) -> tuple[Tree, ...]:
        return (*self.left, *self.right, *self.rest, *self.divisors)


@dataclass(slots=True)
class Tiling:
    """The tile axes of the nodes of a region's trees.

    `blocks` has the block size of each index over blocks. `axes` has the tile axes of every node, or None for a node that would
    need three. `contractions` has the reductions that are products of matrices. `stored` has the indices of each result, in the
    order of its dimensions.
    """

    declared: Mapping[str, TensorType]
    blocks: Mapping[str, int]
    stored: Mapping[Tree, tuple[str, ...]]
    axes: dict[Tree, Axes | None] = field(default_factory=dict)
    contractions: dict[Tree, Contraction] = field(default_factory=dict)

    def cover(self, *trees: Tree) -> None:
        """Compute the axes of all nodes of these trees, so that `axes` has them."""
        for node in nodes(*[tree for tree in trees if tree not in self.axes]):
            if node not in self.axes:
                self.axes[node] = self._axes(node)

    def _axes(self, node: Tree) -> Axes | None:
        if not self.blocks:
            return NO_AXES
        match node:
            case View():
                return tile_indices(node.indices, self.declared[node.tensor].block)
            case Constant():
                return NO_AXES
            case Operation():
                return self.joined(node.args)
            case Reduction():
                return self._reduced(node)
            case Selection():
                if self.axes[node.body] != NO_AXES:
                    raise FusionError(
                        f"`{node.label}` keeps {node.rule}, which compares single elements, and its operand is stored in blocks",
                        hint=f"leave the blocks of what `{node.label}` is computed from out",
                    )
                return NO_AXES
            case unknown:
                assert_never(unknown)

    def _reduced(self, node: Reduction) -> Axes | None:
        contraction = self._contraction(node)
        if contraction is None:
            axes = self.axes[node.body]
            return None if axes is None else remaining_axes(axes, node.over)
        self.contractions[node] = contraction
        return self.joined(
            (),
            (contraction.rows, contraction.columns),
            *(self.axes[f] or NO_AXES for f in (*contraction.rest, *contraction.divisors)),
        )

    def joined(self, args: Iterable[Tree], *more: Axes) -> Axes | None:
        """Return the axes of an operator on these operands, and on others with the axes `more`, with which the fewest are
        transposed. None if it would need three axes."""
        of = [*(self.axes[a] for a in args if not isinstance(a, Constant)), *more]
        bounded = [axes for axes in of if axes is not None]
        names = dict.fromkeys(v for axes in bounded for v in axes if v)
        if len(names) > 2 or len(bounded) < len(of):
            return None
        first, second, *_ = (*names, "", "")
        return min(((first, second), (second, first)), key=lambda target: sum(needs_transpose(axes, target) for axes in bounded))

    def _contraction(self, node: Reduction) -> Contraction | None:
        """Return the reduction as a product of matrices, or None if it is not one."""
        inside = [v for v in node.over if v in self.blocks]
        if node.op != "sum" or len(inside) != 1:
            return None
        (k,) = inside
        factors, by, negative = _product(node.body)
        divisors = tuple(by)
        if len(factors) < 2 or any(self.axes[f] is None for f in (*factors, *divisors)):
            return None
        if any(k in self._named(f) for f in divisors):
            return None
        groups = self._groups([f for f in factors if k in self._named(f)], k)
        rest = tuple(f for f in factors if k not in self._named(f))
        if len(groups) != 2 or any(len(stays) > 1 for _, stays in groups):
            return None
        outer = {v for f in (*rest, *divisors) for v in self._named(f)}
        if len(outer.union(*(stays for _, stays in groups))) > 2:
            return None
        one, other = ((fs, "".join(stays)) for fs, stays in groups)
        ways = [
            Contraction(left, right, k, rows, columns, rest, divisors, negative)
            for (left, rows), (right, columns) in ((one, other), (other, one))
        ]
        return min(ways, key=lambda way: self._transposes(way, self.stored.get(node, node.free)))

    def _transposes(self, way: Contraction, free: tuple[str, ...]) -> int:
        """Return the number of transposes: of the left side, and of the result if its indices (`free`) are in the other order."""
        stands = [v for v in free if v in (way.rows, way.columns)] == [v for v in (way.rows, way.columns) if v]
        return (self.joined(way.left) != (way.rows, way.over)) + (not stands)

    def _groups(self, factors: list[Tree], k: str) -> list[tuple[tuple[Tree, ...], set[str]]]:
        """Group the factors that have the same index beside k. Factors with k alone form a group only if there is no other."""
        groups: dict[str, list[Tree]] = {}
        alone: list[Tree] = []
        for f in factors:
            others = [v for v in self._named(f) if v != k]
            (groups.setdefault(others[0], []) if others else alone).append(f)
        sides_by_index = [(tuple(fs), {v}) for v, fs in groups.items()]
        if not alone:
            return sides_by_index
        if len(sides_by_index) > 1:
            return [((*sides_by_index[0][0], *alone), sides_by_index[0][1]), *sides_by_index[1:]]
        sides: list[tuple[tuple[Tree, ...], set[str]]] = sides_by_index or [((alone.pop(0),), set())]
        return [*sides, (tuple(alone), set())] if alone else sides

    def _named(self, node: Tree) -> tuple[str, ...]:
        return tuple(v for v in self.axes[node] or () if v)


def needs_transpose(axes: Axes, target: Axes) -> bool:
    """Return whether a tile with these axes must be transposed to match one with the axes `target`."""
    return axes != NO_AXES and any(mine and mine == other for mine, other in zip(axes, reversed(target), strict=True))


def remaining_axes(axes: Axes, over: tuple[str, ...]) -> Axes:
    """Return the axes that remain after a reduction over some indices."""
    row, column = axes
    return "" if row in over else row, "" if column in over else column


def _product(body: Tree) -> tuple[list[Tree], list[Tree], bool]:
    """Return the factors of a product, its divisors, and whether it is negated."""
    if isinstance(body, Operation) and body.name == "neg":
        factors, divisors, negative = _product(body.args[0])
        return factors, divisors, not negative
    if isinstance(body, Operation) and body.name == "div":
        factors, divisors, negative = _product(body.args[0])
        return factors, [*divisors, body.args[1]], negative
    if isinstance(body, Operation) and body.name == "mul":
        sides = [_product(arg) for arg in body.args]
        factors = [f for side, _, _ in sides for f in side]
        return factors, [d for _, side, _ in sides for d in side], sum(negative for _, _, negative in sides) % 2 == 1
    return [body], [], False
