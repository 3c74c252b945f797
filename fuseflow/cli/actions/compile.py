"""The action of the command `fuseflow compile`, which `cli/compile.py` declares."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fuseflow.cli.array_options import ArrayRequest, array_of
from fuseflow.cli.common import (
    CIRCUIT_MACHINE,
    JsonFile,
    console,
    print_lines,
    print_notices,
    refuse_inside,
    require_replaceable,
    require_writable,
    reserved_stdout,
    say,
    write_out,
)
from fuseflow.cli.request import ProgramRequest
from fuseflow.cli.run_options import Target
from fuseflow.cli.stage_dump import StageDump
from fuseflow.errors import UsageError
from fuseflow.hardware.circuit_files import MANIFEST, require_circt
from fuseflow.lower.schedule_annotations import unstated_sections
from fuseflow.machine.files import load_machine
from fuseflow.machine.machine import Machine
from fuseflow.report.table_width import print_table
from fuseflow.report.tables import compiled_json, compiled_table
from fuseflow.run.artifacts import CIRCUITS, DIRECTORY_FORMS

if TYPE_CHECKING:
    from fuseflow.array.placed_region import PlacedRegion
    from fuseflow.array.settings import ArraySettings

VERILOG = "verilog"


def compile_command(
    program: ProgramRequest,
    output: Path | None,
    emit: str | None,
    machine: Machine | None,
    on_array: ArrayRequest | None,
    dump: StageDump,
    json_file: JsonFile,
    quiet: bool,
) -> None:
    if json_file.to_stdout and emit is not None and (output is None or str(output) == "-"):
        raise UsageError("`--json` and `--emit` both write standard output", hint="give one of them a file")
    circuit = emit in (CIRCUITS, VERILOG)
    if machine is not None and not circuit:
        raise UsageError(f"a machine is of `--emit {CIRCUITS}` and `--emit {VERILOG}`", hint="leave `--machine` and `--set` out")
    if on_array is not None and not circuit:
        raise UsageError(
            f"an array is of `--emit {CIRCUITS}` and `--emit {VERILOG}`", hint="leave `--array` out, or `fuseflow place`"
        )
    if emit in DIRECTORY_FORMS and (output is None or str(output) == "-"):
        raise UsageError(f"`--emit {emit}` writes a directory of files", hint="say where: `-o DIR`")
    target = output or (Path("out") / program.name if emit is None else None)
    _require_writable(target, emit, program, dump, json_file)
    if emit == VERILOG:
        require_circt()
    on = Target(machine or load_machine(CIRCUIT_MACHINE), array=array_of(on_array)) if circuit else None
    placed: Mapping[str, PlacedRegion] = {}
    with reserved_stdout(emit is not None and emit not in DIRECTORY_FORMS) as stdout:
        scheduled = program.compile(on, quiet=quiet, observe=dump)
        compiled = scheduled.compiled
        if on_array is not None:
            compiled, placed = on_array.linked(compiled, quiet)
    if emit == "fibertree" and target is not None:
        compiled.save_fibertrees(target)
    elif emit == VERILOG and target is not None:
        compiled.save_verilog(target, placed.values())
        if on_array is not None and not quiet:
            _print_placed(on_array.array, placed)
    elif emit is not None:
        write_out(compiled.emit(emit), target, stdout)
        unstated = unstated_sections(compiled.schedule) if emit == "linalg" and not quiet else ()
        if unstated:
            sections = ", ".join(f"`{section}`" for section in unstated)
            say(f"note: the text does not say {sections} of the schedule: give it again where you read the text")
    elif target is not None:
        compiled.save(target)
        if not quiet:
            out = json_file.console()
            print_table(out, compiled_table(compiled))
            print_lines(out, [f"written to {target}"])
            print_notices(out, compiled.notices)
    json_file.write(lambda: scheduled.json(compiled_json(compiled, target)))


def _print_placed(array: ArraySettings, placed: Mapping[str, PlacedRegion]) -> None:
    """Print where the regions lie, with their clocks."""
    from fuseflow.report.array_tables import assumed_lines, place_table  # other programs do without

    print_table(console(), place_table(array, placed, {}))
    print_lines(console(), assumed_lines(array))


def _require_writable(
    target: Path | None, emit: str | None, program: ProgramRequest, dump: StageDump, json_file: JsonFile
) -> None:
    """Raise an error before the work if the target, a file or directory, cannot be written, or if another output would be in it."""
    if target is None or (emit is not None and str(target) == "-"):
        return
    if emit is None:
        require_replaceable(target)
    elif emit == VERILOG:
        require_replaceable(target, MANIFEST)
    else:
        require_writable(target, directory=emit == "fibertree")
    if emit is None or emit == VERILOG:
        refuse_inside(target, dump_dir=dump.directory, auto_schedule=program.auto.file, json=json_file.path)
