"""The command `fuseflow explain order`, which says what the loop order of a region must respect, and why it was chosen."""

from __future__ import annotations

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.json_file import JsonFile, json_option
from fuseflow.cli.program import ProgramRequest, program_options
from fuseflow.explain.order import CountingRule, explain_order
from fuseflow.report.order_tables import assumed_line, order_json, order_lines
from fuseflow.report.tables import print_table


@click.command("order", cls=StrictCommand, short_help="What a loop order must respect, and why it was chosen.")
@program_options()
@click.option("--count", "rule", type=click.Choice(["reference", "merged"]), help="Count the orders of each region by this rule.")
@json_option("the report")
@debug_option
def order(
    program: ProgramRequest,
    rule: CountingRule | None,
    json_file: JsonFile,
) -> None:
    """Explain the loop order of every region of MODEL.

    Says what each loop runs over, which loops must enclose which and why, and which orders were compared at what expected cost. Nothing is
    executed; statistics are assumed for tensors without data. --count reference counts as the published compiler does, which inlines
    every use of an intermediate on its own; --count merged with equal views merged.
    """
    json_file.require_writable()
    scheduled = program.compile()
    compiled = scheduled.compiled
    reports = explain_order(compiled, rule)
    json_file.write(lambda: scheduled.json(order_json(compiled, reports)))
    out = json_file.console()
    if assumed := assumed_line(compiled):
        out.print(assumed, "\n", soft_wrap=True, sep="")
    for report in reports:
        for piece in order_lines(report):
            if isinstance(piece, str):
                out.print(piece, soft_wrap=True)
            else:
                print_table(out, piece)
