"""`fuseflow simulate`: execute a graph that is there already, cycle by cycle."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import click

from fuseflow.cli.common import (
    FILE,
    StrictCommand,
    console,
    debug_option,
    engine_option,
    machine_options,
    memory_option,
    print_memory,
    print_result,
    print_top,
    quiet_option,
    refuse_inside,
    require_replaceable,
    require_writable,
    top_option,
    write_out,
)
from fuseflow.cli.progress import firings_bar, working
from fuseflow.cli.trace import Trace, trace_options
from fuseflow.compiler import RegionResult, Result
from fuseflow.run.artifacts import save_run
from fuseflow.run.result import Seconds, json_text
from fuseflow.run.settings import Settings
from fuseflow.samml.files import load_graph, whole
from fuseflow.sim import Engine, Machine
from fuseflow.sim import simulate as run_graph


@click.command(cls=StrictCommand, short_help="Execute a graph on tensors from files.")
@click.argument("graph", type=FILE)
@click.option("--tensors", metavar="FILE", type=FILE, required=True, help="YAML that names the graph's inputs.")
@machine_options
@engine_option
@click.option("--json", "json_file", metavar="FILE", type=FILE, help="Write the result as JSON; - is stdout.")
@click.option("-o", "--output", metavar="DIR", type=FILE, help="Write the outputs and the result here.")
@top_option
@memory_option
@trace_options
@quiet_option
@debug_option
def simulate(
    graph: Path,
    tensors: Path,
    machine: Machine,
    engine: Engine,
    json_file: Path | None,
    output: Path | None,
    top: int | None,
    memory: bool,
    trace: Trace | None,
    quiet: bool,
) -> None:
    """Execute GRAPH, a SAMML graph of any tool: protobuf (.bin, or its text form .txtpb), or .samml.

    Prints a row like those of `fuseflow run`. Nothing is checked: the graph does not say what it should compute.
    """
    to_stdout = str(json_file) == "-"
    if json_file is not None and not to_stdout:
        require_writable(json_file, directory=False)
    if output is not None:
        require_replaceable(output)
        refuse_inside(output, json=json_file, trace=None if trace is None else trace.file)
    start = time.perf_counter()
    with working("loading", quiet):
        loaded, inputs = load_graph(graph, tensors)
    loading = time.perf_counter() - start
    with firings_bar(quiet) as progress:
        report = None if progress is None else lambda firings: progress(loaded.name, firings)
        simulation = run_graph(loaded, inputs, machine, report, engine=engine)
        seconds = Seconds(loading, 0.0, time.perf_counter() - start - loading)
        said = None
        if trace is not None:
            tracer = trace.tracer(machine, 1, progress)
            tracer.add(loaded.name, loaded, inputs, simulation)
            said = trace.write(tracer, loaded.name)
    simulation = replace(simulation, outputs={name: whole(tensor) for name, tensor in simulation.outputs.items()})
    settings = Settings(str(graph), str(tensors), "", machine, engine, 0)
    result = Result(settings, simulation.outputs, (RegionResult(loaded.name, (), simulation),), None, seconds)
    if output is not None:
        save_run(output, result)
    if json_file is not None:
        write_out(json_text(result.to_json()), json_file)
    out = console(stderr=to_stdout)
    if not quiet:
        print_result(out, result)
        if said is not None:
            out.print(said, soft_wrap=True, markup=False)
    print_top(out, result, top)
    print_memory(out, result, memory)
