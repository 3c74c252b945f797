"""The action of the command `fuseflow explain order`, which `cli/explain_order.py` declares."""

from __future__ import annotations

from fuseflow.cli.common import print_notices, print_pieces
from fuseflow.cli.json_file import JsonFile
from fuseflow.cli.request import ProgramRequest
from fuseflow.explain.order import CountingRule, explain_order
from fuseflow.lower.written_schedules import overruled_notices
from fuseflow.report.order_tables import assumed_line, order_json, order_lines


def order(
    program: ProgramRequest,
    rule: CountingRule | None,
    json_file: JsonFile,
) -> None:
    scheduled = program.compile()
    compiled = scheduled.compiled
    reports = explain_order(compiled, rule)
    json_file.write(lambda: scheduled.json(order_json(compiled, reports)))
    out = json_file.console()
    if assumed := assumed_line(compiled):
        out.print(assumed, "\n", soft_wrap=True, sep="")
    for report in reports:
        print_pieces(out, order_lines(report))
    print_notices(out, overruled_notices(compiled.source.program, compiled.schedule, compiled.regions))
