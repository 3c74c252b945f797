"""The engine as a simulator: from a graph to what every simulator hands over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.loop import FAULT, HELD, KINDS, SHORT, STUCK, sweep, sweep_at_memory
from fuseflow.sim.engine.network_layout import NetworkLayout, lay_out
from fuseflow.sim.engine.node_layout import Limits
from fuseflow.sim.engine.node_records import BUFFER, ENDED, OUTPUT
from fuseflow.sim.engine.outcome import deadlock, fault, full_reader, outcome
from fuseflow.sim.engine.service import PartOutput, serve
from fuseflow.sim.engine.stream_rings import MANY
from fuseflow.sim.engine.trial import POSSIBLE, TrialFailure, tried
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.memory.controller import ControllerFactory
from fuseflow.sim.native.jit import ADVANCE, SWEEP, SWEEP_AT_MEMORY, Library, library
from fuseflow.sim.native.records import address
from fuseflow.sim.outcome.deadlock import Deadlock
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.tensors import Tensor

BUDGET = 50_000_000
"""Firings between two calls of `progress`."""
DEFAULTS = Limits()


def execute(
    graph: n.Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    progress: Callable[[int], None] | None = None,
    record: bool = False,
    limits: Limits = DEFAULTS,
    attach: ControllerFactory | None = None,
) -> Outcome | Deadlock:
    """Run a verified graph, many tokens at a time, at the memory of its machine or one that `attach` gives. `progress` is called now and
    then with the number of firings so far; `record` keeps all streams. Raises `SimulationError` if streams do not fit together."""
    functions, attach = library(), attach or machine.controller
    layout, gathered = lay_out(graph, tensors, machine, functions, limits, record, attach()), PartOutput()
    if run(layout, gathered, functions, progress):
        return outcome(layout, machine, gathered)
    anew = partial(lay_out, tensors=tensors, machine=machine, library=functions, limits=limits)
    return _deadlock(layout, gathered, functions, lambda deep: anew(graph.with_depths(deep), controller=attach()), {}, progress)


def _deadlock(
    layout: NetworkLayout,
    gathered: PartOutput,
    library: Library,
    anew: Callable[[Mapping[n.Edge, int]], NetworkLayout],
    depths: Mapping[n.Edge, int],
    progress: Callable[[int], None] | None,
) -> Deadlock:
    """`depths`: what the run was given more than its graph says; `anew` makes one that has such from the start."""

    def deepened(more: Mapping[n.Edge, int]) -> Deadlock | None:
        _forget_cycles(layout)
        for reader, found in enumerate(layout.edges):
            if found.edge is not None and found.edge in more:
                layout.readers["depth"][reader] = more[found.edge]
        if run(layout, gathered, library, progress):
            return None
        return _deadlock(layout, gathered, library, anew, {**depths, **more}, progress)

    def smallest(edges: Sequence[n.Edge]) -> int | None:
        if POSSIBLE:
            with suppress(TrialFailure):  # the same from the start says why, if it does
                return tried(lambda alive: smallest_depth(layout, edges, library, alive))
        return smallest_depth(anew(depths), edges, library)

    return deadlock(layout, smallest, deepened)


def run(
    layout: NetworkLayout,
    gathered: PartOutput,
    library: Library,
    progress: Callable[[int], None] | None = None,
    budget: int = BUDGET,
) -> bool:
    """Run to the end; whether it was reached, or the graph deadlocks. `progress` is called after `budget` firings, or soon after."""
    loop = _loop(layout, library, budget)
    while True:
        status, cycle = loop()
        if status == FAULT:
            raise fault(layout)
        if progress is not None:
            progress(int(layout.nodes["firings"].sum()))
        if status == SHORT and layout.controller is not None:
            layout.controller.memory.advance(cycle)
        if status == STUCK and (layout.nodes["waits"] == ENDED).all():
            return True
        if status in (STUCK, HELD) and not serve(layout, gathered, cycle if status == HELD else MANY):
            return False


def _loop(layout: NetworkLayout, library: Library, budget: int) -> Callable[[], tuple[int, int]]:
    """The joint loop; it returns a status, and the cycle that it speaks of."""
    nodes, agenda, controller = address(layout.nodes), address(layout.agenda), layout.controller
    if controller is None:
        plain = library.compiled(sweep, SWEEP)
        return lambda: (plain(nodes, agenda, budget), 0)
    memory, advance = address(controller.memory.state), library.address(controller.memory.model.advance, ADVANCE)
    loop, step = library.compiled(sweep_at_memory, SWEEP_AT_MEMORY), controller.step

    def turns() -> tuple[int, int]:
        cycle, status = divmod(loop(nodes, agenda, budget, memory, advance, step), KINDS)
        return status, cycle

    return turns


def smallest_depth(
    layout: NetworkLayout, edges: Sequence[n.Edge], library: Library, progress: Callable[[int], None] | None = None
) -> int | None:
    """The smallest depth of FIFOs that are equally deep, others unchanged, with which the graph runs to its end; None if there is none.
    From where it is: at the start, or stuck.

    They get one slot more whenever the graph is stuck on one of them. What was computed stays possible, since a deeper FIFO allows all
    that a shallower one does; its cycles are not used.
    """
    gathered = PartOutput()
    _forget_cycles(layout)
    wanted = set(edges)
    readers = [r for r, found in enumerate(layout.edges) if found.edge in wanted]
    while not run(layout, gathered, library, progress):
        stuck = [p for p, wait in enumerate(layout.nodes["waits"].tolist()) if OUTPUT <= wait < BUFFER]
        if not any(full_reader(layout, p) in readers for p in stuck):
            return None
        layout.readers["depth"][readers] += 1
    return int(layout.readers["depth"][readers].max())


def _forget_cycles(layout: NetworkLayout) -> None:
    if layout.controller is not None:
        layout.controller.memory.be_patient()
