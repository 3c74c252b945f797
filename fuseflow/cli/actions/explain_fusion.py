"""The action of the command `fuseflow explain fusion`, which `cli/explain_fusion.py` declares."""

from __future__ import annotations

from fuseflow.cli.common import print_notices, print_pieces
from fuseflow.cli.json_file import JsonFile
from fuseflow.cli.request import ProgramRequest
from fuseflow.explain.fusion import explain_fusion
from fuseflow.explain.primitives import explain_primitives
from fuseflow.report.attribute_tables import attribute_table
from fuseflow.report.fusion_tables import fusion_json, keep_table, pair_table, producer_table, stage_table
from fuseflow.report.primitives_table import notice_lines, primitives_json, primitives_table, private_lines


def fusion(
    program: ProgramRequest,
    json_file: JsonFile,
) -> None:
    scheduled = program.compile()
    source, schedule = scheduled.compiled.source, scheduled.compiled.schedule
    report = explain_fusion(source, schedule, scheduled.compiled.machine, program.schedule)
    costs = explain_primitives(scheduled.compiled)
    settings = scheduled.compiled.settings
    told = {
        **fusion_json(report, source.name, schedule.to_yaml()),
        "primitives": primitives_json(costs),
        **settings.left_out_json,
    }
    json_file.write(lambda: scheduled.json(told))
    out = json_file.console()
    print_pieces(out, [pair_table(report), "", producer_table(report)])
    if settings.left_out:
        print_pieces(out, ["", attribute_table(settings.left_out)])
    if report.keeps:
        print_pieces(out, ["", keep_table(report)])
    if costs:
        print_pieces(out, ["", primitives_table(costs)])
        for line in private_lines(costs):
            out.print(line, soft_wrap=True, markup=False)
        print_notices(out, notice_lines(costs))
    print_pieces(out, ["", stage_table(report)])
