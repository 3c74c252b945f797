"""The command `fuseflow run`, which compiles a model, executes it cycle by cycle and checks its outputs."""

from __future__ import annotations

import click

from fuseflow.cli.common import StrictCommand, debug_option, print_notices, quiet_option
from fuseflow.cli.dump import StageDump, dump_options
from fuseflow.cli.program import ProgramRequest, program_options
from fuseflow.cli.progress import firings_bar
from fuseflow.cli.result_output import ResultOutput, print_result, result_options
from fuseflow.cli.target import Target, target_options
from fuseflow.cli.trace import TraceRequest, trace_options
from fuseflow.errors import CheckError
from fuseflow.report.tables import check_line


@click.command(cls=StrictCommand, short_help="Compile a model, execute it and check its outputs.")
@program_options(simulates=True)
@target_options
@click.option("--no-check", is_flag=True, help="Do not compare the outputs with PyTorch (or the dense interpreter).")
@click.option("--no-dedup", is_flag=True, help="Simulate every region, those that run like one before it too.")
@result_options("the graphs, outputs and result")
@trace_options
@dump_options
@quiet_option
@debug_option
def run(
    program: ProgramRequest,
    target: Target,
    no_check: bool,
    no_dedup: bool,
    output: ResultOutput,
    trace: TraceRequest | None,
    dump: StageDump,
    quiet: bool,
) -> None:
    """Compile MODEL (.py, .ein or .mlir), execute it on its data and check the outputs.

    Prints a row for each region: cycles, nodes of the graph, firings, tokens, FLOPs and bytes. Exits with 1 if the check fails.
    """
    output.require_writable(dump_dir=dump.directory, auto_schedule=program.auto.file, trace=None if trace is None else trace.file)
    scheduled = program.compile(target, quiet=quiet, observe=dump)
    compiled = scheduled.compiled
    with firings_bar(quiet) as progress:
        tracer = None if trace is None else trace.tracer(target.machine, len(compiled.regions), progress)
        watch = None if tracer is None else tracer.watch
        result = scheduled.run(progress, not no_check, target.engine, not no_dedup, watch)
    if output.directory is not None:
        compiled.save(output.directory, result)
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
    if result.check is not None and not result.check.passed:
        error = f"relative error {result.check.max_rel_error:.3g}"
        message = f"output `{result.check.worst}` differs from {result.check.reference}: {error}"
        raise CheckError(message, hint="\n".join(compiled.selection_notices))
