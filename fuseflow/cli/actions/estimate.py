"""The action of the command `fuseflow estimate`, which `cli/estimate.py` declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from fuseflow.cli.array_options import ArrayRequest, array_of
from fuseflow.cli.common import JsonFile, print_lines, print_notices, print_pieces
from fuseflow.cli.progress import following
from fuseflow.cli.request import ProgramRequest
from fuseflow.cli.run_options import EnergyRequest, Target, print_energy
from fuseflow.errors import FileError, UsageError
from fuseflow.filesystem import read_json
from fuseflow.interface.estimates import estimate_saved, estimator_of
from fuseflow.machine.machine import Machine
from fuseflow.report.array_tables import assumed_lines, tile_table
from fuseflow.report.estimate_tables import comparison_table, estimate_table, exact_line, flops_table, traffic_table
from fuseflow.report.resource_tables import resource_table
from fuseflow.report.tables import live_line
from fuseflow.run.artifact_reader import load_schedule
from fuseflow.schedule import Schedule

DIRECTORY_OPTIONS = (
    "model", "tensors", "name", "settings", "stats", "statistics_only", "by", "resources", "array_file", "energy", "energy_file", "against",
    "json_file", "print_schedule", "quiet", "debug",
)  # fmt: skip
"""The parameters that an estimate of a directory of artifacts takes. Other parameters of the command are for models."""

MODEL_OPTIONS = (
    "data", "adj", "data_dir", "option_texts", "small", "part", "seed", "train", "loss", "optimizer", "gradients", "propagate", "fixed",
    "constants",
)  # fmt: skip
"""The parameters that say which model is built and on which data."""


def saved_schedule(directory: Path) -> Schedule:
    _refuse_options(directory)
    return load_schedule(directory)


def estimate(
    program: ProgramRequest,
    machine: Machine,
    stats: tuple[str, ...],
    statistics_only: bool,
    by: tuple[str, ...],
    resources: bool,
    on_array: ArrayRequest | None,
    energy: EnergyRequest,
    against: Path | None,
    json_file: JsonFile,
    quiet: bool,
) -> None:
    energies = energy.energies(machine)
    run = None if against is None else compared_run(against)
    array = array_of(on_array)
    estimator = estimator_of(stats, statistics_only, array)
    scheduled = None if program.path.is_dir() else program.compile(Target(machine, array=array), quiet=quiet, estimator=estimator)
    if scheduled is not None and on_array is not None and on_array.directory is not None:
        scheduled = scheduled.linked(on_array.linked(scheduled.compiled, quiet)[0])
    with following("estimating", quiet):
        if scheduled is None:
            _refuse_options(program.path)
            estimated = estimate_saved(program.path, program.model.tensors, machine, estimator)
        else:
            estimated = scheduled.compiled.estimate(estimator)
    compared = None if run is None else comparison_table(estimated, run)
    spent = None if energies is None else estimated.energy(energies)

    def values() -> dict[str, Any]:
        plain = estimated.to_json() | ({} if spent is None else {"energy": spent.to_json()})
        return plain if scheduled is None else scheduled.json(plain)

    json_file.write(values)
    out = json_file.console()
    if not quiet:
        recomputes = scheduled is not None and bool(scheduled.compiled.schedule.recomputed)
        live = [live_line(estimated.live_bytes)] if recomputes else []
        print_pieces(out, [estimate_table(estimated), exact_line(estimated), *live])
        print_notices(out, estimated.notices)
    tables = [(flops_table if kind == "operator" else traffic_table)(estimated) for kind in by]
    tables += [resource_table((region.name, region.resources) for region in estimated.regions)] if resources else []
    if array is not None:
        tables.append(tile_table(array, ((region.name, region.tiles_on(array)) for region in estimated.regions)))
    tables += [] if compared is None else [compared]
    for table in tables:
        print_pieces(out, ["", table])
    print_lines(out, () if array is None else assumed_lines(array))
    if spent is not None:
        print_energy(out, spent)


def _refuse_options(directory: Path) -> None:
    """Raise `UsageError` for an option that a directory of artifacts does not take, so that none is silently ignored."""
    context = click.get_current_context()
    for option in context.command.params:
        name = option.name or ""
        if name in DIRECTORY_OPTIONS or context.get_parameter_source(name) is ParameterSource.DEFAULT:
            continue
        if name in MODEL_OPTIONS:
            raise UsageError(
                f"`{directory}` is compiled, it takes no `{option.opts[-1]}`", hint="its inputs are given by `--tensors`"
            )
        raise UsageError(
            f"`{directory}` is compiled, with the schedule in it: it takes no `{option.opts[-1]}`",
            hint="estimate the model to try another schedule",
        )


def compared_run(path: Path) -> dict[str, Any]:
    """Return the result of a run that an estimate is compared with. Raises `FileError` for a file that has none."""
    hint = "`fuseflow run MODEL ... --json RUN.json`"
    values = read_json(path, "the run", hint=hint)
    if not isinstance(values, dict) or "regions" not in values:
        raise FileError(f"`{path}` is no result of `fuseflow run --json`", hint=hint)
    return values
