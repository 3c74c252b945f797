"""The memo that all tables of one region share, whatever the order of its loops: their nodes, and facts that follow from its
trees alone.

Orders of one region mostly differ in a few nests. The nodes of the other nests are then taken from the memo.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from fuseflow.einsum.nodes import TensorType
from fuseflow.fusion.region import FusedRegion, RegionOutput
from fuseflow.fusion.tree import (
    Constant,
    Operation,
    Producer,
    Reduction,
    Selection,
    Tree,
    View,
    all_indices,
    annihilated_value,
    nodes,
)
from fuseflow.samml.nodes import Operand, TensorDecl
from fuseflow.table.cells import Cells
from fuseflow.table.nest import Nest
from fuseflow.table.tile_axes import Tiling
from fuseflow.table.view_cursor import ViewLevels
from fuseflow.tensors import Format


@dataclass(frozen=True)  # with a place for cached values
class Reach:
    """The nodes that are below some trees and not inside `completed` producers, producers first."""

    nodes: tuple[Tree, ...]
    completed: frozenset[Tree]
    _places: dict[str, tuple[View | Producer, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, trees: tuple[Tree, ...], completed: frozenset[Tree]) -> Reach:
        return cls(nodes(*trees, below=lambda node: () if node in completed else node.operands), completed)

    def places(self, v: str) -> tuple[View | Producer, ...]:
        """Return the nodes whose position a loop may change: the views that have its index, and the producers."""
        if v not in self._places:
            moved = [n for n in self.nodes if (v in n.indices if isinstance(n, View) else isinstance(n, Producer))]
            self._places[v] = tuple(moved)  # type: ignore[arg-type]
        return self._places[v]

    @cached_property
    def producers(self) -> tuple[Producer, ...]:
        """The producers among the nodes."""
        return tuple([node for node in self.nodes if isinstance(node, Producer)])

    @cached_property
    def by_index(self) -> Mapping[str, Sequence[Tree]]:
        """For every index, the nodes whose value may depend on it."""
        indices: dict[Tree, frozenset[str]] = {}
        by_index: dict[str, list[Tree]] = {}
        for node in self.nodes:
            if isinstance(node, View):
                own = frozenset(node.indices)
            elif isinstance(node, Producer) and node in self.completed:
                own = frozenset(node.free)
            else:
                own = frozenset[str]().union(*[indices[operand] for operand in node.operands])
            indices[node] = own
            for v in own:
                by_index.setdefault(v, []).append(node)
        return by_index


@dataclass(frozen=True, slots=True)
class TableMemo:
    """The memo that tables of one region share. All of them read its tensors in the formats of `declared`, which a graph declares
    as `read_tensors`, and agree on whether dense levels are located.

    `starts` has one of equal nests, by the producer, the loops around it and the positions of the nodes in its body. `single`
    indices need no loop. `levels` has the levels of the views that were asked for.
    """

    declared: Mapping[str, TensorType]
    read_tensors: Mapping[str, TensorDecl]
    cells: Cells
    tiling: Tiling
    roots: Mapping[str, Producer]
    single: frozenset[str]
    starts: dict[Hashable, Nest] = field(default_factory=dict)
    _reached: dict[tuple[tuple[Tree, ...], frozenset[Tree]], Reach] = field(default_factory=dict)
    levels: dict[View, ViewLevels] = field(default_factory=dict)
    _fixing: dict[Operation, tuple[bool, ...]] = field(default_factory=dict)
    _slots: dict[Operation, tuple[Operand, ...]] = field(default_factory=dict)
    _below: dict[Producer, tuple[Tree, ...]] = field(default_factory=dict)
    _inside: dict[Producer, frozenset[Producer]] = field(default_factory=dict)
    _indices: dict[Producer, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, region: FusedRegion, cells: Cells) -> TableMemo:
        """Return an empty memo for the tables of a region whose order is chosen. Their nodes are in `cells`."""
        declared = region.declared
        read = {t.name: _read_tensor(region, t, t.format) for t in declared.values() if t.format}
        tiling = Tiling(declared, region.blocks, {r.tree: r.indices for r in region.results})
        tiling.cover(*region.trees)
        roots = {result.name: _root(result) for result in region.results}
        return cls(declared, read, cells, tiling, roots, single_indices(region, declared, tiling.blocks))

    def of_other_steps(self) -> TableMemo:
        """Return a memo without steps, for tables of the same trees with other settings. Facts of the trees alone are shared."""
        return replace(self, starts={})

    def reach(self, trees: tuple[Tree, ...], completed: frozenset[Tree]) -> Reach:
        """Return the nodes below some trees, and not inside completed reductions."""
        key = trees, completed
        reached = self._reached.get(key)
        if reached is None:
            reached = self._reached[key] = Reach.of(trees, completed)
        return reached

    def slots(self, node: Operation, fill: Mapping[Tree, float]) -> tuple[Operand, ...]:
        """Return the operands of an operator without tiles: the number of each constant, and the implicit value (`fill`) of each
        other one."""
        if node not in self._slots:
            numbers = [(a.value, True) if isinstance(a, Constant) else (fill[a], False) for a in node.args]
            self._slots[node] = tuple([Operand(value, constant) for value, constant in numbers])
        return self._slots[node]

    def fixes(self, node: Operation, fill: Mapping[Tree, float]) -> tuple[bool, ...]:
        """Return, for each operand, whether it fixes the result where it is absent."""
        if node not in self._fixing:
            self._fixing[node] = tuple(annihilated_value(node, k, fill) is not None for k in range(len(node.args)))
        return self._fixing[node]

    def below(self, node: Producer) -> tuple[Tree, ...]:
        """Return the views and producers in the body of a producer."""
        if node not in self._below:
            self._below[node] = tuple(n for n in nodes(node.body) if isinstance(n, View | Producer))
        return self._below[node]

    def inside(self, node: Producer) -> frozenset[Producer]:
        """Return the producers in the body of a producer."""
        if node not in self._inside:
            self._inside[node] = frozenset([n for n in self.below(node) if isinstance(n, Producer)])
        return self._inside[node]

    def indices(self, node: Producer) -> frozenset[str]:
        """Return every index of a producer and of the nodes below it."""
        if node not in self._indices:
            self._indices[node] = frozenset(all_indices(node))
        return self._indices[node]


def single_indices(region: FusedRegion, declared: Mapping[str, TensorType], blocks: Mapping[str, int]) -> frozenset[str]:
    """Return the indices that need no loop: they have one coordinate, or one block of coordinates, no result has them, and every
    tensor that has them stores them dense. So such a level changes no reference, and a reduction over it has one term."""
    single = {v for v, size in region.sizes.items() if size and -(-size // blocks.get(v, 1)) == 1}
    single.difference_update(*(result.indices for result in region.results))
    for node in nodes(*region.trees) if single else ():
        if isinstance(node, Selection):
            single.difference_update(node.free, node.over)
        if isinstance(node, View):
            format = declared[node.tensor].format
            assert format is not None
            single.difference_update(
                node.indices[d] for d, level in zip(format.order, format.levels, strict=True) if not level.full
            )
    return frozenset(single)


def _read_tensor(region: FusedRegion, t: TensorType, format: Format) -> TensorDecl:
    """Return the declaration of a tensor that the region reads."""
    outer, resident = region.outer_levels.get(t.name), t.name in region.resident
    return TensorDecl(t.name, t.stored_shape, format, t.dtype, t.fill, t.tile, outer, resident)


def _root(result: RegionOutput) -> Producer:
    """Return the producer whose nest computes a result: its tree, or else a reduction over no index around the tree."""
    tree = result.tree
    if isinstance(tree, Producer) and set(tree.free) == set(result.indices):
        return tree
    return Reduction("sum", (), result.indices, tree, result.name)
