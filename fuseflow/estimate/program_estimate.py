"""The estimate of a program: the work, the bounds and the energy of each region, and their sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fuseflow.array.capacity import TileUse, loading_cycles, placed_tiles, tile_use
from fuseflow.array.settings import ArraySettings
from fuseflow.energy import EventEnergies, ProgramEnergy, dram_name, load_event_energies
from fuseflow.energy.counts import DramEvents, EnergyCounts, NodeEvents, energy_counts, with_preloads
from fuseflow.energy.energy import PARTS
from fuseflow.estimate.graph_counts import GraphCounts, Work, held_entries
from fuseflow.estimate.graph_cycles import Bound
from fuseflow.estimate.memory_load import MemoryLoad, ScratchpadLoad
from fuseflow.estimate.memory_pace import memory_pace
from fuseflow.estimate.node_work import node_values
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import IdealMemory
from fuseflow.notebook_table import SummaryTable
from fuseflow.resources import Resources, graph_resources
from fuseflow.samml.nodes import Edge, Workspace
from fuseflow.sim.configuration_load import ConfigurationLoad
from fuseflow.sim.signature import RegionRepeat

if TYPE_CHECKING:
    import pandas

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class RegionEstimate:
    """The estimate of one region, and the `repeats`: regions with the same graph on other tensors. All numbers are for one of
    them. `runs` is the number of tiles in which it runs, one of which `counts`, `load` and `chip` are for."""

    name: str
    einsums: tuple[str, ...]
    work: Work
    bound: Bound
    config: ConfigurationLoad
    counts: GraphCounts
    machine: Machine
    load: MemoryLoad
    repeats: tuple[RegionRepeat, ...] = ()
    chip: ScratchpadLoad = field(default_factory=ScratchpadLoad)
    runs: float = 1.0
    array: ArraySettings | None = None

    @property
    def resources(self) -> Resources:
        """The resources that the graph of the region takes on the machine, and the tiles of the array that the estimator has."""
        used = graph_resources(self.counts.graph, self.machine, held_entries(self.counts))
        return used if self.array is None else replace(used, tiles=placed_tiles(self.counts.graph, self.array, self.machine))

    @property
    def shortage(self) -> str:
        """What the array of the estimator lacks for the region, as the beginning of a sentence; empty if the region fits."""
        use = None if self.array is None else tile_use(self.counts.graph, self.array, self.machine)
        return "" if use is None or use.fits else use.shortage(self.name)

    @property
    def loading(self) -> int:
        """The cycles that it takes to load the region on the array of the estimator, without hops; 0 without an array."""
        return 0 if self.array is None else loading_cycles(self.resources, self.array)

    def tiles_on(self, array: ArraySettings) -> TileUse:
        """Return the tiles that the graph of the region takes on an array. Raises `ArrayError` for a primitive without a row in the
        footprint."""
        return tile_use(self.counts.graph, array, self.machine, held_entries(self.counts))

    @property
    def energy_counts(self) -> EnergyCounts:
        """The events in the region that take energy: counted where the streams of its graph are counted, else expected. Leakage follows
        from the cycles, and the rows that a DRAM opens are expected, so neither is counted, nor are hits of reuse buffers. Raises
        `EnergyError` for a machine with `rules: comal`."""
        counts, work, graph, runs = self.counts, self.work, self.counts.graph, self.runs
        numbers = tuple(zip(graph.nodes, counts.nodes, strict=True))
        events = NodeEvents(
            {node.name: node.firings for node in work.nodes},
            {node.name: runs * node_values(node, own.inputs) for node, own in numbers if node.operator},
            {Edge(node.name, k): runs * flow.tokens for node, own in numbers for k, flow in enumerate(own.inputs)},
        )
        is_ideal = isinstance(self.machine.memory, IdealMemory)
        expected = {"leakage"} if is_ideal else {"leakage", "dram"}
        held = held_entries(counts)
        uncounted = any(isinstance(node, Workspace) and node.name not in held for node in graph.nodes)  # it may be SRAM or not
        if uncounted or (not is_ideal and any(tensor.buffer for tensor in graph.tensors)):
            expected.add("workspaces")
        dram = self._dram if is_ideal else with_preloads(self._dram, graph, work.traffic)
        area, parts = self.resources.area, frozenset(expected if work.exact else PARTS)
        return energy_counts(graph, self.machine, events, dram, area, self.bound.cycles, held, expected=parts)

    @property
    def _dram(self) -> DramEvents:
        """The expected events of the DRAM. Lines in order open a row once for all its bytes, and each jump opens one."""
        memory, pace, work, load = self.machine.memory, memory_pace(self.machine), self.work, self.load
        if isinstance(memory, IdealMemory):
            return DramEvents(0, 8 * (sum(row.bytes for row in work.traffic) + work.config_bytes))
        chip, runs = self.chip, self.runs
        moved = (load.lines_read + load.written) * pace.line + chip.loaded + chip.stored
        rows = runs * (moved / pace.row_bytes + load.jumps) if pace.row_bytes else 0
        line, buffered = 8 * memory.line, [read for read in load.reads if read.asked > read.most]
        fetches, hits = sum(read.lines for read in buffered), sum((read.asked - read.most) * read.ports for read in buffered)
        word = 0 if self.machine.scratchpad is None else 8 * self.machine.scratchpad.bytes_a_cycle
        put, got = line * fetches + word * chip.written + 8 * chip.loaded, line * hits + word * chip.read + 8 * chip.stored
        return DramEvents(rows, 8 * (runs * moved + work.config_bytes), runs * put, runs * got)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the region and of its repeats."""
        return self.name, *(repeat.name for repeat in self.repeats)

    @property
    def times(self) -> int:
        """How often the program has the region: once, and its repeats."""
        return 1 + len(self.repeats)

    @property
    def flops(self) -> float:
        return sum(self.work.operators.values())

    @property
    def firings(self) -> float:
        return sum(node.firings for node in self.work.nodes)

    def bytes(self, direction: str) -> float:
        """Return the bytes that are moved in a `direction`: `read` or `write`."""
        return sum(row.bytes for row in self.work.traffic if row.direction == direction)


@dataclass(frozen=True, slots=True)
class ProgramEstimate:
    """The estimate of a program. Its regions run one after the other."""

    model: str
    data: str | None
    machine: Machine
    regions: tuple[RegionEstimate, ...]
    notices: tuple[str, ...] = ()
    live_bytes: float = 0.0
    """The most bytes of intermediates that are alive at the same time (`fuseflow.costs.live_bytes`)."""

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
        """The load of the configurations of all regions together."""
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
        """Return the energy of the program, with the event energies of the package if none are passed. Raises `EnergyError` for a
        machine with `rules: comal`."""
        rows = ((region.name, region.times, region.bound.cycles, region.energy_counts) for region in self.regions)
        return ProgramEnergy.of(rows, energies or load_event_energies(), dram_name(self.machine))

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as plain values. All counts are rounded."""
        return {
            "schema": SCHEMA,
            "model": self.model,
            "data": self.data,
            "machine": self.machine.name,
            "machine_settings": self.machine.settings,
            "exact": self.exact,
            "cycles": round(self.cycles),
            "firings": round(self.firings),
            "flops": round(self.flops),
            "operators": {name: round(number) for name, number in self.operators.items()},
            "bytes": _rounded(self.stats["bytes"]),
            "live_bytes": round(self.live_bytes),
            "config": asdict(self.config),
            "regions": [_region_json(region) for region in self.regions],
            "notices": list(self.notices),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain values, as `fuseflow estimate --json` writes them."""
        return self.to_json()

    def to_pandas(self) -> pandas.DataFrame:
        """Return a row for each region as a `DataFrame` of pandas: what one run of it is expected to take. Needs pandas."""
        from fuseflow.data_frames import data_frame  # few results are asked for one

        return data_frame(map(_region_row, self.regions))


def _region_row(region: RegionEstimate) -> dict[str, Any]:
    return {
        "region": region.name, "times": region.times, "cycles": round(region.bound.cycles), "bound_by": region.bound.limit,
        "firings": round(region.firings), "flops": round(region.flops),
        "bytes_read": round(region.bytes("read")), "bytes_written": round(region.bytes("write")),
    }  # fmt: skip


def _region_json(region: RegionEstimate) -> dict[str, Any]:
    limits = region.bound
    return {
        "name": region.name,
        "einsums": list(region.einsums),
        "times": region.times,
        "repeats": [repeat.name for repeat in region.repeats],
        "exact": region.work.exact,
        "flops": {name: round(number) for name, number in region.work.operators.items()},
        "firings": round(region.firings),
        "config": asdict(region.config),
        "resources": region.resources.to_json(),
        "bound": {
            **{name: round(getattr(limits, name)) for name in ("cycles", "compute", "imbalance", "control", "fifos")},
            "fifo": list(limits.fifo) if limits.fifo else None,
            **{name: round(getattr(limits, name)) for name in ("memory", "answers", "crowded", "behind")},
            "limit": limits.limit,
            "node": limits.node,
        },
        "traffic": [
            {"tensor": t.tensor, "kind": t.kind, "direction": t.direction, "bytes": round(t.bytes), "exact": t.exact}
            for t in region.work.traffic
        ],
        "nodes": [
            {"name": w.name, "op": w.op, "firings": round(w.firings), "occupied": round(w.occupied), "exact": w.exact}
            for w in region.work.nodes
        ],
    }


def _rounded(values: Any) -> Any:
    return {key: _rounded(value) for key, value in values.items()} if isinstance(values, Mapping) else round(values)
