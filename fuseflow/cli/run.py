"""The command `fuseflow run`, which compiles a model, executes it cycle by cycle and checks its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.common import print_notices, quiet_option
from fuseflow.cli.dump import StageDump, dump_options
from fuseflow.cli.program import ProgramRequest, ScheduledProgram, program_options
from fuseflow.cli.progress import firings_bar
from fuseflow.cli.result_output import ResultOutput, print_result, result_options
from fuseflow.cli.target import Target, target_options
from fuseflow.cli.trace import TraceRequest, trace_options
from fuseflow.compiler import compile_source
from fuseflow.errors import CheckError, UsageError
from fuseflow.explain.cycles import explain_cycles
from fuseflow.report.cycle_tables import CYCLES_FILE, cycles_json
from fuseflow.report.resource_tables import resource_table
from fuseflow.report.sampled_tables import sampled_lines, sampled_table
from fuseflow.report.tables import check_line, print_table
from fuseflow.run.bisection import explain_deviation
from fuseflow.run.check import Check
from fuseflow.run.compiled import Compiled
from fuseflow.run.execution import ProgressCallback
from fuseflow.run.result import json_text
from fuseflow.sampling.sample import Sample, parse_sample
from fuseflow.schedule import Schedule


@click.command(cls=StrictCommand, short_help="Compile a model, execute it and check its outputs.")
@program_options(simulates=True)
@target_options
@click.option(
    "--sample",
    "sample_text",
    metavar="SHARE",
    help="Sample long regions: `2%` of the work, or as much as `error=1%` takes. Cycles have an interval then.",
)
@click.option("--no-check", is_flag=True, help="Do not compare the outputs with PyTorch (or the dense interpreter).")
@click.option("--bisect", is_flag=True, help="If the check fails, find the first Einsum whose value differs.")
@click.option("--no-dedup", is_flag=True, help="Simulate every region, those that run like one before it too.")
@click.option(
    "--jobs", metavar="N", type=click.IntRange(min=1), help="Long regions at a time.  [default: the cores of this machine]"
)
@click.option("--explain", is_flag=True, help="Find what the cycles go into, for the page of `report`. Needs -o; runs thrice.")
@result_options("the graphs, outputs and result")
@trace_options
@dump_options
@quiet_option
@debug_option
def run(
    program: ProgramRequest,
    target: Target,
    sample_text: str | None,
    no_check: bool,
    bisect: bool,
    no_dedup: bool,
    jobs: int | None,
    explain: bool,
    output: ResultOutput,
    trace: TraceRequest | None,
    dump: StageDump,
    quiet: bool,
) -> None:
    """Compile MODEL (.py, module:function, .ein or .mlir), execute it on its data and check the outputs.

    Prints a row for each region: cycles, nodes of the graph, firings, tokens, FLOPs and bytes. Exits with 1 if the check fails.
    """
    if bisect and no_check:
        raise UsageError("`--bisect` looks for what a check found, and `--no-check` makes none", hint="leave one of them out")
    if explain and output.directory is None:
        raise UsageError("`--explain` writes what `report` shows into the directory of the run", hint="add `-o DIR`")
    if sample_text is not None:
        _refuse_with_sample(output, trace, bisect, explain, jobs)
        _run_sampled(program, target, parse_sample(sample_text), not no_check, not no_dedup, output, dump, quiet)
        return
    output.require_writable(dump_dir=dump.directory, auto_schedule=program.auto.file, trace=None if trace is None else trace.file)
    scheduled = program.compile(target, quiet=quiet, observe=dump)
    compiled = scheduled.compiled
    with firings_bar(quiet) as progress:
        tracer = None if trace is None else trace.tracer(target.machine, len(compiled.regions), progress)
        watch = None if tracer is None else tracer.watch
        result = scheduled.run(progress, not no_check, target.engine, not no_dedup, watch, jobs)
        files = _explained(scheduled, target, progress) if explain else {}
    if output.directory is not None:
        compiled.save(output.directory, result, files)
    output.json.write(lambda: scheduled.json(result.to_json()))
    out = output.json.console()
    trace_note = None if trace is None or tracer is None else trace.write(tracer, compiled.name)
    if not quiet:
        print_result(out, result)
        out.print(check_line(result), soft_wrap=True)
        print_notices(out, result.settings.notices)
        if trace_note is not None:
            out.print(trace_note, soft_wrap=True, markup=False)
    output.print_tables(out, result)
    if result.check is not None:
        _require_passed(result.check, compiled.selection_notices, _bisected(compiled, target) if bisect else None)


def _explained(scheduled: ScheduledProgram, target: Target, progress: ProgressCallback | None) -> dict[str, str]:
    """Return the file that says what the cycles of a run go into, and what would take fewer."""
    report = explain_cycles(scheduled.compiled, target.engine, progress, with_stalls=True)
    return {CYCLES_FILE: json_text(cycles_json(report))}


def _bisected(compiled: Compiled, target: Target) -> Callable[[], Iterator[str]]:
    """Return a function that says where the values of a program begin to differ."""

    def unfused() -> Compiled:
        return compile_source(compiled.source, Schedule.fuse("none"), target.machine)

    return lambda: explain_deviation(compiled, unfused, target.engine)


def _require_passed(check: Check, notices: Sequence[str], bisected: Callable[[], Iterator[str]] | None = None) -> None:
    """Raise `CheckError` for a check that failed, with the notices as its hint, and with what `bisected` says of it."""
    if not check.passed:
        error = f"relative error {check.max_rel_error:.3g}"
        message = f"output `{check.worst}` differs from {check.reference}: {error}"
        where = () if check.largest is None else (f"the largest difference of `{check.worst}`: {check.largest}",)
        raise CheckError(message, notes=(*where, *(bisected() if bisected else ())), hint="\n".join(notices))


def _refuse_with_sample(output: ResultOutput, trace: TraceRequest | None, bisect: bool, explain: bool, jobs: int | None) -> None:
    """Raise `UsageError` for an option that needs every cycle of a run, and for `--jobs`."""
    if jobs is not None:
        raise UsageError("`--jobs` beside `--sample`, which runs one region at a time", hint="leave one of them out")
    needs = {
        "--trace": trace is not None,
        "--top": output.top is not None,
        "--memory": output.memory,
        "--bisect": bisect,
        "--explain": explain,
    }
    for option, given in needs.items():
        if given:
            raise UsageError(
                f"`{option}` needs every cycle of a run, and `--sample` runs a part of it", hint="leave one of them out"
            )


def _run_sampled(
    program: ProgramRequest,
    target: Target,
    sample: Sample,
    check: bool,
    dedup: bool,
    output: ResultOutput,
    dump: StageDump,
    quiet: bool,
) -> None:
    output.require_writable(dump_dir=dump.directory, auto_schedule=program.auto.file)
    scheduled = program.compile(target, quiet=quiet, observe=dump, sample=sample)
    with firings_bar(quiet) as progress:
        result = scheduled.run_sampled(sample, progress, check, target.engine, dedup)
    if output.directory is not None:
        scheduled.compiled.save(output.directory, result)
    output.json.write(lambda: scheduled.json(result.to_json()))
    out = output.json.console()
    if not quiet:
        print_table(out, sampled_table(result))
        for line in sampled_lines(result):
            out.print(line, soft_wrap=True)
        print_notices(out, result.settings.notices)
    if output.resources:
        out.print()
        print_table(out, resource_table((region.name, region.counts.resources) for region in result.regions))
    for outcome in (result.check, result.rows_check):
        if outcome is not None:
            _require_passed(outcome, scheduled.compiled.selection_notices)
