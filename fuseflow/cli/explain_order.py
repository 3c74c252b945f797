"""`fuseflow explain order`: what the loop order of every region must respect, how many there are, and why it was chosen."""

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
from fuseflow.explain.order import Rule, explain_order
from fuseflow.report.order_tables import assumed_line, order_json, order_lines
from fuseflow.report.tables import print_table
from fuseflow.run.result import json_text
from fuseflow.schedule import Schedule


@click.command("order", cls=StrictCommand, short_help="What a loop order must respect, and why it was chosen.")
@model_options
@schedule_options
@auto_options()
@click.option("--count", "rule", type=click.Choice(["reference", "merged"]), help="Count the orders of each region by this rule.")
@click.option("--json", "json_file", metavar="FILE", type=FILE, help="Write the report as JSON; - is stdout.")
@debug_option
def order(
    model: Path,
    data: str | None,
    data_dir: Path | None,
    tensors: Path | None,
    options: dict[str, str],
    seed: int,
    schedule: Schedule,
    auto: Auto,
    rule: Rule | None,
    json_file: Path | None,
) -> None:
    """Explain the loop order of every region of MODEL.

    Says what each loop runs over, which loops must enclose which and why, and which orders were compared at what expected cost. Nothing is
    executed; statistics are assumed for tensors without data. --count reference counts as the published compiler does, which inlines
    every use of an intermediate on its own; --count merged with equal views merged.
    """
    to_stdout = str(json_file) == "-"
    if json_file is not None and not to_stdout:
        require_writable(json_file, directory=False)
    program = auto.compile(model, schedule, data=data, data_dir=data_dir, tensors=tensors, options=options, seed=seed)
    compiled = program.compiled
    reports = explain_order(compiled, rule)
    if json_file is not None:
        write_out(json_text(program.json(order_json(compiled, reports))), json_file)
    out = console(stderr=to_stdout)
    if assumed := assumed_line(compiled):
        out.print(assumed, "\n", soft_wrap=True, sep="")
    for report in reports:
        for piece in order_lines(report):
            if isinstance(piece, str):
                out.print(piece, soft_wrap=True)
            else:
                print_table(out, piece)
