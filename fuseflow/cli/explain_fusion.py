"""The command `fuseflow explain fusion`, which says what is fused and why, how often producers run, and what storing them would cost."""

from __future__ import annotations

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.common import print_notices
from fuseflow.cli.json_file import JsonFile, json_option
from fuseflow.cli.program import ProgramRequest, program_options
from fuseflow.explain.fusion import explain_fusion
from fuseflow.explain.primitives import explain_primitives
from fuseflow.report.attribute_tables import attribute_table
from fuseflow.report.fusion_tables import fusion_json, keep_table, pair_table, producer_table, stage_table
from fuseflow.report.primitives_table import notice_lines, primitives_json, primitives_table, private_lines
from fuseflow.report.tables import print_table


@click.command("fusion", cls=StrictCommand, short_help="What is fused and why, and what that costs.")
@program_options()
@json_option("the report")
@debug_option
def fusion(
    program: ProgramRequest,
    json_file: JsonFile,
) -> None:
    """Explain the regions of MODEL: which neighbouring Einsums are fused, and why or why not.

    The second table says how often each value of a producer is computed, inside which loops that it lacks, and what storing it instead
    means. With `--propagate`, the next one says what is left out, since no output needs it. If the program keeps parts of results, another
    one says where each is kept, why, and what that costs. With public primitives, the next one says what these are expected to cost in each
    region. A last one lists the stages of every region, which may have lanes of their own (`--par REGION/STAGE.INDEX=4`), each with the
    loops that it runs in. Nothing is executed: numbers are expected from the statistics of the tensors, which are assumed for those without
    data.
    """
    json_file.require_writable()
    scheduled = program.compile()
    source, schedule = scheduled.compiled.source, scheduled.compiled.schedule
    report = explain_fusion(source, schedule, scheduled.compiled.machine)
    costs = explain_primitives(scheduled.compiled)
    settings = scheduled.compiled.settings
    told = {
        **fusion_json(report, source.name, schedule.to_yaml()),
        "primitives": primitives_json(costs),
        **settings.left_out_json,
    }
    json_file.write(lambda: scheduled.json(told))
    out = json_file.console()
    print_table(out, pair_table(report))
    out.print()
    print_table(out, producer_table(report))
    if settings.left_out:
        out.print()
        print_table(out, attribute_table(settings.left_out))
    if report.keeps:
        out.print()
        print_table(out, keep_table(report))
    if costs:
        out.print()
        print_table(out, primitives_table(costs))
        for line in private_lines(costs):
            out.print(line, soft_wrap=True, markup=False)
        print_notices(out, notice_lines(costs))
    out.print()
    print_table(out, stage_table(report))
