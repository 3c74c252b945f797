"""The action of the command `fuseflow explain plan`, which `cli/explain_plan.py` declares."""

from __future__ import annotations

from fuseflow.cli.common import print_pieces
from fuseflow.cli.json_file import JsonFile
from fuseflow.cli.request import ProgramRequest
from fuseflow.cli.target import Target
from fuseflow.explain.plan import NO_PLAN, explain_plan
from fuseflow.frontend.sources import load
from fuseflow.machine.machine import Machine
from fuseflow.report.plan_tables import comparison, part_table, plan_json


def plan(program: ProgramRequest, machine: Machine, simulate: bool, json_file: JsonFile) -> None:
    scheduled = program.compile(Target(machine))
    schedule = scheduled.compiled.schedule
    if scheduled.choice is not None and not schedule.plan:
        json_file.write(lambda: scheduled.json(plan_json(NO_PLAN, scheduled.compiled.name, schedule.to_yaml())))
        json_file.console().print("no plan takes fewer cycles than the operands as they are")
        return
    report = explain_plan(load(program.model), schedule, machine, simulate)
    json_file.write(lambda: scheduled.json(plan_json(report, scheduled.compiled.name, schedule.to_yaml())))
    print_pieces(json_file.console(), [part_table(report), "", comparison(report)])
