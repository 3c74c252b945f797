"""`fuseflow explain fusion`: what is fused and why, how often every producer is computed, and what storing it would mean."""

from __future__ import annotations

from pathlib import Path

import click

from fuseflow.cli.auto import Auto, auto_options
from fuseflow.cli.common import (
    FILE,
    StrictCommand,
    console,
    debug_option,
    model_options,
    require_writable,
    schedule_options,
    write_out,
)
from fuseflow.explain.fusion import explain_fusion
from fuseflow.report.fusion_tables import pair_table, producer_table, report_json
from fuseflow.report.tables import print_table
from fuseflow.run.result import json_text
from fuseflow.schedule import Schedule


@click.command("fusion", cls=StrictCommand, short_help="What is fused and why, and what that costs.")
@model_options
@schedule_options
@auto_options()
@click.option("--json", "json_file", metavar="FILE", type=FILE, help="Write the report as JSON; - is stdout.")
@debug_option
def fusion(
    model: Path,
    data: str | None,
    data_dir: Path | None,
    tensors: Path | None,
    options: dict[str, str],
    seed: int,
    schedule: Schedule,
    auto: Auto,
    json_file: Path | None,
) -> None:
    """Explain the regions of MODEL: which neighbouring Einsums are fused, and why or why not.

    The second table says how often each value of a producer is computed, inside which loops that it lacks, and what storing it instead
    means. Nothing is executed: numbers are expected from the statistics of the tensors, which are assumed for those without data.
    """
    to_stdout = str(json_file) == "-"
    if json_file is not None and not to_stdout:
        require_writable(json_file, directory=False)
    program = auto.compile(model, schedule, data=data, data_dir=data_dir, tensors=tensors, options=options, seed=seed)
    source, schedule = program.compiled.source, program.compiled.schedule
    report = explain_fusion(source, schedule)
    if json_file is not None:
        write_out(json_text(program.json(report_json(report, source.name, schedule.to_yaml()))), json_file)
    out = console(stderr=to_stdout)
    print_table(out, pair_table(report))
    out.print()
    print_table(out, producer_table(report))
