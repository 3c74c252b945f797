"""A run that is over, again, by the simulator that ran it, for whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fuseflow.samml.nodes import Graph
from fuseflow.sim.events.critical_path import EVENT_LIMIT, CriticalPath, Replay, critical_path
from fuseflow.sim.events.log import CycleSpan, LastEvent, Sink
from fuseflow.sim.events.timeline import Timeline
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.reference.event_log import trace as trace_reference
from fuseflow.sim.run import Simulation
from fuseflow.tensors import Tensor


def replay(
    graph: Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    simulation: Simulation,
    progress: Callable[[int], None] | None = None,
) -> Replay:
    """Runs `simulation`, which was of this graph, again, as often as it is called."""
    deepened = replace(graph, depths=tuple({**dict(graph.depths), **simulation.depths}.items()))

    def run(sink: Callable[[], Sink]) -> tuple[Sink, LastEvent]:
        if simulation.engine == "fast":
            from fuseflow.sim.engine.event_log import trace  # loads the compiler, which small graphs never need

            events, ending = trace(deepened, tensors, machine, sink, progress)
        else:
            events, ending = trace_reference(deepened, tensors, machine, sink, progress)
        assert ending.cycles == simulation.cycles, f"{ending.cycles} cycles, and {simulation.cycles} before"
        return events, ending

    return run


def find_critical_path(
    graph: Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    simulation: Simulation,
    progress: Callable[[int], None] | None = None,
    limit: int = EVENT_LIMIT,
) -> CriticalPath:
    """The critical path of a run of a graph."""
    return critical_path(replay(graph, tensors, machine, simulation, progress), limit)


def find_timeline(
    graph: Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    simulation: Simulation,
    timeline: Callable[[], Timeline] = lambda: Timeline(CycleSpan()),
    progress: Callable[[int], None] | None = None,
) -> Timeline:
    """The timeline of a run of a graph. `timeline` makes an empty one."""
    sink, ending = replay(graph, tensors, machine, simulation, progress)(timeline)
    assert isinstance(sink, Timeline)
    sink.cycles = ending.cycles
    return sink
