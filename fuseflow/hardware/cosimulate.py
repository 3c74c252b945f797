"""Co-simulation: a graph runs in the simulator and as a circuit, on the same tensors, and tokens and firings are compared."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from fuseflow.hardware.bench_scratchpad import misplaced
from fuseflow.hardware.circuit import Circuit, build_circuit
from fuseflow.hardware.circuit_files import library_sources, require_units, simulation_units, to_verilog
from fuseflow.hardware.comparison import Difference, compared_tokens, first_difference, simulated
from fuseflow.hardware.evaluate import Evaluation, evaluate
from fuseflow.hardware.python_code import Step
from fuseflow.hardware.rtl_simulators import (
    ARRAY,
    MEMORY_PARTS,
    PYTHON,
    SCRATCHPAD_PART,
    TRACE,
    VERILATOR_HEADER,
    Tool,
    find_tool,
    library_text,
    run_tool,
)
from fuseflow.hardware.testbench import make_testbench, read_trace
from fuseflow.hardware.top import Top, emit_circuit
from fuseflow.machine.machine import Machine
from fuseflow.samml import nodes as n
from fuseflow.sim.outcome.output_tensors import as_declared
from fuseflow.sim.run import Simulation
from fuseflow.tensors import Tensor

NOTHING: Mapping[str, Tensor] = MappingProxyType({})
PATIENCE, GRACE = 2, 1000
"""A circuit counts as endless after `PATIENCE` times the cycles of the simulator and `GRACE` more."""


@dataclass(frozen=True, slots=True)
class Cosimulation:
    """The runs of a circuit and the simulator on one graph.

    `tokens` is the number of tokens that were compared. `waiting` has the nodes that a deadlock leaves in both, and `hanging` the
    nodes that wait in the circuit alone. The units `simulation_only` cannot be synthesized. `simulation` is None after a
    deadlock, and `evaluation` has the run of the circuit.
    """

    name: str
    nodes: int
    hops: int
    modules: int
    firings: int
    cycles: int
    simulator_cycles: int
    tokens: int
    seconds: float
    difference: Difference | None
    evaluation: Evaluation
    waiting: tuple[str, ...] = ()
    hanging: tuple[str, ...] = ()
    simulation_only: tuple[str, ...] = ()
    simulation: Simulation | None = None


def cosimulate(
    graph: n.Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    tool: str = PYTHON,
    wave: Path | None = None,
) -> Cosimulation:
    """Run a verified graph as a circuit beside the simulator. Unbounded FIFOs get as many slots as the simulator used at once,
    which does not change the run. `wave` is a file for the waveform of the circuit; the evaluator in Python writes none.

    Raises `HardwareError` if the graph has no circuit or the tool is not installed. A circuit that hangs where the simulator ends
    is a difference.
    """
    program = find_tool(tool)
    circuit = build_circuit(graph, machine)  # a graph without a circuit is refused before anything runs
    if program is not None:
        require_units(circuit)
    start, tensors = time.perf_counter(), as_declared(graph, tensors)
    expected = simulated(graph, tensors, machine)
    circuit = build_circuit(expected.graph, machine).bounded(expected.slots, expected.links())
    limit = PATIENCE * expected.cycles + GRACE
    if program is None:
        steps = dict[str, Step]()
        actual, units = evaluate(circuit, tensors, limit, steps), tuple[str, ...]()
        modules = len(steps)
    else:
        top = emit_circuit(circuit)
        results = {} if expected.run is None else expected.run.outputs
        actual = run_circuit(circuit, top, tensors, program, limit, wave, results=results)
        modules, units = len({unit.module for unit in top.units}), simulation_units(circuit, top)
    return Cosimulation(
        graph.name,
        graph.node_count,
        graph.hop_count,
        modules,
        actual.firings,
        actual.cycles,
        expected.cycles,
        compared_tokens(circuit, actual),
        time.perf_counter() - start,
        first_difference(circuit, expected, actual),
        actual,
        expected.waiting,
        actual.waiting if actual.waiting != expected.waiting else (),
        units,
        expected.run,
    )


def run_circuit(
    circuit: Circuit,
    top: Top,
    tensors: Mapping[str, Tensor],
    tool: Tool,
    limit: int,
    wave: Path | None = None,
    stalls: int | None = None,
    results: Mapping[str, Tensor] = NOTHING,
) -> Evaluation:
    """Run a printed circuit (`top`) in a tool, for at most `limit` cycles. With `stalls`, a seed, the memory behind the circuit
    is not ready in some cycles. `results` are packed into the words that the circuit writes to a scratchpad."""
    library = library_sources(top)
    with tempfile.TemporaryDirectory(prefix="fuseflow-") as name:
        folder = Path(name)
        bench = make_testbench(circuit, top, tensors, limit, f"wave.{tool.waves}" if wave else "", stalls, results)
        sources = {"circuit.sv": to_verilog(top.text), "testbench.sv": bench.text}
        sources |= {part: library_text(part) for part in (ARRAY, *(MEMORY_PARTS if top.ports else []), *library)}
        sources |= {} if top.scratchpad is None else {SCRATCHPAD_PART: library_text(SCRATCHPAD_PART)}
        settings = {VERILATOR_HEADER: library_text(VERILATOR_HEADER)}
        for file, text in {**sources, **settings, **bench.files}.items():
            (folder / file).write_text(text, encoding="utf-8")
        run_tool(tool, folder, list(sources), wave is not None, bench.serve)
        if wave is not None:
            shutil.copyfile(folder / f"wave.{tool.waves}", wave)
        run = read_trace(circuit, bench, folder / TRACE, limit)
        run.misplaced = misplaced(bench.results, top, run, folder)
        return run
