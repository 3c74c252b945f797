"""Reuse buffers and preloads for a program whose other decisions are made: for the tensors whose lines are requested again and
again, and as small as is of use.

Every such tensor has a buffer of its largest array at first. Then one after the other gets the smallest buffer with which the program is
expected to take about as few cycles, and smaller ones until all have room in the budget. For example, rows of a weight that are chosen
anew for every row of a graph need the whole weight, and rows that are read twice one behind the other need a buffer of one row.

Or all of these tensors that are stored dense are preloaded. The cycles that a buffer saves depend on the other buffers, and only
an estimate of all together tells them. So this is no problem for CP-SAT, which needs a cost for each size.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, inf, prod
from typing import Any, TypeAlias

from fuseflow.autoscheduler.budget.path_search import DealtPath, Variant
from fuseflow.autoscheduler.budget.program_variants import VariantFactory
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.compiler import compile_source
from fuseflow.estimate.memory_pace import memory_pace
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.program_estimate import ProgramEstimate
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.lower.buffers import buffer_names, with_buffers
from fuseflow.lower.partition import PartitionedProgram, partition_program
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.tiles import tile_refusal
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import TimedMemory
from fuseflow.resources import Resources
from fuseflow.resources.budget import Budget
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule
from fuseflow.schedule.sections import MOST_PRELOAD_PORTS
from fuseflow.tensors import DTYPES

BufferSizes: TypeAlias = Mapping[str, int]
"""The bytes of the reuse buffer of each port that reads a tensor, by the name of the tensor."""


@dataclass(slots=True)
class TensorReuse:
    """A tensor that is read more than once: `again` bytes are requested beyond one reading, and its largest array has `whole`
    bytes. `alike` are the tensors that regions of the same kind read in its position, the tensor itself first."""

    alike: dict[str, None] = field(default_factory=dict)
    again: int = 0
    whole: int = 0
    is_dense: bool = True

    def ladder(self, line: int) -> tuple[int, ...]:
        """Return the sizes that its buffer may have, ascending from none, in whole lines."""
        size, ladder = -(-self.whole // line) * line, list[int]()
        while size >= line:
            ladder.append(size)
            size = size // SETTINGS.buffer_step // line * line
        return (0, *reversed(ladder))


@dataclass(frozen=True, eq=False)
class BufferChoice:
    """Chooses the buffers, and the preloads, of a compiled program within a budget."""

    compiled: Compiled
    estimator: Estimator
    budget: Budget

    @cached_property
    def partitioned(self) -> PartitionedProgram:
        """The program as it was cut into regions, with the names that the user gives to the tensors that they read."""
        return partition_program(self.compiled.source.program, self.compiled.schedule)

    def of_fewest_cycles(self) -> BufferSizes:
        """Return the sizes of the smallest buffers with which the program takes few cycles, added to those of the schedule."""
        return self._sizes(lambda estimate: estimate.cycles)

    def of_least_traffic(self) -> BufferSizes:
        """Return the sizes of the smallest buffers with which the memory is busy for few cycles, whatever the arithmetic does
        meanwhile."""
        return self._sizes(
            lambda estimate: sum(each.times * max(each.bound.memory, each.bound.crowded) for each in estimate.regions)
        )

    def _sizes(self, cost: Callable[[ProgramEstimate], float]) -> BufferSizes:
        """Return the smallest buffers with which `cost` is small; none if they save little, or if the memory answers at once."""
        if not isinstance(self.compiled.machine.memory, TimedMemory):
            return {}

        def of(sizes: BufferSizes) -> float:
            return cost(self._estimate(sizes))

        sizes = {name: ladder[-1] for name, ladder in self._ladders.items()}
        plain, least = of({}), of(sizes)
        if least >= SETTINGS.gain * plain:
            return {}
        for name in reversed(sizes):  # tensors with the fewest repeated bytes become smaller first
            smaller = self._ladders[name][:-1]
            at = bisect_left(smaller, True, key=lambda size: of({**sizes, name: size}) <= least / SETTINGS.gain)
            sizes[name] = smaller[at] if at < len(smaller) else sizes[name]
        while any(sizes.values()):
            used = Resources.most_of(region.resources for region in self._estimate(sizes).regions)
            if not {"buffer", "area"} & self.budget.exceeded(used).keys():
                break
            ladders = {name: self._ladders[name] for name, size in sizes.items() if size}
            below = {name: ladder[bisect_left(ladder, sizes[name]) - 1] for name, ladder in ladders.items()}
            sizes = min(({**sizes, name: smaller} for name, smaller in below.items()), key=of)
        return self._of_all(sizes) if of(sizes) < SETTINGS.gain * plain else {}

    def preloads(self, ports: int) -> BufferSizes:
        """Return how many ports, at most `ports`, preload each tensor: tensors that are stored dense and have room, and small
        inputs, which another way to cut the program may look up."""
        room = self.budget.limits.get("buffer", inf)
        if not isinstance(self.compiled.machine.memory, TimedMemory):
            return {}
        line, sizes = memory_pace(self.compiled.machine).line, self._small_inputs()
        for tensor in self._tensors.values():
            if tensor.is_dense and tensor.whole <= room:
                sizes |= dict.fromkeys(tensor.alike, tensor.whole)
        return {name: min(ports, -(-size // line)) for name, size in sizes.items()}

    def _small_inputs(self) -> dict[str, int]:
        """Return the bytes of the inputs that are small, stored dense, and not named by the schedule."""
        schedule, names = self.compiled.schedule, self.partitioned.user_names
        stated = {*dict(schedule.buffers), *dict(schedule.preloads), *schedule.resident}
        known = {t.name for t in self.partitioned.source.inputs}
        sizes = {
            names.get(t.name, t.name): -(-prod(t.stored_shape) * prod(t.tile) * DTYPES[t.dtype].bits // 8)
            for t in self.partitioned.program.inputs
            if t.format is not None and t.format.all_dense
        }
        return {name: size for name, size in sizes.items() if 0 < size <= SETTINGS.small_bytes and name in known - stated}

    @cached_property
    def _tensors(self) -> Mapping[str, TensorReuse]:
        """The tensors of which the most bytes are requested again, by the first of their `alike` names."""
        schedule, kept = self.compiled.schedule, dict[str, TensorReuse]()
        stated = {**dict(schedule.buffers), **dict(schedule.preloads)}
        regions = {region.name: region for region in self.compiled.regions}
        for estimate in self._estimate({}).regions:
            named = [(estimate.name, dict[str, str]()), *((repeat.name, repeat.tensors) for repeat in estimate.repeats)]
            arrays = Counter[tuple[str, str]]()
            for (name, _, kind), size in estimate.counts.array_bytes.items():
                arrays[name, kind] += size
            for row in estimate.work.traffic:
                size = arrays[row.tensor, row.kind]
                if row.direction != "read" or row.bytes <= size:
                    continue
                read = ((tensors.get(row.tensor, row.tensor), regions[name].fused) for name, tensors in named)
                names = [[*buffer_names(tensor, self.partitioned, fused)][-1] for tensor, fused in read]
                tensor = kept.setdefault(names[0], TensorReuse())
                tensor.alike |= dict.fromkeys(names)
                tensor.again += estimate.times * round(row.bytes - size)
                tensor.whole = max(tensor.whole, size)
                declared = regions[estimate.name].graph.declared[row.tensor]
                tensor.is_dense &= not any(declared.stored_arrays(level) for level in range(declared.format.rank))
        most = sorted((name for name in kept if name not in stated), key=lambda name: -kept[name].again)[: SETTINGS.most_buffers]
        return {name: kept[name] for name in most}

    @cached_property
    def _ladders(self) -> Mapping[str, tuple[int, ...]]:
        line = memory_pace(self.compiled.machine).line
        return {name: tensor.ladder(line) for name, tensor in self._tensors.items()}

    def _estimate(self, sizes: BufferSizes) -> ProgramEstimate:
        """Return the estimate of the program with these buffers. It is not lowered again."""
        compiled = self.compiled
        partitioned = replace(self.partitioned, schedule=with_entries(compiled.schedule, "buffers", self._of_all(sizes)))
        regions = tuple(
            replace(known, graph=with_buffers(region.graph, partitioned, region.fused))
            for known, region in zip(estimator_regions(compiled.regions), compiled.regions, strict=True)
        )
        return self.estimator.estimate(regions, compiled.program, compiled.source.tensors, compiled.machine)

    def _of_all(self, sizes: BufferSizes) -> BufferSizes:
        """Return the sizes for every tensor that has a buffer, and for the tensors in its `alike`."""
        return {name: size for first, size in sizes.items() if size for name in self._tensors[first].alike}


def most_preload_ports(machine: Machine) -> tuple[int, ...]:
    """Return the most ports of each preload that are tried on a machine: they ask for several times the lines that its memory moves."""
    pace = memory_pace(machine)
    lines = SETTINGS.boundless_lines if pace.peak == inf else pace.peak / pace.line
    return tuple(min(ceil(rate * lines), MOST_PRELOAD_PORTS) for rate in SETTINGS.preload_rates)


@dataclass(frozen=True, slots=True)
class BufferVariants:
    """A factory of variants with reuse buffers or preloads. Each is made for a program that was found in another variant."""

    factory: VariantFactory
    published: Variant
    budget: Budget

    def of_least_traffic(self, program: DealtPath) -> tuple[Variant, ...]:
        """Return the variants in which the memory has little to do for a program: with buffers that have room beside its lanes,
        and with larger ones that have room beside one lane. A search decides later how many lanes there are."""
        lanes = program.schedule
        chosen = [self._choice(schedule).of_least_traffic() for schedule in (lanes, replace(lanes, parallel=()))]
        return self._variants(program, [("buffers", sizes) for sizes in chosen])

    def of_fewest_cycles(self, program: DealtPath) -> tuple[Variant, ...]:
        """Return the variant whose buffers are no larger than a program in its lanes can use."""
        return self._variants(program, [("buffers", self._choice(program.schedule).of_fewest_cycles())])

    def of_preloads(self, program: DealtPath) -> tuple[Variant, ...]:
        """Return the variants that preload the operands which a program looks up again and again. A search decides later how many
        lanes there are."""
        choice, most = self._choice(replace(program.schedule, parallel=())), most_preload_ports(self.factory.machine)
        return self._variants(program, [("preloads", choice.preloads(ports)) for ports in most])

    def preloads_of_use(self, schedule: Schedule) -> Schedule:
        """Return a schedule without the preloads that save nothing in its lanes, such as of tensors that it reads once."""
        own = self.published.base.preloads
        wanted = self._choice(replace(schedule, preloads=own)).preloads(ports=1)
        kept = tuple(entry for entry in schedule.preloads if entry in own or entry[0] in wanted)
        return replace(schedule, preloads=kept)

    def _choice(self, schedule: Schedule) -> BufferChoice:
        factory, plain = self.factory, replace(schedule, buffers=self.published.base.buffers)
        return BufferChoice(compile_source(factory.source, plain, factory.machine), factory.estimator, self.budget)

    def _variants(self, program: DealtPath, chosen: Iterable[tuple[str, Mapping[str, int]]]) -> tuple[Variant, ...]:
        """Return the variant of a program with its own buffers left out and the entries of each choice added to a section."""
        base = replace(program.variant.base, buffers=self.published.base.buffers)
        schedules = dict.fromkeys(with_entries(base, section, entries) for section, entries in chosen)
        variants = (self.factory(schedule) for schedule in schedules if schedule != base)
        return tuple(variant for variant in variants if variant is not None)


def with_entries(schedule: Schedule, section: str, entries: Mapping[str, int]) -> Schedule:
    """Return a schedule with entries by name added to its `buffers` or its `preloads`."""
    changed: dict[str, Any] = {section: tuple({**dict(getattr(schedule, section)), **entries}.items())}
    return replace(schedule, **changed)


WORTH = 2.0
"""A tensor is placed if its lines are asked for this many times. It is loaded once, so that 1 would be no worse by the bytes, but the
load comes first. Not tuned: each choice is simulated."""
MOST_PLACES = 3
"""The most schedules with places that are simulated."""


@dataclass(frozen=True, slots=True)
class ScratchpadCandidates:
    """The tensors of a compiled program that are worth a place: their bytes by name, the most useful first. They are tried last, by
    simulation, so that a program is never slower with them than without."""

    compiled: Compiled
    sizes: Mapping[str, int]
    room: int

    @classmethod
    def of(cls, compiled: Compiled, estimate: ProgramEstimate, buffer: float) -> ScratchpadCandidates:
        """Return them by an estimate of the program. They find room in the scratchpad, and in `buffer` bytes."""
        machine, fetched, sizes = compiled.machine, Counter[str](), dict[str, int]()
        if machine.scratchpad is None or not isinstance(machine.memory, TimedMemory):
            return cls(compiled, {}, 0)
        schedule = compiled.schedule
        stated = {*dict(schedule.memories), *dict(schedule.buffers), *dict(schedule.preloads), *schedule.resident}
        for region in estimate.regions:
            own: Counter[str] = Counter()
            for (name, *_), size in region.counts.array_bytes.items():
                own[name] += size
            sizes |= own
            for read in region.load.reads:
                fetched[read.port.tensor] += round(read.lines * machine.memory.line)
        known = {*compiled.program.declared, *compiled.program.defined} - stated
        worth = [name for name in fetched if name in known and 0 < WORTH * sizes.get(name, 0) <= fetched[name]]
        worth.sort(key=lambda name: sizes[name] - fetched[name])
        return cls(compiled, {name: sizes[name] for name in worth}, int(min(machine.scratchpad.bytes, buffer)))

    def options(self) -> Iterator[tuple[str, Schedule]]:
        """Yield schedules that place tensors, each with a text that says so: all that fit, and with these one that does not, in tiles."""
        schedule, left, large = self.compiled.schedule, self.room, list[str]()
        for name, size in self.sizes.items():
            if size <= left:
                schedule, left = schedule.memory(name), left - size
            else:
                large.append(name)
        if schedule is not self.compiled.schedule:
            yield "in the scratchpad", schedule
        for name in large[:1]:
            for region in self.compiled.regions:
                for index, size in self._tiles(region, name, left):
                    yield f"{name} in tiles of {index}", schedule.memory(name).tile(**{f"{region.name}.{index}": size})

    def _tiles(self, region: CompiledRegion, name: str, left: int) -> Iterator[tuple[str, int]]:
        """Yield indices of a tensor in a region, each with a number of coordinates: the largest power of two for which two
        tiles fit."""
        indices = dict.fromkeys(index for view in region.fused.views if view.tensor == name for index in view.indices)
        for index in indices:
            extent = region.fused.sizes[index]
            fitting = left * extent // max(1, 2 * self.sizes[name])
            size = 1 << max(0, fitting.bit_length() - 1)
            if 2 <= size < extent and tile_refusal(region, index) is None:
                yield index, size
