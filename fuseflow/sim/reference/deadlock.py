"""Deadlock: who waits for whom, which FIFO is full, and which depth of one FIFO would let the graph end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuseflow.errors import DeadlockError, SimulationError
from fuseflow.samml.nodes import Edge
from fuseflow.sim.reference.build import Network
from fuseflow.sim.reference.process import Fifo, Process, Slots
from fuseflow.sim.reference.run import run


def explain(network: Network, stuck: Sequence[Process], rebuild: Callable[[], Network]) -> SimulationError:
    """The error for a network of which `stuck` cannot move; `rebuild` makes the same network anew, to try other depths on it."""
    cycle = _cycle(stuck)
    last = max(process.last for process in network.processes)
    full = [p.waits for p in cycle if isinstance(p.waits, Slots) and p.waits.edge is not None]
    if not full:
        first = next((p for p in cycle if _awaited(p) not in stuck), cycle[0])
        return SimulationError(
            f"the streams end apart: {_reason(first)}, which never comes", notes=[f"nothing moves after cycle {last}"]
        )
    chain = "; ".join(_reason(process) for process in cycle)
    return DeadlockError(
        f"no node can move after cycle {last}",
        notes=[f"wait-for cycle: {chain}"],
        hint=_advice(full, list(network.slots), rebuild),
    )


def smallest_depth(edge: Edge, rebuild: Callable[[], Network]) -> int | None:
    """The smallest depth of one FIFO, others unchanged, with which the network runs to its end; None if there is none."""
    network = rebuild()
    slots = network.slots[edge]
    return None if run(network, growing=slots) else slots.depth


def _cycle(stuck: Sequence[Process]) -> list[Process]:
    """The processes on a cycle of waiting, or on the way to one that has ended."""
    path: list[Process] = []
    process = stuck[0]
    while process not in path:
        path.append(process)
        process = _awaited(process)
        if process not in stuck:
            return path
    return path[path.index(process) :]


def _awaited(process: Process) -> Process:
    waits = process.waits
    assert isinstance(waits, Fifo | Slots)
    return waits.writer if isinstance(waits, Fifo) else waits.reader


def _reason(process: Process) -> str:
    waits, name = process.waits, process.node.name
    match waits:
        case Fifo(edge=Edge(input=k)):
            return f"`{name}` waits for a token on its input {k} from `{waits.writer.node.name}`"
        case Slots(edge=Edge(node=reader, input=k), depth=depth):
            return f"`{name}` waits for a slot of input {k} of `{reader}`, full at depth {depth}"
        case _:
            return f"`{name}` waits for a workspace"


def _advice(full: Sequence[Slots], edges: Sequence[Edge], rebuild: Callable[[], Network]) -> str:
    """The FIFO that clears the deadlock with the smallest depth (of equal ones the first in edge order)."""
    found = []
    for slots in full:
        assert slots.edge is not None
        depth = smallest_depth(slots.edge, rebuild)
        if depth is not None:
            found.append((depth, edges.index(slots.edge), slots))
    if not found:
        return "no single FIFO clears it, however deep: raise `fifo_depth` of the machine"
    depth, _, slots = min(found, key=lambda row: row[:2])
    assert slots.edge is not None
    return (
        f"depth {depth} of input {slots.edge.input} of `{slots.edge.node}` clears it (now {slots.depth}), and no smaller one does"
    )
