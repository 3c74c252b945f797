"""The action of the command `fuseflow area`, which `cli/area.py` declares."""

from __future__ import annotations

from pathlib import Path

from fuseflow.cli.common import print_pieces
from fuseflow.cli.json_file import JsonFile
from fuseflow.cli.progress import following
from fuseflow.cli.region_name import region_number
from fuseflow.cli.request import ProgramRequest
from fuseflow.cli.target import Target
from fuseflow.errors import HardwareError
from fuseflow.hardware.area.circuit_area import circuit_areas
from fuseflow.hardware.area.liberty import read_liberty
from fuseflow.hardware.area.synthesis import version
from fuseflow.hardware.output import bounded_circuit
from fuseflow.machine.machine import Machine
from fuseflow.report.area_tables import area_lines, area_table, node_table, part_table

TABLES = {"part": part_table, "node": node_table}


def area(
    program: ProgramRequest,
    machine: Machine,
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
    compiled = program.compile(Target(machine), quiet=quiet).compiled
    regions = compiled.regions if region is None else (compiled.regions[region_number(compiled, region)],)
    with following("synthesizing", quiet):
        areas = tuple(circuit_areas([bounded_circuit(each.graph, machine) for each in regions], library))
    json_file.write(
        lambda: {"schema": 1, "model": compiled.name, "machine": machine.name, "regions": [a.to_json() for a in areas]}
    )
    out = json_file.console()
    if not quiet:
        print_pieces(out, [area_table(areas), *area_lines(areas)])
    for kind in by:
        print_pieces(out, ["", TABLES[kind](areas)])
