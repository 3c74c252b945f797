"""The result of a run: outputs, cycles, statistics and the check, as Python values, as JSON and as files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from fuseflow.errors import UsageError, did_you_mean
from fuseflow.memory.layout import array_label
from fuseflow.memory.statistics import MemoryPort, MemoryStatistics, PortStatistics
from fuseflow.notebook_table import ROOFLINE, SummaryTable
from fuseflow.run.directory_names import OUTPUTS
from fuseflow.run.settings import Settings, versions
from fuseflow.sim.configuration_load import ConfigurationLoad
from fuseflow.tensors.array_files import save_array
from fuseflow.tensors.pack import is_scipy

if TYPE_CHECKING:
    import pandas
    from scipy import sparse

    from fuseflow.energy import EventEnergies, ProgramEnergy
    from fuseflow.lower.lanes import LaneAssignment
    from fuseflow.resources import Resources
    from fuseflow.run.check import Check, Difference
    from fuseflow.samml.nodes import Graph
    from fuseflow.sim import NodeStatistics, Simulation
    from fuseflow.sim.signature import RegionRepeat
    from fuseflow.tensors import Tensor

ResultTable: TypeAlias = Literal["regions", "nodes", "fifos", "traffic"]
"""What has a row in a table of a run."""
SCHEMA = 2
"""The schema of `result.json`. Schema 1 had no `times` of repeated regions, and no separate settings of the memory of a
machine."""


CHANNEL_TOTALS = ("hits", "misses", "conflicts", "forwarded", "absorbed", "turnarounds", "refresh_cycles")
"""The statistics of channels that are added up over all channels."""


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """The load of one lane: how many nodes it has, how often they fired in all, and the cycles that the busiest of them takes at least."""

    lane: int
    nodes: int
    firings: int
    busy: int


def lane_loads(places: LaneAssignment, nodes: Iterable[NodeStatistics]) -> dict[str, tuple[LaneLoad, ...]]:
    """Return the load of every lane, by index. `places` has the lanes of each node. If lanes are inside the lanes of another
    index, those with the same number are added up."""
    loads: dict[tuple[str, int], LaneLoad] = {}
    for node in nodes:
        for index, lane in places.get(node.name, ()):
            before = loads.get((index, lane), LaneLoad(lane, 0, 0, 0))
            loads[index, lane] = LaneLoad(lane, before.nodes + 1, before.firings + node.firings, max(before.busy, node.occupied))
    indices = dict.fromkeys(index for index, _ in loads)
    return {index: tuple(loads[key] for key in sorted(loads) if key[0] == index) for index in indices}


@dataclass(frozen=True, slots=True)
class RegionResult:
    """The run of one region, and the regions that run like it. `cycles` are the cycles of one of them, `resources` those that its
    `graph` occupied, and `places` the lanes of its nodes."""

    name: str
    einsums: tuple[str, ...]
    simulation: Simulation
    resources: Resources
    graph: Graph
    repeats: tuple[RegionRepeat, ...] = ()
    places: LaneAssignment = field(default_factory=dict)

    @property
    def lanes(self) -> dict[str, tuple[LaneLoad, ...]]:
        """The load of each lane, by index."""
        return lane_loads(self.places, self.simulation.nodes)

    @property
    def cycles(self) -> int:
        return self.simulation.cycles

    @property
    def config(self) -> ConfigurationLoad:
        """The load of the configuration from memory before the region runs, once."""
        return self.simulation.config

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the region, and the names of the regions that run like it."""
        return self.name, *(repeat.name for repeat in self.repeats)

    @property
    def times(self) -> int:
        """How often the program has the region: once, and its repeats."""
        return 1 + len(self.repeats)


@dataclass(frozen=True, slots=True)
class RegionLoading:
    """The cycles that loading a region on an array takes. An `early` one begins with the region before, as where both lie on the array
    together."""

    cycles: int
    early: bool = False


def loading_after(loads: Mapping[str, RegionLoading], cycles: Mapping[str, float]) -> dict[str, int]:
    """Return the cycles of loading after the end of the region before, by region, in the order in which they run, given the cycles of
    each."""
    before = (0, *(int(cycles[name]) for name in loads))
    return {
        name: max(0, load.cycles - ran) if load.early else load.cycles
        for (name, load), ran in zip(loads.items(), before, strict=False)
    }


@dataclass(frozen=True, slots=True)
class Seconds:
    """The wall time of the stages, in seconds."""

    frontend: float
    compile: float
    simulate: float

    def to_json(self) -> dict[str, float]:
        """Return the times, rounded to milliseconds."""
        return {stage: round(seconds, 3) for stage, seconds in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Result:
    """The run of a compiled program. Its regions run one after the other, and their cycles add up.

    >>> import fuseflow as ff
    >>> text = "tensor A[2, 2] csr\\ntensor x[2]\\ny[i] = sum(k) A[i, k] * x[k]\\noutput y"
    >>> result = ff.compile(text, ([[1, 0], [2, 3]], [4, 5])).run()
    >>> result.outputs["y"].tolist(), result.check.passed, result.flops
    ([4.0, 23.0], True, 6)
    >>> result.to_dict()["bytes"]["write"]
    8
    """

    settings: Settings
    tensors: Mapping[str, Tensor]
    """Every model output, packed in single elements as it is stored, zeros too. `run(tensors={...})` takes them as inputs."""
    regions: tuple[RegionResult, ...]
    check: Check | None
    seconds: Seconds
    live_bytes: int = 0
    """The most bytes of intermediates that are alive at the same time (`fuseflow.costs.live_bytes`)."""
    loading: Mapping[str, int] = field(default_factory=dict)
    """The cycles that loading takes after the end of the region before, of each region by name, if they lie on an array. They are in no
    other number."""

    def __repr__(self) -> str:
        return f"<Result {self.settings.model}: {self.cycles:,} cycles, {len(self.regions)} regions, {self._verdict}>"

    def _repr_html_(self) -> str:
        columns = ("region", "runs", "cycles", ROOFLINE, "nodes", "firings", "FLOPs", "bytes")
        runs = [(r, r.simulation) for r in self.regions]
        rows = tuple(
            (r.name, r.times, r.cycles, s.bound, s.node_count, s.firings, s.flops, sum(t.bytes for t in s.traffic))
            for r, s in runs
        )
        title = f"{self.settings.model} on {self.settings.machine.name}: {self.cycles:,} cycles, {self._verdict}"
        return SummaryTable(title, columns, rows).to_html()

    @property
    def _verdict(self) -> str:
        if self.check is None:
            return "not checked"
        return f"check {self.check.verdict} ({self.check.lost})" if self.check.lost else f"check {self.check.verdict}"

    @property
    def outputs(self) -> dict[str, npt.NDArray[np.generic] | sparse.coo_array]:
        """Every model output, as a dense array, or as a scipy array if it is sparse."""
        return output_arrays(self.tensors)

    @property
    def cycles(self) -> int:
        """The cycles of all regions together."""
        return sum(r.times * r.cycles for r in self.regions)

    @property
    def loading_cycles(self) -> int:
        """The cycles that loading all regions on an array takes, 0 without an array."""
        return sum(self.loading.values())

    @property
    def config(self) -> ConfigurationLoad:
        """The loads of the configurations of all regions from memory, together."""
        return ConfigurationLoad.total((r.times, r.config) for r in self.regions)

    @property
    def flops(self) -> int:
        """The FLOPs of all regions together."""
        return sum(r.times * r.simulation.flops for r in self.regions)

    def energy(self, energies: EventEnergies | None = None) -> ProgramEnergy:
        """Return the energy of the run, with the event energies of the package if none are passed. It is added up from counts
        that the run made anyway. Raises `EnergyError` for a machine with `rules: comal`."""
        from fuseflow.energy import ProgramEnergy, dram_name, load_event_energies  # other results do without
        from fuseflow.run.simulated_events import simulated_counts

        machine = self.settings.machine
        rows = ((r.name, r.times, r.cycles, simulated_counts(r.graph, machine, r.simulation, r.resources)) for r in self.regions)
        return ProgramEnergy.of(rows, energies or load_event_energies(), dram_name(machine))

    @property
    def stats(self) -> dict[str, Any]:
        """The FLOPs, and the bytes by tensor, kind of array and direction, as plain values."""
        by_tensor: dict[str, dict[str, dict[str, int]]] = {}
        total = {"read": 0, "write": 0}
        for region in self.regions:
            for t in region.simulation.traffic:
                for name in (t.tensor, *(repeat.tensors[t.tensor] for repeat in region.repeats)):
                    kind = by_tensor.setdefault(name, {}).setdefault(t.kind, {"read": 0, "write": 0})
                    kind[t.direction] += t.bytes
                    total[t.direction] += t.bytes
        return {"flops": self.flops, "bytes": {**total, "by_tensor": dict(sorted(by_tensor.items()))}}

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain values, as `fuseflow run --json` writes them (schema 2)."""
        s, stats = self.settings, self.stats
        return {
            "schema": SCHEMA,
            **s.to_json(),
            "cycles": self.cycles,
            **({"loading": {"cycles": self.loading_cycles, "regions": dict(self.loading)}} if self.loading else {}),
            "regions": [region_json(r) for r in self.regions],
            "flops": stats["flops"],
            "bytes": stats["bytes"],
            "live_bytes": self.live_bytes,
            "config": asdict(self.config),
            "check": check_json(self.check),
            "notices": list(s.notices),
            **s.left_out_json,
            "versions": versions(),
            "seconds": self.seconds.to_json(),
        }

    def to_pandas(self, of: ResultTable = "regions") -> pandas.DataFrame:
        """Return a table of the run as a `DataFrame` of pandas.

        `of` is what has a row: `regions` (cycles, firings, FLOPs, bytes read and written), `nodes` (firings, and the cycles in which a node
        was starved, blocked, or waited for the memory), `fifos` (tokens, and the most slots in use), or `traffic` (words and bytes of each
        array of a tensor, by direction). A region that runs `times` times has the numbers of one run.

        Raises `UsageError` for another `of`, and without pandas, with the command that installs it.

        >>> import fuseflow as ff
        >>> text = "tensor A[2, 2] csr\\ntensor x[2]\\ny[i] = sum(k) A[i, k] * x[k]\\noutput y"
        >>> result = ff.compile(text, ([[1, 0], [2, 3]], [4, 5])).run()
        >>> result.to_pandas("traffic").groupby("tensor").bytes.sum().to_dict()
        {'A': 40, 'x': 12, 'y': 8}
        """
        if of not in get_args(ResultTable):
            raise UsageError(f"a run has no table of `{of}`", hint=did_you_mean(of, get_args(ResultTable)))
        from fuseflow.data_frames import data_frame  # few results are asked for one

        return data_frame(self._region_rows() if of == "regions" else self._part_rows("edges" if of == "fifos" else of))

    def _region_rows(self) -> Iterator[dict[str, Any]]:
        for region in self.regions:
            run = region.simulation
            yield {
                "region": region.name, "times": region.times, "cycles": run.cycles, "roofline": run.bound, "nodes": run.node_count,
                "firings": run.firings, "tokens": run.tokens, "flops": run.flops,
                "bytes_read": run.bytes("read"), "bytes_written": run.bytes("write"),
            }  # fmt: skip

    def _part_rows(self, parts: str) -> Iterator[dict[str, Any]]:
        for region in self.regions:
            for part in getattr(region.simulation, parts):
                yield {"region": region.name, **{"node" if key == "name" else key: value for key, value in asdict(part).items()}}

    def save_outputs(self, directory: str | Path) -> list[Path]:
        """Write each output to `outputs/NAME.npy`, or to `.npz` if it is sparse, and return the files."""
        return save_tensors(Path(directory) / OUTPUTS, self.tensors)


def save_tensors(directory: Path, tensors: Mapping[str, Tensor]) -> list[Path]:
    """Write each tensor to `NAME.npy` in a directory, or to `.npz` if it is sparse, and return the files."""
    written = []
    for name, array in output_arrays(tensors).items():
        path = directory / f"{name}.{'npz' if is_scipy(array) else 'npy'}"
        save_array(path, array)
        written.append(path)
    return written


def output_arrays(tensors: Mapping[str, Tensor]) -> dict[str, npt.NDArray[np.generic] | sparse.coo_array]:
    """Return tensors as dense arrays, or as scipy arrays where they are sparse."""
    are_sparse = {name for name, tensor in tensors.items() if not tensor.format.all_dense and tensor.fill == 0}
    return {name: tensor.to_scipy() if name in are_sparse else tensor.to_dense() for name, tensor in tensors.items()}


def region_json(region: RegionResult) -> dict[str, Any]:
    """Return the run of a region as plain values."""
    run = region.simulation
    return {
        "name": region.name,
        "einsums": list(region.einsums),
        "times": region.times,
        "repeats": [repeat.name for repeat in region.repeats],
        "engine": run.engine,
        "cycles": run.cycles,
        "config": asdict(region.config),
        "resources": region.resources.to_json(),
        "nodes": run.node_count,
        "firings": run.firings,
        "tokens": run.tokens,
        "roofline": {"compute": run.busiest, "memory": None if run.memory is None else run.memory.bound, "bound": run.bound},
        "depths": {f"{edge.node}.{edge.input}": depth for edge, depth in run.depths.items()},
        "statistics": {
            "nodes": [{key: n for key, n in asdict(node).items() if key != "workspace" or n is not None} for node in run.nodes],
            "edges": [asdict(edge) for edge in run.edges],
            "lanes": {index: [asdict(load) for load in lanes] for index, lanes in region.lanes.items()},
            "flops": dict(run.operators),
            "traffic": [asdict(row) for row in run.traffic],
            "memory": None if run.memory is None else _memory_values(run.memory, run.cycles),
        },
    }


def _memory_values(memory: MemoryStatistics, cycles: int) -> dict[str, Any]:
    """Return the statistics of the memory in a run that took `cycles`, as plain values."""
    return {
        "model": memory.model,
        "peak_bytes_per_cycle": float(memory.peak),
        "bytes_per_cycle": round(memory.moved_bytes() / max(cycles, 1), 4),
        "read_bytes": memory.moved_bytes("read"),
        "written_bytes": memory.moved_bytes("write"),
        "read_latency": round(memory.read_latency, 4),
        "read_latency_p99": memory.read_latency_p99,
        **{name: memory.total(name) for name in CHANNEL_TOTALS},
        "places": [{"array": array_label(array), **asdict(place)} for array, place in memory.places.items()],
        "ports": [_port_values(port, statistics) for port, statistics in memory.ports],
        "channels": [asdict(channel) for channel in memory.channels],
        **({"scratchpad": _scratchpad_values(memory)} if memory.on_chip else {}),
    }


def _scratchpad_values(memory: MemoryStatistics) -> dict[str, Any]:
    """Return what a scratchpad did in a run, as plain values."""
    return {
        "loaded_bytes": memory.transferred_bytes("read"),
        "stored_bytes": memory.transferred_bytes("write"),
        "words_read": memory.words("read"),
        "words_written": memory.words("write"),
        "words_per_cycle": memory.words_a_cycle,
        "places": [{"array": array_label(array), **asdict(place)} for array, place in memory.on_chip.items()],
    }


def _port_values(port: MemoryPort, statistics: PortStatistics) -> dict[str, Any]:
    """Return the statistics of a port. The lines and the hits of a reuse buffer are left out if it has none."""
    values = {**asdict(port), **asdict(statistics)}
    left_out = {*(() if port.buffer else ("buffer", "hits")), *(() if port.on_chip else ("on_chip",))}
    return {name: value for name, value in values.items() if name not in left_out}


def check_json(check: Check | None) -> dict[str, Any] | None:
    """Return a check as plain values."""
    if check is None:
        return None
    error = check.max_rel_error
    return {
        "reference": check.reference,
        "passed": check.passed,
        "max_rel_error": error if np.isfinite(error) else None,
        "masked_rows": check.masked_rows,
        "elements": check.elements,
        "not_compared": check.not_compared,
        "unknown": check.unknown or None,
        "largest": None if check.largest is None else _largest_json(check.worst, check.largest),
    }


def _largest_json(output: str, largest: Difference) -> dict[str, Any]:
    """Return the element of an output that differs most, as plain values. Values that are not finite are null."""
    values = {"computed": largest.computed, "expected": largest.expected}
    return {
        "output": output,
        "coordinates": None if largest.coordinates is None else list(largest.coordinates),
        **{name: value if np.isfinite(value) else None for name, value in values.items()},
    }
