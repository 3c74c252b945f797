"""Construction of a network from a graph: processes that are joined by FIFOs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fuseflow.machine.comal import broadcast_delays, readers_of_sums, tile_lags
from fuseflow.machine.edge_fifos import EdgeFifo, edge_fifo
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import node_timing
from fuseflow.memory.buffer_assignment import early_readers, preloaded_readers, sequential_readers
from fuseflow.memory.memory_interface import Controller
from fuseflow.samml import nodes as n
from fuseflow.sim.outcome.writer_streams import WriterStream
from fuseflow.sim.precision import node_arithmetic
from fuseflow.sim.reference import aligned_primitives, comal, rule_processes, select, workspace
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.remote_memory import RemoteProcesses
from fuseflow.sim.reference.timed_process import (
    BoundedFifo,
    DelayedFifo,
    Fifo,
    Item,
    LaggedOutput,
    LinkFifo,
    Output,
    Process,
    TurnProcess,
    make_output,
)
from fuseflow.tensors import Tensor

_FAMILIES = (rule_processes, aligned_primitives, select, workspace)
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
        places = controller.lay_out(graph, tensors)
        readers_by_need = sequential_readers(graph), preloaded_readers(graph), early_readers(graph)
        rules = rules | RemoteProcesses(controller, places, *readers_by_need).rules(rules)
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
