"""The actions of the commands `fuseflow area` and `fuseflow cosimulate`, which `cli/circuits.py` declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from fuseflow.cli.array_options import ArrayRequest, array_of
from fuseflow.cli.common import JsonFile, print_lines, print_pieces, require_writable
from fuseflow.cli.progress import counting_bar, following
from fuseflow.cli.request import ProgramRequest, region_number
from fuseflow.cli.run_options import Target
from fuseflow.errors import CheckError, HardwareError, UsageError
from fuseflow.hardware.area.circuit_area import circuit_areas
from fuseflow.hardware.area.synthesis import read_liberty, version
from fuseflow.hardware.circuit_files import bounded_circuit
from fuseflow.hardware.cosimulate import Cosimulation, cosimulate
from fuseflow.hardware.rtl_simulators import PYTHON, find_tool
from fuseflow.machine.machine import Machine
from fuseflow.report.circuit_tables import area_lines, area_table, cosimulation_json, cosimulation_table, node_table, part_table
from fuseflow.report.table_width import print_table
from fuseflow.samml.nodes import Graph
from fuseflow.sim import Engine, Simulation, simulate
from fuseflow.tensors import Tensor


def area(
    program: ProgramRequest,
    machine: Machine,
    on_array: ArrayRequest | None,
    region: str | None,
    by: tuple[str, ...],
    liberty: Path | None,
    json_file: JsonFile,
    quiet: bool,
) -> None:
    library = None if liberty is None else read_liberty(liberty)
    version()
    if machine.arithmetic != "f32":
        raise HardwareError(
            f"machine `{machine.name}` computes in 64-bit floats, and there are gates for those of 32 bits only",
            hint="`--set arithmetic=f32`, or `--machine rtl`",
        )
    compiled = program.compile(Target(machine, array=array_of(on_array)), quiet=quiet).compiled
    if on_array is not None:
        compiled, _ = on_array.linked(compiled, quiet)
    regions = compiled.regions if region is None else (compiled.regions[region_number(compiled, region)],)
    with following("synthesizing", quiet):
        areas = tuple(circuit_areas([bounded_circuit(each.graph, machine) for each in regions], library))
    json_file.write(
        lambda: {"schema": 1, "model": compiled.name, "machine": machine.name, "regions": [a.to_json() for a in areas]}
    )
    out = json_file.console()
    if not quiet:
        print_pieces(out, [area_table(areas), *area_lines(areas)])
    tables = {"part": part_table, "node": node_table}
    for kind in by:
        print_pieces(out, ["", tables[kind](areas)])


def cosimulate_command(
    program: ProgramRequest,
    tool: str,
    machine: Machine,
    on_array: ArrayRequest | None,
    region: str | None,
    wave: Path | None,
    json_file: JsonFile,
    quiet: bool,
) -> None:
    if wave is not None:
        if tool == PYTHON:
            raise UsageError("`--wave` needs a simulator of SystemVerilog", hint="`--tool icarus` or `--tool verilator`")
        require_writable(wave, directory=False)
    find_tool(tool)
    compiled = program.compile(Target(machine, array=array_of(on_array)), quiet=quiet).compiled
    if region is not None:
        compiled = replace(compiled, regions=compiled.regions[: region_number(compiled, region) + 1])
    if wave is not None and region is None and len(compiled.regions) > 1:
        raise UsageError("`--wave` is of one region", hint="name it: `--region NAME`")
    if on_array is not None:
        compiled, _ = on_array.linked(compiled, quiet)
    comparison = _Comparison(region, tool, wave)
    try:
        with counting_bar("regions compared", quiet) as progress:
            comparison.report = lambda: progress(len(comparison.rows), len(compiled.regions) if region is None else 1)
            compiled.run(check=False, dedup=False, execute=comparison)
    finally:
        json_file.write(lambda: cosimulation_json(compiled.name, machine.name, tool, comparison.rows))
        if not quiet and comparison.rows:
            out = json_file.console()
            print_table(out, cosimulation_table(comparison.rows))
            if units := sorted({unit for row in comparison.rows for unit in row.simulation_only}):
                print_lines(
                    out, [f"note: no synthesizer takes the units {', '.join(units)}: their arithmetic is for simulation only"]
                )
    for row in comparison.rows:
        if row.difference is not None:
            hanging = [f"these nodes of the circuit wait for ever: {', '.join(f'`{name}`' for name in row.hanging)}"]
            notes = [str(row.difference), *(hanging if row.hanging else [])]
            raise CheckError(f"the circuit of region `{row.name}` differs from the simulator", notes=notes)


class _Comparison:
    """An executor of graphs that simulates each graph and also runs its circuit, or the circuit of one region only."""

    def __init__(self, region: str | None, tool: str, wave: Path | None) -> None:
        self.region, self.tool, self.wave = region, tool, wave
        self.rows: list[Cosimulation] = []
        self.report: Callable[[], None] = lambda: None

    def __call__(
        self,
        graph: Graph,
        tensors: Mapping[str, Tensor],
        machine: Machine,
        progress: Callable[[int], None] | None = None,
        *,
        engine: Engine = "auto",
        expected: float = 0,
    ) -> Simulation:
        if self.region is None or graph.name == self.region:
            row = cosimulate(graph, tensors, machine, self.tool, self.wave)
            self.rows.append(row)
            self.report()
            if row.simulation is not None:
                return row.simulation
        return simulate(graph, tensors, machine, progress, engine=engine, expected=expected)  # which explains a deadlock
