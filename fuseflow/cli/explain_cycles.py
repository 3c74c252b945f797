"""The command `fuseflow explain cycles`, which says what makes a run take its cycles, and what would take fewer."""

from __future__ import annotations

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.common import print_notices, quiet_option
from fuseflow.cli.json_file import JsonFile, json_option
from fuseflow.cli.program import ProgramRequest, program_options
from fuseflow.cli.progress import firings_bar
from fuseflow.cli.target import Target, target_options
from fuseflow.explain.cycles import explain_cycles
from fuseflow.report.cycle_tables import cycles_json, cycles_lines
from fuseflow.report.tables import print_table


@click.command("cycles", cls=StrictCommand, short_help="What a run spends its cycles on, and what would take fewer.")
@program_options(simulates=True)
@target_options
@click.option("--top", metavar="N", type=click.IntRange(min=1), default=5, show_default=True, help="Rows of each table.")
@click.option("--no-changes", is_flag=True, help="Do not compile and compare other schedules.")
@json_option("the report")
@quiet_option
@debug_option
def cycles(
    program: ProgramRequest,
    target: Target,
    top: int,
    no_changes: bool,
    json_file: JsonFile,
    quiet: bool,
) -> None:
    """Run MODEL and follow the critical path of every region, from its last event back to its first.

    The path goes from each event to what it waited for last: its own work, a token, room in a FIFO, an answer of the memory. Its steps add
    up to all cycles of the region. The changes next to the schedule are compiled and their costs estimated. Values are not checked.
    """
    json_file.require_writable()
    scheduled = program.compile(target, quiet=quiet)
    with firings_bar(quiet) as progress:
        report = explain_cycles(
            scheduled.compiled, target.engine, progress, with_changes=not no_changes, with_stalls=json_file.path is not None
        )
    json_file.write(lambda: scheduled.json(cycles_json(report)))
    if quiet:
        return
    out = json_file.console()
    for piece in cycles_lines(report, top):
        if isinstance(piece, str):
            out.print(piece, soft_wrap=True)
        else:
            print_table(out, piece)
    print_notices(out, report.result.settings.notices)
