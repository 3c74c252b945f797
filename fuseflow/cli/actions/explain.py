"""The actions of the commands of `fuseflow explain`, which `cli/explain.py` declares."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import click

from fuseflow.array.settings import ArraySettings
from fuseflow.cli import explain as commands
from fuseflow.cli.command import same_request
from fuseflow.cli.common import JsonFile, print_lines, print_notices, print_pieces
from fuseflow.cli.progress import firings_bar
from fuseflow.cli.request import ProgramRequest, ScheduledProgram
from fuseflow.cli.run import run as run_command
from fuseflow.cli.run_options import Target
from fuseflow.cli.schedule import schedule as schedule_command
from fuseflow.explain.order import CountingRule
from fuseflow.explain.plan import NO_PLAN
from fuseflow.frontend.sources import load
from fuseflow.interface.explanations import (
    Explanation,
    explanation_of_cycles,
    explanation_of_fusion,
    explanation_of_order,
    explanation_of_plan,
    explanation_of_summary,
)
from fuseflow.machine.machine import Machine
from fuseflow.report.plan_tables import plan_json

MORE: Mapping[str, click.Command] = {
    "explain cycles": commands.cycles,
    "explain fusion": commands.fusion,
    "explain order": commands.order,
    "run -o out/run --explain": run_command,
}
"""The commands that say more than the summary."""
SEARCH = "schedule --budget medium -o best.yaml"


def summary(program: ProgramRequest, target: Target, no_changes: bool, json_file: JsonFile, quiet: bool) -> None:
    scheduled = program.compile(target, quiet=quiet)
    with firings_bar(quiet, scheduled.compiled) as progress:
        explanation = explanation_of_summary(scheduled.compiled, target.engine, progress, no_changes)
    _show(scheduled, explanation, json_file, quiet)
    if quiet:
        return
    out = json_file.console()
    context = click.get_current_context()
    more = [f"{words} {shlex.join(same_request(context, declared))}" for words, declared in MORE.items()]
    more += ["report out/run", f"{SEARCH} {shlex.join(same_request(context, schedule_command, 'Schedule'))}"]
    print_lines(out, ["", "more:", *(f"  fuseflow {words}" for words in more)])


def order(program: ProgramRequest, machine: Machine, rule: CountingRule | None, json_file: JsonFile, quiet: bool) -> None:
    scheduled = program.compile(Target(machine), quiet=quiet)
    _show(scheduled, explanation_of_order(scheduled.compiled, rule), json_file, quiet)


def fusion(program: ProgramRequest, machine: Machine, array: ArraySettings | None, json_file: JsonFile, quiet: bool) -> None:
    scheduled = program.compile(Target(machine, array=array), quiet=quiet)
    _show(scheduled, explanation_of_fusion(scheduled.compiled, program.schedule, array), json_file, quiet)


def cycles(program: ProgramRequest, target: Target, top: int, no_changes: bool, json_file: JsonFile, quiet: bool) -> None:
    scheduled = program.compile(target, quiet=quiet)
    with_stalls = json_file.path is not None
    with firings_bar(quiet, scheduled.compiled) as progress:
        explanation = explanation_of_cycles(scheduled.compiled, target.engine, progress, top, no_changes, with_stalls)
    _show(scheduled, explanation, json_file, quiet)


def plan(program: ProgramRequest, machine: Machine, simulate: bool, json_file: JsonFile, quiet: bool) -> None:
    scheduled = program.compile(Target(machine), quiet=quiet)
    schedule = scheduled.compiled.schedule
    if scheduled.choice is not None and not schedule.plan:
        json_file.write(lambda: scheduled.json(plan_json(NO_PLAN, scheduled.compiled.name, schedule.to_yaml())))
        if not quiet:
            json_file.console().print("no plan takes fewer cycles than the operands as they are")
        return
    _show(scheduled, explanation_of_plan(load(program.model), schedule, machine, simulate), json_file, quiet)


def _show(scheduled: ScheduledProgram, explanation: Explanation, json_file: JsonFile, quiet: bool) -> None:
    """Write an explanation as JSON if that is asked for, and print it unless it is `quiet`."""
    json_file.write(lambda: scheduled.json(explanation.to_dict()))
    if not quiet:
        out = json_file.console()
        print_pieces(out, explanation.pieces)
        print_notices(out, explanation.notices)
