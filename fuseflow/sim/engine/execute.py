"""The engine as a simulator: it runs a graph and returns an outcome in the form that all simulators share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain, count, takewhile
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.machine.machine import Machine
from fuseflow.memory.memory_interface import ControllerFactory
from fuseflow.native.kernel_library import Library, library
from fuseflow.native.records import address
from fuseflow.native.signatures import ADVANCE, SWEEP, SWEEP_AT_MEMORY
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.buffer_growth import PartOutput, serve
from fuseflow.sim.engine.loop import FAULT, HELD, SHORT, STATUS_COUNT, STUCK, sweep, sweep_at_memory
from fuseflow.sim.engine.network_layout import NetworkLayout, lay_out
from fuseflow.sim.engine.node_layout import Limits
from fuseflow.sim.engine.outcome import describe_deadlock, fault_error, full_readers, outcome, statistics, unfinished_parts
from fuseflow.sim.engine.stream_rings import MANY
from fuseflow.sim.outcome.deadlock import MOST_SLOTS, Deadlock
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.sim.processors import PROCESSORS
from fuseflow.tensors import Tensor


class Snapshot:
    """All that a run may change of a layout: the contents of arrays, and which arrays there are, since rings and tables grow. The data of
    tensors are not part of it."""

    def __init__(self, layout: NetworkLayout) -> None:
        lists: list[list[Any]] = [layout.rings, layout.scratches, layout.histories]
        unwritten = {id(layout.scratches[k]) for k in np.flatnonzero(layout.streams["limited"] == 0).tolist()}
        arrays = [layout.nodes, layout.streams, layout.readers, layout.agenda, *layout.arrays.values()]
        arrays += [part.state for part in layout.parts]
        if layout.controller is not None:
            lists += layout.controller.memory.lists()
            arrays += layout.controller.memory.arrays()
        self.tables = [(vars(table), dict(vars(table))) for tables in layout.tables.values() for table in tables]
        self.lists = [(items, list(items)) for items in lists]
        arrays += [item for _, items in self.lists for item in items if id(item) not in unwritten]
        arrays += [field for _, fields in self.tables for field in fields.values() if isinstance(field, np.ndarray)]
        self.arrays: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = [(array, array.copy()) for array in arrays]

    def restore(self) -> None:
        """Return to the state of the snapshot."""
        for table, fields in self.tables:
            table.update(fields)
        for items, before in self.lists:
            items[:] = before
        for array, content in self.arrays:
            array[...] = content


Turn: TypeAlias = Callable[[int], tuple[int, int]]
"""A function that makes about as many firings as it is told, and returns a status of the loop and its cycle."""
BUDGET = 50_000_000
"""The number of firings between two calls of `progress`."""
FURTHER, AT_LEAST = 4, 1 << 20
"""A stuck run with deeper FIFOs is followed for `FURTHER` times the firings until then, and at least `AT_LEAST` firings, to find
the next deadlock. If one comes later, the run that then begins anew finds it."""
NEAR = 128
"""The number of depths beyond the depth of a stuck run that are tried one by one. Then steps double."""
ATTEMPTS = 1024
"""A step that clears a deadlock is divided into about this number of smaller ones."""
TRIAL = 8
"""A team runs this many times as long as one thread before both are compared: at first its parts are in other processors' caches."""
SLOWER = 1.5
"""A team that takes this many times as long for a firing as one thread took leaves: firings do not all take the same time. Tuned,
as the number above, on attention with 16 lanes, and tried with 64."""
DEFAULT_LIMITS = Limits()
"""The limits of a run that is given none: sizes of buffers at the start, and lengths of steps."""


def execute(
    graph: n.Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    progress: Callable[[int], None] | None = None,
    record: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    attach: ControllerFactory | None = None,
) -> Outcome | Deadlock:
    """Run a verified graph, many tokens at a time, with the memory of the machine or the one that `attach` makes. `progress` is
    called now and then with the number of firings so far; with `record`, all streams are kept. A long run is divided among the free
    processors, with the same result. Return the outcome or the deadlock. Raise `SimulationError` if streams do not fit together."""
    functions, controller = library(), (attach or machine.controller)()
    layout, part_output = lay_out(graph, tensors, machine, functions, limits, record, controller), PartOutput()
    own, past_links = PROCESSORS.take(1), None
    if any(isinstance(node, n.Link) for node in graph.nodes):
        from fuseflow.sim.engine.past_links import look_past_links  # most graphs have none

        past_links = look_past_links(layout)
    try:
        if past_links is None:
            ended = _run_in_threads(layout, part_output, functions, progress)
        else:
            ended = run(layout, part_output, functions, progress)
            if not ended:
                past_links.remove()
                ended = run(layout, part_output, functions, progress)  # so that every part waits for what a deadlock tells
        if ended:
            return outcome(layout, machine, part_output)
        return _deadlock(layout, part_output, functions, {}, progress)
    finally:
        PROCESSORS.give_back(own)


def _run_in_threads(
    layout: NetworkLayout, part_output: PartOutput, library: Library, progress: Callable[[int], None] | None
) -> bool:
    """Run to the end, and return True, or False if the graph deadlocks. If the run is long, more threads join after a while, as far as
    processors are free. They leave again if they make it slower, as they do where other programs need the processors."""
    limits = layout.limits

    def run_piece(turn: Turn | None, further: int | None) -> tuple[bool, float]:
        """Run for a while. Return whether the run can go on or has ended, and its seconds for a firing."""
        start, before = time.perf_counter(), layout.nodes["firings"].sum()
        goes_on = run(layout, part_output, library, progress, further=further, turn=turn)
        return goes_on, (time.perf_counter() - start) / max(layout.nodes["firings"].sum() - before, 1)

    goes_on, least = run_piece(None, limits.alone)
    if goes_on and not has_ended(layout):
        from fuseflow.sim.engine.team import team_for  # most runs end before

        with team_for(layout, library) as team:
            seconds = 0.0
            while team is not None and goes_on and not has_ended(layout) and seconds <= SLOWER * least:
                goes_on, seconds = run_piece(team.turn, None if limits.threads else TRIAL * limits.alone)
    return goes_on and (has_ended(layout) or run(layout, part_output, library, progress))


def _deadlock(
    layout: NetworkLayout,
    part_output: PartOutput,
    library: Library,
    depths: Mapping[n.Edge, int],
    progress: Callable[[int], None] | None,
) -> Deadlock:
    """Return the deadlock of a stuck run. `depths` are the depths of FIFOs that differ from the graph."""
    stuck_run = cache(lambda: Snapshot(layout))

    def run_deepened(larger_depths: Mapping[n.Edge, int]) -> Deadlock | None:
        _forget_cycles(layout)
        deepened = [layout.reader_of[edge] for edge in larger_depths]
        layout.readers["depth"][deepened] = list(larger_depths.values()) + layout.added[deepened]
        further = max(FURTHER * int(layout.nodes["firings"].sum()), AT_LEAST)
        if run(layout, part_output, library, progress, further=further):
            return None
        return _deadlock(layout, part_output, library, {**depths, **larger_depths}, progress)

    def clearing_depth(edges: Sequence[n.Edge], attempts: Iterable[int]) -> int | None:
        snapshot = stuck_run()
        try:
            return first_clearing_depth(layout, edges, attempts, library)
        finally:
            snapshot.restore()

    def smallest_depth_of(edges: Sequence[n.Edge]) -> int | None:
        readers = [layout.reader_of[edge] for edge in edges]
        stuck = int((layout.readers["depth"] - layout.added)[readers].max())
        return smallest_clearing_depth(stuck, partial(clearing_depth, edges))

    return describe_deadlock(layout, () if depths else statistics(layout), smallest_depth_of, run_deepened)


def run(
    layout: NetworkLayout,
    part_output: PartOutput,
    library: Library,
    progress: Callable[[int], None] | None = None,
    budget: int = BUDGET,
    further: int | None = None,
    turn: Turn | None = None,
) -> bool:
    """Run to the end, or for at least `further` firings, and return True; return False if the graph deadlocks. `progress` is called
    about every `budget` firings. A `turn` makes about as many firings as it is told, if it is not made in this thread alone. Raise
    `SimulationError` at a fault."""
    turn, made = turn or _turn(layout, library), int(layout.nodes["firings"].sum())
    while True:
        status, cycle = turn(budget if further is None else min(budget, further))
        if status == FAULT:
            raise fault_error(layout)
        firings = int(layout.nodes["firings"].sum())
        if progress is not None:
            progress(firings)
        if further is not None and firings - made >= further:
            return True
        if status == SHORT and layout.controller is not None:
            layout.controller.memory.advance(cycle)
        if status == STUCK and has_ended(layout):
            return True
        if status in (STUCK, HELD) and not serve(layout, part_output, cycle if status == HELD else MANY):
            return False


def has_ended(layout: NetworkLayout) -> bool:
    """Return whether all parts have ended."""
    return not unfinished_parts(layout)


def _turn(layout: NetworkLayout, library: Library) -> Turn:
    """Return the loop over all parts as a function that makes about as many firings as it is told, and returns a status and its cycle."""
    nodes, agenda, controller = address(layout.nodes), address(layout.agenda), layout.controller
    if controller is None:
        plain = library.compiled(sweep, SWEEP)
        return lambda budget: (plain(nodes, agenda, budget), 0)
    memory, advance = address(controller.memory.state), library.address(controller.memory.model.advance, ADVANCE)
    loop, step = library.compiled(sweep_at_memory, SWEEP_AT_MEMORY), controller.step

    def turn(budget: int) -> tuple[int, int]:
        cycle, status = divmod(loop(nodes, agenda, budget, memory, advance, step), STATUS_COUNT)
        return status, cycle

    return turn


def smallest_clearing_depth(stuck: int, clearing_depth: Callable[[Iterable[int]], int | None]) -> int | None:
    """Return the smallest depth with which a graph runs to its end that is stuck at the depth `stuck`, or None if there is none of at most
    about `MOST_SLOTS`.

    `clearing_depth` returns the first of some growing depths that clears the graph. A run to the end may be long, and so may be
    a thousand attempts that are soon stuck again. So the first depths are tried one by one, further ones in steps that double, and the
    last step is divided until it is of one slot.
    """
    near = range(stuck + 1, stuck + NEAR + 1)
    steps = takewhile(lambda depth: depth < 2 * MOST_SLOTS, (stuck + NEAR * 2**k for k in count(1)))
    clears = clearing_depth(chain(near, steps))
    if clears is None or clears in near:
        return clears
    step = (clears - stuck) // 2
    while step > 1:
        below, step = clears - step, -(-step // ATTEMPTS)
        clears = clearing_depth(count(below + step, step))
        assert clears is not None, "a deeper FIFO allows all that a shallower one does"
    return clears


def first_clearing_depth(
    layout: NetworkLayout,
    edges: Sequence[n.Edge],
    depths: Iterable[int],
    library: Library,
    progress: Callable[[int], None] | None = None,
) -> int | None:
    """Return the first of some growing depths of the FIFOs `edges`, all equally deep and the others unchanged, with which the
    graph runs to its end, or None if there is none. The run continues from the state of `layout`, at the start or stuck.

    The FIFOs get the next depth whenever the graph is stuck on one of them. Tokens so far stay possible, since a deeper FIFO
    allows all that a shallower one does; its cycles are not used.
    """
    part_output = PartOutput()
    _forget_cycles(layout)
    readers = [layout.reader_of[edge] for edge in edges]
    for depth in depths:
        layout.readers["depth"][readers] = depth + layout.added[readers]
        if run(layout, part_output, library, progress):
            return depth
        if not {*readers} & {*full_readers(layout).values()}:
            return None
    return None


def _forget_cycles(layout: NetworkLayout) -> None:
    if layout.controller is not None:
        layout.controller.memory.forget_cycles()
