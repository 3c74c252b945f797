"""Tensors for the scratchpad: those that are read again and again, as far as there is room, and tiles of one that is too large.

They are tried last, by simulation, so that a program is never slower with them than without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fuseflow.estimate.program_estimate import ProgramEstimate
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.tiles import tile_refusal
from fuseflow.memory.settings import TimedMemory
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule

WORTH = 2.0
"""A tensor is placed if its lines are asked for this many times. It is loaded once, so that 1 would be no worse by the bytes, but the
load comes first. Not tuned: each choice is simulated."""
MOST_PLACES = 3
"""The most schedules with places that are simulated."""


@dataclass(frozen=True, slots=True)
class ScratchpadCandidates:
    """The tensors of a compiled program that are worth a place: their bytes by name, the most useful first."""

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
