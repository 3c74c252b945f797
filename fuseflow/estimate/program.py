"""The estimate of a program: region after region, each on what the estimate knows of the tensors written before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from fuseflow.counted_loops import counted
from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.energy import EnergyCounts, EventEnergies, ProgramEnergy, load_event_energies
from fuseflow.errors import UsageError
from fuseflow.estimate import AssumedOverlap, Assumptions, CountMemo, MeasuredOverlap, TensorStatistics, measure_statistics
from fuseflow.estimate.bound import Bound
from fuseflow.estimate.counted.patterns import Pattern, dense_pattern, tensor_pattern, view_pattern
from fuseflow.estimate.energy_counts import estimated_counts
from fuseflow.estimate.graph_bounds import GraphBounds
from fuseflow.estimate.graph_counts import GraphCounts, count_graph
from fuseflow.estimate.graph_work import Work
from fuseflow.estimate.held_entries import held_entries
from fuseflow.estimate.kept_shares import KeptShares
from fuseflow.estimate.memory_bound import peak_bandwidth
from fuseflow.estimate.memory_load import MemoryLoad
from fuseflow.estimate.statistics import assume_statistics, view_statistics
from fuseflow.resources import Resources, graph_resources
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.sim import Machine
from fuseflow.sim.configuration import ConfigurationLoad, require_room
from fuseflow.sim.memory.layout import used_tensors
from fuseflow.sim.signature import RegionRepeat, signature
from fuseflow.summary_table import SummaryTable
from fuseflow.tensors import Format, Tensor, repack
from fuseflow.tensors.blocks import to_blocks

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class StoredView:
    """The tensor `source` in other dimensions, under another name. It is the same memory."""

    name: str
    source: str
    format: Format
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EstimatorRegion:
    """A region as the estimator reads it: its graph, the views that it reads, and the views of what it writes that others may read."""

    name: str
    einsums: tuple[str, ...]
    graph: Graph
    views_before: tuple[StoredView, ...] = ()
    views_after: tuple[StoredView, ...] = ()


@dataclass(frozen=True, slots=True)
class RegionEstimate:
    """The estimate of one region, and the regions that do the same. All numbers are those of one of them."""

    name: str
    einsums: tuple[str, ...]
    work: Work
    bound: Bound
    config: ConfigurationLoad
    counts: GraphCounts
    machine: Machine
    load: MemoryLoad
    repeats: tuple[RegionRepeat, ...] = ()

    @property
    def resources(self) -> Resources:
        """What the graph of the region occupies on the machine."""
        return graph_resources(self.counts.graph, self.machine, held_entries(self.counts))

    @property
    def energy_counts(self) -> EnergyCounts:
        """What happens in the region that takes energy. Raises `EnergyError` for a machine with `rules: comal`."""
        area, cycles = self.resources.area, self.bound.cycles
        return estimated_counts(self.counts, self.work, self.load, self.machine, area, cycles)

    @property
    def times(self) -> int:
        """How many regions of the program do the same."""
        return 1 + len(self.repeats)

    @property
    def flops(self) -> float:
        return sum(self.work.operators.values())

    @property
    def firings(self) -> float:
        return sum(node.firings for node in self.work.nodes)

    def bytes(self, direction: str) -> float:
        """Return the bytes read or written, by `direction`."""
        return sum(row.bytes for row in self.work.traffic if row.direction == direction)


@dataclass(frozen=True, slots=True)
class ProgramEstimate:
    """The estimate of a program. Its regions run one after the other."""

    model: str
    data: str | None
    machine: Machine
    regions: tuple[RegionEstimate, ...]
    notices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<ProgramEstimate {self.model}: about {self.cycles:,.0f} cycles, {len(self.regions)} regions, on {self.machine.name}>"

    def _repr_html_(self) -> str:
        columns = ("region", "cycles", "bound by", "firings", "FLOPs", "bytes read", "bytes written")
        rows = tuple(
            (r.name, r.bound.cycles, r.bound.limit, r.firings, r.flops, r.bytes("read"), r.bytes("write")) for r in self.regions
        )
        moved = self.stats["bytes"]
        total = ("total", self.cycles, "", self.firings, self.flops, moved["read"], moved["write"])
        return SummaryTable(f"{self.model} on {self.machine.name}, estimated", columns, rows, total).to_html()

    @property
    def cycles(self) -> float:
        """The cycles of all regions together."""
        return sum(region.times * region.bound.cycles for region in self.regions)

    @property
    def flops(self) -> float:
        return sum(region.times * region.flops for region in self.regions)

    @property
    def firings(self) -> float:
        return sum(region.times * region.firings for region in self.regions)

    @property
    def config(self) -> ConfigurationLoad:
        """What the memory loads into the configurations of all regions together."""
        return ConfigurationLoad.total((region.times, region.config) for region in self.regions)

    @property
    def exact(self) -> bool:
        """Whether FLOPs, bytes and firings were counted. Cycles are always an estimate."""
        return all(region.work.exact for region in self.regions)

    @property
    def operators(self) -> dict[str, float]:
        """The FLOPs of each operator."""
        totals: Counter[str] = Counter()
        for region in self.regions:
            for function, number in region.work.operators.items():
                totals[function] += region.times * number  # type: ignore[assignment]
        return dict(sorted(totals.items()))

    @property
    def stats(self) -> dict[str, Any]:
        """FLOPs, and bytes by tensor, kind of array and direction, in the form of `Result.stats`."""
        by_tensor: dict[str, dict[str, dict[str, float]]] = {}
        total: dict[str, float] = {"read": 0, "write": 0}
        for region in self.regions:
            for row in region.work.traffic:
                for name in (row.tensor, *(repeat.tensors[row.tensor] for repeat in region.repeats)):
                    kind = by_tensor.setdefault(name, {}).setdefault(row.kind, {"read": 0, "write": 0})
                    kind[row.direction] += row.bytes
                    total[row.direction] += row.bytes
        return {"flops": self.flops, "bytes": {**total, "by_tensor": dict(sorted(by_tensor.items()))}}

    def energy(self, energies: EventEnergies | None = None) -> ProgramEnergy:
        """Return the energy of the program, by the energies of the package if none are given. Raises `EnergyError` for a machine with
        `rules: comal`."""
        rows = ((region.name, region.times, region.bound.cycles, region.energy_counts) for region in self.regions)
        return ProgramEnergy.of(rows, energies or load_event_energies())

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as plain values. All counts are rounded."""
        return {
            "schema": SCHEMA,
            "model": self.model,
            "data": self.data,
            "machine": self.machine.name,
            "machine_settings": self.machine.settings,
            "exact": self.exact,
            "cycles": _plain(self.cycles),
            "firings": _plain(self.firings),
            "flops": _plain(self.flops),
            "operators": {name: _plain(number) for name, number in self.operators.items()},
            "bytes": _plain_values(self.stats["bytes"]),
            "config": asdict(self.config),
            "regions": [_region_json(region) for region in self.regions],
            "notices": list(self.notices),
        }


def _region_json(region: RegionEstimate) -> dict[str, Any]:
    limits = region.bound
    return {
        "name": region.name,
        "einsums": list(region.einsums),
        "times": region.times,
        "repeats": [repeat.name for repeat in region.repeats],
        "exact": region.work.exact,
        "flops": {name: _plain(number) for name, number in region.work.operators.items()},
        "firings": _plain(region.firings),
        "config": asdict(region.config),
        "resources": region.resources.to_json(),
        "bound": {
            "cycles": _plain(limits.cycles),
            "compute": _plain(limits.compute),
            "imbalance": _plain(limits.imbalance),
            "control": _plain(limits.control),
            "fifos": _plain(limits.fifos),
            "fifo": list(limits.fifo) if limits.fifo else None,
            "memory": _plain(limits.memory),
            "answers": _plain(limits.answers),
            "crowded": _plain(limits.crowded),
            "behind": _plain(limits.behind),
            "limit": limits.limit,
            "node": limits.node,
        },
        "traffic": [
            {"tensor": t.tensor, "kind": t.kind, "direction": t.direction, "bytes": _plain(t.bytes), "exact": t.exact}
            for t in region.work.traffic
        ],
        "nodes": [
            {"name": w.name, "op": w.op, "firings": _plain(w.firings), "occupied": _plain(w.occupied), "exact": w.exact}
            for w in region.work.nodes
        ],
    }


def _plain(number: float) -> int:
    return round(number)


def _plain_values(values: Any) -> Any:
    return {key: _plain_values(value) for key, value in values.items()} if isinstance(values, Mapping) else _plain(values)


@dataclass(slots=True)
class TensorKnowledge:
    """What the estimate knows of the tensors in memory: their patterns, statistics and formats, the overlap of inputs, and what keeps
    by value leave of results."""

    patterns: dict[str, Pattern]
    statistics: dict[str, TensorStatistics]
    formats: dict[str, Format]
    overlap: AssumedOverlap
    kept: KeptShares

    def copy(self) -> TensorKnowledge:
        """Return a copy to which regions can be added."""
        return TensorKnowledge(dict(self.patterns), dict(self.statistics), dict(self.formats), self.overlap, self.kept)

    def of(self, names: Iterable[str]) -> Hashable:
        """Return a key that is equal where the same is known of these tensors."""
        return tuple(self.statistics.get(n) if n not in self.patterns else self.patterns[n].fingerprint for n in names)

    def write(self, graph: Graph, work: Work, names: Mapping[str, str]) -> None:
        """Add what a graph writes; `names` maps the tensors of `work` to those of the graph."""
        self.patterns |= {names[name]: pattern for name, pattern in work.patterns.items()}
        self.statistics |= {names[name]: statistics for name, statistics in work.statistics.items()}
        self.formats |= {t.name: t.format for t in graph.tensors}


@dataclass(slots=True)
class Estimator:
    """An estimator of programs on the same tensors. It keeps what it counted for the next schedule.

    With `statistics_only`, it uses no coordinates of tensors. It uses only their statistics, and two numbers for each pair of tensors of
    which one is looked up by the coordinates of the other. `assumptions` are statistics that a user stated. With `assume_unknown`, the
    default statistics of the compiler are assumed for a sparse input of which nothing is known.
    """

    statistics_only: bool = False
    assumptions: Assumptions = field(default_factory=Assumptions)
    memo: CountMemo = field(default_factory=CountMemo)
    assume_unknown: bool = False

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
        """Estimate a program, region by region. Raises `UsageError` for a sparse input of which nothing is known, and `MachineError` for
        more resident tensors than the machine has room for."""
        knowledge = self.knowledge(program, tensors)
        estimates: list[RegionEstimate] = []
        first: dict[Hashable, tuple[int, tuple[str, ...]]] = {}  # the first region that does the same, and its tensors
        for region in counted(tuple(regions), "estimating regions"):
            self.add_views(region.views_before, knowledge)
            names, _ = self._shape(region.graph)
            key = self.key(region.graph, knowledge)
            if key not in first:
                first[key] = len(estimates), names
                estimates.append(self._region(region, machine, knowledge))
            at, first_names = first[key]
            names_here = dict(zip(first_names, names, strict=True))
            if estimates[at].name != region.name:
                repeat = RegionRepeat(region.name, region.einsums, names_here)
                estimates[at] = replace(estimates[at], repeats=(*estimates[at].repeats, repeat))
            knowledge.write(region.graph, estimates[at].work, names_here)
            self.add_views(region.views_after, knowledge)
        return ProgramEstimate(model, data, machine, tuple(estimates), (*notices, *knowledge.kept.notices))

    def knowledge(self, program: Program, tensors: Mapping[str, Tensor]) -> TensorKnowledge:
        """Return what is known before the first region. Raises `UsageError` for a sparse input of which nothing is known."""
        patterns, statistics = self._inputs(program, tensors)
        formats = {t.name: t.format or Format.dense(len(t.shape)) for t in program.inputs}
        overlap = self.memo.once(
            ("overlap", tuple(patterns)),
            patterns.values(),
            lambda: self.assumptions.overlap(MeasuredOverlap(patterns, self.memo)),
        )
        kept = KeptShares.of(program, {} if self.statistics_only else tensors, self.assumptions.kept)
        return TensorKnowledge({} if self.statistics_only else dict(patterns), statistics, formats, overlap, kept)

    def region(self, region: EstimatorRegion, machine: Machine, knowledge: TensorKnowledge) -> RegionEstimate:
        """Estimate one region, and add what it writes to `knowledge`."""
        self.add_views(region.views_before, knowledge)
        estimate = self._region(region, machine, knowledge)
        knowledge.write(region.graph, estimate.work, {name: name for name in region.graph.declared})
        self.add_views(region.views_after, knowledge)
        return estimate

    def depths(self, region: EstimatorRegion, machine: Machine, knowledge: TensorKnowledge) -> Mapping[Edge, int]:
        """Return the depths of the FIFOs of a region that need more slots than the graph and the machine give them, and add what it writes
        to `knowledge`."""
        self.add_views(region.views_before, knowledge)
        depths = self.bounds(region.graph, knowledge).depths(machine)
        self.region(region, machine, knowledge)
        return depths

    def _inputs(self, program: Program, tensors: Mapping[str, Tensor]) -> tuple[dict[str, Pattern], dict[str, TensorStatistics]]:
        """Return the patterns of the inputs where they are known, and the statistics of all inputs."""
        self.assumptions.check(program)
        patterns: dict[str, Pattern] = {}
        statistics: dict[str, TensorStatistics] = {}
        for declared in program.inputs:
            name, format = declared.name, declared.format or Format.dense(len(declared.shape))
            stated = self.assumptions.statistics(declared)
            if stated is not None:
                statistics[name] = stated
            elif format.all_dense:
                sizes = tuple(declared.stored_shape[d] for d in format.order)
                patterns[name] = self.memo.once(("dense", sizes), (), partial(dense_pattern, sizes))
                statistics[name] = TensorStatistics(sizes, tuple(map(float, sizes)))
            elif name in tensors:
                tensor = self._stored(tensors[name], declared, format)
                patterns[name] = self.memo.once("pattern", (tensor,), partial(tensor_pattern, tensor))
                statistics[name] = self.memo.once("statistics", (tensor,), partial(measure_statistics, tensor))
            elif self.assume_unknown:
                statistics[name] = assume_statistics(declared)
            else:
                raise UsageError(
                    f"nothing is known of what `{name}` stores",
                    hint=f"`--tensors FILE.yaml`, or statistics: `--stats {name}.density=0.01`",
                )
        return patterns, statistics

    def add_views(self, views: Iterable[StoredView], knowledge: TensorKnowledge) -> None:
        """Add views of tensors that are known to `knowledge`."""
        patterns, statistics, formats = knowledge.patterns, knowledge.statistics, knowledge.formats
        for view in views:
            if view.source in patterns:
                patterns[view.name] = self._view_pattern(patterns[view.source], formats[view.source], view)
            statistics[view.name] = view_statistics(statistics[view.source], formats[view.source], view.format, view.shape)
            formats[view.name] = view.format

    def _view_pattern(self, pattern: Pattern, before: Format, view: StoredView) -> Pattern:
        key = ("seen", str(before), str(view.format), view.shape)
        return self.memo.once(key, (pattern,), lambda: view_pattern(pattern, before, view.format, view.shape))

    def _region(self, region: EstimatorRegion, machine: Machine, knowledge: TensorKnowledge) -> RegionEstimate:
        graph_bounds = self.bounds(region.graph, knowledge)
        bounds = graph_bounds.on(machine)
        require_room(region.graph, bounds.work.config_bytes, machine)
        config = ConfigurationLoad.at(peak_bandwidth(machine), bounds.work.config_bytes)
        counts = graph_bounds.counts
        return RegionEstimate(region.name, region.einsums, bounds.work, bounds.bound, config, counts, machine, bounds.load)

    def key(self, graph: Graph, knowledge: TensorKnowledge) -> Hashable:
        """Return a key that is equal for graphs that differ in names alone, on tensors of which the same is known: they have one
        estimate."""
        names, shape = self._shape(graph)
        return shape, knowledge.of(names), tuple(knowledge.kept.by_node(graph).values())

    def bounds(self, graph: Graph, knowledge: TensorKnowledge) -> GraphBounds:
        """Return the bounds of a graph. They are counted once for graphs that are equal and read tensors with the same patterns."""
        names, shape = self._shape(graph)
        kept = knowledge.kept.by_node(graph)
        nodes = self.memo.once("names", (graph,), lambda: tuple(node.name for node in graph.nodes))
        return self.memo.once(
            ("bounds", shape, names, nodes, knowledge.of(names), tuple(kept.items())),
            (knowledge.overlap,),
            lambda: self._bounds(graph, knowledge, kept),
        )

    def _bounds(self, graph: Graph, knowledge: TensorKnowledge, kept: Mapping[str, float]) -> GraphBounds:
        """Count a graph, unless it was counted with other depths of FIFOs: no count depends on these."""
        if graph.depths:
            return self.bounds(replace(graph, depths=()), knowledge).with_depths_of(graph)
        counts = count_graph(graph, knowledge.statistics, knowledge.patterns, self.memo, knowledge.overlap, kept)
        return GraphBounds(counts, self.memo)

    def _stored(self, tensor: Tensor, declared: TensorType, format: Format) -> Tensor:
        """Return the tensor in its format and blocks, as it is in memory."""

        def convert() -> Tensor:
            return to_blocks(tensor if tensor.format == format else repack(tensor, format), declared.block)

        return self.memo.once(("stored", str(format), declared.block), (tensor,), convert)

    def _shape(self, graph: Graph) -> tuple[tuple[str, ...], Hashable]:
        """Return the tensors of a graph in the order of its nodes, and a key that graphs share if they differ in names alone."""
        return self.memo.once("shape", (graph,), lambda: (used_tensors(graph), signature(graph, {}) or graph))
