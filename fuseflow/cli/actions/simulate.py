"""The action of the command `fuseflow simulate`, which `cli/simulate.py` declares."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fuseflow.cli.array_options import ArrayRequest
from fuseflow.cli.common import print_lines, print_notices
from fuseflow.cli.progress import firings_bar, working
from fuseflow.cli.run_options import ResultOutput, Target, print_result
from fuseflow.run.input_notices import not_finite_notice
from fuseflow.run.manifest import save_run
from fuseflow.run.result import RegionResult, Result, Seconds
from fuseflow.run.settings import Settings
from fuseflow.run.simulated_resources import simulated_resources
from fuseflow.samml.files import load_graph, merge_tiles
from fuseflow.sim import simulate as run_graph

if TYPE_CHECKING:
    from fuseflow.cli.trace_request import TraceRequest


def simulate(
    graph: Path,
    tensors: Path,
    target: Target,
    on_array: ArrayRequest | None,
    output: ResultOutput,
    trace: TraceRequest | None,
    quiet: bool,
) -> None:
    output.require_writable(trace=None if trace is None else trace.file)
    start = time.perf_counter()
    with working("loading", quiet):
        loaded, inputs = load_graph(graph, tensors)
    load_time, loading = time.perf_counter() - start, dict[str, int]()
    if on_array is not None:
        from fuseflow.array.links import linked_graph  # other graphs do without

        (placed,) = on_array.placed({loaded.name: loaded}, target.machine, quiet)
        loaded, loading = linked_graph(placed), {loaded.name: placed.loading_cycles}
    with firings_bar(quiet) as progress:
        report = None if progress is None else lambda firings: progress(loaded.name, firings)
        simulation = run_graph(loaded, inputs, target.machine, report, engine=target.engine)
        seconds = Seconds(load_time, 0.0, time.perf_counter() - start - load_time)
        trace_note = None
        if trace is not None:
            tracer = trace.tracer(target.machine, 1, progress)
            tracer.add(loaded.name, loaded, inputs, simulation)
            trace_note = trace.write(tracer, loaded.name)
    simulation = replace(simulation, outputs={name: merge_tiles(tensor) for name, tensor in simulation.outputs.items()})
    notice = not_finite_notice(inputs)
    settings = Settings(str(graph), str(tensors), "", target.machine, target.engine, 0, notices=(notice,) if notice else ())
    resources = simulated_resources(loaded, target.machine, simulation)
    region = RegionResult(loaded.name, (), simulation, resources, loaded)
    result = Result(settings, simulation.outputs, (region,), None, seconds, loading=loading)
    if output.directory is not None:
        save_run(output.directory, result)
    output.json_file.write(result.to_dict)
    if quiet and not output.has_tables:
        return
    out = output.json_file.console()
    if not quiet:
        print_result(out, result)
        print_notices(out, settings.notices)
        print_lines(out, [] if trace_note is None else [trace_note])
    output.print_tables(out, result)
