"""Samples regions: it counts the weights of the coordinates of a loop, and runs the region at some of them.

In such a run, the arrays are at the addresses of the arrays of the whole region. Which banks arrays share, and whether they meet in one
at the same time, follows from where they are read and written. That changes slowly on the way through them: in one random attention, the
whole first fifth took 2.7 % less time than an average fifth. So the rows of a replicate are at a random position within the addresses of
their matrix, which is the same position for all matrices. A tensor that is read both whole and restricted has one address. The memory
also refreshes itself at another time in each replicate. Otherwise replicates of equal rows would all see one refresh more than their
share, or one less.

A replicate must be so long that what its memory keeps from one coordinate to the next matters little. It begins with a memory that has
answered nothing, and three things are different in the middle of a loop:

    refresh    streams that ran ahead of each other hide a part of a pause, and they run ahead only after some pauses
    held       a port has lines of the tensors that are read whole, up to its limit, and asks for none of them again
    walked     a line of a tensor that is read coordinate by coordinate is asked for once, for all coordinates that lie in it

Short replicates on such machines agreed with each other, and were up to 18 % off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import ceil, hypot, sqrt

from fuseflow.errors import SamplingError
from fuseflow.estimate import CountMemo
from fuseflow.estimate.counted.patterns import Pattern
from fuseflow.estimate.memory_pace import memory_pace
from fuseflow.fusion import FusedRegion
from fuseflow.lower.lanes import most_lanes
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.machine import Machine
from fuseflow.memory.layout import AddressRange, ArrayName, array_elements, lay_out, tensor_arrays
from fuseflow.memory.memory_interface import Controller, ControllerFactory
from fuseflow.memory.settings import IdealMemory
from fuseflow.samml.nodes import Graph
from fuseflow.sampling.interval import EndUncertainty
from fuseflow.sampling.replicates import Position, RowRunner, SampledRun, sample_region
from fuseflow.sampling.restriction import (
    coordinate_count,
    refusal,
    replicate_lengthening,
    restrict_region,
    restricted_graph,
    sampled_index,
)
from fuseflow.sampling.sample_request import LARGEST_SHARE, Sample
from fuseflow.sampling.values import values_refusal
from fuseflow.sampling.weights import index_weights, least_warmup, rows_in_fifos
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine, Simulation, simulate
from fuseflow.table import emit
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints, bytes_of


@dataclass(frozen=True, slots=True)
class RegionSampler:
    """Samples the regions of a program on a machine."""

    schedule: Schedule
    machine: Machine
    sample: Sample
    engine: Engine
    memo: CountMemo

    def run(
        self,
        region: CompiledRegion,
        read: Mapping[str, Tensor],
        patterns: Mapping[str, Pattern],
        stream: int,
        progress: Callable[[int], None] | None = None,
    ) -> SampledRun | None:
        """Return a sample of a region, or None if it is to be run in full: it is short, or a sample would take too much of it.

        `read` has the tensors that it reads, and `patterns` their patterns. The random choices of regions with different `stream`
        are independent. Raises `SamplingError` for a long region that cannot be sampled.
        """
        why = refusal(region) or values_refusal(region) or self._lanes_refusal(region)
        if why is None and coordinate_count(region.fused) > 0:
            index, coordinates = sampled_index(region.fused), coordinate_count(region.fused)
            loop = index_weights(region.table, index, coordinates, patterns, self.machine, self.memo)
            run = self._runner(region, read, progress)
            fewest_cycles, fewest_coordinates = replicate_length(region.fused, region.graph, read, self.machine)
            shortest = max(self.sample.shortest, fewest_cycles) * replicate_lengthening(region.fused)
            sample = replace(self.sample, shortest=shortest)
            ends = end_uncertainty(self.machine, _restricted_arrays(region))
            # FIFOs that a run deepens save a graph from a deadlock, and hold what one row needs
            deepest = max(self.machine.first_depth or 0, *(depth for _, depth in region.graph.depths), 0)
            held = rows_in_fifos(emit(region.table), loop, deepest)
            return sample_region(loop.weights, least_warmup(held), ends, sample, fewest_coordinates, run, stream)
        if why is not None and region.estimate.cycles > self.shortest_sampled:
            raise SamplingError(
                f"region `{region.name}` cannot be sampled: it {why}",
                hint="ask for another order of its loops (`--order`) or other lanes (`--par`), or run it without a sample",
            )
        return None

    def _lanes_refusal(self, region: CompiledRegion) -> str | None:
        """Return why the lanes of a region forbid a sample, in words that follow its name; None if they do not."""
        fused = region.fused
        if not fused.order or not region.einsums or self.sample.fraction == 1:
            return None
        index = sampled_index(fused)
        lanes = most_lanes(self.schedule, fused, index)
        if lanes == 1:
            return None
        place = "the outermost index of its order" if index == fused.order[0] else "the index that is sampled"
        return f"deals `{index}`, {place}, over {lanes} lanes: a row waits there for rows far behind it, which a sample does not have"

    @property
    def shortest_sampled(self) -> float:
        """The cycles of the shortest region that is sampled: replicates would be too large a share of a shorter one."""
        return self.sample.replicates * self.sample.shortest / LARGEST_SHARE

    def _runner(self, region: CompiledRegion, read: Mapping[str, Tensor], progress: Callable[[int], None] | None) -> RowRunner:
        count, written = coordinate_count(region.fused), dict[ArrayName, int]()

        def run(rows: Ints, position: Position) -> Simulation:
            restricted = restrict_region(region.fused, len(rows))
            graph = restricted_graph(region, restricted, self.schedule)
            sources = {name: tensor.source for name, tensor in restricted.tensors.items()}
            arrays = RestrictedArrays(sources, written, len(rows) / count, position)
            attach = placed(region.graph, read, self.machine, arrays)
            tensors = restricted.read(graph.inputs, read, rows)
            simulation = simulate(graph, tensors, self.machine, progress, engine=self.engine, attach=attach)
            written.update(expected_bytes(graph, simulation.outputs, len(rows) / count) if not written else {})
            return simulation

        return run


def _restricted_arrays(region: CompiledRegion) -> int:
    """Return how many arrays in memory a sample of a region reads or writes in part."""
    index, graph = sampled_index(region.fused), region.graph
    names = {view.tensor for view in region.fused.views if index in view.indices} | set(graph.outputs)
    tensors = (graph.declared[name] for name in names if name in graph.declared)
    return sum(len(tensor_arrays(tensor)) for tensor in tensors if not tensor.resident)


def require_bounded_fifos(machine: Machine) -> None:
    """Raise `SamplingError` for a machine with unbounded FIFOs, on which a sample is of no use: cycles follow from the counts alone."""
    if machine.fifo_depth is None:
        raise SamplingError(
            f"the FIFOs of machine `{machine.name}` are unbounded: all rows of a region are in flight at once, and its cycles follow "
            "from counts alone",
            hint="`fuseflow estimate` counts them without running anything",
        )


@dataclass(frozen=True, slots=True)
class RestrictedArrays:
    """The arrays of a restricted region: the `sources` of restricted tensors by name, and the bytes that the whole region is
    expected to write to each array. The restriction has this `share` of the coordinates, and is run at this `position`."""

    sources: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[ArrayName, int] = field(default_factory=dict)
    share: float = 1.0
    position: Position = field(default_factory=Position)


@dataclass
class PlacedController(Controller):
    """A memory controller whose arrays are within the addresses of the arrays of the `whole` graph, which is not restricted."""

    whole: Mapping[ArrayName, AddressRange] = field(default_factory=dict)
    restricted: RestrictedArrays = field(default_factory=RestrictedArrays)

    def lay_out(self, graph: Graph, tensors: Mapping[str, Tensor]) -> dict[ArrayName, AddressRange]:
        """Return the addresses of every array of a graph, within those of the whole array that it is a part of."""
        own = super().lay_out(graph, tensors)
        self.places = {array: replace(place, base=self._base(array, place)) for array, place in own.items()}
        return self.places

    def open(self) -> None:
        """Begin at the phase between two refreshes that the position says."""
        from fuseflow.memory.models import Dram  # loads the compiler

        super().open()
        model = self.memory.model
        if isinstance(model, Dram):
            model.advance_refresh(self.restricted.position.phase)

    def _base(self, array: ArrayName, own: AddressRange) -> int:
        tensor, level, kind = array
        source = (self.restricted.sources.get(tensor, tensor), level, kind)
        place, length, part = self.whole[source], self.whole[source].length, own.length
        if source in self.restricted.written:
            length = self.restricted.written[source]
            part = round(length * self.restricted.share)
        return place.base + int(self.restricted.position.place * max(0, length - part)) // self.line * self.line


def placed(graph: Graph, read: Mapping[str, Tensor], machine: Machine, restricted: RestrictedArrays) -> ControllerFactory:
    """Return a function that makes the memory of a restriction of `graph`, or None for a machine without a timed memory. The
    whole graph reads the tensors `read`."""

    def attach() -> Controller | None:
        controller = machine.controller()
        if controller is None:
            return None
        whole = lay_out(graph, read, controller.capacity, controller.line)
        settings = {f.name: getattr(controller, f.name) for f in fields(Controller) if f.init}
        return PlacedController(**settings, whole=whole, restricted=restricted)

    return attach


def expected_bytes(graph: Graph, results: Mapping[str, Tensor], share: float) -> dict[ArrayName, int]:
    """Return the bytes that a region is expected to write to each array, given the results of a share (`share`) of its coordinates."""
    return {
        array: round(array_elements(results[name], array) * width / share)
        for name in graph.outputs
        if name in results
        for array, width in tensor_arrays(graph.declared[name])
    }


REFRESHES = 30
"""The fewest pauses for refresh in a replicate. With one, replicates of attention were 4 % too slow. With five or fifteen,
replicates of a layer with rows of 35 cycles were 3 or 2 % too fast, with thirty 0.2 % too slow."""
FILLS = 10
"""A replicate takes at least this many times the cycles that its ports take to fill."""
WALKED = 2
"""A replicate has at least the coordinates of this many lines of its longest array."""


def replicate_length(fused: FusedRegion, graph: Graph, read: Mapping[str, Tensor], machine: Machine) -> tuple[int, int]:
    """Return the fewest cycles and the fewest coordinates of a replicate of a region. `graph` is its graph, and `read` has the
    tensors that it reads.
    """
    memory, pace = machine.memory, memory_pace(machine)
    if isinstance(memory, IdealMemory):
        return 1, 1
    index = sampled_index(fused)
    restricted = {view.tensor for view in fused.views if index in view.indices}
    whole = {view.tensor for view in fused.views if index not in view.indices}
    held = min(memory.outstanding, _longest_array(graph, read, whole, memory.line))
    walked = _longest_array(graph, read, restricted, memory.line)
    cycles = FILLS * held * pace.latency
    if pace.refresh is not None:
        cycles = max(cycles, ceil(REFRESHES * pace.refresh.period))
    coordinates = ceil(fused.sizes[index] * min(1, WALKED / walked)) if walked else 1
    return max(1, cycles), coordinates


def _longest_array(graph: Graph, read: Mapping[str, Tensor], names: set[str], line: int) -> int:
    """Return the lines of the longest array of those of the tensors `names` that are read from memory, 0 if there is none."""
    lengths = [
        ceil(bytes_of(array_elements(read[name], array), bits) / line)
        for name in names.intersection(read)
        if not graph.declared[name].resident
        for array, bits in tensor_arrays(graph.declared[name])
    ]
    return max(lengths, default=0)


def end_uncertainty(machine: Machine, arrays: int) -> EndUncertainty:
    """Return the uncertainty of runs: a full FIFO and a pause for refresh in each run, and a line of each of the `arrays` arrays.

    Some events happen once in many rows: a pause in which the memory refreshes itself, or a line of an array of which each row reads
    a few bytes. A run has one more or one less of them than its share, and short ones may have none at all. Without them, rows that
    are all equal would make an interval without width.
    """
    slack, memory, pace = float(machine.first_depth or 0), machine.memory, memory_pace(machine)
    if isinstance(memory, IdealMemory):
        return EndUncertainty(slack, 0.0)
    pause = pace.refresh.cycles if pace.refresh is not None else 0.0
    line = pace.latency + memory.line / pace.peak
    return EndUncertainty(hypot(slack, pause), sqrt(arrays) * line)
