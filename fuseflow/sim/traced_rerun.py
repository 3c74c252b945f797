"""A replay runs a finished simulation again, on the same simulator, and reports every event of the run to a sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fuseflow.errors import SimulationError
from fuseflow.machine.machine import Machine
from fuseflow.samml.nodes import Graph
from fuseflow.sim.events.critical_path import CriticalPath, Replay, critical_path
from fuseflow.sim.events.log import CycleSpan, LastEvent, Sink
from fuseflow.sim.events.stalls import Stalls, StallSink
from fuseflow.sim.events.timeline import Timeline
from fuseflow.sim.reference.traced_run import trace as trace_reference
from fuseflow.sim.run import Simulation
from fuseflow.tensors import Tensor


def replay(
    graph: Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    simulation: Simulation,
    progress: Callable[[int], None] | None = None,
) -> Replay:
    """Return a function that repeats `simulation`, which must be a run of this graph, at each call. That function takes a
    function that makes an empty sink, and returns the filled sink and the last event of the run. Raises `SimulationError` for a
    run of several tiles."""
    if simulation.tiles > 1:
        raise SimulationError(
            f"graph `{graph.name}` ran in {simulation.tiles} tiles, and a trace follows one run",
            hint="leave `tile` out of the schedule",
        )
    deepened = replace(graph, depths=tuple({**dict(graph.depths), **simulation.depths}.items()))

    def run(sink: Callable[[], Sink]) -> tuple[Sink, LastEvent]:
        if simulation.engine == "fast":
            from fuseflow.sim.engine.traced_run import trace  # loads the compiler, which small graphs never need

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
) -> CriticalPath:
    """Return the critical path of a simulation of a graph."""
    return critical_path(replay(graph, tensors, machine, simulation, progress))


def find_timeline(
    graph: Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    simulation: Simulation,
    timeline: Callable[[], Timeline] = lambda: Timeline(CycleSpan()),
    progress: Callable[[int], None] | None = None,
) -> Timeline:
    """Return the timeline of a simulation of a graph. `timeline` makes the empty timeline that is filled."""
    sink, ending = replay(graph, tensors, machine, simulation, progress)(timeline)
    assert isinstance(sink, Timeline)
    sink.cycles = ending.cycles
    return sink


def find_stalls(
    graph: Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    simulation: Simulation,
    progress: Callable[[int], None] | None = None,
) -> Stalls:
    """Return the stalls of a simulation of a graph: the work and the waits of every node over time."""
    sink, ending = replay(graph, tensors, machine, simulation, progress)(StallSink)
    assert isinstance(sink, StallSink)
    return sink.stalls(ending.cycles)
