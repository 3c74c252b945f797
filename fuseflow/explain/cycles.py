"""The causes of the cycles of a run: the critical path of every region, and the changes that are expected to take fewer cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from fuseflow.explain.changes import Change, RegionRun, find_changes
from fuseflow.lower.regions import CompiledRegion
from fuseflow.run.compiled import Compiled
from fuseflow.run.execution import ProgressCallback
from fuseflow.run.result import RegionResult, Result
from fuseflow.sim import Engine, Simulation
from fuseflow.sim.event_replay import find_critical_path, find_stalls
from fuseflow.sim.events.critical_path import CriticalPath
from fuseflow.sim.events.fifo_loops import StepKind
from fuseflow.sim.events.stalls import Stalls
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class RegionCycles:
    """The run of a region with its critical path, and with its stalls over time, if they were asked for."""

    region: CompiledRegion
    result: RegionResult
    path: CriticalPath
    stalls: Stalls | None = None


@dataclass(frozen=True, slots=True)
class CyclesReport:
    """The critical path of every region that was simulated, and the changes that were considered, the most promising first.

    A region that runs like another one has the same critical path, and is not listed.
    """

    compiled: Compiled
    result: Result
    regions: tuple[RegionCycles, ...]
    changes: tuple[Change, ...] = ()


def explain_cycles(
    compiled: Compiled,
    engine: Engine = "auto",
    progress: ProgressCallback | None = None,
    with_changes: bool = True,
    with_stalls: bool = False,
) -> CyclesReport:
    """Run a program, and every region once more for its critical path. The outputs are not checked.

    With `with_changes`, changed schedules are compiled and compared with the program's, too. With `with_stalls`, every region
    runs once more for the waits of its nodes over time.
    """
    paths: dict[str, RegionRun] = {}
    stalls: dict[str, Stalls] = {}

    def watch(region: CompiledRegion, read: Mapping[str, Tensor], simulation: Simulation) -> None:
        report = None if progress is None else partial(progress, f"{region.name} (critical path)")
        path = find_critical_path(region.graph, read, compiled.machine, simulation, report)
        paths[region.name] = RegionRun(region, read, simulation, path)
        if with_stalls:
            report = None if progress is None else partial(progress, f"{region.name} (stalls)")
            stalls[region.name] = find_stalls(region.graph, read, compiled.machine, simulation, report)

    result = compiled.run(progress, check=False, engine=engine, watch=watch)
    regions = tuple(RegionCycles(paths[r.name].region, r, paths[r.name].path, stalls.get(r.name)) for r in result.regions)
    if not with_changes:
        return CyclesReport(compiled, result, regions)
    longest = max(regions, key=lambda r: r.result.times * r.result.cycles).result
    return CyclesReport(compiled, result, regions, find_changes(compiled, result, paths[longest.name], longest.times))


@dataclass(frozen=True, slots=True)
class PathShare:
    """The cycles of a critical path that one node takes in one kind of step, over all its FIFOs and ports."""

    node: str
    kind: StepKind
    cycles: int


def path_shares(path: CriticalPath) -> tuple[PathShare, ...]:
    """Return the cycles of a path by node and kind of step, the largest share first."""
    cycles_by_node: dict[tuple[str, StepKind], int] = {}
    for step in path.steps:
        cycles_by_node[step.node, step.kind] = cycles_by_node.get((step.node, step.kind), 0) + step.cycles
    return tuple(
        sorted((PathShare(*key, cycles) for key, cycles in cycles_by_node.items()), key=lambda s: (-s.cycles, s.node, s.kind))
    )
