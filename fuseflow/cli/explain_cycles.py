"""`fuseflow explain cycles`: what makes a run take its cycles, and what would take fewer."""

from __future__ import annotations

from pathlib import Path

import click

from fuseflow.cli.auto import Auto, auto_options
from fuseflow.cli.common import (
    FILE,
    StrictCommand,
    console,
    debug_option,
    engine_option,
    machine_options,
    model_options,
    print_notices,
    quiet_option,
    require_writable,
    schedule_options,
    write_out,
)
from fuseflow.cli.progress import firings_bar
from fuseflow.explain.cycles import explain_cycles
from fuseflow.report.cycle_tables import cycles_json, cycles_lines
from fuseflow.report.tables import print_table
from fuseflow.run.result import json_text
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine, Machine


@click.command("cycles", cls=StrictCommand, short_help="What a run spends its cycles on, and what would take fewer.")
@model_options
@schedule_options
@auto_options(simulates=True)
@machine_options
@engine_option
@click.option("--top", metavar="N", type=click.IntRange(min=1), default=5, show_default=True, help="Rows of each table.")
@click.option("--no-changes", is_flag=True, help="Do not compile and compare other schedules.")
@click.option("--json", "json_file", metavar="FILE", type=FILE, help="Write the report as JSON; - is stdout.")
@quiet_option
@debug_option
def cycles(
    model: Path,
    data: str | None,
    data_dir: Path | None,
    tensors: Path | None,
    options: dict[str, str],
    seed: int,
    schedule: Schedule,
    auto: Auto,
    machine: Machine,
    engine: Engine,
    top: int,
    no_changes: bool,
    json_file: Path | None,
    quiet: bool,
) -> None:
    """Run MODEL and follow the critical path of every region, from its last event back to its first.

    The path goes from each event to what it waited for last: its own work, a token, room in a FIFO, an answer of the memory. Its steps add
    up to all cycles of the region. The changes next to the schedule are compiled and their costs estimated. Values are not checked.
    """
    to_stdout = str(json_file) == "-"
    if json_file is not None and not to_stdout:
        require_writable(json_file, directory=False)
    program = auto.compile(
        model,
        schedule,
        machine,
        data=data,
        data_dir=data_dir,
        tensors=tensors,
        options=options,
        seed=seed,
        quiet=quiet,
        engine=engine,
    )
    with firings_bar(quiet) as progress:
        report = explain_cycles(program.compiled, engine, progress, with_changes=not no_changes)
    if json_file is not None:
        write_out(json_text(program.json(cycles_json(report))), json_file)
    if quiet:
        return
    out = console(stderr=to_stdout)
    for piece in cycles_lines(report, top):
        if isinstance(piece, str):
            out.print(piece, soft_wrap=True)
        else:
            print_table(out, piece)
    print_notices(out, report.result.settings.notices)
