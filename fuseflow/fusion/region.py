"""The fused region, which is the result of Algorithm 1 for a set of Einsums, and which of its loops depend on each other."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fuseflow.einsum.blocks import index_block_sizes
from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FusionError
from fuseflow.fusion.linear_extensions import LoopOrder
from fuseflow.fusion.order_candidates import OrderCandidate
from fuseflow.fusion.order_graph import AskedOrder, OrderGraph, graph_edges
from fuseflow.fusion.order_search import ComparedOrders
from fuseflow.fusion.tree import Producer, Reduction, Selection, Tree, TreeTable, View, free_indices, loops, nodes, views
from fuseflow.tensors import Format


@dataclass(frozen=True, slots=True)
class LoopDependence:
    """Which loops of a region depend on each other: the bit of each loop, and for each the bits of the loops that it depends on.

        m[i] = max(k) A[i, k];  s[i] = sum(j) B[i, j];  Y[i] = m[i] / s[i]

    Here neither of j and k is ever around the other, so `i,k,j` and `i,j,k` make the same table: both are of one trace. Loops
    depend on each other if one nest has both, or if one is a loop of a nest and the other of a producer inside of it, which may
    have to be complete. (A trace is a set of words that differ only by the order of independent neighbours: Mazurkiewicz.)
    """

    bits: Mapping[str, int]
    dependent: Mapping[str, int]

    @classmethod
    def of(cls, results: Sequence[tuple[tuple[str, ...], Tree]]) -> LoopDependence:
        """Return the dependence of the loops of a region, whose results have these indices and trees."""
        below = nodes(*[tree for _, tree in results])
        bits = {v: 1 << n for n, v in enumerate(loops([indices for indices, _ in results], below))}
        dependent = dict.fromkeys(bits, 0)
        inside: dict[Tree, int] = {}  # by node, the loops of the producers at it and below it
        for node in below:
            inside[node] = 0
            for operand in node.operands:
                inside[node] |= inside[operand]
            if isinstance(node, Producer):
                inside[node] |= _meeting(dependent, bits, (*node.free, *node.over), inside[node])
        for indices, tree in results:
            _meeting(dependent, bits, indices, inside[tree])
        return cls(bits, dependent)

    def trace(self, order: LoopOrder) -> Hashable:
        """Return the trace of an order: for each loop, the bits of the loops around it that it depends on."""
        bits, dependent, outside, around = self.bits, self.dependent, 0, dict.fromkeys(self.bits, 0)
        for v in order:
            around[v] = outside & dependent[v]
            outside |= bits[v]
        return tuple(around.values())


def _meeting(dependent: dict[str, int], bits: Mapping[str, int], nest: Sequence[str], inside: int) -> int:
    """Record that loops of a nest depend on each other and on loops of producers `inside`. Return the bits of the nest."""
    own = 0
    for v in nest:
        own |= bits[v]
    for v in bits:
        if bits[v] & own:
            dependent[v] |= own | inside
        elif bits[v] & inside:
            dependent[v] |= own
    return own


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
    """A permuted copy: `name` holds the entries of the stored tensor `source`, its levels in the order in which the region's
    loops run over `indices` (one for each dimension)."""

    name: str
    source: str
    indices: tuple[str, ...]

    def order(self, loops: tuple[str, ...]) -> tuple[int, ...]:
        """Return the dimensions in the order of the loops."""
        return tuple(sorted(range(len(self.indices)), key=lambda d: loops.index(self.indices[d])))


def with_structures(names: Iterable[str], types: Mapping[str, TensorType]) -> dict[str, TensorType]:
    """Return the types of tensors, and of those whose places they have."""
    named = {name: types[name] for name in names}
    return named | {t.like: types[t.like] for t in named.values() if t.like}


def only_names(einsums: Collection[str], local_names: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """Return the region's names of the indices of its only Einsum, by the Einsum's names; {} for several `einsums`."""
    return next(iter(local_names.values()), {}) if len(einsums) == 1 else {}


def to_region_names(chain: tuple[str, ...], local: Mapping[str, str], indices: tuple[str, ...]) -> tuple[str, ...]:
    """Return the index names in `chain`, which a user wrote, as names of the region. They may be the `local` names of its only
    Einsum, unless that reduces a name twice."""
    names = tuple(local.get(v, v) for v in chain)
    return chain if len(set(names)) < len(names) and set(chain) <= set(indices) else names


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
    `shared` has the types in memory of tensors with the places of one tensor that the region reads and writes as vectors.
    """

    name: str
    einsums: tuple[str, ...]
    results: tuple[RegionOutput, ...]
    sizes: Mapping[str, int]
    stored: Mapping[str, TensorType]
    fill: Mapping[Tree, float]
    merges: tuple[tuple[Reduction, str], ...]
    constraints: OrderGraph
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
    shared: Mapping[str, TensorType] = field(default_factory=dict)

    @property
    def declared(self) -> dict[str, TensorType]:
        """The declarations of everything that the region reads. Once an order is chosen, its copies have the formats that follow
        from it: all levels compressed."""
        declarations = dict(self.stored)
        for copy in self.copies if self.order else ():
            format = Format.of(*["compressed"] * len(copy.indices), order=copy.order(self.order))
            declarations[copy.name] = replace(declarations[copy.name], format=format)
        return declarations

    def level_tensor(self, tensor: str, level: int) -> str:
        """Return the tensor that is scanned for a level of a stored tensor. It is another one if both share their outermost levels."""
        other, count = self.shared_levels(tensor) or (tensor, 0)
        return other if level < count else tensor

    def shared_levels(self, tensor: str) -> tuple[str, int] | None:
        """Return the tensor of which a stored tensor has the outermost levels, and their number; None if they are its own."""
        type = self.stored[tensor]
        return (type.like, len(type.shape)) if type.like else self.outer_levels.get(tensor)

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

    def own_names(self, chain: tuple[str, ...]) -> tuple[str, ...]:
        """Return the result of `to_region_names` for this region."""
        return to_region_names(chain, only_names(self.einsums, self.local_names), self.indices)

    @property
    def ranked(self) -> list[OrderCandidate]:
        """The compared orders whose cost is known, the chosen one first, and then the cheaper ones first."""
        known = (outcome for outcome in self.compared if outcome.cost is not None)
        return sorted(known, key=lambda outcome: (outcome.order != self.order, outcome.rank))

    def reading(self, tensors: Mapping[View, str]) -> FusedRegion:
        """Return the region with views that read other `tensors`."""
        trees, memo = TreeTable(), dict[Tree, Tree]()
        results = tuple(replace(r, tree=trees.rename(r.tree, {}, memo, tensors)) for r in self.results)
        merges = tuple((new, v) for r, v in self.merges if isinstance(new := trees.rename(r, {}, memo, tensors), Reduction))
        fill = {memo[node]: value for node, value in self.fill.items() if node in memo}
        return replace(self, results=results, merges=merges, fill=fill)

    @property
    def dependence(self) -> LoopDependence:
        """The loops that depend on each other: orders that agree on the order of these make the same table."""
        return LoopDependence.of([(result.indices, result.tree) for result in self.results])

    @property
    def views(self) -> tuple[View, ...]:
        """The views of stored tensors in the trees."""
        return views(*self.trees)


def verify_region(region: FusedRegion) -> None:
    """Raise `FusionError` unless the region is consistent: views match their tensors, reductions and results match their indices,
    the constraints are over the loops of the region, and the order (if one is chosen) is a linear extension of them."""
    free, declared = free_indices(*region.trees), region.declared
    for node in nodes(*region.trees):
        if isinstance(node, View):
            tensor, shape = declared.get(node.tensor), tuple(region.sizes[v] for v in node.indices)
            if tensor is None:
                raise FusionError(f"region `{region.name}`: {node} reads a tensor that is not stored")
            _require(region, shape == tensor.shape, f"{node} reads {tensor.shape} with indices of sizes {shape}")
            _require(region, tensor.format is not None or not region.order, f"{node} has no format")
        elif isinstance(node, Reduction):
            _require(region, not set(node.over) & set(node.free), f"{node} reduces an index that it keeps")
            _require(region, set(free[node.body]) <= {*node.over, *node.free}, f"{node} has an index from nowhere")
        elif isinstance(node, Selection):
            _require(region, set(node.over) <= set(node.free), f"{node} compares along an index that it lacks")
            _require(region, set(free[node.body]) <= set(node.free), f"{node} has an index from nowhere")
        _require(region, node in region.fill, f"a node of {[r.name for r in region.results]} has no implicit value")
    for result in region.results:
        _require(region, set(free[result.tree]) <= set(result.indices), f"result {result.name} has an index from nowhere")
        shape = tuple(region.sizes[v] for v in result.indices)
        _require(region, shape == result.tensor.shape, f"result {result.name} is {result.tensor.shape}, its indices give {shape}")
    mismatched = sorted(set(region.constraints) ^ set(region.sizes))
    _require(region, not mismatched, f"the constraints and the loops differ in {', '.join(mismatched)}")
    if region.order:
        _require(
            region, sorted(region.order) == sorted(region.sizes), f"order {region.order} is not one of {tuple(region.sizes)}"
        )
        position = {v: p for p, v in enumerate(region.order)}
        for u, v, edge in graph_edges(region.constraints):
            _require(region, position[u] < position[v], f"order {','.join(region.order)} puts {v} before {u}, but {edge.why}")


def _require(region: FusedRegion, holds: bool, message: str) -> None:
    if not holds:
        raise FusionError(f"region `{region.name}`: {message}")
