"""The command `fuseflow compile`, which compiles a model and writes a directory of artifacts or one stage."""

from __future__ import annotations

from pathlib import Path

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.common import (
    FILE,
    console,
    print_notices,
    quiet_option,
    refuse_inside,
    require_replaceable,
    require_writable,
    reserved_stdout,
    say,
    write_out,
)
from fuseflow.cli.dump import StageDump, dump_options, known_stage
from fuseflow.cli.program import ProgramRequest, program_options
from fuseflow.errors import UsageError
from fuseflow.report.tables import compiled_table, print_table


@click.command("compile", cls=StrictCommand, short_help="Compile a model to dataflow graphs.")
@program_options()
@click.option("-o", "--output", metavar="PATH", type=FILE, help="Directory to write; with --emit a file, or -.")
@click.option("--emit", metavar="STAGE", callback=known_stage, help="Write this stage only, to standard output without -o.")
@dump_options
@quiet_option
@debug_option
def compile_command(
    program: ProgramRequest,
    output: Path | None,
    emit: str | None,
    dump: StageDump,
    quiet: bool,
) -> None:
    """Compile MODEL (.py, module:function, .ein or .mlir) to a dataflow graph for each region.

    Without --emit, writes a directory (out/NAME unless -o says otherwise) with the schedule and every stage of every region.
    """
    if emit == "fibertree" and (output is None or str(output) == "-"):
        raise UsageError("`--emit fibertree` writes a directory of files", hint="say where: `-o DIR`")
    target = output or (Path("out") / program.name if emit is None else None)
    if emit is None and target is not None:
        require_replaceable(target)
        refuse_inside(target, dump_dir=dump.directory, auto_schedule=program.auto.file)
    elif target is not None and str(target) != "-":
        require_writable(target, directory=emit == "fibertree")
    with reserved_stdout(emit is not None and emit != "fibertree") as stdout:
        compiled = program.compile(quiet=quiet, observe=dump).compiled
    if emit == "fibertree" and target is not None:
        compiled.save_fibertrees(target)
    elif emit is not None:
        write_out(compiled.emit(emit), target, stdout)
    elif target is not None:
        compiled.save(target)
        if not quiet:
            print_table(console(), compiled_table(compiled))
            say(f"written to {target}")
            print_notices(console(), compiled.notices)
