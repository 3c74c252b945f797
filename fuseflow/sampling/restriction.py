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

from fuseflow.errors import SamplingError
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import reductions, selections
from fuseflow.lower.region_tile import RestrictedRegion
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.restriction import graph_of, restricted, structure
from fuseflow.samml.nodes import Graph
from fuseflow.schedule import Schedule

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
    return restricted(fused, index, size)


def coordinate_count(fused: FusedRegion) -> int:
    """Return how many coordinates, or blocks of coordinates, the sampled index has."""
    return index_coordinates(fused, sampled_index(fused))


def restricted_graph(region: CompiledRegion, smaller: RestrictedRegion, schedule: Schedule) -> Graph:
    """Return the graph of a restricted region: the graph of the region with smaller extents.

    Raises `SamplingError` if the compiler makes another graph for the smaller extents.
    """
    graph = graph_of(region, smaller, schedule)
    if structure(graph) != structure(region.graph):
        raise SamplingError(
            f"region `{region.name}` has another graph for some of the coordinates of `{sampled_index(region.fused)}`"
        )
    return graph
