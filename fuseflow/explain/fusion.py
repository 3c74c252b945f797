"""The fusion of a program and its reasons.

There is a decision for every Einsum and each of its producers, and for every producer the cost of fusing it and the cost of
storing it.

A producer is computed again in every loop around it whose index it lacks. Evaluations are counted as elements of a stream: a
producer that reduces has one for each value that it folds, any other one for each value that it computes. `times` are the
evaluations in the region, expected from tensor statistics, divided by the evaluations of the producer run alone, where each of
its values is computed once. It is below 1 if a consumer visits only some of the values, as a mask does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fuseflow.costs import TensorStatistics, collect_statistics, estimate_graph, expected_traffic, stream_shapes
from fuseflow.costs.stream_shapes import ExpectedStream
from fuseflow.cut.cut_cache import lower_cut
from fuseflow.cut.recompute_prices import RecomputePrice, RecomputePrices
from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.errors import FuseFlowError
from fuseflow.explain.keeps import KeptResult, kept_results
from fuseflow.frontend.sources import Source
from fuseflow.fusion import tree
from fuseflow.fusion.producers import producer_views
from fuseflow.layouts.kept_layouts import with_layouts
from fuseflow.lower.partition import PartitionedProgram, partition_program
from fuseflow.lower.program import lower, lower_regions
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.machine import Machine
from fuseflow.plan_application import planned
from fuseflow.samml.nodes import Port
from fuseflow.schedule import Region, Schedule, region_results
from fuseflow.schedule.fusion_reasons import detour, why_cut, why_fused


@dataclass(frozen=True, slots=True)
class FusionDecision:
    """Whether `consumer`, an Einsum that reads `producer`, is fused with it.

    `why` is the rule of the schedule that decided it. If they are not fused, `refusal` is the error that the compiler raises for
    one region made of both their `regions`; it is empty if that region compiles.
    """

    producer: str
    consumer: str
    regions: tuple[str, str]
    why: str
    refusal: str = ""

    @property
    def fused(self) -> bool:
        """Whether both are in one region."""
        return self.regions[0] == self.regions[1]


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


@dataclass(frozen=True, slots=True)
class Producer:
    """An Einsum that others read. All numbers are expected from tensor statistics.

    `stored` says whether its region stores it. `instances` are the places where its region computes it. `once` is the number of
    evaluations when it runs alone, which computes each of its values once; `flops` and `firings` are the costs of that.
    `extra_flops` and `extra_firings` are what its region spends on computing it again, and on computing again its operands in
    that region. They are the most that storing it would save. To store it takes `entries` values and `written` bytes, and `read`
    bytes if each of its consumers reads it once.
    """

    name: str
    region: str
    stored: bool
    instances: tuple[Instance, ...]
    once: float
    flops: float
    firings: float
    extra_flops: float
    extra_firings: float
    entries: float
    written: float
    read: float

    @property
    def times(self) -> float | None:
        """How often each of its values is computed, on average. None for an Einsum without an operator, or if nothing needs it."""
        return _recompute_ratio(self.instances, self.once)


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a region: the nest that computes one producer. It can be dealt to lanes alone, over each of the `loops` that it
    runs in, outermost first, with `--par REGION/NAME.INDEX=4`."""

    region: str
    name: str
    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FusionReport:
    """The decision on every Einsum and each of its producers, the costs of every producer and of every result of which only some
    entries are kept, and the stages of every region."""

    decisions: tuple[FusionDecision, ...]
    producers: tuple[Producer, ...]
    keeps: tuple[KeptResult, ...] = ()
    stages: tuple[Stage, ...] = ()
    recomputes: tuple[RecomputePrice, ...] = ()
    """The prices of storing and of computing again what a later region reads."""
    unpriced: int = 0
    """How many more Einsums could be computed again, without a price."""


def explain_fusion(source: Source, schedule: Schedule, machine: Machine, asked: Schedule | None = None) -> FusionReport:
    """Say of every Einsum and each of its producers whether and why they are fused, as the program is compiled for a machine.
    Statistics are assumed for tensors without data. `asked` is the schedule of the user, before its open choices were made.

    Raises a `FuseFlowError` if the schedule itself does not compile.
    """
    asked = asked or schedule
    source, schedule = planned(source, schedule, machine)
    source = with_layouts(source, schedule, machine)
    schedule, partitioned, lowered = lower_cut(source, schedule, machine)
    program, compiled = partitioned.program, tuple(lowered)
    decisions = _decisions(partitioned, compiled, "the chosen cut" if asked.leaves_cut or asked.open else "the schedule")
    singletons = tuple(Region(e.name, (e.name,)) for e in partitioned.original.einsums)
    inputs = {t.name: t for t in program.inputs}
    input_statistics = collect_statistics(inputs, source.tensors)
    # Expected streams are for graphs in our own primitives, so the costs of a producer alone are, too.
    unfused = Schedule(
        fuse_regions=("none",),
        formats=schedule.formats,
        blocks=schedule.blocks,
        vector=schedule.vector,
        associations=schedule.associations,
        primitives="own",
    )
    apart = partition_program(source.program, unfused, singletons, partitioned.splits)
    # An Einsum that nothing needs is not lowered: it may ask of a tensor what no tensor can give.
    computed = {*partitioned.copies.values(), *(e for region in compiled for e in region.einsums)}
    apart = replace(apart, regions=tuple(r for r in apart.regions if computed.intersection(r.einsums)))
    alone = tuple(lower_regions(apart, source.tensors))
    streams, statistics = _expected_streams(compiled, input_statistics)
    keeps = kept_results(compiled, streams, statistics, partitioned.user_names)
    producers = _producers(partitioned, compiled, alone, input_statistics, streams)
    regions = [region for region in compiled if region.einsums]
    stages = tuple(Stage(region.name, name, loops) for region in regions for name, loops in region.stages.items())
    recomputes, unpriced = RecomputePrices(source.program, schedule, machine, source.tensors).listed()
    return FusionReport(decisions, producers, keeps, stages, recomputes, unpriced)


def _decisions(partitioned: PartitionedProgram, compiled: Sequence[CompiledRegion], named_in: str) -> tuple[FusionDecision, ...]:
    """Return the decisions on the Einsums of the program as the user wrote it, in which a reshape is an Einsum. `named_in` names
    the origin of the regions in the reasons."""
    program, schedule = partitioned.original, partitioned.schedule
    regions = partitioned.formed
    home = {e: region.name for region in regions for e in region.einsums}
    # A region that nothing needs is not lowered: tensors that only it reads have their inferred declarations.
    stored = {t.name: t for t in (*partitioned.program.tensors, *program.inputs)}
    for region in compiled:
        stored |= {**region.fused.stored, **region.fused.shared, **region.result_types}
    refusals: dict[tuple[str, str], str] = {}
    copies = partitioned.copies
    copy_in = {(copies[e], region.name): e for region in partitioned.regions for e in region.einsums if e in copies}
    decisions = []
    for einsum in program.einsums:
        for producer in (n for n in einsum.operands if n in home):
            both = home[producer], home[einsum.name]
            if both[0] == both[1]:
                why = why_fused(program, schedule, producer, einsum.name, named_in)
                decisions.append(FusionDecision(producer, einsum.name, both, why))
                continue
            if copy := copy_in.get((partitioned.reshapes.statement(producer), both[1])):
                why = f"the schedule computes `{producer}` again in `{both[1]}`, as `{copy}`"
                decisions.append(FusionDecision(producer, einsum.name, (both[1], both[1]), why))
                continue
            why = why_cut(program, schedule, regions, producer, einsum.name, partitioned.kept, named_in)
            if both not in refusals:
                refusals[both] = _refusal(partitioned, regions, stored, producer, einsum.name)
            decisions.append(FusionDecision(producer, einsum.name, both, why, refusals[both]))
    return tuple(decisions)


def _refusal(
    partitioned: PartitionedProgram,
    regions: Sequence[Region],
    stored: Mapping[str, TensorType],
    producer: str,
    consumer: str,
) -> str:
    """Return why the regions of two Einsums cannot be one region; empty if they can."""
    parts = [r for r in regions if producer in r.einsums or consumer in r.einsums]
    members = tuple(e.name for e in partitioned.original.einsums if any(e.name in r.einsums for r in parts))
    if stuck := [e for e in members if e in partitioned.reshapes.barriers]:
        return f"`{stuck[0]}` reshapes its data: a reshape ends a region"
    if stuck := [e for e in members if partitioned.original.defined[e].materializes]:
        return f"`{stuck[0]}` keeps entries of a whole result: its operand and its result are stored"
    if message := detour(partitioned.original, regions, producer, consumer):
        return message
    program, inside = partitioned.program, partitioned.reshapes.members(members)
    whole = Region(" + ".join(r.name for r in parts), inside)
    others = tuple(Region(r.name, partitioned.reshapes.members(r.einsums)) for r in regions if r not in parts)
    results = region_results(program, (*others, whole))[whole.name]
    einsums = tuple(e for e in program.einsums if e.name in inside)
    read = dict.fromkeys(name for e in einsums for name in e.operands if name not in inside)
    declared = (t for t in partitioned.source.tensors if t.name in inside)
    part = Program((*(stored[name] for name in read), *declared), einsums, results, program.name)
    sections = ("orders", "formats", "blocks", "splits", "parallel", "depths", "buffers", "drop_zeros", "resident", "recomputed")
    cleared: dict[str, Any] = dict.fromkeys(sections, ())
    try:
        lower(part, replace(partitioned.schedule, vector=1, **cleared), {}, regions=(whole,))
    except FuseFlowError as error:
        return error.message
    return ""


def _producers(
    partitioned: PartitionedProgram,
    compiled: Sequence[CompiledRegion],
    alone: Sequence[CompiledRegion],
    input_statistics: Mapping[str, TensorStatistics],
    streams: Mapping[str, Mapping[Port, ExpectedStream]],
) -> tuple[Producer, ...]:
    program = partitioned.program
    streams_alone, written = _expected_streams(alone, input_statistics)
    statistics = {**input_statistics, **written}
    home = {e: region for region in compiled for e in region.einsums}
    single = {e: region for region in alone for e in region.einsums}
    copies = partitioned.copies  # alone, a copy costs what its original costs
    single |= {copy: single[name] for copy, name in copies.items()}
    moved = {e: expected_traffic(region.graph, streams_alone[region.name], statistics) for e, region in single.items()}
    places = {e: i for region in compiled for e, i in _instances(region, program, streams[region.name]).items()}
    once = {e: sum(p.evaluations for p in i) for r in alone for e, i in _instances(r, program, streams_alone[r.name]).items()}
    once |= {copy: once.get(name, 0.0) for copy, name in copies.items()}
    times = {e: _recompute_ratio(evaluations, once.get(e, 0.0)) for e, evaluations in places.items()}
    # An output that only names its operand again is computed where that is, which is then stored under its name alone.
    readers = [e for e in program.einsums if e.name not in partitioned.reshapes.renames]
    consumers = {e.name: [reader.name for reader in readers if e.name in reader.operands] for e in program.einsums}
    rows = []
    for name in (n for n, names in consumers.items() if names and n in home):
        repeated_share = 1 - 1 / max(1.0, times.get(name) or 1.0)  # the share of the work that falls to all but the first time
        sources = [
            (single[n].estimate, repeated_share * (times.get(n) or 1.0)) for n in _sources(program, home[name].einsums, name)
        ]
        rows.append(
            Producer(
                name=name,
                region=home[name].name,
                stored=name in home[name].graph.outputs,
                instances=places.get(name, ()),
                once=once.get(name, 0.0),
                flops=single[name].estimate.flops,
                firings=single[name].estimate.firings,
                extra_flops=sum(cost.flops * extra for cost, extra in sources),
                extra_firings=sum(cost.firings * extra for cost, extra in sources),
                entries=written[own := copies.get(name, name)].stored,
                written=moved[name][own],
                read=sum(_bytes_of(own, single[c], moved[c]) for c in consumers[name] if c in moved),
            )
        )
    return tuple(rows)


def _bytes_of(name: str, region: CompiledRegion, traffic: Mapping[str, float]) -> float:
    """Return the bytes that a region reads of a tensor, or of a copy of it in another order."""
    copies = (copy.name for copy in region.fused.copies if copy.source == name)
    return sum(traffic.get(read, 0.0) for read in (name, *copies))


def _recompute_ratio(evaluations: Sequence[Instance], once: float) -> float | None:
    return sum(place.evaluations for place in evaluations) / once if evaluations and once else None


def _sources(program: Program, region: Sequence[str], name: str) -> tuple[str, ...]:
    """Return an Einsum and the Einsums of its region that it depends on, directly or not."""
    sources, todo = dict[str, None](), [name]
    while todo:
        sources[(current := todo.pop())] = None
        todo += [n for n in program.defined[current].operands if n in region and n not in sources]
    return tuple(sources)


def _instances(
    region: CompiledRegion, program: Program, streams: Mapping[Port, ExpectedStream]
) -> dict[str, tuple[Instance, ...]]:
    """Return for every Einsum of `region` the places where it is computed; `streams` are the expected shapes of the streams of
    its graph.

    An Einsum has none if it has no operator and so renames its operand, if nothing reads it, or if its region has a global
    iteration, which has no producers.
    """
    free = tree.free_indices(*region.fused.trees)
    instances_by_einsum: dict[str, tuple[Instance, ...]] = {}
    for einsum, views in producer_views(region.fused, program).items():
        places: dict[Port, Instance] = {}
        for place in region.table.evaluations:
            node = place.node
            if node in views and place.port in streams and isinstance(node, tree.Operation | tree.Producer):
                own = {*free[node], *(node.over if isinstance(node, tree.Producer) else ())}
                inside = tuple(v for v in place.around if v not in own)
                view = f"{einsum}[{', '.join(views[node])}]"
                places[place.port] = Instance(view, place.port.node, inside, streams[place.port].elements)
        instances_by_einsum[einsum] = tuple(places.values())
    return instances_by_einsum


def _expected_streams(
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
