"""The reference simulator as a whole: it takes a graph and returns the outcome that every simulator returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from fuseflow.machine.machine import Machine
from fuseflow.memory.memory_interface import ControllerFactory
from fuseflow.samml import nodes as n
from fuseflow.sim.firing_limit_error import FiringLimitError
from fuseflow.sim.outcome.deadlock import Deadlock
from fuseflow.sim.outcome.statistics import EdgeStatistics, NodeStatistics, Outcome, Recording, edges, node_statistics, run_cycles
from fuseflow.sim.outcome.writer_streams import with_lanes_gathered
from fuseflow.sim.reference.build import Network, build_network
from fuseflow.sim.reference.deadlock import describe_deadlock
from fuseflow.sim.reference.memory_ports import is_dropped
from fuseflow.sim.reference.timed_process import Backlog, Process, Slots
from fuseflow.tensors import Tensor

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
