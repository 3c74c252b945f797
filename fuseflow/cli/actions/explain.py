"""The actions of the commands of `fuseflow explain`, which `cli/explain.py` declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import click

from fuseflow.array.settings import ArraySettings
from fuseflow.cli import explain as commands
from fuseflow.cli.command import same_request
from fuseflow.cli.common import JsonFile, print_lines, print_notices, print_pieces
from fuseflow.cli.progress import firings_bar
from fuseflow.cli.request import ProgramRequest
from fuseflow.cli.run import run as run_command
from fuseflow.cli.run_options import Target
from fuseflow.cli.schedule import schedule as schedule_command
from fuseflow.explain.array_cuts import explain_cuts
from fuseflow.explain.cycles import explain_cycles
from fuseflow.explain.fusion import explain_fusion
from fuseflow.explain.order import CountingRule, explain_order
from fuseflow.explain.plan import NO_PLAN, explain_plan
from fuseflow.explain.public_form_cost import explain_primitives
from fuseflow.frontend.sources import load
from fuseflow.lower.schedule_annotations import overruled_notices
from fuseflow.machine.files import load_machine
from fuseflow.machine.machine import Machine
from fuseflow.report.array_tables import cut_lines, cuts_json
from fuseflow.report.cycle_tables import cycles_json, cycles_lines
from fuseflow.report.fusion_tables import (
    fusion_json,
    keep_table,
    pair_table,
    primitives_json,
    primitives_table,
    producer_table,
    recompute_notes,
    recompute_table,
    stage_table,
)
from fuseflow.report.order_tables import assumed_line, order_json, order_lines
from fuseflow.report.plan_tables import comparison, part_table, plan_json
from fuseflow.report.sparsity_tables import attribute_table
from fuseflow.report.summary_lines import summary_json, summary_lines
from fuseflow.report.training_tables import stored_table
from fuseflow.run.training.phase_costs import stored_for_later

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
        report = explain_cycles(scheduled.compiled, target.engine, progress, not no_changes)
    json_file.write(lambda: scheduled.json(summary_json(report)))
    if quiet:
        return
    out = json_file.console()
    print_lines(out, [*summary_lines(report), "", "more:"])
    context = click.get_current_context()
    more = [f"{words} {same_request(context, declared)}" for words, declared in MORE.items()]
    more += ["report out/run", f"{SEARCH} {same_request(context, schedule_command, without='Schedule')}"]
    print_lines(out, (f"  fuseflow {words}" for words in more))
    print_notices(out, report.result.settings.notices)


def order(program: ProgramRequest, rule: CountingRule | None, json_file: JsonFile, quiet: bool) -> None:
    scheduled = program.compile(quiet=quiet)
    compiled = scheduled.compiled
    reports = explain_order(compiled, rule)
    json_file.write(lambda: scheduled.json(order_json(compiled, reports)))
    if quiet:
        return
    out = json_file.console()
    if assumed := assumed_line(compiled):
        out.print(assumed, "\n", soft_wrap=True, sep="")
    for report in reports:
        print_pieces(out, order_lines(report))
    print_notices(out, overruled_notices(compiled.source.program, compiled.schedule, compiled.regions))


def fusion(program: ProgramRequest, array: ArraySettings | None, json_file: JsonFile, quiet: bool) -> None:
    scheduled = program.compile(Target(load_machine("rda"), array=array), quiet=quiet)
    source, schedule = scheduled.compiled.source, scheduled.compiled.schedule
    report = explain_fusion(source, schedule, scheduled.compiled.machine, program.schedule)
    cuts = () if array is None else explain_cuts(scheduled.compiled, array)
    costs = explain_primitives(scheduled.compiled)
    settings = scheduled.compiled.settings
    trains = program.model.training is not None
    kept = stored_for_later(scheduled.compiled.program, scheduled.compiled.regions) if trains else []
    told = {
        **fusion_json(report, source.name, schedule.to_yaml()),
        "primitives": primitives_json(costs),
        **settings.left_out_json,
        **({} if array is None else {"cuts": cuts_json(cuts)}),
        **({"stored_for_backward": [asdict(row) for row in kept]} if trains else {}),
    }
    json_file.write(lambda: scheduled.json(told))
    if quiet:
        return
    out = json_file.console()
    print_pieces(out, [pair_table(report), *(("", *cut_lines(cuts)) if cuts else ()), "", producer_table(report)])
    if settings.left_out:
        print_pieces(out, ["", attribute_table(settings.left_out)])
    if trains:
        print_pieces(out, ["", stored_table(kept) if kept else "nothing is stored for the backward"])
    if report.recomputes:
        print_pieces(out, ["", recompute_table(report), *recompute_notes(report)])
    if report.keeps:
        print_pieces(out, ["", keep_table(report)])
    if costs:
        print_pieces(out, ["", primitives_table(costs)])
        print_lines(out, [f"{cost.region}: {reason}" for cost in costs for reason in cost.private])
        print_notices(out, [cost.notice for cost in costs if cost.notice])
    print_pieces(out, ["", stage_table(report)])


def cycles(program: ProgramRequest, target: Target, top: int, no_changes: bool, json_file: JsonFile, quiet: bool) -> None:
    scheduled = program.compile(target, quiet=quiet)
    with firings_bar(quiet, scheduled.compiled) as progress:
        with_stalls = json_file.path is not None
        report = explain_cycles(scheduled.compiled, target.engine, progress, not no_changes, with_stalls)
    json_file.write(lambda: scheduled.json(cycles_json(report)))
    if quiet:
        return
    out = json_file.console()
    print_pieces(out, cycles_lines(report, top))
    print_notices(out, report.result.settings.notices)


def plan(program: ProgramRequest, machine: Machine, simulate: bool, json_file: JsonFile, quiet: bool) -> None:
    scheduled = program.compile(Target(machine), quiet=quiet)
    schedule = scheduled.compiled.schedule
    if scheduled.choice is not None and not schedule.plan:
        json_file.write(lambda: scheduled.json(plan_json(NO_PLAN, scheduled.compiled.name, schedule.to_yaml())))
        if not quiet:
            json_file.console().print("no plan takes fewer cycles than the operands as they are")
        return
    report = explain_plan(load(program.model), schedule, machine, simulate)
    json_file.write(lambda: scheduled.json(plan_json(report, scheduled.compiled.name, schedule.to_yaml())))
    if not quiet:
        print_pieces(json_file.console(), [part_table(report), "", comparison(report)])
