"""The reference simulator as a whole: it makes of a graph a network of processes that are joined by FIFOs, runs it, and returns the
outcome that every simulator returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from fuseflow.machine.comal import broadcast_delays, readers_of_sums, tile_lags
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import EdgeFifo, edge_fifo, node_timing
from fuseflow.memory.memory_interface import Controller, ControllerFactory
from fuseflow.samml import nodes as n
from fuseflow.samml.nodes import Edge
from fuseflow.sim.engine_names import FiringLimitError
from fuseflow.sim.outcome.deadlock import AwaitedResource, AwaitedSlot, AwaitedToken, AwaitedWorkspace, Deadlock, WaitingProcess
from fuseflow.sim.outcome.output_tensors import WriterStream, with_lanes_gathered
from fuseflow.sim.outcome.statistics import EdgeStatistics, NodeStatistics, Outcome, Recording, edges, node_statistics, run_cycles
from fuseflow.sim.precision import node_arithmetic
from fuseflow.sim.reference import comal, rule_processes, select, workspace
from fuseflow.sim.reference.memory_ports import Answer, PreloadAnswer, Touch, is_dropped
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.remote_memory import RemoteProcesses
from fuseflow.sim.reference.timed_process import (
    Backlog,
    BoundedFifo,
    DelayedFifo,
    Fifo,
    Item,
    LaggedOutput,
    LinkFifo,
    Output,
    Process,
    Slots,
    TurnProcess,
    make_output,
)
from fuseflow.tensors import Tensor

_FAMILIES = (rule_processes, select, workspace)
RULES: dict[type[n.Node], Rule] = {kind: rule for family in _FAMILIES for kind, rule in family.RULES.items()}


@dataclass(slots=True)
class Network:
    """A network has processes in graph order, and holds the results that they write and count."""

    processes: list[Process] = field(default_factory=list)
    fifos: dict[n.Edge, Fifo] = field(default_factory=dict)
    streams: dict[n.Port, Output] = field(default_factory=dict)
    recorded: dict[n.Port, list[Item]] = field(default_factory=dict)
    written: dict[str, WriterStream] = field(default_factory=dict)
    controller: Controller | None = None
    """The controller of the memory is None if the memory answers at once."""

    def nodes(self) -> list[list[Process]]:
        """Return the processes of each node, in graph order."""
        processes_by_node: dict[str, list[Process]] = {}
        for process in self.processes:
            processes_by_node.setdefault(process.node.name, []).append(process)
        return list(processes_by_node.values())


def build_network(
    graph: n.Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    record: bool = False,
    controller: Controller | None = None,
) -> Network:
    """Return the network of a verified graph. With `record` it keeps every token of every stream. With a `controller` its nodes
    read and write through the memory of the controller."""
    network = Network(written={name: WriterStream() for name in graph.outputs}, controller=controller)
    types, readers, depths, hops = graph.types(), graph.readers(), dict(graph.depths), dict(graph.hops)
    rules, delayed, lagging, summed = RULES, dict[n.Edge, int](), dict[n.Port, int](), frozenset[str]()
    if machine.rules == "comal":
        rules = RULES | comal.RULES
        delayed, lagging, summed = broadcast_delays(graph), tile_lags(graph), readers_of_sums(graph)
    if controller is not None:
        rules = RemoteProcesses(controller, graph, tensors).rules(rules)
    fifos, turns = network.fifos, dict(graph.turns)
    for node in graph.nodes:
        timing = node_timing(node, graph, machine, [types[p].tile for p in node.inputs if types[p].kind == "val"])
        outputs = []
        for port in node.ports:
            for edge in readers.get(port, ()):
                numbers = edge_fifo(graph.by_name[edge.node], depths.get(edge), hops.get(edge), timing.latency, machine)
                fifos[edge] = _fifo(edge, numbers, delayed.get(edge, numbers.delay))
            read = [fifos[edge] for edge in readers.get(port, ())]
            network.streams[port] = LaggedOutput(read, lagging[port]) if port in lagging else make_output(timing.latency, read)
            outputs.append(network.streams[port])
            if record:
                network.recorded[port] = network.streams[port].record()
        inputs = tuple(fifos[n.Edge(node.name, k)] for k in range(len(node.inputs)))
        context = NodeContext(
            node, inputs, tuple(outputs), tuple(types[p] for p in node.inputs), timing, machine,
            graph.declared, tensors, network.written, node_arithmetic(graph, node, machine), node.name in summed,
            turns.get(node.name),
        )  # fmt: skip
        add_processes(network, context, rules)
    if controller is not None:
        controller.open()
    return network


def add_processes(network: Network, context: NodeContext, rules: Mapping[type[n.Node], Rule] = RULES) -> None:
    """Add the processes of a node to a network, and note which process writes and which reads each FIFO."""
    processes = n.require_entry(rules, type(context.node), "rule in the reference simulator")(context.node, context)
    if context.turn is not None:
        for process in processes:
            process.turn, process.__class__ = context.turn, TurnProcess
    first, last = processes[0], processes[-1]
    for fifo in context.inputs:
        if fifo.slots is not None:
            fifo.slots.reader = first
    for stream in context.outputs:
        for fifo in stream.fifos:
            fifo.writer = last
    network.processes += processes


def _fifo(edge: n.Edge, numbers: EdgeFifo, delay: int) -> Fifo:
    """Return the FIFO of an edge. On machines with `rules: comal`, whose FIFOs are unbounded, `delay` is that of broadcasts."""
    depth = numbers.depth
    if depth is None:
        return DelayedFifo(edge, delay) if delay else Fifo(edge)
    if numbers.delay or numbers.added:
        return LinkFifo(edge, depth, delay, numbers.added, numbers.back)
    return BoundedFifo(edge, depth)


def describe_deadlock(
    network: Network,
    stuck: Sequence[Process],
    statistics: Callable[[Network], tuple[NodeStatistics, ...]],
    rebuild: Callable[[Mapping[Edge, int]], Network],
    run: Callable[..., list[Process]],
    depths: Mapping[Edge, int] | None = None,
) -> Deadlock:
    """Return the deadlock of a network. `stuck` are its processes that have not ended. `depths` are the depths of FIFOs that
    differ from the graph, `rebuild` makes a network with given depths anew, and `run` runs a network."""
    extra_depths = depths or {}

    def smallest(edges: Sequence[Edge]) -> int | None:
        return smallest_depth(edges, rebuild(extra_depths), run)

    def deepened(more: Mapping[Edge, int]) -> Deadlock | None:
        _forget_cycles(network)
        for edge, depth in more.items():
            slots = network.fifos[edge].slots
            while slots is not None and slots.depth < depth:
                slots.grow()
        still_stuck = run(network)
        return (
            describe_deadlock(network, still_stuck, statistics, rebuild, run, {**extra_depths, **more}) if still_stuck else None
        )

    return Deadlock(waiting_processes(stuck), () if extra_depths else statistics(network), smallest, deepened)


def waiting_processes(stuck: Sequence[Process]) -> tuple[WaitingProcess, ...]:
    """Return each process that cannot fire, with the resource that it waits for."""
    place = {id(process): k for k, process in enumerate(stuck)}
    return tuple(WaitingProcess(process.node.name, *_awaited(process, place)) for process in stuck)


def smallest_depth(edges: Sequence[Edge], network: Network, run: Callable[..., list[Process]]) -> int | None:
    """Return the smallest depth of FIFOs that are equally deep, others unchanged, with which the network runs to its end, or None if
    there is none.

    The network cannot be used afterwards. Its cycles have no meaning, because an added slot may be filled before the last event.
    """
    _forget_cycles(network)
    growing = [slots for edge in edges if (slots := network.fifos[edge].slots) is not None]
    return None if run(network, growing=growing) else max(slots.depth for slots in growing)


def _forget_cycles(network: Network) -> None:
    if network.controller is not None:
        network.controller.memory.forget_cycles()


def _awaited(process: Process, place: dict[int, int]) -> tuple[AwaitedResource, int | None]:
    waits = process.waits
    match waits:
        case Fifo(edge=Edge(input=k), writer=writer):
            return AwaitedToken(k, writer.node.name), place.get(id(writer))
        case Fifo(writer=writer):
            return AwaitedWorkspace(), place.get(id(writer))
        case Slots(edge=Edge() as edge, depth=depth, reader=reader):
            return AwaitedSlot(edge, depth), place.get(id(reader))
        case Slots(reader=reader):
            return AwaitedWorkspace(), place.get(id(reader))
        case Answer() | PreloadAnswer() | Touch():
            return AwaitedWorkspace(), place.get(id(waits.on))
    raise AssertionError(f"`{process.node.name}` waits for nothing of the model")


SWEEPS_PER_REPORT = 16  # sweeps between two counts of the firings


def run_network(
    network: Network,
    progress: Callable[[int], None] | None = None,
    growing: Sequence[Slots] = (),
    limit: int | None = None,
) -> list[Process]:
    """Run a network to its end, and return the processes that are stuck. There are none unless the network deadlocks. Raises
    `FiringLimitError` soon after `limit` firings.

    `growing` are FIFO slots that all grow by one whenever the network is stuck on one of them. Computed tokens stay valid, since
    a deeper FIFO allows all that a shallower one does; so the added slots are the fewest with which the network ends.
    """
    live = list(network.processes)
    sweeps = 0
    while live:
        progressed = False
        for process in live:
            if process.waits is None or process.waits:
                process.waits = next(process.steps, None)
                progressed = True
        if any(process.waits is None for process in live):
            live = [process for process in live if process.waits is not None]
        if not progressed and not _lift(live) and not (network.controller is not None and network.controller.advance()):
            live = [process for process in live if not is_dropped(process)]
            if not any(process.waits is slots for process in live for slots in growing):
                return live
            for slots in growing:
                slots.grow()
        sweeps += 1
        if sweeps % SWEEPS_PER_REPORT == 0:
            firings = sum(process.firings for process in network.processes)
            if progress is not None:
                progress(firings)
            if limit is not None and firings > limit:
                raise FiringLimitError
    return []


def _lift(live: list[Process]) -> bool:
    """Let one process that waits for a `Backlog` run further ahead of its readers, and return whether there is one. Some streams
    need this, as in a diamond around a reduction."""
    for process in reversed(live):
        if isinstance(process.waits, Backlog):
            process.waits = next(process.steps, None)
            return True
    return False


def execute(
    graph: n.Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    progress: Callable[[int], None] | None = None,
    record: bool = False,
    limit: int | None = None,
    attach: ControllerFactory | None = None,
) -> Outcome | Deadlock:
    """Run a verified graph, token by token, with the memory of its machine or one that `attach` makes.

    `progress` is called now and then with the number of firings so far, and `record` keeps all streams. Raises `SimulationError`
    if streams do not fit together, and `FiringLimitError` soon after `limit` firings. The advice of a returned deadlock may raise
    `FiringLimitError`, too.
    """
    attach = attach or machine.controller
    controller = attach()
    network = build_network(graph, tensors, machine, record, controller)
    stuck = run_network(network, progress, limit=limit)
    if stuck:

        def rebuild(depths: Mapping[n.Edge, int]) -> Network:
            return build_network(graph.with_depths(depths), tensors, machine, controller=attach())

        return describe_deadlock(
            network, stuck, network_statistics, rebuild, partial(run_network, progress=progress, limit=limit)
        )
    nodes = network_statistics(network)
    firsts = [processes[0] for processes in network.nodes()]  # they read the inputs of their node
    return Outcome(
        cycles=run_cycles(nodes, machine, controller),
        nodes=nodes,
        edges=tuple(
            EdgeStatistics(edge.node, edge.input, network.streams[port].count, network.fifos[edge].peak)
            for edge, port in zip(edges(graph), (port for node in graph.nodes for port in node.inputs), strict=True)
        ),
        tokens={port: stream.count for port, stream in network.streams.items()},
        values={p.node.name: p.values for p in firsts if p.node.operator},
        elements={(p.node.name, array): count for p in firsts for array, count in p.elements.items()},
        written=with_lanes_gathered(graph, network.written),
        memory=None if controller is None else controller.statistics(),
        streams={
            port: Recording([token for token, _ in items], tuple(visible for _, visible in items))
            for port, items in network.recorded.items()
        },
    )


def network_statistics(network: Network) -> tuple[NodeStatistics, ...]:
    """Return the statistics of all nodes, in graph order."""
    return tuple(_statistics(processes) for processes in network.nodes())


def _statistics(processes: Sequence[Process]) -> NodeStatistics:
    node, waited = processes[0].node, sum(p.waited for p in processes)
    processes = [p for p in processes if not p.helper]
    return node_statistics(
        node,
        waited,
        firings=sum(p.firings for p in processes),
        starved=sum(p.starved for p in processes),
        blocked=sum(p.blocked for p in processes),
        first=min((p.first for p in processes if p.firings), default=-1),
        last=max(p.last for p in processes),
        occupied=max(p.occupied for p in processes),
        workspace=max((p.most_held for p in processes if p.most_held is not None), default=None),
    )
