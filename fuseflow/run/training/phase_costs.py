"""What the phases of a training step cost, and what is stored in one phase for a later one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fuseflow.costs.live_bytes import lifetimes
from fuseflow.einsum.phases import PHASES, phase, phases

if TYPE_CHECKING:
    from fuseflow.einsum.nodes import Program
    from fuseflow.lower.regions import CompiledRegion
    from fuseflow.run.result import RegionResult
    from fuseflow.sim.signature import RegionRepeat


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """The costs of all regions that are of the same `phases`. A region may be of several, since it is fused across their border."""

    phases: tuple[str, ...]
    regions: int
    cycles: int
    flops: int
    read: int
    written: int


def phase_costs(regions: Iterable[RegionResult]) -> list[PhaseCost]:
    """Return the costs of the regions of a training step, by phases and in the order in which these begin."""
    costs = dict[tuple[str, ...], list[int]]()
    for region in regions:
        run = region.simulation
        numbers = (1, region.cycles, run.flops, run.bytes("read"), run.bytes("write"))
        for key in (region_phases(region), *map(region_phases, region.repeats)):
            costs[key] = [sum(pair) for pair in zip(costs.get(key, [0] * len(numbers)), numbers, strict=True)]
    return [PhaseCost(key, *costs[key]) for key in sorted(costs, key=lambda key: [PHASES.index(name) for name in key])]


def region_phases(region: RegionResult | RegionRepeat | CompiledRegion) -> tuple[str, ...]:
    """Return the phases of a region. One that copies a tensor to another format has no Einsums, and the name of the tensor in its own."""
    return phases(region.einsums or (region.name,))


@dataclass(frozen=True, slots=True)
class StoredForLater:
    """An intermediate that a `phase` stores and Einsums of later phases read. `einsums` are these Einsums, and `regions` theirs. `bytes` is
    what is written of it, None if that is not known."""

    name: str
    phase: str
    region: str
    einsums: tuple[str, ...]
    regions: tuple[str, ...]
    bytes: float | None = None


def stored_for_later(
    program: Program, regions: Iterable[CompiledRegion], written: Mapping[str, float] | None = None
) -> list[StoredForLater]:
    """Return what the forward and the loss of a training step store for its backward and update, in the order in which it is written.
    `written` are the bytes of each tensor, if they are known."""
    steps = tuple(regions)
    home = {einsum: number for number, region in enumerate(steps) for einsum in region.einsums}
    shown: dict[str, str] = {}
    for region in steps:
        shown |= {name: shown.get(source, source) for name, source in region.views.items()}
    readers: dict[str, list[str]] = {}
    for einsum in program.einsums:
        for operand in dict.fromkeys(shown.get(name, name) for name in einsum.operands):
            readers.setdefault(operand, []).append(einsum.name)
    rows = []
    for tensor in lifetimes([(region.graph, region.views) for region in steps], program.outputs):
        own = phase(tensor.name)
        later = [
            n
            for n in readers.get(tensor.name, ())
            if PHASES.index(phase(n)) >= 2 and home.get(n, tensor.written) != tensor.written
        ]
        if later and PHASES.index(own) < 2:
            named = dict.fromkeys(steps[home[name]].name for name in later)
            size = None if written is None else written.get(tensor.name, 0)
            rows.append(StoredForLater(tensor.name, own, steps[tensor.written].name, tuple(later), tuple(named), size))
    return rows
