"""`fuseflow run`: compile, execute cycle by cycle, check."""

from __future__ import annotations

from pathlib import Path

import click

from fuseflow.cli.auto import Auto, auto_options
from fuseflow.cli.common import (
    FILE,
    StrictCommand,
    console,
    debug_option,
    engine_option,
    machine_options,
    memory_option,
    model_options,
    print_memory,
    print_notices,
    print_result,
    print_top,
    quiet_option,
    refuse_inside,
    require_replaceable,
    require_writable,
    schedule_options,
    top_option,
    write_out,
)
from fuseflow.cli.dump import Dump, dump_options
from fuseflow.cli.progress import firings_bar
from fuseflow.cli.trace import Trace, trace_options
from fuseflow.errors import CheckError
from fuseflow.report.tables import check_line
from fuseflow.run.result import json_text
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine, Machine


@click.command(cls=StrictCommand, short_help="Compile a model, execute it and check its outputs.")
@model_options
@schedule_options
@auto_options(simulates=True)
@machine_options
@engine_option
@click.option("--no-check", is_flag=True, help="Do not compare the outputs with PyTorch (or the dense interpreter).")
@click.option("--no-dedup", is_flag=True, help="Simulate every region, those that run like one before it too.")
@click.option("--json", "json_file", metavar="FILE", type=FILE, help="Write the result as JSON; - is stdout.")
@click.option("-o", "--output", metavar="DIR", type=FILE, help="Write the graphs, outputs and result here.")
@top_option
@memory_option
@trace_options
@dump_options
@quiet_option
@debug_option
def run(
    model: Path,
    data: str | None,
    data_dir: Path | None,
    tensors: Path | None,
    options: dict[str, str],
    seed: int,
    schedule: Schedule,
    auto: Auto,
    machine: Machine,
    engine: Engine,
    no_check: bool,
    no_dedup: bool,
    json_file: Path | None,
    output: Path | None,
    top: int | None,
    memory: bool,
    trace: Trace | None,
    dump: Dump,
    quiet: bool,
) -> None:
    """Compile MODEL (.py, .ein or .mlir), execute it on its data and check the outputs.

    Prints a row for each region: cycles, nodes of the graph, firings, tokens, FLOPs and bytes. Exits with 1 if the check fails.
    """
    to_stdout = str(json_file) == "-"
    if json_file is not None and not to_stdout:
        require_writable(json_file, directory=False)
    if output is not None:
        require_replaceable(output)
        refuse_inside(
            output, json=json_file, dump_dir=dump.directory, auto_schedule=auto.file, trace=None if trace is None else trace.file
        )
    program = auto.compile(
        model,
        schedule,
        machine,
        data=data,
        data_dir=data_dir,
        tensors=tensors,
        options=options,
        seed=seed,
        quiet=quiet,
        engine=engine,
        observe=dump,
    )
    compiled = program.compiled
    with firings_bar(quiet) as progress:
        tracer = None if trace is None else trace.tracer(machine, len(compiled.regions), progress)
        watch = None if tracer is None else tracer.watch
        result = program.run(progress, not no_check, engine, not no_dedup, watch)
    if output is not None:
        compiled.save(output, result)
    if json_file is not None:
        write_out(json_text(program.json(result.to_json())), json_file)
    out = console(stderr=to_stdout)
    said = None if trace is None or tracer is None else trace.write(tracer, compiled.name)
    if not quiet:
        print_result(out, result)
        out.print(check_line(result), soft_wrap=True)
        print_notices(out, result.settings.notices)
        if said is not None:
            out.print(said, soft_wrap=True, markup=False)
    print_top(out, result, top)
    print_memory(out, result, memory)
    if result.check is not None and not result.check.passed:
        error = f"relative error {result.check.max_rel_error:.3g}"
        raise CheckError(f"output `{result.check.worst}` differs from {result.check.reference}: {error}")
