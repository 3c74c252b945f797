"""Run a graph: check its tensors, execute it, assemble what it wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fuseflow.errors import GraphError, SimulationError, TensorError, did_you_mean
from fuseflow.samml import streams
from fuseflow.samml.nodes import Graph, Port, TensorDecl
from fuseflow.sim.assemble import assemble
from fuseflow.sim.machine import Machine
from fuseflow.sim.reference.build import Network, build
from fuseflow.sim.reference.deadlock import explain
from fuseflow.sim.reference.run import run
from fuseflow.sim.statistics import NodeStatistics, Traffic, node_statistics, traffic
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Recording:
    """All tokens of a stream and the cycle from which each is visible."""

    tokens: streams.Stream
    visible: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Simulation:
    """A finished run: what it computed, in how many cycles, and what that took.

    `tokens` counts the tokens of all streams that are read, `flops` those of the operator table and one for each value that a
    reduction folds. `streams` is empty unless asked for.
    """

    outputs: Mapping[str, Tensor]
    cycles: int
    firings: int
    tokens: int
    flops: int
    traffic: tuple[Traffic, ...]
    nodes: tuple[NodeStatistics, ...]
    streams: Mapping[Port, Recording] = field(default_factory=dict)


def simulate(
    graph: Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    progress: Callable[[int], None] | None = None,
    *,
    check: bool = False,
    record: bool = False,
) -> Simulation:
    """Execute a verified graph on `machine`, token by token.

    `progress` is called now and then with the number of firings so far. `check` verifies every stream after the run, `record`
    returns them. Raises `TensorError` if a tensor is missing or is not what the graph declares, `DeadlockError`, and
    `SimulationError` if streams do not fit together.
    """
    for decl in graph.tensors:
        if decl.name in graph.inputs:
            _check_tensor(graph, decl, tensors)
    network = build(graph, tensors, machine, record or check)
    stuck = run(network, progress)
    if stuck:
        raise explain(network, stuck, lambda: build(graph, tensors, machine))
    if check:
        _check_streams(graph, network)
    outputs = {name: assemble(graph.declared[name], network.written[name]) for name in graph.outputs}
    written = {name: len(network.written[name].values) for name in graph.outputs}
    return Simulation(
        outputs,
        cycles=1 + max(process.last for process in network.processes),
        firings=sum(process.firings for process in network.processes),
        tokens=sum(stream.count for stream in network.streams.values() if stream.fifos),
        flops=sum(process.flops for process in network.processes),
        traffic=traffic(graph, network.processes, outputs, written),
        nodes=node_statistics(graph, network.processes),
        streams=_recordings(network) if record else {},
    )


def _check_tensor(graph: Graph, decl: TensorDecl, tensors: Mapping[str, Tensor]) -> None:
    if decl.name not in tensors:
        raise TensorError(
            f"graph `{graph.name}` reads tensor `{decl.name}`, which is not there", hint=did_you_mean(decl.name, tensors)
        )
    tensor = tensors[decl.name]
    for what, got, due in (
        ("shape", tensor.shape, decl.shape),
        ("format", tensor.format, decl.format),
        ("implicit value", tensor.fill, decl.fill),
    ):
        if got != due and not (got != got and due != due):  # an implicit NaN equals itself
            raise TensorError(f"tensor `{decl.name}` has {what} {got}; graph `{graph.name}` declares {due}")


def _recordings(network: Network) -> dict[Port, Recording]:
    return {
        port: Recording([token for token, _ in items], tuple(visible for _, visible in items))
        for port, items in network.recorded.items()
    }


def _check_streams(graph: Graph, network: Network) -> None:
    for port, kind in graph.types().items():
        try:
            streams.check([token for token, _ in network.recorded[port]], kind.depth, kind.kind)
        except GraphError as error:
            raise SimulationError(f"output {port.output} of node `{port.node}`: {error.message}") from error
