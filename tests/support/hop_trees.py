"""Routes that divide: a `link` where they do, against a process on every hop, which gives its token to all branches in one firing."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from engines import Found, same_written
from hop_stages import stage
from random_graphs.case import Case
from random_graphs.compare import differences_of_streams

from fuseflow.errors import SimulationError
from fuseflow.samml.nodes import Edge, Graph, Hops, Link, Port, Primitive
from fuseflow.sim.outcome.deadlock import Deadlock
from fuseflow.sim.outcome.output_tensors import with_lanes_gathered
from fuseflow.sim.outcome.statistics import run_cycles
from fuseflow.sim.reference.execute import Network, build_network, network_statistics, run_network
from fuseflow.sim.reference.timed_process import BoundedFifo, BoundedOutput, Fifo, make_output

DEPTHS = (2, 3, 5, 8, 16, 64)


@dataclass(frozen=True, slots=True)
class Branch:
    """A segment of a route, of a number of hops, and its end: a reader, or branches. A segment that divides has a hop where it does."""

    hops: int
    end: Edge | tuple[Branch, ...]


Trees: TypeAlias = dict[Port, tuple[Branch, ...]]


def random_trees(graph: Graph, seed: int) -> Trees:
    """Random routes of the streams of a graph, all of them or some."""
    rng = random.Random(f"trees {seed}")
    share, most = rng.choice((0.3, 0.7, 1.0)), rng.choice((1, 3, 6))
    return {port: _branches(rng, readers, most) for port, readers in graph.readers().items() if rng.random() < share}


def _branches(rng: random.Random, readers: Sequence[Edge], most: int, inner: bool = False) -> tuple[Branch, ...]:
    """Random branches to readers. Below a point where a route divides there are several, or one that only passes a hop."""
    left, branches = rng.sample(readers, len(readers)), list[Branch]()
    while left:
        size = rng.randint(1, len(left) - (inner and len(left) == len(readers) and len(left) > 1))
        group, left = left[:size], left[size:]
        if size > 1 or rng.random() < 0.1:
            branches.append(Branch(rng.randint(1, most), _branches(rng, group, most, inner=True)))
        else:
            branches.append(Branch(rng.randint(0, most), group[0]))
    return tuple(branches)


def with_links(graph: Graph, trees: Trees) -> Graph:
    """The graph with a `link` wherever a route divides, and the hops of all segments."""
    after: dict[str, list[Primitive]] = {node.name: [] for node in graph.nodes}
    reads: dict[Edge, Port] = {}
    hops: dict[Edge, Hops] = {}

    def lay(source: Port, branches: tuple[Branch, ...], owner: str) -> None:
        for branch in branches:
            if isinstance(branch.end, Edge):
                reads[branch.end], hops[branch.end] = source, Hops(branch.hops)
            else:
                link = Link(f"{owner}.link{len(after[owner])}", (source,))
                after[owner].append(link)
                hops[Edge(link.name, 0)] = Hops(branch.hops - 1)
                lay(Port(link.name), branch.end, owner)

    for port, branches in trees.items():
        lay(port, branches, port.node)
    nodes: list[Primitive] = []
    for node in graph.nodes:
        inputs = tuple(reads.get(Edge(node.name, k), port) for k, port in enumerate(node.inputs))
        nodes += [replace(node, inputs=inputs), *after[node.name]]
    return replace(graph, nodes=tuple(nodes)).with_hops(hops)


def routed(case: Case, seed: int) -> tuple[Case, Trees]:
    """The case with FIFOs of two slots or more and a `link` wherever one of its random routes divides, and these routes."""
    rng, graph = random.Random(f"routed {seed}"), case.graph
    depths = tuple((edge, rng.choice(DEPTHS)) for edge, _ in graph.depths)
    machine = case.machine.model_copy(update={"fifo_depth": rng.choice((None, *DEPTHS))})
    graph = replace(graph, depths=depths)
    trees = random_trees(graph, seed)
    return replace(case, graph=with_links(graph, trees), machine=machine), trees


def differences_from_processes(case: Case, trees: Trees, found: Found) -> Iterator[str]:
    """One line for everything in which a run of a case with links differs from one with a process for each hop of its routes."""
    if isinstance(found, SimulationError):
        return
    graph, controller = without_links(case.graph), case.machine.controller()
    network = build_network(graph, case.tensors, case.machine, record=True, controller=controller)
    own = set(map(id, network.processes))
    for port, branches in trees.items():
        _put_processes(network, port, branches)
    stuck = [p.node.name for p in run_network(network) if id(p) in own]
    nodes, names = network_statistics(network), graph.by_name
    statistics = tuple(node for node in found.nodes if node.name in names)
    if stuck or isinstance(found, Deadlock):
        waiting = [w.node for w in found.waiting if w.node in names] if isinstance(found, Deadlock) else []
        if (stuck, nodes) != (waiting, statistics):
            yield f"processes: stuck {stuck} against {waiting}"
        return
    cycles = run_cycles(nodes, case.machine, controller)
    if cycles != found.cycles:
        yield f"processes: {cycles} cycles against {found.cycles}"
    yield from (f"processes: {a} against {b}" for a, b in zip(nodes, statistics, strict=True) if a != b)
    for port, items in network.recorded.items():
        stream = found.streams[port]
        recording = replace(stream, tokens=[token for token, _ in items], visible=tuple(visible for _, visible in items))
        yield from (f"processes: {port}: {line}" for line in differences_of_streams(recording, stream))
    written = with_lanes_gathered(graph, network.written)
    yield from (f"processes: written {name}" for name in written if not same_written(written[name], found.written[name]))


def without_links(graph: Graph) -> Graph:
    """The graph without its links and hops."""
    origin = {Port(node.name): node.inputs[0] for node in graph.nodes if isinstance(node, Link)}

    def source(port: Port) -> Port:
        return source(origin[port]) if port in origin else port

    nodes = [replace(node, inputs=tuple(map(source, node.inputs))) for node in graph.nodes if not isinstance(node, Link)]
    return replace(graph, nodes=tuple(nodes), hops=())


def _put_processes(network: Network, port: Port, branches: tuple[Branch, ...]) -> None:
    """Put a process on every hop of the route of a stream."""
    out, node = network.streams[port], next(p.node for p in network.processes if p.node.name == port.node)

    def entry(branch: Branch, first: int) -> Fifo:
        """The FIFO at which a segment begins, whose first hop has so many slots."""
        ends = (network.fifos[branch.end],) if isinstance(branch.end, Edge) else tuple(entry(b, 2) for b in branch.end)
        chain = [BoundedFifo(None, 2) for _ in range(branch.hops)]
        if not chain:
            (end,) = ends
            return end
        chain[0] = BoundedFifo(None, first)
        ways = (*((fifo,) for fifo in chain[1:]), ends)
        network.processes += [stage(node, fifo, make_output(1, way)) for fifo, way in zip(chain, ways, strict=True)]
        return chain[0]

    fifos = tuple(entry(branch, out.latency + 1) for branch in branches)
    recorders = tuple(append for append in out.appends if not any(append == fifo.append for fifo in out.fifos))
    out.fifos, out.appends = fifos, (*(fifo.append for fifo in fifos), *recorders)
    for fifo in fifos:
        fifo.latency = out.latency
    out.slots = tuple(fifo.slots for fifo in fifos if fifo.slots is not None)
    if out.slots:
        out.__class__ = BoundedOutput
    for process in network.processes:
        process.bounded = any(output.slots for output in process.outputs)
