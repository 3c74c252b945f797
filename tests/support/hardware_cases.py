"""Random graphs for circuits: the project's own, on machines with larger latencies and few units for tiles. What differs is told by cycle.

The oracle is the reference simulator, with every firing of every process noted, not only the first and the last of a node.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import hop_stages
import hop_trees
import nm_levels
import numpy as np
import scratchpads
import single_floats
from bitmaps import in_graph
from memories import at_dram, at_memory, random_fixed_memory
from random_graphs import Case, random_case
from random_graphs.tiles import tiled

from fuseflow.errors import HardwareError
from fuseflow.firing_rules.rules import EMPTY
from fuseflow.hardware.arithmetic import token_word
from fuseflow.hardware.circuit import Circuit, build_circuit
from fuseflow.hardware.comparison import differences, simulated
from fuseflow.hardware.cosimulate import cosimulate, run_circuit
from fuseflow.hardware.evaluate import Evaluation, evaluate
from fuseflow.hardware.python_code import Step
from fuseflow.hardware.rtl_simulators import find_tool
from fuseflow.hardware.tile_array import ARRAY
from fuseflow.hardware.top import emit_circuit
from fuseflow.machine.machine import Machine, UnitCycles, UnitIntervals
from fuseflow.memory.settings import TimedMemory
from fuseflow.primitives.write import WRITTEN
from fuseflow.samml.nodes import Locate, Port, TensorWriter
from fuseflow.sim.reference.execute import Network, build_network, run_network
from fuseflow.sim.reference.timed_process import Process, TurnProcess
from fuseflow.tile_ops import TILE_FOLDS

TILE_FORMS = {"matmul": "a product", "matmul_t": "a product", **dict.fromkeys(TILE_FOLDS, "a fold")}
"""Operators whose arrays go around their results more than once; those of others are known by their primitive."""


@dataclass
class Tally:
    """What some seeds had: circuits that were compared, and nodes by primitive."""

    graphs: int = 0
    tiled: int = 0
    deadlocks: int = 0
    delayed: int = 0
    firings: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    primitives: Counter[str] = field(default_factory=Counter)


MemoryKind = Literal["ideal", "fixed", "any", "dram"]
"""Memories of random cases: one that answers at once, one that takes a fixed time, one of several that take time, or any DRAM."""


def hardware_case(seed: int, memory: MemoryKind = "ideal", tiles: bool = False) -> Case:
    """The case of a seed. Of three one has bitmap levels, and one n:m levels; of two one computes in 32-bit floats. With `tiles` most
    have tiles, else one of five."""
    case = random_case(seed, "small")
    if tiles and not has_tiles(case):
        case = tiled(case, random.Random(f"tiles in {seed}"), np.random.default_rng(seed))
    case = single_floats.in_graph(case) if seed % 2 else case
    case = [case, in_graph(case, seed), nm_levels.in_graph(case, seed)][seed % 3]
    machine = hardware_machine(seed).model_copy(update={"arithmetic": case.machine.arithmetic})
    case = replace(case, machine=machine)
    rng = random.Random(f"memory of {seed}")
    if memory == "ideal":
        return case
    if memory == "dram":
        return at_dram(case, seed)
    if memory == "any" and rng.random() < 0.6:
        return at_memory(case, seed)
    return replace(case, machine=machine.model_copy(update={"memory": random_fixed_memory(rng)}))


def placed_case(seed: int, memory: MemoryKind = "fixed") -> Case:
    """The case of a seed with some tensors in a scratchpad."""
    case = hardware_case(seed, memory, tiles=seed % 5 == 0)
    settings = case.machine.memory
    assert isinstance(settings, TimedMemory)
    settings = settings.model_copy(update={"outstanding": min(settings.outstanding, 32)})
    return scratchpads.in_graph(replace(case, machine=case.machine.model_copy(update={"memory": settings})), seed)


def hop_case(seed: int, memory: MemoryKind = "ideal") -> Case:
    """The case of a seed with hops: on single edges, of two slots or of none, or on the segments of routes that divide at links. Of three
    one has hops between the tiles of nodes and to their ports, too."""
    case = hardware_case(seed, memory, tiles=seed % 5 == 0)
    case = hop_trees.routed(case, seed)[0] if seed % 2 else hop_stages.in_graph(case, seed)
    if seed % 3:
        return case
    rng = random.Random(f"hops inside {seed}")
    return replace(case, graph=case.graph.with_hops(dict(case.graph.hops), hop_stages.node_hops(rng, case.graph.nodes)))


def hardware_machine(seed: int) -> Machine:
    """A machine with latencies of 1 to 16, intervals of 1 to 3, folds of 1 to 4, FIFOs of 1 slot to no bound, and 1 to 256 units for
    tiles."""
    rng = random.Random(f"hardware {seed}")
    most, slowest = rng.choice((1, 4, 16)), rng.choice((1, 1, 3))
    interval = {name: rng.randint(1, slowest) for name in UnitCycles.model_fields}
    return Machine(
        name="random",
        latency=UnitCycles(**{name: rng.randint(1, most) for name in UnitCycles.model_fields}),
        interval=UnitIntervals(**interval, fold=rng.choice((None, 1, 2, 4))),
        fifo_depth=rng.choice((None, None, 1, 2, 5, 16)),
        handover_depth=rng.choice((None, 1, 2, 3, 16)),
        tile_macs=random.Random(f"tiles {seed}").choice((1, 2, 3, 4, 7, 16, 256)),
    )


def check(case: Case, tally: Tally, steps: dict[str, Step]) -> list[str]:
    """What the evaluator does otherwise than the reference. Graphs without a circuit are counted."""
    circuit = circuit_of(case, tally)
    if circuit is None:
        return []
    expected = simulated(case.graph, case.tensors, case.machine, engine="reference")
    actual = evaluate(circuit, case.tensors, steps=steps)
    lines = [str(difference) for difference in differences(circuit, expected, actual)]
    lines += firing_differences(case, actual)
    count(case, circuit, bool(expected.waiting), actual.firings, tally)
    return lines


def check_in(tool: str, case: Case, tally: Tally) -> list[str]:
    """What the circuit does otherwise than the reference, when a tool runs its SystemVerilog. That has no `erf` of 64 bits, and no FIFO for
    the lines of a port that may have a million without an answer."""
    circuit = circuit_of(case, tally)
    if circuit is None:
        return []
    with counted_refusals(tally):
        run = cosimulate(case.graph, case.tensors, case.machine, tool)
        lines = [] if run.difference is None else [str(run.difference)]
        lines += firing_differences(case, run.evaluation)
        count(case, circuit, bool(run.waiting), run.firings, tally)
        return lines
    return []


@contextmanager
def counted_refusals(tally: Tally) -> Iterator[None]:
    """Counts what SystemVerilog is known to lack, instead of raising."""
    try:
        yield
    except HardwareError as error:
        lacks = "has no unit of f64", "slots, and in SystemVerilog", "moves tensors of no bytes"
        known = [what for what in lacks if what in error.message]
        if not known:
            raise
        tally.refused[known[0]] += 1


def check_stalled(tool: str, case: Case, tally: Tally, stalls: int) -> list[str]:
    """What a circuit gives otherwise at a memory that is not always ready."""
    circuit = circuit_of(case, tally)
    if circuit is None:
        return []
    with counted_refusals(tally):
        lines, run, cycles = stalled_differences(case, tool, stalls)
        count(case, circuit, bool(run.waiting), run.firings, tally)
        tally.delayed += run.cycles > cycles
        return lines
    return []


def stalled_differences(case: Case, tool: str, stalls: int) -> tuple[list[str], Evaluation, int]:
    """What a circuit gives otherwise at a memory that is not always ready: tokens, whatever their cycles, or who waits at the end. Also
    what the circuit did, and the cycles of the simulator."""
    expected = simulated(case.graph, case.tensors, case.machine)
    circuit = build_circuit(expected.graph, case.machine).bounded(expected.slots, expected.links())
    program = find_tool(tool)
    assert program is not None
    limit = 50 * expected.cycles + 5000
    actual = run_circuit(circuit, emit_circuit(circuit), case.tensors, program, limit, stalls=stalls)
    lines = []
    for unit in circuit.units:
        streams = [(f"out{k}", Port(unit.node.name, k)) for k in range(len(unit.node.port_names()))]
        for out, port in streams:
            width = unit.module.outputs[out]
            due = [token_word(token, width, circuit.arithmetic.word) for token in expected.streams[port].tokens]
            if due != actual.tokens[unit.node.name, out]:
                lines.append(f"`{unit.node.name}` gives other tokens at `{out}`")
        if isinstance(unit.node, TensorWriter):
            width = unit.module.outputs[WRITTEN]
            due = [token_word(token, width, circuit.arithmetic.word) for token in expected.streams[unit.node.inputs[0]].tokens]
            written = [token for token in actual.tokens[unit.node.name, WRITTEN] if token >> width != EMPTY]
            if written != due[: len(written)] or (len(written) != len(due) and not expected.waiting):
                lines.append(f"`{unit.node.name}` writes other tokens")
    if expected.waiting != actual.waiting:
        lines.append(f"{actual.waiting} wait, in the simulator {expected.waiting}")
    return lines, actual, expected.cycles


def circuit_of(case: Case, tally: Tally) -> Circuit | None:
    """The circuit of a case. Without one the reason is counted."""
    try:
        return build_circuit(case.graph, case.machine)
    except HardwareError as error:
        tally.refused[error.message.partition(")")[2] or error.message] += 1
        return None


def count(case: Case, circuit: Circuit, deadlock: bool, firings: int, tally: Tally) -> None:
    tally.graphs += 1
    tally.tiled += has_tiles(case)
    tally.deadlocks += deadlock
    tally.firings += firings
    tally.primitives.update(primitives(case, circuit))


def has_tiles(case: Case) -> bool:
    return any(tensor.tile for tensor in case.graph.tensors)


def primitives(case: Case, circuit: Circuit) -> set[str]:
    """Which primitives and forms of them a circuit has: those whose rules differ."""
    named = set()
    for unit in circuit.units:
        named.add(unit.node.op)
        tensor, level = getattr(unit.node, "tensor", None), getattr(unit.node, "level", None)
        if isinstance(unit.node, Locate) or (unit.node.op in ("scan", "write") and tensor is not None and level is not None):
            named.add(f"{unit.node.op} {case.graph.declared[tensor].format.levels[level].text.partition('(')[0]}")
        if unit.node.op == "accumulate":
            named.add(f"accumulate order {unit.node.order}")
        if ARRAY in unit.module.helpers:
            named.add(f"array of {TILE_FORMS.get(unit.node.operator, unit.node.op)}")
    return named


class _Noted(Process):
    """A process whose journal has the cycles of all of its firings."""

    __slots__ = ()

    def fire(self, visible: int, free: int = 0) -> int:
        cycle = super().fire(visible, free)
        self.journal.append(cycle)
        return cycle


class _NotedTurns(TurnProcess):
    """The same of a process that takes turns."""

    __slots__ = ()

    def fire(self, visible: int, free: int = 0) -> int:
        cycle = super().fire(visible, free)
        self.journal.append(cycle)
        return cycle

    def close(self, visible: int, free: int = 0) -> int:
        cycle = super().close(visible, free)
        self.journal.append(cycle)
        return cycle


def firing_differences(case: Case, actual: Evaluation) -> list[str]:
    """Nodes of which a firing is in another cycle than in the reference."""
    network = build_network(case.graph, case.tensors, case.machine, controller=case.machine.controller())
    for process in network.processes:
        process.__class__, process.journal = _NotedTurns if isinstance(process, TurnProcess) else _Noted, []
    run_network(network)
    lines = []
    for processes in network.nodes():
        name, due = (
            processes[0].node.name,
            sorted(cycle for process in processes if not process.helper for cycle in process.journal),
        )
        if due != sorted(actual.fired[name]):
            lines.append(f"`{name}` fires in the cycles {sorted(actual.fired[name])}, in the reference in {due}")
    return lines + request_differences(network, actual)


def request_differences(network: Network, actual: Evaluation) -> list[str]:
    """Ports that ask the memory for other lines than those of the reference, or in other cycles."""
    if network.controller is None or not actual.requests:
        return []
    memory, lines = network.controller.memory, []
    for number, ((node, kind), asked) in enumerate(actual.requests.items()):
        records, way = memory.requests(number), int(memory.ports["way"][number])
        due = list(zip((records["cycle"] - way).tolist(), records["address"].tolist(), strict=True))
        if (network.controller.ports[number].node, due) != (node, asked):
            lines.append(f"`{node}` asks for {kind} {asked}, in the reference {due}")
    return lines
