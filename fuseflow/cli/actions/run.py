"""The action of the command `fuseflow run`, which `cli/run.py` declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fuseflow.cli.array_options import ArrayRequest, array_of
from fuseflow.cli.common import console, print_lines, print_notices, print_pieces
from fuseflow.cli.progress import firings_bar, following
from fuseflow.cli.request import ProgramRequest, ScheduledProgram
from fuseflow.cli.run_options import EnergyRequest, ResultOutput, Target, print_energy, print_result
from fuseflow.cli.stage_dump import StageDump
from fuseflow.compiler import compile_source
from fuseflow.errors import CheckError, FuseFlowError, UsageError
from fuseflow.explain.slow_cut import long_run_notice
from fuseflow.filesystem import json_text
from fuseflow.report.tables import check_line, live_line, sampled_lines, sampled_table
from fuseflow.run.callback_types import ProgressCallback, SimulationCallback
from fuseflow.run.check import Check
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule

if TYPE_CHECKING:
    from rich.console import Console

    from fuseflow.array.placed_region import PlacedRegion
    from fuseflow.array.settings import ArraySettings
    from fuseflow.cli.run import RunRequest
    from fuseflow.cli.trace_request import TraceRequest
    from fuseflow.explain.cycles import CyclesReport
    from fuseflow.machine.machine import Machine
    from fuseflow.run.result import Result
    from fuseflow.run.training.training_run import TrainingRun


def run(
    program: ProgramRequest,
    target: Target,
    on_array: ArrayRequest | None,
    request: RunRequest,
    output: ResultOutput,
    energy: EnergyRequest,
    trace: TraceRequest | None,
    dump: StageDump,
    quiet: bool,
) -> None:
    _refuse_contradictions(program.model.training is not None, on_array, request, output, trace)
    if request.sample_text is not None:
        _refuse_with_sample(request, output, energy, trace)
        return _run_sampled(program, target, request, output, dump, quiet)
    energies = energy.energies(target.machine)
    output.require_writable(dump_dir=dump.directory, auto_schedule=program.auto.file, trace=None if trace is None else trace.file)
    target = replace(target, array=array_of(on_array))
    scheduled = program.compile(target, quiet=quiet, observe=dump)
    placed: Mapping[str, PlacedRegion] = {}
    if on_array is not None:
        linked, placed = on_array.linked(scheduled.compiled, quiet)
        scheduled = scheduled.linked(linked)
    compiled = scheduled.compiled
    if not quiet:
        print_notices(console(stderr=True), _in_vain(compiled))
    with firings_bar(quiet, compiled) as progress:
        tracer = None if trace is None else trace.tracer(target.machine, len(compiled.regions), progress)
        trained, result = _executed(program, scheduled, target, request, progress, None if tracer is None else tracer.watch)
        report = _explained(scheduled, target, progress) if request.explain else None
    searchable = program.model.training is None and on_array is None
    files = {} if report is None else _advised(scheduled, report, searchable, quiet)
    spent = None if energies is None else result.energy(energies)
    if spent is not None:
        from fuseflow.report.resource_tables import ENERGY_FILE

        files[ENERGY_FILE] = json_text(spent.to_json())
    told = result if trained is None else trained
    if output.directory is not None:
        files |= _pictures(placed, result) if placed else {}
        compiled.save(output.directory, told, files)
    output.json_file.write(lambda: scheduled.json(told.to_dict() | ({} if spent is None else {"energy": spent.to_json()})))
    check, out = told.check, output.json_file.console()
    passed = check is not None and check.passed
    bisected = _bisected(compiled, target, passed, quiet) if request.bisect else ()
    trace_note = [] if trace is None or tracer is None else [trace.write(tracer, compiled.name)]
    if not quiet:
        _print_run(out, compiled, result, trained)
        print_lines(out, trace_note)
    print_lines(out, [f"bisect: {line}" for line in bisected] if passed else [])
    output.print_tables(out, result)
    if on_array is not None and output.resources:
        _print_tiles(out, compiled, on_array.array, target.machine)
    if spent is not None:
        print_energy(out, spent)
    if check is not None:
        _require_passed(check, compiled.selection_notices, bisected)


def _executed(
    program: ProgramRequest,
    scheduled: ScheduledProgram,
    target: Target,
    request: RunRequest,
    progress: ProgressCallback | None,
    watch: SimulationCallback | None,
) -> tuple[TrainingRun | None, Result]:
    """Run a program. Return its steps if it is a training step, and the result of the only or first one."""
    check, dedup, jobs = not request.no_check, not request.no_dedup, request.jobs
    if program.model.training is None:
        return None, scheduled.runnable.run(progress, check, target.engine, dedup, watch, jobs=jobs)
    steps, simulate = request.steps or 1, request.simulate
    trained = scheduled.compiled.run(progress, check, target.engine, dedup, watch, jobs=jobs, steps=steps, simulate=simulate)
    return trained, trained.first


def _print_run(out: Console, compiled: Compiled, result: Result, trained: TrainingRun | None) -> None:
    """Print the tables of a run, the outcome of its check, and its notices."""
    if trained is not None:
        from fuseflow.report.training_tables import phase_table, training_lines

        print_pieces(out, [phase_table(result.regions), ""])
    print_result(out, result)
    if trained is not None:
        print_lines(out, training_lines(trained))
    out.print(check_line((trained or result).check), soft_wrap=True)
    print_lines(out, [live_line(result.live_bytes)] if compiled.schedule.recomputed else [])
    print_notices(out, [notice for notice in result.settings.notices if notice not in _in_vain(compiled)])


def _print_tiles(out: Console, compiled: Compiled, array: ArraySettings, machine: Machine) -> None:
    """Print the tiles that each region takes on an array."""
    from fuseflow.array.capacity import tile_use
    from fuseflow.report.array_tables import assumed_lines, tile_table

    uses = ((region.name, tile_use(region.graph, array, machine)) for region in compiled.regions)
    print_pieces(out, ["", tile_table(array, uses)])
    print_lines(out, assumed_lines(array))


def _pictures(placed: Mapping[str, PlacedRegion], result: Result) -> dict[str, str]:
    """Return a picture of each placed region, by its file, with the share of the run in which each tile works."""
    from fuseflow.array.picture import picture
    from fuseflow.run.artifacts import ARRAY_PICTURE, region_folder
    from fuseflow.run.placed import busy_shares

    busy = {name: busy_shares(region.simulation) for region in result.regions for name in region.names}
    return {
        f"{region_folder(k, name)}/{ARRAY_PICTURE}": picture(its_place, busy[name])
        for k, (name, its_place) in enumerate(placed.items(), 1)
    }


def _refuse_contradictions(
    training: bool, on_array: ArrayRequest | None, request: RunRequest, output: ResultOutput, trace: TraceRequest | None
) -> None:
    """Raise `UsageError` for options without what they need, and beside options that they do not go with."""
    given = {"--steps": request.steps is not None, "--simulate": request.simulate is not None}
    for option, is_given in given.items():
        if is_given and not training:
            raise UsageError(f"`{option}` without `--train`", hint="it is of training steps")
    if request.simulate is not None and request.steps is None:
        raise UsageError("`--simulate` without `--steps`", hint="say how many steps there are: `--steps 10`")
    sampled = request.sample_text is not None
    single = {"--sample": sampled, "--trace": trace is not None, "--explain": request.explain}
    for option, is_given in single.items():
        if is_given and request.steps is not None:
            raise UsageError(f"`{option}` is of one step", hint="leave `--steps` out")
    if request.bisect and training:
        raise UsageError("`--bisect` compares the values of a forward, not of a training step", hint="leave `--train` out")
    if request.bisect and request.no_check:
        raise UsageError("`--bisect` looks for what a check found, and `--no-check` makes none", hint="leave one of them out")
    if on_array is not None and (training or sampled):
        other = "--sample" if sampled else "--train"
        raise UsageError(
            f"`--array` beside `{other}`", hint="leave one of them out: what is placed is a whole region of a forward"
        )
    if request.explain and output.directory is None:
        raise UsageError("`--explain` writes what `report` shows into the directory of the run", hint="add `-o DIR`")


def _in_vain(compiled: Compiled) -> tuple[str, ...]:
    """Return the notices before a run: that narrow types gain nothing, or that the run takes long."""
    return tuple(notice for notice in (compiled.narrow_notice, long_run_notice(compiled)) if notice)


def _explained(scheduled: ScheduledProgram, target: Target, progress: ProgressCallback | None) -> CyclesReport:
    """Return what takes the cycles of a run, and which changes take fewer."""
    from fuseflow.explain.cycles import explain_cycles  # takes long to load, and a run that is not explained does without

    return explain_cycles(scheduled.compiled, target.engine, progress, with_stalls=True)


def _advised(scheduled: ScheduledProgram, report: CyclesReport, searchable: bool, quiet: bool) -> dict[str, str]:
    """Return the content of `cycles.json` by its name. A `searchable` program is searched for a faster schedule, too."""
    from fuseflow.cli.actions.search_advice import advice_json
    from fuseflow.cli.progress import search_bar
    from fuseflow.report.cycle_tables import CYCLES_FILE, cycles_json

    with search_bar(quiet, None) as progress:
        advice = advice_json(scheduled.compiled, report.result, searchable, progress)
    return {CYCLES_FILE: json_text(cycles_json(report) | advice)}


def _bisected(compiled: Compiled, target: Target, passed: bool, quiet: bool) -> tuple[str, ...]:
    """Return sentences about the first Einsum whose values differ from their reference. `passed`: the outputs passed the check."""
    from fuseflow.run.bisection import explain_deviation  # other runs do without

    def alone() -> Compiled:
        names = [einsum.name for einsum in compiled.source.program.einsums]
        try:
            return compile_source(compiled.source, Schedule.fuse(*names), target.machine)
        except FuseFlowError:  # of Einsums that cannot stand alone
            return compile_source(compiled.source, Schedule.fuse("none"), target.machine)

    with following("comparing Einsum by Einsum", quiet):
        return tuple(explain_deviation(compiled, alone, target.engine, passed))


def _require_passed(check: Check, notices: Sequence[str], bisected: Sequence[str] = ()) -> None:
    """Raise `CheckError` for a check that failed, with the notices as its hint, and the sentences `bisected` as notes."""
    if not check.passed:
        raise CheckError(check.problem, notes=(*check.notes, *bisected), hint="\n".join(notices))


def _refuse_with_sample(request: RunRequest, output: ResultOutput, energy: EnergyRequest, trace: TraceRequest | None) -> None:
    """Raise `UsageError` for an option that needs every cycle of a run, and for `--jobs`."""
    if request.jobs is not None:
        raise UsageError("`--jobs` beside `--sample`, which runs one region at a time", hint="leave one of them out")
    needs = {
        "--trace": trace is not None,
        "--top": output.top is not None,
        "--memory": output.memory,
        "--energy": energy.wanted,
        "--bisect": request.bisect,
        "--explain": request.explain,
    }
    if option := next((option for option, given in needs.items() if given), ""):
        needed = f"`{option}` needs every cycle of a run, and `--sample` runs a part of it"
        raise UsageError(needed, hint="leave one of them out")


def _run_sampled(
    program: ProgramRequest, target: Target, request: RunRequest, output: ResultOutput, dump: StageDump, quiet: bool
) -> None:
    from fuseflow.sampling.sample_request import parse_sample

    sample = parse_sample(request.sample_text or "")
    output.require_writable(dump_dir=dump.directory, auto_schedule=program.auto.file)
    scheduled = program.compile(target, quiet=quiet, observe=dump, sample=sample)
    if not quiet:
        print_notices(console(stderr=True), _in_vain(scheduled.compiled))
    with firings_bar(quiet, scheduled.compiled) as progress:
        check, dedup = not request.no_check, not request.no_dedup
        result = scheduled.compiled.run(progress, check, target.engine, dedup, sample=sample)
    if output.directory is not None:
        scheduled.compiled.save(output.directory, result)
    output.json_file.write(lambda: scheduled.json(result.to_dict()))
    out = output.json_file.console()
    if not quiet:
        print_pieces(out, [sampled_table(result), *sampled_lines(result)])
        print_notices(out, [notice for notice in result.settings.notices if notice not in _in_vain(scheduled.compiled)])
    if output.resources:
        from fuseflow.report.resource_tables import resource_table

        print_pieces(out, ["", resource_table((region.name, region.counts.resources) for region in result.regions)])
    for outcome in (result.check, result.rows_check):
        if outcome is not None:
            _require_passed(outcome, scheduled.compiled.selection_notices)
