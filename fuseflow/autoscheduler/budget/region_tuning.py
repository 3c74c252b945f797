"""Changes of single regions that are tried in the simulator, for a program whose other decisions are made.

Regions run one after the other. So one simulation tells, for one change of each region, whether the region is faster with it. For
example, two simulations tell which of two changes is better in each of three regions. Three kinds of changes are known:

Other depths of FIFOs. The estimate knows which FIFOs hold a graph up all the time. It does not know how long other FIFOs keep a region
going while the memory refreshes itself, or answers late. It also does not know that ports which run further ahead of each other may
open more rows of HBM2. So deeper FIFOs are simulated, and FIFOs of the machine where the estimate chose deeper ones.

Lanes that take runs of neighbouring rows instead of single rows. The estimate does not tell them apart from lanes of single rows, which
take as many firings. They change which lanes share lines of the memory, and how much each lane has to do.

Regions of other schedules of the program. If one schedule has the faster first region and another one the faster second, a third one
takes each from where it was faster.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol, TypeVar

from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.autoscheduler.budget.trials import Trial, TrialEstimates
from fuseflow.einsum.verify import extents
from fuseflow.lower.buffers import read_tensors
from fuseflow.lower.partition import partition_program
from fuseflow.lower.regions import CompiledRegion
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule
from fuseflow.schedule.section import Entries, split_fifo, split_lanes


class RegionChange(Protocol):
    """A change of those entries of a schedule that are about one region."""

    @property
    def region(self) -> str:
        """The name of the region."""

    def added(self, schedule: Schedule) -> Schedule:
        """Return the schedule with this change."""


T = TypeVar("T")
Change = TypeVar("Change", bound=RegionChange)


def rounds(options: Sequence[tuple[Change, ...]]) -> Iterator[tuple[Change, ...]]:
    """Yield the changes that are simulated together: one of each region that still has one, given the changes to try of each."""
    for number in range(min(SETTINGS.change_rounds, max(map(len, options), default=0))):
        yield tuple(of_region[number] for of_region in options if number < len(of_region))


@dataclass(frozen=True, slots=True)
class RegionDepth:
    """A change of the slots of all FIFOs of a region that the schedule does not name one by one; None is the slots of the
    machine."""

    region: str
    slots: int | None

    def added(self, schedule: Schedule) -> Schedule:
        """Return the schedule with these slots."""
        if self.slots is None:
            return replace(schedule, depths=tuple(entry for entry in schedule.depths if entry[0] != self.region))
        return schedule.depth(self.region, self.slots)


def region_depths(estimates: TrialEstimates, schedule: Schedule) -> Iterator[tuple[RegionDepth, ...]]:
    """Yield, for each region under a schedule, the two deepest FIFOs that fit the budget and are deeper than those that it has. If
    it has deeper ones than the machine, the depth of the machine comes first."""
    program = estimates.compiled(schedule)
    first, stated = program.machine.first_depth, dict(program.schedule.depths)
    if first is None or program.machine.rules == "comal":
        return
    options = {region.name: list[RegionDepth]() for region in program.regions if region.einsums}  # a copy has no depth
    for slots in reversed(SETTINGS.deep_fifos):
        deeper = [(name, RegionDepth(name, slots)) for name in options if slots > stated.get(name, first)]
        changed = program.schedule
        for _, depth in deeper:
            changed = depth.added(changed)
        regions = estimates.compiled(changed).estimate(estimates.estimator).regions if deeper else ()
        rooms = {name for each in regions if not estimates.budget.exceeded(each.resources) for name in each.names}
        for name, depth in deeper:
            options[name] += [depth] * (name in rooms)
    for name, depths in options.items():
        of_machine = [RegionDepth(name, None)] if stated.get(name, first) > first else []
        tried = of_machine + depths[: SETTINGS.change_rounds - len(of_machine)][::-1]
        if tried:
            yield tuple(tried)


@dataclass(frozen=True, slots=True)
class RowRuns:
    """A change: lanes of an index of a region take runs of `size` rows. The loop `target` (such as `T1.i`) is split in two, and
    the outer one is dealt. `order` is the loop order of the region before the split."""

    region: str
    index: str
    target: str
    size: int
    order: tuple[str, ...]

    def added(self, schedule: Schedule) -> Schedule:
        """Return a schedule with these runs."""
        outer, inner = f"{self.index}0", f"{self.index}1"
        lanes = f"{self.region}.{self.index}"
        parallel = tuple((f"{self.region}.{outer}" if name == lanes else name, count) for name, count in schedule.parallel)
        order = tuple(part for index in self.order for part in ((outer, inner) if index == self.index else (index,)))
        return replace(schedule, parallel=parallel).order(self.region, order).split(self.target, self.size)


def row_runs(compiled: Compiled) -> Iterator[tuple[RowRuns, ...]]:
    """Yield, for each region with lanes of one index, the runs that its lanes can take: short ones, or one run for each lane."""
    lanes = [(*split_lanes(name), count) for name, count in compiled.schedule.parallel]
    for region in compiled.regions:
        own = [(stage, index, count) for place, stage, index, count in lanes if place == region.name]
        if len(own) == 1 and not own[0][0] and not compiled.schedule.splits:
            ((_, index, count),) = own
            yield tuple(_runs(compiled, region, index, count))


def _runs(compiled: Compiled, region: CompiledRegion, index: str, lanes: int) -> Iterator[RowRuns]:
    """Yield the runs that lanes of an index can take. The first Einsum of the region that has the index names the loop."""
    size_of = extents(compiled.program)
    einsum = next((e for e in region.einsums if index in size_of[e]), None)
    if einsum is None:
        return
    size = size_of[einsum][index]
    divisors = [n for n in range(SETTINGS.shortest_run, SETTINGS.longest_run + 1) if size % n == 0 and n < size]
    short = min(divisors, key=lambda n: abs(math.log(n / SETTINGS.short_run)), default=0)
    whole = size // lanes if size % lanes == 0 else 0
    for run in dict.fromkeys((short, whole)):
        if 1 < run < size:
            yield RowRuns(region.name, index, f"{einsum}.{index}", run, region.fused.order)


@dataclass(frozen=True, slots=True)
class RegionTransfer:
    """A region as the schedule `origin` of the same program has it: its loop order, its lanes, the depths of its FIFOs, the
    splits of its Einsums, and the reuse buffers and preloads of the tensors that only this region reads."""

    region: str
    contents: RegionContents
    origin: Schedule

    def added(self, schedule: Schedule) -> Schedule:
        """Return the schedule with the entries about the region replaced by those of `origin`."""
        origin, own = self.origin, self.contents.own
        return replace(
            schedule,
            orders=_moved(schedule.orders, origin.orders, lambda name: name == self.region),
            parallel=_moved(schedule.parallel, origin.parallel, lambda name: split_lanes(name)[0] == self.region),
            depths=_moved(schedule.depths, origin.depths, lambda name: split_fifo(name)[0] == self.region),
            splits=_moved(schedule.splits, origin.splits, lambda name: name.rpartition(".")[0] in self.contents.einsums),
            buffers=_moved(schedule.buffers, origin.buffers, lambda name: name in own),
            preloads=_moved(schedule.preloads, origin.preloads, lambda name: name in own),
        )


def _moved(entries: Entries[T], origin: Entries[T], is_own: Callable[[str], bool]) -> Entries[T]:
    """Return the entries with those whose names satisfy `is_own` replaced by those of `origin`."""
    return (*(e for e in entries if not is_own(e[0])), *(e for e in origin if is_own(e[0])))


@dataclass(frozen=True, slots=True)
class RegionContents:
    """The Einsums of a region, the tensors that no other region reads (`own`), and those that others read, too (`shared`), with
    the names that they have in a schedule."""

    einsums: frozenset[str]
    own: frozenset[str]
    shared: frozenset[str]


def region_contents(program: Compiled) -> dict[str, RegionContents]:
    """Return the Einsums and the tensors of each region of a program, by its name."""
    partitioned = partition_program(program.source.program, program.schedule)
    read = {region.name: frozenset(read_tensors(partitioned, [region.graph])) for region in program.regions}
    readers = Counter(tensor for tensors in read.values() for tensor in tensors)
    return {
        region.name: RegionContents(
            frozenset(region.einsums),
            frozenset(tensor for tensor in read[region.name] if readers[tensor] == 1),
            frozenset(tensor for tensor in read[region.name] if readers[tensor] > 1),
        )
        for region in program.regions
    }


def fastest_regions(
    best: Trial, others: Sequence[Trial], contents: Mapping[str, RegionContents], fifo: float
) -> Iterator[RegionTransfer]:
    """Yield the regions that took fewer cycles in other trials than in the best one, each from its fastest trial.

    `contents` has the contents of each region of the best trial. Another trial counts for a region if its schedule says the same
    outside of single regions, and of the tensors that the region shares. A run whose FIFOs grew beyond `fifo` bytes does not.
    """
    for region, ran in (best.regions or {}).items():
        shared = contents[region].shared
        around = _around(best.schedule, region, shared)
        alike = [
            (own.cycles, other.schedule)
            for other in others
            if (own := (other.regions or {}).get(region)) is not None
            and own.cycles < ran.cycles
            and (inf if own.fifo is None else own.fifo) <= fifo
            and _around(other.schedule, region, shared) == around
        ]
        if alike:
            yield RegionTransfer(region, contents[region], min(alike, key=lambda one: one[0])[1])


def saved_cycles(trial: Trial, others: Iterable[Trial]) -> int:
    """Return how many cycles the regions of a trial save in which it is faster than all `others`, which have the same regions."""
    others = tuple(others)
    fewest = {name: min(other.taken.get(name, cycles) for other in others) for name, cycles in trial.taken.items()}
    return sum(max(0, fewest[name] - cycles) for name, cycles in trial.taken.items())


def _around(schedule: Schedule, region: str, shared: frozenset[str]) -> tuple[tuple[str, ...] | None, Schedule]:
    """Return the members that a schedule states for a region, and the schedule without the entries about single regions."""
    rest = replace(
        schedule,
        fuse_regions=("none",),
        regions=(),
        orders=(),
        parallel=(),
        depths=(),
        splits=(),
        buffers=tuple(entry for entry in schedule.buffers if entry[0] in shared),
        preloads=tuple(entry for entry in schedule.preloads if entry[0] in shared),
    )
    return dict(schedule.regions).get(region), rest
