"""The estimate of a program: region after region, each with the facts about the tensors that were written before it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Generic, TypeVar

from fuseflow.array.port_turns import with_turns
from fuseflow.array.settings import ArraySettings
from fuseflow.costs import TensorStatistics, measure_statistics
from fuseflow.costs.live_bytes import live_bytes, written_bytes
from fuseflow.costs.statistics import assume_statistics, view_statistics
from fuseflow.einsum.nodes import Program
from fuseflow.errors import UsageError
from fuseflow.estimate import Assumptions, CountMemo, TensorOverlap
from fuseflow.estimate.counted.patterns import Pattern, dense_pattern, tensor_pattern, view_pattern
from fuseflow.estimate.graph_bounds import GraphBounds
from fuseflow.estimate.graph_counts import Work, count_graph
from fuseflow.estimate.graph_cycles import Bound
from fuseflow.estimate.memory_pace import memory_pace
from fuseflow.estimate.program_estimate import ProgramEstimate, RegionEstimate
from fuseflow.estimate.stated_statistics import KeptShares
from fuseflow.estimate.stream_flow import Number
from fuseflow.loop_progress import counted
from fuseflow.machine.machine import Machine
from fuseflow.memory.layout import used_tensors
from fuseflow.samml.nodes import Edge, Graph, TensorDecl
from fuseflow.sim.configuration_load import ConfigurationLoad, require_room
from fuseflow.sim.signature import RegionRepeat, signature
from fuseflow.sim.untimed_operations import refuse_untimed
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.blocks import stored_in


@dataclass(frozen=True, slots=True)
class TileGraph:
    """The graph of a tile in the middle of a region that runs tile by tile. Its estimate, times the number of tiles, is that of the region.
    Nothing is counted for a part of a tensor that is not stored dense: its entries are taken as spread evenly over the coordinates.

    `runs` is the number of tiles, where a smaller one counts as a part. `parts` has the tensor of which a tensor of the graph is a part,
    and `whole` the declarations of the whole region."""

    graph: Graph
    runs: float
    parts: Mapping[str, str]
    whole: Mapping[str, TensorDecl]


def part_statistics(whole: TensorStatistics, part: TensorDecl) -> TensorStatistics:
    """Return the statistics of a tensor with fewer coordinates, whose levels are as full as those of the whole one."""
    sizes = part.level_sizes
    shares = (size / max(1, before) for size, before in zip(sizes, whole.sizes, strict=True))
    return TensorStatistics(sizes, tuple(fanout * share for fanout, share in zip(whole.fanouts, shares, strict=True)))


def all_tiles(work: Work, tiled: TileGraph) -> Work:
    """Return the work of all tiles of a region, given that of one, and what is known of the whole results."""
    runs = tiled.runs
    statistics, patterns = dict(work.statistics), {}
    for name in work.statistics:
        whole = tiled.whole[name]
        statistics[name] = part_statistics(work.statistics[name], whole)
        if whole.format.all_dense:
            patterns[name] = dense_pattern(whole.level_sizes)
    names = {own: source for own, source in tiled.parts.items() if source != own}
    return replace(
        work,
        nodes=tuple(
            replace(node, firings=runs * node.firings, occupied=runs * node.occupied, exact=False) for node in work.nodes
        ),
        operators={operator: runs * count for operator, count in work.operators.items()},
        traffic=tuple(
            replace(row, tensor=names.get(row.tensor, row.tensor), bytes=runs * row.bytes, exact=False) for row in work.traffic
        ),
        statistics=statistics,
        patterns=patterns,
    )


SHARES = ("refresh", "node", "fifo", "stands_still", "limit")
"""The fields of `Bound` that are no cycles."""


def all_cycles(bound: Bound, tiled: TileGraph, first: Number) -> Bound:
    """Return the bounds of all tiles, given those of one, and the cycles of the transfers before the first and behind the last."""
    times = {field.name: tiled.runs * getattr(bound, field.name) for field in fields(bound) if field.name not in SHARES}
    return replace(bound, **{**times, "control": times["control"] + first})


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredView:
    """The tensor `source` with other dimensions, under another name. Both are the same memory."""

    name: str
    source: str
    format: Format
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EstimatorRegion:
    """A region as the estimator reads it: its graph, the views that it reads, and the views of its results that later regions
    read. If it runs in tiles, `tiled` is one of these."""

    name: str
    einsums: tuple[str, ...]
    graph: Graph
    views_before: tuple[StoredView, ...] = ()
    views_after: tuple[StoredView, ...] = ()
    tiled: TileGraph | None = None

    def in_turns(self, array: ArraySettings) -> EstimatorRegion:
        """Return the region with the turns of its nodes at the ports of an array."""
        tiled = self.tiled and replace(self.tiled, graph=with_turns(self.tiled.graph, array))
        return replace(self, graph=with_turns(self.graph, array), tiled=tiled)

    @property
    def views(self) -> dict[str, str]:
        """The tensor that each view shows, by the name of the view."""
        return {view.name: view.source for view in (*self.views_before, *self.views_after)}


@dataclass(slots=True)
class TensorKnowledge:
    """The facts about the tensors in memory: their patterns, statistics and formats, the overlap of inputs, and the shares of
    results that keeps by value leave."""

    patterns: dict[str, Pattern]
    statistics: dict[str, TensorStatistics]
    formats: dict[str, Format]
    overlap: TensorOverlap
    kept: KeptShares

    def copy(self) -> TensorKnowledge:
        """Return a copy to which regions can be added."""
        return TensorKnowledge(dict(self.patterns), dict(self.statistics), dict(self.formats), self.overlap, self.kept)

    def of(self, names: Iterable[str]) -> Hashable:
        """Return a key for these tensors. It is equal for tensors with equal patterns, or with equal statistics where they have
        no pattern."""
        return tuple(self.statistics.get(n) if n not in self.patterns else self.patterns[n].fingerprint for n in names)

    def write(self, graph: Graph, work: Work, names: Mapping[str, str]) -> None:
        """Add the results of a graph. `names` maps the tensor names in `work` to those in the graph."""
        self.patterns |= {names[name]: pattern for name, pattern in work.patterns.items()}
        self.statistics |= {names[name]: statistics for name, statistics in work.statistics.items()}
        self.formats |= {t.name: t.format for t in graph.tensors if not t.flat}


@dataclass(slots=True)
class Estimator:
    """An estimator of programs on the same tensors. It keeps its counts for the next schedule.

    With `statistics_only`, it uses no coordinates of tensors. It uses only their statistics, and two numbers for each pair of
    tensors where one is looked up by the coordinates of the other. `assumptions` are statistics that a user stated. With
    `assume_unknown`, the default statistics of the compiler are assumed for a sparse input without data. With an `array`, tiles are
    among the resources of regions, and nodes take turns at its ports.
    """

    statistics_only: bool = False
    assumptions: Assumptions = field(default_factory=Assumptions)
    memo: CountMemo = field(default_factory=CountMemo)
    assume_unknown: bool = False
    array: ArraySettings | None = None

    def estimate(
        self,
        regions: Iterable[EstimatorRegion],
        program: Program,
        tensors: Mapping[str, Tensor],
        machine: Machine,
        model: str = "",
        data: str | None = None,
        notices: tuple[str, ...] = (),
    ) -> ProgramEstimate:
        """Estimate a program, region by region. Raises `UsageError` for a sparse input without data and statistics, and
        `MachineError` for more resident tensors than the machine has room for, and for types or primitives without times."""
        knowledge, shared = self.knowledge(program, tensors), SharedEstimates[RegionEstimate](self, machine, lambda one: one)
        estimates: dict[Hashable, RegionEstimate] = {}
        regions = tuple(regions if self.array is None else (region.in_turns(self.array) for region in regions))
        for region in counted(regions, "estimating regions"):
            key, names, first = shared.add(region, knowledge)
            known = estimates.setdefault(key, first)
            if known.name != region.name:
                repeat = RegionRepeat(region.name, region.einsums, names)
                estimates[key] = replace(known, repeats=(*known.repeats, repeat))
        estimate = ProgramEstimate(model, data, machine, tuple(estimates.values()), (*notices, *knowledge.kept.notices))
        steps = ((region.graph, region.views) for region in regions)
        return replace(estimate, live_bytes=live_bytes(steps, program.outputs, written_bytes(estimate.stats)))

    def knowledge(self, program: Program, tensors: Mapping[str, Tensor]) -> TensorKnowledge:
        """Return the facts about the inputs. Raises `UsageError` for a sparse input without data and statistics."""
        patterns, statistics = self._inputs(program, tensors)
        formats = {t.name: t.format or Format.dense(len(t.shape)) for t in program.inputs}
        overlap = self.memo.once(
            ("overlap", tuple(patterns)),
            patterns.values(),
            lambda: self.assumptions.overlap(patterns, self.memo),
        )
        kept = KeptShares.of(program, {} if self.statistics_only else tensors, self.assumptions.kept)
        return TensorKnowledge({} if self.statistics_only else dict(patterns), statistics, formats, overlap, kept)

    def region(self, region: EstimatorRegion, machine: Machine, knowledge: TensorKnowledge) -> RegionEstimate:
        """Estimate one region, and add its results to `knowledge`."""
        self.add_views(region.views_before, knowledge)
        refuse_untimed(region.graph, machine)
        if region.tiled is not None:
            return self._tiled(region, region.tiled, machine, knowledge)
        counted_bounds = self.bounds(region.graph, knowledge)
        counts, bounds = counted_bounds.counts, counted_bounds.on(machine)
        work = bounds.work
        require_room(region.graph, work.config_bytes, machine)
        config = ConfigurationLoad.at(memory_pace(machine).peak, work.config_bytes)
        knowledge.write(region.graph, work, {name: name for name in region.graph.declared})
        self.add_views(region.views_after, knowledge)
        return RegionEstimate(
            region.name,
            region.einsums,
            work,
            bounds.bound,
            config,
            counts,
            machine,
            bounds.load,
            chip=bounds.chip,
            array=self.array,
        )

    def _tiled(self, region: EstimatorRegion, tiled: TileGraph, machine: Machine, knowledge: TensorKnowledge) -> RegionEstimate:
        """Estimate a region that runs in tiles, and add its results to `knowledge`."""
        parts, declared = knowledge.copy(), tiled.graph.declared
        for name, source in tiled.parts.items():
            parts.patterns.pop(name, None)
            if declared[name].format.all_dense:
                parts.patterns[name] = dense_pattern(declared[name].level_sizes)
            sizes = declared[name].level_sizes
            known = knowledge.statistics.get(source)  # not of results, which are taken as full
            full = TensorStatistics(sizes, tuple(map(float, sizes)))
            parts.statistics[name] = full if known is None else part_statistics(known, declared[name])
            parts.formats[name] = declared[name].format
        one = replace(region, graph=tiled.graph, views_before=(), views_after=(), tiled=None)
        estimate = self.region(one, machine, parts)
        work = all_tiles(estimate.work, tiled)
        knowledge.write(region.graph, work, {name: name for name in region.graph.declared})
        self.add_views(region.views_after, knowledge)
        bound = all_cycles(estimate.bound, tiled, estimate.chip.around(machine))
        return replace(estimate, work=work, bound=bound, runs=tiled.runs)

    def depths(self, region: EstimatorRegion, machine: Machine, knowledge: TensorKnowledge) -> Mapping[Edge, int]:
        """Return the depths of the FIFOs of a region that need more slots than the graph and the machine state, and add the
        results of the region to `knowledge`."""
        self.add_views(region.views_before, knowledge)
        depths = self.bounds(region.graph, knowledge).depths(machine)
        self.region(region, machine, knowledge)
        return depths

    def _inputs(self, program: Program, tensors: Mapping[str, Tensor]) -> tuple[dict[str, Pattern], dict[str, TensorStatistics]]:
        """Return the known patterns of inputs, and the statistics of all. Raises `UsageError` if nothing is known of one."""
        self.assumptions.check(program)
        patterns: dict[str, Pattern] = {}
        statistics: dict[str, TensorStatistics] = {}
        for declared in (t for t in program.inputs if not t.like):
            name, format = declared.name, declared.format or Format.dense(len(declared.shape))
            stated = self.assumptions.statistics(declared)
            if stated is not None:
                statistics[name] = stated
            elif format.all_dense:
                sizes = tuple(declared.stored_shape[d] for d in format.order)
                patterns[name] = self.memo.once(("dense", sizes), (), partial(dense_pattern, sizes))
                statistics[name] = TensorStatistics(sizes, tuple(map(float, sizes)))
            elif name in tensors:
                stored = partial(stored_in, tensors[name], format, declared.block)
                tensor = self.memo.once(("stored", str(format), declared.block), (tensors[name],), stored)
                patterns[name] = self.memo.once("pattern", (tensor,), partial(tensor_pattern, tensor))
                statistics[name] = self.memo.once("statistics", (tensor,), partial(measure_statistics, tensor))
            elif self.assume_unknown:
                statistics[name] = assume_statistics(declared)
            else:
                raise UsageError(
                    f"nothing is known of what `{name}` stores",
                    hint=f"`--tensors FILE.yaml`, or statistics: `--stats {name}.density=0.01`",
                )
        for declared in (t for t in program.inputs if t.like):
            patterns |= {declared.name: patterns[declared.like]} if declared.like in patterns else {}
            statistics[declared.name] = statistics[declared.like]
        return patterns, statistics

    def add_views(self, views: Iterable[StoredView], knowledge: TensorKnowledge) -> None:
        """Add views to `knowledge`, which has the tensors that they are views of."""
        patterns, statistics, formats = knowledge.patterns, knowledge.statistics, knowledge.formats
        for view in views:
            if view.source in patterns:
                key, source = ("seen", str(formats[view.source]), str(view.format), view.shape), patterns[view.source]
                made = partial(view_pattern, source, formats[view.source], view.format, view.shape)
                patterns[view.name] = self.memo.once(key, (source,), made)
            statistics[view.name] = view_statistics(statistics[view.source], formats[view.source], view.format, view.shape)
            formats[view.name] = view.format

    def key(self, graph: Graph, knowledge: TensorKnowledge) -> Hashable:
        """Return a key that is equal for graphs that have one estimate: they differ in names alone, and the facts about their
        tensors are equal."""
        names, shape = self.shape(graph)
        return shape, knowledge.of(names), tuple(knowledge.kept.by_node(graph).values())

    def shape(self, graph: Graph) -> tuple[tuple[str, ...], Hashable]:
        """Return the tensors of a graph in the order of its nodes, and a key that is equal for graphs that differ in names
        alone."""
        return self.memo.once("shape", (graph,), lambda: (used_tensors(graph), signature(graph, {}) or graph))

    def bounds(self, graph: Graph, knowledge: TensorKnowledge) -> GraphBounds:
        """Return the bounds of a graph. They are counted once for graphs that are equal and read tensors with the same patterns."""
        names, shape = self.shape(graph)
        kept = knowledge.kept.by_node(graph)
        nodes = self.memo.once("names", (graph,), lambda: tuple(node.name for node in graph.nodes))

        def bounds() -> GraphBounds:
            if graph.depths:  # no count depends on these
                return self.bounds(replace(graph, depths=()), knowledge).with_depths_of(graph)
            counts = count_graph(graph, knowledge.statistics, knowledge.patterns, self.memo, knowledge.overlap, kept)
            return GraphBounds(counts, self.memo)

        key = "bounds", shape, names, nodes, knowledge.of(names), tuple(kept.items())
        return self.memo.once(key, (knowledge.overlap,), bounds)


@dataclass(slots=True)
class SharedEstimates(Generic[T]):
    """Estimates of regions on a machine. `keep` turns each into what is kept of it. Regions that differ in names alone are
    estimated once: a model repeats its layers."""

    estimator: Estimator
    machine: Machine
    keep: Callable[[RegionEstimate], T]
    _first: dict[Hashable, tuple[tuple[str, ...], Work, T]] = field(default_factory=dict)

    def add(self, region: EstimatorRegion, knowledge: TensorKnowledge) -> tuple[Hashable, dict[str, str], T]:
        """Return the key of the estimate of a region, the tensors of the region by the names of the first region with that key,
        and what is kept of the estimate. Add the results of the region to `knowledge`."""
        self.estimator.add_views(region.views_before, knowledge)
        if region.tiled is not None:
            return region.name, {}, self.keep(self.estimator.region(region, self.machine, knowledge))
        key, (tensors, _) = self.estimator.key(region.graph, knowledge), self.estimator.shape(region.graph)
        if key not in self._first:
            estimate = self.estimator.region(region, self.machine, knowledge.copy())
            self._first[key] = tensors, estimate.work, self.keep(estimate)
        first, work, kept = self._first[key]
        names = dict(zip(first, tensors, strict=True))
        knowledge.write(region.graph, work, names)
        self.estimator.add_views(region.views_after, knowledge)
        return key, names, kept
