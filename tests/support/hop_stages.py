"""Hops as processes: the witness of the numbers that stand for them. A hop of two slots is a process that takes a token and gives it on
a cycle later; a plain register passes a token on in the next cycle whatever there is behind it, and the slots of its reader go back to
the writer as tokens, through as many registers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from engines import Found, same_written
from random_graphs.case import Case
from random_graphs.compare import differences_of_streams

from fuseflow.errors import SimulationError
from fuseflow.samml.nodes import Accumulate, Edge, Hops, Node, NodeHops
from fuseflow.samml.tokens import D
from fuseflow.sim.outcome.deadlock import Deadlock
from fuseflow.sim.outcome.output_tensors import with_lanes_gathered
from fuseflow.sim.outcome.statistics import Outcome, edges, run_cycles
from fuseflow.sim.reference.execute import Network, build_network, network_statistics, run_network
from fuseflow.sim.reference.timed_process import (
    BoundedFifo,
    BoundedOutput,
    Fifo,
    Output,
    Process,
    Slots,
    Steps,
    await_slots,
    make_output,
)

MOST = 12
"""The most hops of an edge that is drawn."""


def in_graph(case: Case, seed: int) -> Case:
    """The case with random hops, in front of FIFOs of 2 to 64 slots, or of one slot behind no hop or a plain register."""
    rng, graph = random.Random(f"hops {seed}"), case.graph
    share, kinds = rng.choice((0.1, 0.5, 1.0)), rng.choice(((2,), (2,), (2,), (0,), (2, 0)))
    most = rng.choice((1, 3, MOST))
    given = {edge: Hops(rng.randint(0, most), rng.choice(kinds)) for edge in edges(graph) if rng.random() < share}
    machine = case.machine.model_copy(update={"fifo_depth": rng.choice((None, 2, 2, 3, 5, 8, 16, 64))})

    def depth(edge: Edge) -> int:
        hops = given.get(edge, Hops(0))
        return rng.choice((2, 3, 4, 7, 20, 64) if hops.count and hops.slots else (1, 2, 5, 40))

    depths = tuple((edge, depth(edge)) for edge, _ in graph.depths)
    return replace(case, machine=machine, graph=replace(graph, depths=depths, hops=tuple(given.items())))


def at_nodes(case: Case, seed: int) -> Case:
    """The case with random hops at some of its nodes, and at no edge."""
    rng = random.Random(f"node hops {seed}")
    return replace(case, graph=case.graph.with_hops({}, node_hops(rng, (n for n in case.graph.nodes if rng.random() < 0.6))))


def node_hops(rng: random.Random, nodes: Iterable[Node]) -> dict[str, NodeHops]:
    """Random hops of nodes: up to 5 between their tiles, 9 round those of an accumulation, and 12 to a port."""
    return {
        node.name: NodeHops(rng.randint(0, 5), rng.randint(0, 9) if isinstance(node, Accumulate) else 0, rng.randint(0, 12))
        for node in nodes
    }


@dataclass(slots=True)
class Crossing:
    """An edge with hops as the processes on it see it: the cycles in which tokens are given and taken, and the way back of a slot."""

    given: list[Any]
    latency: int
    taken: list[int]
    back: int

    @property
    def peak(self) -> int:
        """The most slots in use in a cycle, each from the firing that fills it up to the cycle before it is free."""
        filled = sorted(visible - self.latency for _, visible in self.given)
        freed = sorted(cycle + self.back for cycle in self.taken)
        return max(sum(t <= at for t in filled) - sum(t < at for t in freed) for at in filled)


def differences_from_stages(case: Case, found: Found) -> Iterator[str]:
    """One line for everything in which a run differs from one with a process for each hop."""
    if isinstance(found, SimulationError):
        return
    controller = case.machine.controller()
    network = build_network(replace(case.graph, hops=()), case.tensors, case.machine, record=True, controller=controller)
    own = set(map(id, network.processes))
    crossings = {edge: _put_stages(network, edge, hops) for edge, hops in case.graph.hops if hops.count}
    stuck = [p.node.name for p in run_network(network) if id(p) in own]
    nodes = network_statistics(network)
    if stuck or isinstance(found, Deadlock):
        waiting = [w.node for w in found.waiting] if isinstance(found, Deadlock) else []
        if (stuck, nodes) != (waiting, found.nodes):
            yield f"stages: stuck {stuck} against {waiting}"
        return
    yield from _differences(case, found, network, nodes, crossings, run_cycles(nodes, case.machine, controller))


def _differences(
    case: Case, found: Outcome, network: Network, nodes: Any, crossings: dict[Edge, Crossing], cycles: int
) -> Iterator[str]:
    if cycles != found.cycles:
        yield f"stages: {cycles} cycles against {found.cycles}"
    yield from (f"stages: {a} against {b}" for a, b in zip(nodes, found.nodes, strict=True) if a != b)
    peaks = {edge: crossing.peak for edge, crossing in crossings.items()}
    for statistics in found.edges:
        edge = Edge(statistics.node, statistics.input)
        if (peak := peaks.get(edge, network.fifos[edge].peak)) != statistics.peak:
            yield f"stages: a peak of {peak} against {statistics}"
    for port, items in network.recorded.items():
        recording = replace(
            found.streams[port], tokens=[token for token, _ in items], visible=tuple(visible for _, visible in items)
        )
        yield from (f"stages: {port}: {line}" for line in differences_of_streams(recording, found.streams[port]))
    written = with_lanes_gathered(case.graph, network.written)
    yield from (f"stages: written {name}" for name in written if not same_written(written[name], found.written[name]))


def _put_stages(network: Network, edge: Edge, hops: Hops) -> Crossing:
    """Put a process for each hop on an edge."""
    last, node = network.fifos[edge], next(p.node for p in network.processes if p.node.name == edge.node)
    out = next(out for out in network.streams.values() if any(fifo is last for fifo in out.fifos))
    crossing = Crossing(out.record(), out.latency, [], hops.count if last.slots is not None else 0)
    chain: list[Fifo] = [BoundedFifo(None, 2) if hops.slots else Fifo() for _ in range(hops.count)]
    if hops.slots:
        chain[0] = BoundedFifo(None, out.latency + 1)  # the first covers the latency of the writer
    waited, note = [slots for slots in out.slots if slots is not last.slots], partial(_note, crossing.taken)
    waited += [fifo.slots for fifo in chain[:1] if fifo.slots is not None]
    kind = type(last)
    if not hops.slots and last.slots is not None:
        credits, slots = [Fifo() for _ in range(hops.count)], Slots(last.slots.depth, edge)
        note, kind, last.slots = partial(_give_back, crossing.taken, credits[0]), Fifo, None
        waited.append(slots)
        ways = (*(make_output(1, (fifo,)) for fifo in credits[1:]), SlotOutput(slots))
        network.processes += [stage(node, fifo, way) for fifo, way in zip(credits, ways, strict=True)]
    network.processes += [stage(node, a, make_output(1, (b,))) for a, b in zip(chain, (*chain[1:], last), strict=True)]
    append, fifos = last.append, tuple(chain[0] if fifo is last else fifo for fifo in out.fifos)
    last.__class__ = _noting(kind, note)
    out.fifos, out.appends = fifos, tuple(chain[0].append if a == append else a for a in out.appends)
    out.slots = tuple(waited)
    out.__class__ = BoundedOutput
    for process in network.processes:
        process.bounded = any(output.slots for output in process.outputs)
    return crossing


def stage(node: Node, fifo: Fifo, out: Output) -> Process:
    """A process that takes each token and gives it on."""
    process = Process(node, (fifo,), (out,), 1)
    process.helper, process.steps = True, _pass_on(process, fifo, out)
    return process


def _pass_on(process: Process, fifo: Fifo, out: Output) -> Steps:
    token: Any = None
    while token is not D:
        while not fifo:
            yield fifo
        token, visible = fifo[0]
        t = process.fire(visible, (yield from await_slots(out)))
        fifo.take(t)
        out.push(token, t)


class SlotOutput(Output):
    """The end of the way of a slot, at the writer."""

    def __init__(self, slots: Slots) -> None:
        super().__init__(1)
        self.freed = slots

    def push(self, token: Any, t: int) -> None:
        self.freed.append(t + 1)


def _note(taken: list[int], token: Any, t: int) -> None:
    taken.append(t)


def _give_back(taken: list[int], credits: Fifo, token: Any, t: int) -> None:
    """Send the slot of a token back in the cycle after it is taken."""
    taken.append(t)
    credits.append((token, t + 1))


def _noting(kind: type[Fifo], note: Callable[[Any, int], None]) -> type[Fifo]:
    """A FIFO that tells what is taken of it."""

    def take(self: Fifo, t: int) -> None:
        note(self[0][0], t)
        kind.take(self, t)

    return type("NotingFifo", (kind,), {"__slots__": (), "take": take})
