"""How often a region computes each of its producers, read off its table: a producer is run again in every loop around it that it lacks.

The measure are the elements of a stream. A producer that reduces is computed once for each value that it folds, any other once for each
value of its own; `times` are those of the region, expected from tensor statistics, over those of the producer run alone, where each of its
values is computed once. It is below 1 where a consumer visits only some of the values: a mask prunes what it samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fuseflow.einsum.nodes import Program
from fuseflow.estimate import TensorStatistics, estimate_graph, stream_shapes
from fuseflow.estimate.expected.stream_shapes import ExpectedStream
from fuseflow.fusion.producers import producer_views
from fuseflow.fusion.tree import Operation, Reduction, free_indices
from fuseflow.lower.regions import CompiledRegion
from fuseflow.samml.nodes import Port


@dataclass(frozen=True, slots=True)
class Instance:
    """One place where a region computes a producer: the view `T[k, j]` in the region's indices, the node of its graph that makes the
    values, the loops around it that the producer lacks, outermost first, and how many evaluations are expected there."""

    view: str
    node: str
    inside: tuple[str, ...]
    evaluations: float


def instances(
    region: CompiledRegion, program: Program, streams: Mapping[Port, ExpectedStream]
) -> dict[str, tuple[Instance, ...]]:
    """For every Einsum of `region`, the places where it is computed; `streams` are the expected shapes of the graph's streams.

    None for an Einsum without an operator, which is another name of its operand, for one that nothing reads, and where a global
    iteration has no producers.
    """
    free = free_indices(*region.fused.trees)
    found: dict[str, tuple[Instance, ...]] = {}
    for einsum, views in producer_views(region.fused, program).items():
        places: dict[Port, Instance] = {}
        for place in region.table.evaluations:
            node = place.node
            if node in views and place.port in streams and isinstance(node, Operation | Reduction):
                own = {*free[node], *(node.over if isinstance(node, Reduction) else ())}
                inside = tuple(v for v in place.around if v not in own)
                view = f"{einsum}[{', '.join(views[node])}]"
                places[place.port] = Instance(view, place.port.node, inside, streams[place.port].elements)
        found[einsum] = tuple(places.values())
    return found


def expected_streams(
    regions: Iterable[CompiledRegion], known: Mapping[str, TensorStatistics]
) -> tuple[dict[str, dict[Port, ExpectedStream]], dict[str, TensorStatistics]]:
    """By region, the expected shapes of its streams; and the statistics of all tensors: those `known`, and what the regions write."""
    found, statistics = {}, dict(known)
    for region in regions:
        statistics |= {step.name: step.statistics for step in region.views_before}
        found[region.name] = stream_shapes(region.serial, statistics)
        statistics |= estimate_graph(region.serial, statistics)[1]
        statistics |= {step.name: step.statistics for step in region.views_after}
    return found, statistics
