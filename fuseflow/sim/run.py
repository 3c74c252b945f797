"""Simulation of one graph: its tensors are checked, a simulator executes it, and its written streams are assembled to tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

from fuseflow.errors import GraphError, MachineError, SimulationError, TensorError, did_you_mean
from fuseflow.garbage_collection import collection_paused
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import require_slots_behind_hops
from fuseflow.memory.memory_interface import ControllerFactory
from fuseflow.memory.statistics import MemoryStatistics
from fuseflow.samml import tokens
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
from fuseflow.samml.nodes import Edge, Graph, Link, Locate, Port, TensorDecl
from fuseflow.sim.configuration_load import ConfigurationLoad, configuration_bytes, require_room
from fuseflow.sim.engine_names import Engine
from fuseflow.sim.outcome.deadlock import Deadlock, collector_depths, deadlock_error, final_depths, lane_copies, sufficient_depths
from fuseflow.sim.outcome.output_tensors import as_declared, assemble
from fuseflow.sim.outcome.statistics import (
    EdgeStatistics,
    NodeStatistics,
    Outcome,
    Recording,
    Traffic,
    edges,
    flops_by_operator,
    traffic,
)
from fuseflow.sim.precision import refuse_wide_floats, refuse_wide_values, with_rounded_constants
from fuseflow.sim.simulators import run_graph
from fuseflow.sim.untimed_operations import refuse_untimed
from fuseflow.tensors import DTYPES, Tensor


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulation is a finished run: its outputs, its cycles, and its statistics.

    `tokens` is the number of tokens of all streams that are read. `operators` are the FLOPs by operator, with one for each value
    that a reduction folds. `depths` are the depths of the FIFOs that a machine with `fifo_depth: auto` had to deepen; a graph
    with these depths runs in the same way at once. `engine` is the simulator that ran. `memory` is None on a machine whose memory
    answers at once, and `streams` is empty unless the run was asked to record them. `config_bytes` are the bytes of resident
    tensors, in the configuration before the run begins. `kept` is the number of coordinates that each node keeps on chip, for
    nodes that first read a level and then look coordinates up in it. `values` is the number of values to which each node with an
    operator applied it. `tiles` is the number of runs, one after the other, of which it consists.
    `hops` are those of the graph, of its edges and its links.
    """

    outputs: Mapping[str, Tensor]
    cycles: int
    tokens: int
    operators: Mapping[str, int]
    traffic: tuple[Traffic, ...]
    nodes: tuple[NodeStatistics, ...]
    edges: tuple[EdgeStatistics, ...]
    depths: Mapping[Edge, int] = field(default_factory=dict)
    engine: Engine = "reference"
    memory: MemoryStatistics | None = None
    streams: Mapping[Port, Recording] = field(default_factory=dict)
    config_bytes: int = 0
    kept: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)
    tiles: int = 1
    hops: int = 0

    @property
    def config(self) -> ConfigurationLoad:
        """The load from the memory into the configuration before the run."""
        return ConfigurationLoad.at(inf if self.memory is None else self.memory.peak, self.config_bytes)

    @property
    def node_count(self) -> int:
        """The number of nodes that are no links, which count as hops."""
        return sum(node.op != Link.op for node in self.nodes)

    def bytes(self, direction: str) -> int:
        """Return the bytes that nodes asked for in a `direction`: `read` or `write`."""
        return sum(row.bytes for row in self.traffic if row.direction == direction)

    @property
    def firings(self) -> int:
        """The number of firings of all nodes."""
        return sum(node.firings for node in self.nodes)

    @property
    def busiest(self) -> int:
        """The least number of cycles that the firings of the busiest node take. No run of the graph can be shorter."""
        return max(node.occupied for node in self.nodes)

    @property
    def bound(self) -> int:
        """The roofline bound: the least cycles of computing or the least cycles of moving the bytes, whichever are more."""
        return max(self.busiest, 0 if self.memory is None else self.memory.bound)

    @property
    def flops(self) -> int:
        """The floating-point operations of all operators."""
        return sum(self.operators.values())


@collection_paused()
def simulate(
    graph: Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    progress: Callable[[int], None] | None = None,
    *,
    engine: Engine = "auto",
    check: bool = False,
    record: bool = False,
    attach: ControllerFactory | None = None,
    expected: float = 0,
) -> Simulation:
    """Execute a verified graph on `machine` and return its outputs and statistics.

    `engine` names the simulator, `reference` or `fast`, which return the same results; `auto` takes the reference for small runs.
    `expected` is an estimate of the firings, 0 if there is none, by which `auto` recognizes long runs at once. `progress` is
    called now and then with the number of firings so far. With `check` every stream is verified after the run, and with `record`
    all streams are returned. The memory is the machine's, or one that `attach` makes. Raises `GraphError` if the engine gets a
    graph that does not verify, `MachineError` if the machine does not support an operation or the hops of the graph or has no room
    for its resident tensors, `TensorError` if a tensor is missing or is not what the graph declares, `DeadlockError` if no node can move
    before the end, and `SimulationError` if the streams do not fit together.
    """
    if machine.rules == "comal":
        _refuse_depths(graph, machine)
    require_slots_behind_hops(graph, machine)
    refuse_untimed(graph, machine)
    structures = tensors
    tensors = as_declared(graph, {**auxiliary_tensors(graph), **tensors})
    for decl in graph.tensors:
        if decl.name in graph.inputs:
            _check_tensor(graph, decl, tensors)
    refuse_wide_floats(graph, machine)
    refuse_wide_values(graph, tensors, machine)
    config = configuration_bytes(graph, tensors)
    require_room(graph, config, machine)
    auto = machine.fifo_depth == "auto"
    depths = {edge: depth for edge, depth in collector_depths(graph).items() if edge not in dict(graph.depths)} if auto else {}
    copies = lane_copies(graph) if auto else {}
    runnable = with_rounded_constants(graph, machine)
    verified = False
    while True:
        deepened = runnable.with_depths(depths)
        outcome, used_engine = run_graph(
            deepened, tensors, machine, engine, progress, record or check, attach, expected, verified
        )
        if not isinstance(outcome, Deadlock):
            break
        if not auto:
            raise deadlock_error(outcome, deepened)
        depths |= sufficient_depths(outcome, deepened, copies)
        del outcome  # which keeps the run that is stuck
        verified = used_engine == "fast"
        engine = "fast" if verified else engine  # with deeper FIFOs it runs longer, and on the reference perhaps too long
    if check:
        _check_streams(graph, outcome.streams)
    result = _result(
        graph, structures, outcome, final_depths(depths, outcome.edges, machine.fifo_depth_start), used_engine, record, config
    )
    refuse_wide_values(graph, result.outputs, machine)
    return result


def _result(
    graph: Graph,
    tensors: Mapping[str, Tensor],
    outcome: Outcome,
    depths: Mapping[Edge, int],
    engine: Engine,
    record: bool,
    config_bytes: int,
) -> Simulation:
    outputs = {
        name: assemble(graph.declared[name], outcome.written[name], tensors.get(graph.declared[name].like))
        for name in graph.outputs
    }
    return Simulation(
        outputs,
        cycles=outcome.cycles,
        tokens=sum(outcome.tokens[port] for port in graph.readers()),
        operators=flops_by_operator(graph, outcome.values),
        traffic=traffic(graph, outcome, outputs),
        nodes=outcome.nodes,
        edges=outcome.edges,
        depths={edge: depths[edge] for edge in edges(graph) if edge in depths},
        engine=engine,
        memory=outcome.memory,
        streams=outcome.streams if record else {},
        config_bytes=config_bytes,
        kept={
            node.name: outcome.elements[node.name, "crd"]
            for node in graph.nodes
            if isinstance(node, Locate) and node.keeps(graph.declared)
        },
        values=outcome.values,
        hops=graph.hop_count,
    )


def _refuse_depths(graph: Graph, machine: Machine) -> None:
    if graph.depths:
        edge, depth = graph.depths[0]
        raise MachineError(
            f"graph `{graph.name}` has {depth} slots at input {edge.input} of `{edge.node}`; FIFOs of machine `{machine.name}` are "
            "unbounded",
            hint="leave the depths out of the graph, or take a machine with `rules: dataflow`",
        )


def _check_tensor(graph: Graph, decl: TensorDecl, tensors: Mapping[str, Tensor]) -> None:
    if decl.name not in tensors:
        raise TensorError(
            f"graph `{graph.name}` reads tensor `{decl.name}`, which is not there", hint=did_you_mean(decl.name, tensors)
        )
    tensor = tensors[decl.name]
    for attribute, actual, declared in (
        ("shape", tensor.shape, decl.shape),
        ("format", tensor.format, decl.format),
        ("tiles", tensor.tile, decl.tile),
        ("implicit value", tensor.fill, decl.fill),
    ):
        if (actual,) != (declared,):  # in a tuple an implicit NaN equals itself
            raise TensorError(f"tensor `{decl.name}` has {attribute} {actual}; graph `{graph.name}` declares {declared}")
    if DTYPES[decl.dtype].narrow and tensor.element_type.name != decl.dtype:
        raise TensorError(
            f"tensor `{decl.name}` has elements of {tensor.element_type.name}, declared {decl.dtype}",
            hint="pack it with `type=DTYPES[...]`, and its values in the holder of that type",
        )


def _check_streams(graph: Graph, recorded: Mapping[Port, Recording]) -> None:
    for port, kind in graph.types().items():
        try:
            tokens.check(recorded[port].tokens, kind.depth, kind.kind)
        except GraphError as error:
            raise SimulationError(f"output {port.output} of node `{port.node}`: {error.message}") from error
