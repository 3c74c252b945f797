"""The command `fuseflow explain plan`, which says what the parts of a plan hold and cost."""

from __future__ import annotations

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.common import machine_options
from fuseflow.cli.json_file import JsonFile, json_option
from fuseflow.cli.program import ProgramRequest, program_options
from fuseflow.cli.target import Target
from fuseflow.explain.plan import NO_PLAN, explain_plan
from fuseflow.frontend.sources import load
from fuseflow.report.plan_tables import comparison, part_table, plan_json
from fuseflow.report.tables import print_table
from fuseflow.sim import Machine


@click.command("plan", cls=StrictCommand, short_help="What the parts of a plan hold and cost.")
@program_options(simulates=True)
@machine_options
@click.option("--simulate", is_flag=True, help="Also run the program with the plan and without it.")
@json_option("the report")
@debug_option
def plan(program: ProgramRequest, machine: Machine, simulate: bool, json_file: JsonFile) -> None:
    """Explain the plan of MODEL: a row for each part of each operand that is divided.

    Costs are those of one product unit, measured on the machine for full blocks. The second table compares the whole program with the plan
    and without it. With `--plan auto`, the plans that were considered come first.
    """
    json_file.require_writable()
    scheduled = program.compile(Target(machine))
    schedule = scheduled.compiled.schedule
    if scheduled.choice is not None and not schedule.plan:
        json_file.write(lambda: scheduled.json(plan_json(NO_PLAN, scheduled.compiled.name, schedule.to_yaml())))
        json_file.console().print("no plan takes fewer cycles than the operands as they are")
        return
    report = explain_plan(load(program.model), schedule, machine, simulate)
    json_file.write(lambda: scheduled.json(plan_json(report, scheduled.compiled.name, schedule.to_yaml())))
    out = json_file.console()
    print_table(out, part_table(report))
    out.print()
    print_table(out, comparison(report))
