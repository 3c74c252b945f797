"""The action of the command `fuseflow schedule`, which `cli/schedule.py` declares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from fuseflow.array.settings import ArraySettings
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.cli.common import JsonFile, console, print_notices, print_pieces, require_writable_file, write_out
from fuseflow.cli.progress import following, search_bar
from fuseflow.errors import UsageError
from fuseflow.filesystem.schemas import with_schema
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.machine.machine import Machine
from fuseflow.report.budget_curve import check_curve_file, write_curve
from fuseflow.report.schedule_tables import budget_lines
from fuseflow.resources.budget import Budget, component_name
from fuseflow.schedule import Schedule
from fuseflow.sim.processors import cores
from fuseflow.sweep.search_store import StoredRuns, point_of
from fuseflow.sweep.store import Store


def schedule(
    spec: ModelSpec,
    schedule: Schedule,
    print_schedule: bool,
    machine: Machine,
    budget_text: str,
    array: ArraySettings | None,
    output: Path | None,
    allow: tuple[str, ...],
    pareto: str | None,
    pareto_to: Path | None,
    top: int,
    limit: float | None,
    jobs: int | None,
    store: Path | None,
    no_store: bool,
    json_file: JsonFile,
    quiet: bool,
) -> None:
    if not budget_text and array is None:
        raise UsageError(
            "no `--budget` and no `--array`: more lanes are always faster", hint="say what there is: `--budget medium`"
        )
    budget = Budget.parse(budget_text) if budget_text else Budget({})
    if print_schedule:
        raise UsageError("`--print-schedule` prints a schedule that is given", hint="`-o -` prints the one that is chosen")
    _check_outputs(output, pareto, pareto_to, json_file)
    if no_store and (store or jobs):
        raise UsageError(f"`--no-store` beside `{'--store' if store else '--jobs'}`", hint="leave one of them out")
    request = BudgetRequest(budget, (component_name(pareto),) if pareto else (), frozenset(allow), top, limit, array=array)
    keeps = top > 0 and not no_store
    runs = _stored(spec, machine, array, store or Path("out") / "schedule.sqlite", jobs or cores()) if keeps else nullcontext()
    with runs as run:
        with following("reading the model", quiet):
            source = load(spec)
        with search_bar(quiet, limit) as progress:
            choice = budget_schedule(source, schedule, machine, request, run=run, progress=progress)
    if output is not None:
        write_out(with_schema("schedule", choice.schedule.to_yaml()), output)
    json_file.write(lambda: {"schema": 1, **choice.to_json()})
    if not quiet:
        out = console(stderr=json_file.to_stdout or str(output) == "-")
        known = [] if run is None else [f"{run.simulated} schedules simulated, {run.reused} results reused from earlier searches"]
        print_pieces(out, [*budget_lines(choice), *known])
        print_notices(out, choice.compiled.notices)
    if pareto and pareto_to is not None:
        written = write_curve(pareto_to, pareto, choice.pareto)
        if not quiet:
            print_pieces(json_file.console(), [f"written to {written[0]}, and {len(written) - 1} schedules"])


def _check_outputs(output: Path | None, pareto: str | None, pareto_to: Path | None, json_file: JsonFile) -> None:
    """Raise an error before the search for files that cannot be written, and for two options that name one file."""
    if pareto_to is not None and pareto is None:
        raise UsageError("`--pareto-to` without `--pareto`", hint="name a resource, as in `--pareto mul`")
    if pareto_to is not None:
        check_curve_file(pareto_to)
    files = [path for path in (output, pareto_to, json_file.path) if path is not None]
    if len(set(files)) < len(files):
        raise UsageError("two options write to one file", hint="name another file")
    for path in (output, pareto_to):
        require_writable_file(path)


@contextmanager
def _stored(spec: ModelSpec, machine: Machine, array: ArraySettings | None, path: Path, jobs: int) -> Iterator[StoredRuns]:
    """Open the store in which simulations are kept, for writing."""
    point = point_of(spec, machine, array)
    with Store.open(path) as opened, opened.writing():
        yield StoredRuns(point, opened, jobs)
