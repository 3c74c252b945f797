"""The index of a region that is sampled, and the restriction of the region to some of its coordinates.

The sampled index is the outermost one that is long enough, and along which no coordinate depends on another. So it is free in every
result, and no `keep` compares its coordinates.

    attention, order b,h,i,j,d     one sequence, 12 heads, 1,024 rows i     sampled: i, in each of the 12 heads

    Y[i, j] = sum(k) A[i, k] * X[k, j], order i,k,j, rows 1 and 3     the same graph, with two rows of A, all of X, and two rows of Y

Every access with that index reads the sampled coordinates only; every other access reads the whole tensor, even if it is the same
tensor. So the extents of the graph shrink and nothing else changes.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, fields, replace

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import SamplingError
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import Reduction, Tree, TreeTable, View, nodes, reductions, selections
from fuseflow.lower.lanes import with_lanes
from fuseflow.lower.regions import CompiledRegion
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.samml.verify import verify as verify_graph
from fuseflow.schedule import Schedule
from fuseflow.table import build_table, emit
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints
from fuseflow.tensors.restriction import restrict
from fuseflow.transform import mark_fiber_fifos
from fuseflow.transform.public import public_form

FEWEST_COORDINATES = 67
"""The fewest coordinates of a sampled index: five replicates of four coordinates are at most 30 % of them."""
MOST_STARTS = 1024
"""How often the loops around a sampled index may start it again. Each start fills and drains its pipeline, whatever the sample
is."""
SHORT_STARTS = 64
"""How many starts a replicate of the shortest length may have. With more of them, replicates are longer in proportion."""


def sampled_index(fused: FusedRegion) -> str:
    """Return the index whose coordinates are sampled. It is the outermost index of the order if no index is long enough."""
    joined = {index for node in reductions(*fused.trees) for index in node.over}
    joined |= {index for node in selections(*fused.trees) for index in node.over}
    starts = 1
    for index in fused.order:
        coordinates = index_coordinates(fused, index)
        free = index not in joined and all(index in result.indices for result in fused.results)
        if free and coordinates >= FEWEST_COORDINATES:
            return index
        starts *= coordinates
        if starts > MOST_STARTS:
            break
    return fused.order[0]


def replicate_lengthening(fused: FusedRegion) -> int:
    """Return the factor by which replicates must be longer than asked for, so that starts are no more frequent than in other regions."""
    around = fused.order[: fused.order.index(sampled_index(fused))]
    return -(-math.prod(index_coordinates(fused, index) for index in around) // SHORT_STARTS)


def index_coordinates(fused: FusedRegion, index: str) -> int:
    """Return how many coordinates an index has, or how many blocks of coordinates if it runs over blocks."""
    return -(-fused.sizes[index] // fused.blocks.get(index, 1))


@dataclass(frozen=True, slots=True)
class RestrictedTensor:
    """A tensor of a restricted region: it is `source` with only some coordinates in those `modes` that have the sampled index."""

    source: str
    modes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RestrictedRegion:
    """A region with fewer coordinates of its sampled index.

    `tensors` says, by name, how a tensor that it reads is made from a tensor in memory.
    """

    fused: FusedRegion
    tensors: Mapping[str, RestrictedTensor]

    def read(self, names: Iterable[str], memory: Mapping[str, Tensor], coordinates: Ints) -> dict[str, Tensor]:
        """Return the tensors of these names that the region reads at some coordinates, made from the tensors in memory."""
        read: dict[str, Tensor] = {}
        for name in names:
            origin = self.tensors.get(name)
            if origin is None:
                read |= {name: memory[name]} if name in memory else {}
                continue
            read[name] = memory[origin.source]
            for mode in origin.modes:
                read[name] = restrict(read[name], mode, coordinates)
        return read


def refusal(region: CompiledRegion) -> str | None:
    """Return why a region cannot be sampled, as a text that follows its name; None if it can."""
    fused = region.fused
    if any(type.like for type in (*fused.stored.values(), *(result.tensor for result in fused.results))):
        return "has tensors that share the places of another one: a part of one has other places"
    if not fused.order:
        return "has no loop: there is nothing to sample"
    index = sampled_index(fused)
    for node in reductions(*fused.trees):
        if index in node.over:
            return (
                f"reduces `{index}`, the outermost index of its order {','.join(fused.order)}: its results need all of it at once"
            )
    for selection in selections(*fused.trees):
        if index in selection.over:
            kept = f"keeps entries along `{index}`, the outermost index of its order {','.join(fused.order)}"
            return f"{kept}: which are kept depends on all of it"
    around = fused.order[: fused.order.index(index)]
    for result in fused.results:
        if index not in result.indices:
            return f"has the outermost index `{index}`, which its result `{result.name}` lacks"
        stored = [other for other in result.levels if other not in around]
        if stored and stored[0] != index:
            return (
                f"stores its result `{result.name}` in another order than it computes it: it is written when all of it is there"
            )
    return None


def restrict_region(fused: FusedRegion, count: int) -> RestrictedRegion:
    """Return a region with its sampled index restricted to `count` coordinates, or to `count` blocks if it runs over blocks."""
    index = sampled_index(fused)
    # all coordinates have the extent of the region: its last block may not be full
    size = fused.sizes[index] if count == coordinate_count(fused) else count * fused.blocks.get(index, 1)
    modes = {view: tuple(d for d, v in enumerate(view.indices) if v == index) for view in fused.views}
    uses: dict[str, set[tuple[int, ...]]] = {}
    for view in fused.views:
        uses.setdefault(view.tensor, set()).add(modes[view])
    taken = {*fused.declared, *(result.name for result in fused.results)}
    stored, tensors, renamed = dict(fused.declared), dict[str, RestrictedTensor](), dict[View, str]()
    outer = dict[str, tuple[str, int]]()
    for view in (v for v in fused.views if modes[v]):
        alone = len(uses[view.tensor]) == 1
        name = view.tensor if alone else restriction_name(view.tensor, modes[view], taken)
        declared = fused.declared[view.tensor]
        shape = tuple(size if d in modes[view] else extent for d, extent in enumerate(declared.shape))
        stored[name] = replace(declared, name=name, shape=shape)
        tensors[name] = RestrictedTensor(view.tensor, modes[view])
        above = _levels_above(declared, modes[view])
        if not alone:
            renamed[view] = name
            outer |= {name: (view.tensor, above)} if above else {}
    restricted = _with_tensors(fused, stored, renamed, {**fused.sizes, index: size})
    resident = fused.resident | {name for name, tensor in tensors.items() if tensor.source in fused.resident}
    return RestrictedRegion(replace(restricted, outer_levels=outer, resident=resident), tensors)


def _levels_above(declared: TensorType, modes: Iterable[int]) -> int:
    """Return how many outermost levels of a tensor stay when it is restricted along some modes (`tensors.restriction`)."""
    assert declared.format is not None
    if not all(level.appended for level in declared.format.levels):
        return 0
    return min(declared.format.order.index(mode) for mode in modes)


def restriction_name(tensor: str, modes: Iterable[int], taken: Container[str]) -> str:
    """Return the name of a tensor that is restricted along some modes, beside the whole tensor. It is none of the `taken` names.

    >>> restriction_name("A", (0,), {"A", "A.restricted_0"})
    'A.restricted_0_'
    """
    name = f"{tensor}.restricted" + "".join(f"_{mode}" for mode in modes)
    while name in taken:
        name += "_"
    return name


def coordinate_count(fused: FusedRegion) -> int:
    """Return how many coordinates, or blocks of coordinates, the sampled index has."""
    return index_coordinates(fused, sampled_index(fused))


def _with_tensors(
    fused: FusedRegion, stored: Mapping[str, TensorType], renamed: Mapping[View, str], sizes: Mapping[str, int]
) -> FusedRegion:
    """Return the region with other extents (`sizes`), and with the views in `renamed` reading other tensors."""
    table, memo = TreeTable(), dict[Tree, Tree]()

    def new(tree: Tree) -> Tree:
        return table.rename(tree, {}, memo, renamed)

    results = tuple(
        replace(r, tree=new(r.tree), tensor=replace(r.tensor, shape=tuple(sizes[v] for v in r.indices))) for r in fused.results
    )
    merges = tuple((merged, index) for node, index in fused.merges if isinstance(merged := new(node), Reduction))
    fill = {new(tree): fused.fill[tree] for tree in nodes(*fused.trees)}
    return replace(fused, results=results, sizes=sizes, stored=stored, fill=fill, merges=merges, copies=())


def restricted_graph(region: CompiledRegion, restricted: RestrictedRegion, schedule: Schedule) -> Graph:
    """Return the graph of a restricted region: the graph of the region with smaller extents.

    Raises `SamplingError` if the compiler makes another graph for the smaller extents.
    """
    table = build_table(restricted.fused)
    graph = emit(table)
    if region.einsums and schedule.parallel:
        graph = with_lanes(graph, table, restricted.fused, schedule).graph
    if schedule.primitives == "public":
        graph = public_form(graph).graph
    graph = mark_fiber_fifos(graph)
    verify_graph(graph)
    place = {node.name: n for n, node in enumerate(region.graph.nodes)}  # that both have the same nodes is checked below
    depths = {(place[edge.node], edge.input): depth for edge, depth in region.graph.depths}
    graph = graph.with_depths({Edge(graph.nodes[at].name, k): d for (at, k), d in depths.items() if at < len(graph.nodes)})
    if _structure(graph) != _structure(region.graph):
        raise SamplingError(
            f"region `{region.name}` has another graph for some of the coordinates of `{sampled_index(region.fused)}`"
        )
    return graph


def _structure(graph: Graph) -> object:
    """Return a value that is equal for graphs of the same region, which may have other extents and names of tensors."""
    place = {node.name: n for n, node in enumerate(graph.nodes)}
    nodes = [
        (
            type(node),
            [(place[port.node], port.output) for port in node.inputs],
            [getattr(node, f.name) for f in fields(node) if f.name not in ("name", "inputs", "tensor", "size")],
        )
        for node in graph.nodes
    ]
    fifos = [[(place[edge.node], edge.input) for edge in edges] for edges in (graph.fiber_fifos, (e for e, _ in graph.depths))]
    return nodes, fifos, len(graph.outputs)
