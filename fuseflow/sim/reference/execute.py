"""The reference simulator as a whole: it takes a graph and returns the outcome that every simulator returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from fuseflow.machine.machine import Machine
from fuseflow.memory.controller import ControllerFactory
from fuseflow.samml import nodes as n
from fuseflow.sim.outcome.comal_end import region_cycles
from fuseflow.sim.outcome.deadlock import Deadlock
from fuseflow.sim.outcome.statistics import EdgeStatistics, NodeStatistics, Outcome, Recording, node_statistics
from fuseflow.sim.outcome.writer_streams import with_lanes_gathered
from fuseflow.sim.reference.build import Network, build_network
from fuseflow.sim.reference.deadlock import describe_deadlock
from fuseflow.sim.reference.process import Process
from fuseflow.sim.reference.run import run_network
from fuseflow.tensors import Tensor


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
    acknowledged = -1 if controller is None else controller.acknowledged()
    firsts = [processes[0] for processes in network.nodes()]  # they read the inputs of their node
    return Outcome(
        cycles=region_cycles(nodes) if machine.rules == "comal" else 1 + max(acknowledged, *(node.last for node in nodes)),
        nodes=nodes,
        edges=_edges(graph, network),
        tokens={port: stream.count for port, stream in network.streams.items()},
        values={p.node.name: p.values for p in firsts if p.node.operator},
        elements={(p.node.name, array): count for p in firsts for array, count in p.elements.items()},
        written=with_lanes_gathered(graph, network.written),
        memory=None if controller is None else controller.statistics(),
        streams=_recordings(network),
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


def _edges(graph: n.Graph, network: Network) -> tuple[EdgeStatistics, ...]:
    return tuple(
        EdgeStatistics(node.name, k, network.streams[port].count, network.fifos[n.Edge(node.name, k)].peak)
        for node in graph.nodes
        for k, port in enumerate(node.inputs)
    )


def _recordings(network: Network) -> dict[n.Port, Recording]:
    return {
        port: Recording([token for token, _ in items], tuple(visible for _, visible in items))
        for port, items in network.recorded.items()
    }
