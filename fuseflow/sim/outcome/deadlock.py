"""Deadlocks, as both simulators describe them: which process waits for which, which FIFO is full, and which depth of one FIFO
would let the graph run to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from fuseflow.errors import DeadlockError, SimulationError
from fuseflow.samml.nodes import Edge, Fork, Graph, Link, Merge
from fuseflow.sim.outcome.statistics import EdgeStatistics, NodeStatistics, edges

MOST_SLOTS = 1 << 20
"""The most slots of a FIFO that are proposed as a remedy. The search up to this depth may take as long as the whole run."""


@dataclass(frozen=True, slots=True)
class AwaitedToken:
    """What a process waits for: the next token on its input number `input`, which the node `writer` emits."""

    input: int
    writer: str


@dataclass(frozen=True, slots=True)
class AwaitedSlot:
    """What a process waits for: a free slot in the FIFO of `edge`, which is full at `depth` tokens."""

    edge: Edge
    depth: int


@dataclass(frozen=True, slots=True)
class AwaitedWorkspace:
    """What a process waits for: another process of its node, to fill or free a workspace or to get an answer of the memory."""


AwaitedResource: TypeAlias = AwaitedToken | AwaitedSlot | AwaitedWorkspace


@dataclass(frozen=True, slots=True)
class WaitingProcess:
    """A process (a node, or a piece of a node that fires on its own) that cannot fire. `on` is the position, in the same list, of
    the process that would have to fire first, or None if that process has ended."""

    node: str
    awaits: AwaitedResource
    on: int | None


@dataclass(frozen=True, slots=True)
class Deadlock:
    """A deadlock is a run in which no firing is possible before its end.

    `waiting` lists all processes that have not ended, in graph order, and `nodes` has the statistics of every node; it is empty
    in a run that went on with deeper FIFOs, whose cycles mean nothing. `smallest_depth` takes an edge, or several that are
    equally deep, and returns the smallest depth with which the graph runs to its end while all others are unchanged, or None if
    there is none of at most about `MOST_SLOTS`. `deepened` goes on with deeper FIFOs, once, and returns the next deadlock, or
    None if the run comes to its end or far beyond this deadlock. The next deadlock is the same as with FIFOs that were as deep
    from the start: the results of nodes depend on no cycle, so the earlier waits do not matter. The cycles of that run are not
    used.
    """

    waiting: tuple[WaitingProcess, ...]
    nodes: tuple[NodeStatistics, ...]
    smallest_depth: Callable[[Sequence[Edge]], int | None]
    deepened: Callable[[Mapping[Edge, int]], Deadlock | None]


@dataclass(frozen=True, slots=True)
class Remedy:
    """A FIFO with its current depth, and the smallest depth of this FIFO alone (and its copies in other lanes) that clears a
    deadlock."""

    edge: Edge
    depth: int
    sufficient_depth: int


def deadlock_error(deadlock: Deadlock, graph: Graph) -> SimulationError:
    """Return the error that reports which process waits for which. It is a `DeadlockError` with the remedy if FIFOs are full, and
    else a `SimulationError` about streams that end apart."""
    cycle = _cycle(deadlock.waiting)
    last = max(node.last for node in deadlock.nodes)
    full = _full(cycle, graph)
    if not full:
        first = next((w for w in cycle if w.on is None), cycle[0])
        return SimulationError(
            f"the streams end apart: {_reason(first)}, which never comes", notes=[f"nothing moves after cycle {last}"]
        )
    chain = "; ".join(_reason(waiting) for waiting in cycle)
    hint = _advice(find_remedy(deadlock, graph), full, {slot.edge for slot in full} & dict(graph.depths).keys())
    return DeadlockError(f"no node can move after cycle {last}", notes=[f"wait-for cycle: {chain}"], hint=hint)


def find_remedy(deadlock: Deadlock, graph: Graph, copies: Mapping[Edge, Sequence[Edge]] | None = None) -> Remedy | None:
    """Return the full FIFO, among those that wait for each other, that clears the deadlock with the smallest depth. Of equal
    FIFOs the first in graph order counts. Return None if no FIFO alone clears it. `copies` maps a FIFO to all FIFOs that get the
    same depth; without it each FIFO is deepened alone."""
    order = {edge: k for k, edge in enumerate(edges(graph))}
    remedies = []
    visited: set[Edge] = set()
    for slot in sorted(_full(_cycle(deadlock.waiting), graph), key=lambda slot: order[slot.edge]):
        if slot.edge in visited:
            continue
        group = copies[slot.edge] if copies else (slot.edge,)
        visited.update(group)
        clears = deadlock.smallest_depth(group)
        if clears is not None:
            remedies.append(Remedy(slot.edge, slot.depth, clears))
    return min(remedies, key=lambda r: r.sufficient_depth, default=None)


def sufficient_depths(deadlock: Deadlock, graph: Graph, copies: Mapping[Edge, tuple[Edge, ...]]) -> dict[Edge, int]:
    """Return depths with which `fifo_depth: auto` clears a deadlock: powers of two, at which the graph runs to its end.

    If only one FIFO is full, it gets the next power of two, as often as the graph gets stuck on it. If several are full and wait
    for each other, the FIFO of the remedy gets the power of two that clears the deadlock. If no FIFO alone clears it, all get the
    next power of two, and the graph then deadlocks later or at another FIFO. A softmax is such a case: its values and its
    repeated maximum wait for each other in FIFOs that each hold a fiber. `copies` maps each FIFO to itself and its copies in
    other lanes, which are equally deep. Raises the error of `deadlock_error` if the graph is not stuck on a FIFO. If the graph is
    stuck without a full FIFO only after some FIFOs got deeper, the depths so far are returned: a run with them from the start
    then raises that error, with the right cycles.
    """
    depths: dict[Edge, int] = {}
    stuck: Deadlock | None = deadlock
    while stuck is not None:
        full = _full(_cycle(stuck.waiting), graph)
        if not full and depths:
            return depths
        if not full:
            raise deadlock_error(stuck, graph)
        remedy = find_remedy(stuck, graph, copies) if len({copies[slot.edge] for slot in full}) > 1 else None
        if remedy is not None:
            return depths | dict.fromkeys(copies[remedy.edge], 1 << (remedy.sufficient_depth - 1).bit_length())
        depths |= {edge: 1 << slot.depth.bit_length() for slot in full for edge in copies[slot.edge]}
        stuck = stuck.deepened(depths)
    return depths


def _cycle(waiting: Sequence[WaitingProcess]) -> list[WaitingProcess]:
    """Return the processes that wait for each other in a cycle, or the chain of waits that leads to a process that has ended."""
    path: list[int] = []
    position: int | None = 0
    while position is not None and position not in path:
        path.append(position)
        position = waiting[position].on
    return [waiting[k] for k in (path if position is None else path[path.index(position) :])]


def _full(cycle: Sequence[WaitingProcess], graph: Graph) -> list[AwaitedSlot]:
    """Return the full FIFOs of a cycle. That of a link is left out: it is a register, and waits for a slot of one behind it."""
    names = graph.by_name
    slots = [w.awaits for w in cycle if isinstance(w.awaits, AwaitedSlot)]
    return [slot for slot in slots if not isinstance(names[slot.edge.node], Link)]


def _reason(waiting: WaitingProcess) -> str:
    match waiting.awaits:
        case AwaitedToken(input=k, writer=writer):
            return f"`{waiting.node}` waits for a token on its input {k} from `{writer}`"
        case AwaitedSlot(edge=edge, depth=depth):
            return f"`{waiting.node}` waits for a slot of input {edge.input} of `{edge.node}`, full at depth {depth}"
        case AwaitedWorkspace():
            return f"`{waiting.node}` waits for a workspace"


def _advice(remedy: Remedy | None, full: Sequence[AwaitedSlot], stated: Set[Edge]) -> str:
    """Return the advice that clears a deadlock of `full` FIFOs. The depths of the `stated` FIFOs come from the schedule or the
    graph, not from the machine. `remedy` is None if no single FIFO clears the deadlock."""
    if remedy is not None:
        where = f"input {remedy.edge.input} of `{remedy.edge.node}`"
        knob = "; its depth is stated (`--depth`)" if remedy.edge in stated else ""
        return f"depth {remedy.sufficient_depth} of {where} clears it (now {remedy.depth}), and no smaller one does{knob}"
    knobs = ["the depths that are stated (`--depth`, or `depth:` of a schedule)"] if stated else []
    knobs += ["`fifo_depth` of the machine"] if any(slot.edge not in stated for slot in full) else []
    auto = "set it to `auto`" if not stated else "set `fifo_depth` of the machine to `auto`"
    return f"no single FIFO clears it, even with {MOST_SLOTS:,} slots: raise {' and '.join(knobs)}, or {auto}"


UNBOUNDED = 1 << 40
"""A depth that no run fills, in slots."""


def lane_kinds(graph: Graph) -> dict[str, int]:
    """Return a number for each node, by its name. Nodes that differ only in the lane have the same number: they have the same
    primitive and attributes, and read streams of equal numbers."""
    numbers: dict[Any, int] = {}
    kinds: dict[str, int] = {}
    forks = {node.name for node in graph.nodes if isinstance(node, Fork)}
    for node in graph.nodes:
        reads = tuple((kinds[p.node], 0 if p.node in forks else p.output) for p in node.inputs)
        kinds[node.name] = numbers.setdefault((type(node), replace(node, name="", inputs=()), reads), len(numbers))
    return kinds


def lane_copies(graph: Graph) -> dict[Edge, tuple[Edge, ...]]:
    """Return for each FIFO a tuple of all FIFOs that differ from it only in the lane, including itself, in graph order. They are
    inputs of nodes of one kind (`lane_kinds`)."""
    kinds = lane_kinds(graph)
    groups: dict[tuple[int, int], list[Edge]] = {}
    for node in graph.nodes:
        for k in range(len(node.inputs)):
            groups.setdefault((kinds[node.name], 0 if isinstance(node, Merge) else k), []).append(Edge(node.name, k))
    return {edge: tuple(edges) for edges in groups.values() for edge in edges}


def collector_depths(graph: Graph) -> dict[Edge, int]:
    """Return unbounded depths for the FIFOs in front of each merge. A merge takes a whole element of one lane before it turns to
    the next, so the FIFOs of the other lanes must hold theirs."""
    return {Edge(node.name, k): UNBOUNDED for node in graph.nodes if isinstance(node, Merge) for k in range(len(node.inputs))}


def final_depths(depths: Mapping[Edge, int], edges: Iterable[EdgeStatistics], start_depth: int) -> dict[Edge, int]:
    """Return bounded depths with which the run is the same. A FIFO that was unbounded in `depths` gets the power of two that
    holds its peak, if that is more than `start_depth`, the depth of FIFOs on the machine; else it is left out."""
    peaks = {Edge(edge.node, edge.input): edge.peak for edge in edges}
    final = {edge: depth if depth != UNBOUNDED else 1 << max(0, peaks[edge] - 1).bit_length() for edge, depth in depths.items()}
    return {edge: depth for edge, depth in final.items() if depths[edge] != UNBOUNDED or depth > start_depth}
