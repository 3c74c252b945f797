"""The events that take energy, counted from what a circuit did, cycle by cycle, in a simulator of Verilog.

Nothing of this is taken from the statistics of a run: tokens, values and requests are those that the testbench printed, and widths those
of the modules of the circuit.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.firing_rules.expressions import const
from fuseflow.firing_rules.rules import EMPTY, KIND_BITS, VALUE
from fuseflow.hardware.arithmetic import Arithmetic
from fuseflow.hardware.circuit import build_circuit
from fuseflow.hardware.cosimulate import Cosimulation
from fuseflow.hardware.rule_netlist import expressions
from fuseflow.hardware.tile_array import fold_work, tile_work
from fuseflow.memory.settings import TimedMemory
from fuseflow.run.simulated_events import simulated_counts
from fuseflow.run.simulated_resources import simulated_resources
from fuseflow.samml import nodes as n
from fuseflow.sim import Machine


@dataclass(frozen=True, slots=True)
class Counters:
    """Operators that were applied, bits through FIFOs, bits that the memory moved (0 where it answers at once), and firings by node."""

    operators: int
    fifo_bits: int
    moved_bits: int
    firings: tuple[int, ...]


def circuit_counters(graph: n.Graph, machine: Machine, run: Cosimulation) -> Counters:
    """What a circuit did."""
    circuit, tokens = build_circuit(graph, machine), run.evaluation.tokens
    widths = {unit.node.name: unit.module.outputs for unit in circuit.units}
    operators, bits = 0, 0
    for node in graph.nodes:
        for port in node.inputs:
            out = f"out{port.output}"
            bits += len(tokens[port.node, out]) * (widths[port.node][out] + KIND_BITS)
        if node.operator:
            port = node.inputs[-1 if node.grain == "fold" else 0]
            width = widths[port.node][f"out{port.output}"]
            values = sum(token >> width in (VALUE, EMPTY) for token in tokens[port.node, f"out{port.output}"])
            operators += values * _calls(node, graph, circuit.arithmetic)
    line = machine.memory.line if isinstance(machine.memory, TimedMemory) else 0
    requests = sum(map(len, run.evaluation.requests.values()))
    firings = tuple(len(run.evaluation.fired[node.name]) for node in graph.nodes)
    return Counters(operators, bits, 8 * line * requests, firings)


def _calls(node: n.Node, graph: n.Graph, arithmetic: Arithmetic) -> int:
    """How many calls of units one value takes: those of each item of its work. What only moves elements counts as a unit."""
    types = graph.types()
    if node.grain == "fold":
        work = fold_work(node.operator, arithmetic, types[node.inputs[-1]].tile)
    else:
        assert isinstance(node, n.Alu)
        tiles = iter(types[port].tile for port in node.inputs)
        made = tile_work(node.function, arithmetic, [() if operand.constant else next(tiles) for operand in node.operands])
        assert made is not None
        work = made
    operand = const(0, arithmetic.width)
    combined = work.combine(operand, [operand] * len(work.reads))
    return work.items * max(sum(expr.op == "call" for expr in expressions([combined])), 1)


def energy_counters(graph: n.Graph, machine: Machine, run: Cosimulation) -> Counters:
    """What the energy of the simulator's run is made of."""
    assert run.simulation is not None
    counts = simulated_counts(graph, machine, run.simulation, simulated_resources(graph, machine, run.simulation))
    moved = counts.dram_bits if isinstance(machine.memory, TimedMemory) else 0
    firings = tuple(node.firings for node in run.simulation.nodes)
    return Counters(
        int(sum(counts.operators.values())), int(counts.fifos.written + counts.fifos.sram_written), int(moved), firings
    )
