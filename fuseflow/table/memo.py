"""The memo that all tables of one region share, whatever the order of its loops: their nodes, and facts that follow from its
trees alone.

Orders of one region mostly differ in a few nests. The nodes of the other nests are then taken from the memo.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
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
from fuseflow.table.nest import Nest, ViewLevels
from fuseflow.table.node_interning import Cells
from fuseflow.table.tile_axes import Tiling
from fuseflow.tensors import Format


@dataclass(frozen=True)  # with a place for cached values
class Reach:
    """The nodes that are below some trees and not inside `completed` producers, producers first."""

    nodes: tuple[Tree, ...]
    completed: frozenset[Tree]
    _places: dict[str, tuple[View | Producer, ...]] = field(default_factory=dict)

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

    `roots` has the producers whose nests compute the results, and `single` the indices that need no loop. `slots` has the operands
    of each operator without tiles: the number of each constant, and the implicit value of each other one. `fixes` says of each
    operand whether it fixes the result where it is absent. For each producer, `below` has the views and producers in its body,
    `inside` the producers alone, and `indices` every index of the producer and of the nodes below it.

    `levels` has the levels of each view. `starts` has one of equal nests, by the producer, the loops around it and the positions of
    the nodes in its body.
    """

    declared: Mapping[str, TensorType]
    read_tensors: Mapping[str, TensorDecl]
    cells: Cells
    tiling: Tiling
    roots: Mapping[str, Producer]
    single: frozenset[str]
    slots: Mapping[Operation, tuple[Operand, ...]]
    fixes: Mapping[Operation, tuple[bool, ...]]
    below: Mapping[Producer, tuple[View | Producer, ...]]
    inside: Mapping[Producer, frozenset[Producer]]
    indices: Mapping[Producer, frozenset[str]]
    levels: Mapping[View, ViewLevels]
    starts: dict[Hashable, Nest] = field(default_factory=dict)
    _reached: dict[tuple[tuple[Tree, ...], frozenset[Tree]], Reach] = field(default_factory=dict)

    @classmethod
    def of(cls, region: FusedRegion, cells: Cells) -> TableMemo:
        """Return an empty memo for the tables of a region whose order is chosen. Their nodes are in `cells`."""
        declared = region.declared
        read = {t.name: _read_tensor(region, t, t.format) for t in declared.values() if t.format}
        roots = {result.name: _root(result) for result in region.results}
        tiling = Tiling(declared, region.blocks, {r.tree: r.indices for r in region.results})
        tiling.cover(*roots.values())
        every_node, fill = nodes(*roots.values()), region.fill
        operations = [node for node in every_node if isinstance(node, Operation)]
        below = {
            producer: tuple([node for node in nodes(producer.body) if isinstance(node, View | Producer)])
            for producer in every_node
            if isinstance(producer, Producer)
        }
        single = single_indices(region, declared, tiling.blocks)
        return cls(
            declared,
            read,
            cells,
            tiling,
            roots,
            single,
            slots={node: tuple([_slot(operand, fill) for operand in node.args]) for node in operations},
            fixes={node: _fixes(node, fill) for node in operations},
            below=below,
            inside={node: frozenset([n for n in body if isinstance(n, Producer)]) for node, body in below.items()},
            indices={node: frozenset(all_indices(node)) for node in below},
            levels={view: ViewLevels.of(view, declared[view.tensor], single) for view in region.views},
        )

    def reach(self, trees: tuple[Tree, ...], completed: frozenset[Tree]) -> Reach:
        """Return the nodes below some trees, and not inside completed reductions."""
        key = trees, completed
        reached = self._reached.get(key)
        if reached is None:
            below = nodes(*trees, below=lambda node: () if node in completed else node.operands)
            reached = self._reached[key] = Reach(below, completed)
        return reached


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
    outer, resident = region.shared_levels(t.name), t.name in region.resident
    return TensorDecl(t.name, t.stored_shape, format, t.dtype, t.fill, t.tile, outer, resident)


def _slot(operand: Tree, fill: Mapping[Tree, float]) -> Operand:
    return Operand(operand.value, constant=True) if isinstance(operand, Constant) else Operand(fill[operand])


def _fixes(node: Operation, fill: Mapping[Tree, float]) -> tuple[bool, ...]:
    """Return, for each operand, whether it fixes the result where it is absent. An operator at the places of a tensor has all of them."""
    if node.is_placed:
        return True, False, False
    return tuple([annihilated_value(node, k, fill) is not None for k in range(len(node.args))])


def _root(result: RegionOutput) -> Producer:
    """Return the producer whose nest computes a result: its tree, or else a reduction over no index around the tree."""
    tree = result.tree
    if isinstance(tree, Producer) and set(tree.free) == set(result.indices):
        return tree
    return Reduction("sum", (), result.indices, tree, result.name)
