"""The history of a run: each simulation so far, and how often it counts.

The values of a region that repeats an earlier one (`sim.signature`) are computed by the dense interpreter, without a simulation.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import shapes
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.region_program import as_program
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.machine import Machine
from fuseflow.memory.layout import used_tensors
from fuseflow.run.result import RegionResult
from fuseflow.run.simulated_resources import simulated_resources
from fuseflow.sim import Simulation
from fuseflow.sim.signature import RegionRepeat, signature
from fuseflow.tensors import Tensor

LARGEST_ARRAY = 1 << 27
"""The most elements of a dense array (1 GB) in which a repeated region may be computed. If more are needed, it is simulated."""


@dataclass(slots=True)
class RunHistory:
    """The simulations of a run so far, region by region. With `dedup`, a region that runs like an earlier one counts once more
    for that one."""

    machine: Machine
    dedup: bool
    _results: list[RegionResult] = field(default_factory=list)
    _first: dict[Hashable, tuple[int, CompiledRegion]] = field(default_factory=dict)

    @property
    def regions(self) -> tuple[RegionResult, ...]:
        """The results of the regions that were simulated, in order."""
        return tuple(self._results)

    def key(self, region: CompiledRegion, read: Mapping[str, Tensor]) -> Hashable | None:
        """Return a key that is equal for regions that run in the same way, None without `dedup`, for a region that runs like
        no other or in tiles, and for one with tensors that are like others, whose places the dense interpreter does not see."""
        shares = any(tensor.like for tensor in region.graph.tensors)
        return signature(region.graph, read) if self.dedup and not shares and not region.tiles else None

    def record(self, region: CompiledRegion, read: Mapping[str, Tensor], simulation: Simulation) -> Mapping[str, Tensor]:
        """Add the simulation of a region, which read these tensors, and return the tensors that it computed."""
        key = self.key(region, read)
        if key is not None:
            self._first.setdefault(key, (len(self._results), region))
        resources = simulated_resources(region.graph, self.machine, simulation)
        self._results.append(RegionResult(region.name, region.einsums, simulation, resources, region.graph, places=region.places))
        return simulation.outputs

    def replay(self, region: CompiledRegion, read: Mapping[str, Tensor]) -> Mapping[str, Tensor] | None:
        """Count an earlier region that this one runs like once more, and return the results of this one, computed by the
        interpreter. None if there is no such region, or if its results cannot be interpreted."""
        key = self.key(region, read)
        if key is None or key not in self._first:
            return None
        at, before = self._first[key]
        names = dict(zip(used_tensors(before.graph), used_tensors(region.graph), strict=True))
        patterns = {names[name]: tensor for name, tensor in self._results[at].simulation.outputs.items()}
        results = _interpreted(region.fused, read, patterns, self.machine.is_wide)
        if results is None:
            return None
        repeat = RegionRepeat(region.name, region.einsums, names)
        self._results[at] = replace(self._results[at], repeats=(*self._results[at].repeats, repeat))
        return results


def _interpreted(
    region: FusedRegion, read: Mapping[str, Tensor], patterns: Mapping[str, Tensor], wide: bool
) -> dict[str, Tensor] | None:
    """Compute the results of a region with the dense interpreter. Each stores the coordinates of the tensor of its name in
    `patterns`. If `wide`, all is computed in 64 bits. None if an array, such as an operand of a reduction, would be too large, or if the
    region has blocks."""
    program = _program_over_memory(region)
    if max(map(math.prod, shapes(program).values())) > LARGEST_ARRAY or region.blocks:
        return None
    results = evaluate(program, {t.name: read[t.name].to_dense() for t in program.inputs}, wide=wide)
    tensors = {}
    for name, pattern in patterns.items():
        if pattern.format.all_dense:
            values = results[name].transpose(pattern.format.order).ravel()
        else:
            values = results[name][tuple(pattern.coordinates())]
        tensors[name] = replace(pattern, values=pattern.element_type.hold(values))
    return tensors


def _program_over_memory(region: FusedRegion) -> Program:
    """Return the region as a program that reads what its graph reads: permuted copies are in memory, their sources may not be."""
    program, copies = as_program(region), {copy.name for copy in region.copies}
    einsums = tuple(e for e in program.einsums if e.name not in copies)
    used = {name for e in einsums for name in (e.name, *e.operands)}
    return replace(program, einsums=einsums, tensors=tuple(t for t in program.tensors if t.name in used))
