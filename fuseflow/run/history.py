"""The history of a run: each simulation so far, and how often it counts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.machine import Machine
from fuseflow.memory.layout import used_tensors
from fuseflow.run.repeats import interpret_repeat
from fuseflow.run.result import RegionResult
from fuseflow.run.simulated_costs import simulated_resources
from fuseflow.sim import Simulation
from fuseflow.sim.signature import RegionRepeat, signature
from fuseflow.tensors import Tensor


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
        """Return a key that is equal for regions that run in the same way, None without `dedup`, or for a region that runs like
        no other."""
        return signature(region.graph, read) if self.dedup else None

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
        computed = self._results[at].simulation.outputs
        results = interpret_repeat(
            region.fused, read, {names[name]: tensor for name, tensor in computed.items()}, self.machine.is_wide
        )
        if results is None:
            return None
        repeat = RegionRepeat(region.name, region.einsums, names)
        self._results[at] = replace(self._results[at], repeats=(*self._results[at].repeats, repeat))
        return results
