"""Takes regions of a program from other schedules of it: of all regions that ran, the fastest ones.

Regions run one after the other, so the cycles of a program are the sum of the cycles of its regions. For example, if one schedule
has the faster first region and another one the faster second, a third one takes each from where it was faster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TypeVar

from fuseflow.autoscheduler.budget.trials import Trial
from fuseflow.lower.buffers import read_tensors
from fuseflow.lower.partition import partition_program
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule
from fuseflow.schedule.entries import Entries, split_fifo, split_lanes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RegionTransfer:
    """A region as the schedule `origin` of the same program has it: its loop order, its lanes, the depths of its FIFOs, the
    splits of its Einsums, and the reuse buffers and preloads of the tensors that only this region reads (`own`)."""

    region: str
    einsums: frozenset[str]
    own: frozenset[str]
    origin: Schedule

    def added(self, schedule: Schedule) -> Schedule:
        """Return the schedule with the entries about the region replaced by those of `origin`."""
        origin = self.origin
        return replace(
            schedule,
            orders=_moved(schedule.orders, origin.orders, lambda name: name == self.region),
            parallel=_moved(schedule.parallel, origin.parallel, lambda name: split_lanes(name)[0] == self.region),
            depths=_moved(schedule.depths, origin.depths, lambda name: split_fifo(name)[0] == self.region),
            splits=_moved(schedule.splits, origin.splits, lambda name: name.rpartition(".")[0] in self.einsums),
            buffers=_moved(schedule.buffers, origin.buffers, lambda name: name in self.own),
            preloads=_moved(schedule.preloads, origin.preloads, lambda name: name in self.own),
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

    def transfer(self, region: str, origin: Schedule) -> RegionTransfer:
        """Return the transfer of the region of this name from the schedule `origin`."""
        return RegionTransfer(region, self.einsums, self.own, origin)


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
            yield contents[region].transfer(region, min(alike, key=lambda one: one[0])[1])


def _around(schedule: Schedule, region: str, shared: frozenset[str]) -> tuple[tuple[str, ...] | None, Schedule]:
    """Return the members that a schedule states for a region, and the schedule without the entries that are about single regions
    alone."""
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
