"""The fused region, which is the result of Algorithm 1 for a set of Einsums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import networkx as nx

from fuseflow.einsum.blocks import index_block_sizes
from fuseflow.einsum.nodes import TensorType
from fuseflow.fusion.order_graph import AskedOrder
from fuseflow.fusion.order_sampling import LoopOrder
from fuseflow.fusion.order_search import ComparedOrders
from fuseflow.fusion.order_traces import LoopDependence
from fuseflow.fusion.tree import Reduction, Tree, View, loops, nodes, views
from fuseflow.tensors import Format


@dataclass(frozen=True, slots=True)
class RegionOutput:
    """A tensor that the region writes, with its tree and the index of each of its dimensions.

    It is stored in loop order. If `levels` is not empty, it is permuted as it is written, and its levels are in the order of
    these indices. With `drop_zeros`, entries equal to its implicit value are not stored.
    """

    tensor: TensorType
    indices: tuple[str, ...]
    tree: Tree
    levels: tuple[str, ...] = ()
    drop_zeros: bool = False

    @property
    def name(self) -> str:
        return self.tensor.name


@dataclass(frozen=True, slots=True)
class Copy:
    """A permuted copy: `name` holds the entries of the stored tensor `source`, its levels in the order in which the region's loops run over
    `indices` (one for each dimension).
    """

    name: str
    source: str
    indices: tuple[str, ...]

    def order(self, loops: tuple[str, ...]) -> tuple[int, ...]:
        """Return the dimensions in the order of the loops."""
        return tuple(sorted(range(len(self.indices)), key=lambda d: loops.index(self.indices[d])))


@dataclass(frozen=True, slots=True)
class FusedRegion:
    """A region in which every producer is inlined into its consumers.

    `sizes` has the extent of every index. `stored` declares the tensors that the region reads from memory, and the sources of its
    copies. `fill` has the implicit value of every node. `merges` holds the reductions whose index was unified with an index of
    a consumer; each must be complete before that loop. `constraints` is the partial-order graph: an edge u -> v means that loop u
    encloses loop v. `local_names` maps the index names of each Einsum to the region's, for a `repeated` one the names where it is
    computed first, and `asked` has the orders that the user wrote with Einsums.

    `order` is the chosen loop order, outermost first (empty until one is chosen), and `compared` holds the orders it was chosen from.
    `copies` are read in place of their source: they break cycles of the constraints. With `locate`, dense levels are located; without it,
    they are scanned and joined where the order allows it. With `rescan`, an outermost compressed level is scanned again in every loop
    around it; without it, it is kept where other coordinates are looked up in it. `repeat` says which stream is repeated in a
    loop that an operand lacks. `outer_levels` maps a tensor that shares its outermost levels with another tensor to that tensor
    and the number of levels. Such a level is scanned once. `resident` tensors are read from the configuration of the accelerator.
    """

    name: str
    einsums: tuple[str, ...]
    results: tuple[RegionOutput, ...]
    sizes: Mapping[str, int]
    stored: Mapping[str, TensorType]
    fill: Mapping[Tree, float]
    merges: tuple[tuple[Reduction, str], ...]
    constraints: nx.DiGraph[str]
    local_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    repeated: frozenset[str] = frozenset()
    asked: tuple[AskedOrder, ...] = ()
    order: LoopOrder = ()
    compared: ComparedOrders = field(default_factory=lambda: ComparedOrders.of(()))
    copies: tuple[Copy, ...] = ()
    locate: bool = True
    rescan: bool = False
    repeat: str = "value"
    outer_levels: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    resident: frozenset[str] = frozenset()

    @property
    def declared(self) -> dict[str, TensorType]:
        """The declarations of everything that the region reads. Once an order is chosen, its copies have the formats that follow from it:
        all levels compressed.
        """
        declarations = dict(self.stored)
        for copy in self.copies if self.order else ():
            format = Format.of(*["compressed"] * len(copy.indices), order=copy.order(self.order))
            declarations[copy.name] = replace(declarations[copy.name], format=format)
        return declarations

    @property
    def blocks(self) -> dict[str, int]:
        """The size of the blocks that an index runs over, for indices that do not run over single elements."""
        declared = self.declared
        reads = ((declared[view.tensor], view.indices) for view in self.views)
        return index_block_sizes((*reads, *((r.tensor, r.indices) for r in self.results)))

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The trees of the results."""
        return tuple(r.tree for r in self.results)

    @property
    def indices(self) -> tuple[str, ...]:
        """The loops of the region: result indices first, then the indices of reductions, consumers first."""
        return loops((r.indices for r in self.results), nodes(*self.trees))

    @property
    def dependence(self) -> LoopDependence:
        """The loops that depend on each other: orders that agree on the order of these make the same table."""
        return LoopDependence.of([(result.indices, result.tree) for result in self.results])

    @property
    def views(self) -> tuple[View, ...]:
        """The views of stored tensors in the trees."""
        return views(*self.trees)
