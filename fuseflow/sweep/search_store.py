"""Simulations of schedules of one model as rows of a store, so that a search that is killed simulates nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from fuseflow.array.settings import ArraySettings
from fuseflow.autoscheduler.budget.costs import RegionRun
from fuseflow.autoscheduler.budget.trials import NOT_PLACED, TrialRun
from fuseflow.errors import ArrayError, UsageError
from fuseflow.frontend.factory import Factory
from fuseflow.frontend.model_spec import ModelSpec, TrainingRequest
from fuseflow.machine.machine import Machine
from fuseflow.resources import COMPONENTS
from fuseflow.schedule import Schedule
from fuseflow.sparsity.spec import SparseSpec
from fuseflow.sweep.point import Point, Task, TaskOutcome, code_version, content_digest
from fuseflow.sweep.pool import Pool
from fuseflow.sweep.store import Store

TRANSIENT = frozenset(("limit", "memory", "crash"))
"""The reasons of failures that do not depend on the schedule: a simulation with such a row is run again."""


@dataclass(slots=True)
class StoredRuns:
    """A function that simulates schedules in `jobs` processes, and keeps a row of each in a store that is open for writing.

    `point` is the model and the machine without a schedule. `simulated` counts the simulations that were made, and `reused` the
    rows that replaced a simulation. Rows of another version of fuseflow are not used.
    """

    point: Point
    store: Store
    jobs: int
    simulated: int = 0
    reused: int = 0

    def __call__(self, schedules: Sequence[Schedule]) -> Sequence[TrialRun]:
        tasks = [Task(replace(self.point, schedule=schedule.to_yaml()), "simulate") for schedule in schedules]
        rows, code = self.store.rows().items(), code_version()
        known = {k: row.outcome for k, row in rows if row.code == code and row.outcome.reason not in TRANSIENT}
        left = {task.key: task for task in tasks if task.key not in known}
        self.reused += len({task.key for task in tasks}) - len(left)
        if left:
            with closing(Pool(self.jobs)) as pool:
                for task, outcome in pool.run(left.values()):
                    self.store.add(task, {}, outcome)
                    known[task.key] = outcome
                    self.simulated += 1
        return [_run(known[task.key]) for task in tasks]


def _run(outcome: TaskOutcome) -> TrialRun:
    if outcome.reason == ArrayError.code:
        return TrialRun(error=f"{NOT_PLACED} {outcome.error.partition(': ')[2]}")
    if not outcome.ok:
        return TrialRun(error=outcome.error, stuck=str(outcome.values.get("region", "")))
    regions = {
        name: RegionRun(region["cycles"], region.get("fifo"))
        for region in outcome.values["regions"]
        for name in (region["name"], *region["repeats"])
    }
    occupied = {name: outcome.values.get(name) for name in COMPONENTS}
    live, loading = outcome.values["live_bytes"], outcome.values.get("loading", {})
    return TrialRun(outcome.values["cycles"], occupied, regions=regions, live_bytes=live, loading=loading).loaded


def _named(training: TrainingRequest | None) -> dict[str, str | bool | None] | None:
    """Return a training step as names. Raises `UsageError` for one with objects of Python in it."""
    if training is None:
        return None
    loss, optimizer = training.loss, training.optimizer
    if not isinstance(loss, str | None) or not isinstance(optimizer, str | None) or training.target is not None:
        raise UsageError(
            "simulations of a training step are kept by the names of its loss and its optimizer",
            hint="`--no-store` keeps nothing",
        )
    return {"loss": loss, "optimizer": optimizer, "gradients": training.gradients}


def point_of(spec: ModelSpec, machine: Machine, array: ArraySettings | None = None) -> Point:
    """Return the point of a model on a machine, and on an array if there is one, without a schedule. Raises `UsageError` if no content of
    files identifies it."""
    path, sparsity = Path(str(spec.model)), spec.sparsity
    factory = Factory.parse(str(path))
    if (factory is None and path.suffix not in (".ein", ".mlir")) or (factory is not None and factory.module) or spec.dims:
        raise UsageError(
            f"simulations are kept by the content of files, and that of `{path}` cannot be told",
            hint="`--no-store` keeps nothing, or name a .py, .ein or .mlir file",
        )
    if isinstance(sparsity, Path) or (spec.propagate is not None and (spec.propagate.fixed or spec.propagate.constants)):
        option = "--sparsity DIR" if isinstance(sparsity, Path) else "--fixed"
        raise UsageError(f"simulations of a model with `{option}` cannot be kept", hint="`--no-store` keeps nothing")
    tensors = None if spec.tensors is None else Path(str(spec.tensors))
    data_dir = None if spec.data_dir is None else Path(spec.data_dir)
    return Point(
        model=str(path),
        content=content_digest(path, tensors, spec.data, data_dir),
        schedule="",
        machine=machine.model_dump(),
        data=spec.data,
        data_dir=None if data_dir is None else str(data_dir),
        tensors=None if tensors is None else str(tensors),
        options=dict(spec.options or {}),
        seed=spec.seed,
        sparsity=sparsity.to_yaml() if isinstance(sparsity, SparseSpec) else "",
        propagate=spec.propagate is not None,
        training=_named(spec.training),
        check=False,
        array=None if array is None else array.model_dump(),
    )
