"""Ranges of the units of a program as regions: which Einsums each computes, and which results it must write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fuseflow.cut.units import UnitRange, UnitSequence
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.lower.state import RegionRequest
from fuseflow.schedule import Region

LARGEST_REGION = 32
"""The most Einsums of a region that is estimated to find partitions. A larger one takes seconds."""


@dataclass  # without slots: cached properties are stored in the instance
class ProgramRanges:
    """The ranges of `units` of a program that is partitioned into single operators."""

    partitioned: PartitionedProgram
    units: UnitSequence

    @cached_property
    def readers(self) -> Mapping[str, frozenset[str]]:
        """The Einsums that read each Einsum. An output of the program has the reader `""`, which is in no region."""
        program = self.partitioned.program
        readers: dict[str, set[str]] = {e.name: {""} if e.name in program.outputs else set() for e in program.einsums}
        for einsum in program.einsums:
            for name in einsum.operands:
                readers.get(name, set()).add(einsum.name)
        return {name: frozenset(by) for name, by in readers.items()}

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The position of each Einsum in the program."""
        return {e.name: n for n, e in enumerate(self.partitioned.program.einsums)}

    @cached_property
    def _home(self) -> Mapping[str, Region]:
        """The region of each Einsum of the program in single operators."""
        return {e: region for region in self.partitioned.regions for e in region.einsums}

    def request(self, part: UnitRange) -> RegionRequest:
        """Return the request to lower a range as one region."""
        return self.region(self.units.name(part), self.units.einsums(part))

    def region(self, name: str, einsums: Iterable[str]) -> RegionRequest:
        """Return the request to lower these Einsums as one region. It writes the results that Einsums outside of it read."""
        members = self._computed_in(self._members(einsums))
        results = (e for e in members if not self.readers[e] <= set(members))
        return RegionRequest(name, members, tuple(results))

    def members(self, part: UnitRange) -> list[str]:
        """Return the Einsums of a range as they are lowered, in program order."""
        return self._members(self.units.einsums(part))

    def _members(self, einsums: Iterable[str]) -> list[str]:
        return sorted(self.partitioned.reshapes.members(tuple(einsums)), key=self.position.__getitem__)

    def is_region(self, part: UnitRange) -> bool:
        """Return whether a range may be one region and is small enough to be estimated."""
        return self.units.legal(part) and (part[1] - part[0] == 1 or len(self.members(part)) <= LARGEST_REGION)

    def _computed_in(self, members: Sequence[str]) -> tuple[str, ...]:
        """Return the Einsums that a region of the Einsums `members` computes. An Einsum that only renames an output is left out
        if the operand is computed elsewhere: every partition computes it in the region of its operand."""
        defined, renames = self.partitioned.program.defined, self.partitioned.reshapes.renames
        computed: list[str] = []
        for name in members:
            along = [n for n in defined[name].operands if n in self._home[name].einsums] if name in renames else []
            if set(along) <= set(computed):
                computed.append(name)
        return tuple(computed)
