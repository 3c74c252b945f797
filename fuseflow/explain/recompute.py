"""How often a region computes each of its producers, read off its fusion table.

A producer is computed again in every loop around it whose index it lacks. Evaluations are counted as elements of a stream: a
producer that reduces has one for each value that it folds, any other one for each value that it computes. `times` are the
evaluations in the region, expected from tensor statistics, divided by the evaluations of the producer run alone, where each of
its values is computed once. It is below 1 if a consumer visits only some of the values, as a mask does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fuseflow.costs import TensorStatistics, estimate_graph, stream_shapes
from fuseflow.costs.stream_shapes import ExpectedStream
from fuseflow.einsum.nodes import Program
from fuseflow.fusion.producers import producer_views
from fuseflow.fusion.tree import Operation, Producer, free_indices
from fuseflow.lower.regions import CompiledRegion
from fuseflow.samml.nodes import Port


@dataclass(frozen=True, slots=True)
class Instance:
    """One place where a region computes a producer.

    `view` is the view of the producer in the indices of the region, such as `T[k, j]`. `node` is the node of the graph that makes the
    values, `inside` are the loops around it that the producer lacks, outermost first, and `evaluations` are how many are expected there.
    """

    view: str
    node: str
    inside: tuple[str, ...]
    evaluations: float


def instances(
    region: CompiledRegion, program: Program, streams: Mapping[Port, ExpectedStream]
) -> dict[str, tuple[Instance, ...]]:
    """Return for every Einsum of `region` the places where it is computed; `streams` are the expected shapes of the streams of
    its graph.

    An Einsum has none if it has no operator and so renames its operand, if nothing reads it, or if its region has a global
    iteration, which has no producers.
    """
    free = free_indices(*region.fused.trees)
    instances_by_einsum: dict[str, tuple[Instance, ...]] = {}
    for einsum, views in producer_views(region.fused, program).items():
        places: dict[Port, Instance] = {}
        for place in region.table.evaluations:
            node = place.node
            if node in views and place.port in streams and isinstance(node, Operation | Producer):
                own = {*free[node], *(node.over if isinstance(node, Producer) else ())}
                inside = tuple(v for v in place.around if v not in own)
                view = f"{einsum}[{', '.join(views[node])}]"
                places[place.port] = Instance(view, place.port.node, inside, streams[place.port].elements)
        instances_by_einsum[einsum] = tuple(places.values())
    return instances_by_einsum


def expected_streams(
    regions: Iterable[CompiledRegion], input_statistics: Mapping[str, TensorStatistics]
) -> tuple[dict[str, dict[Port, ExpectedStream]], dict[str, TensorStatistics]]:
    """Return the expected shapes of the streams of each region, and the statistics of the inputs and of the tensors that regions write."""
    streams_by_region, statistics = {}, dict(input_statistics)
    for region in regions:
        statistics |= {step.name: step.statistics for step in region.views_before}
        streams_by_region[region.name] = stream_shapes(region.serial, statistics)
        statistics |= estimate_graph(region.serial, statistics)[1]
        statistics |= {step.name: step.statistics for step in region.views_after}
    return streams_by_region, statistics
