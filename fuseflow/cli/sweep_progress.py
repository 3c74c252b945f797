"""Progress of sweeps on standard error: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from fuseflow.cli.common import console
from fuseflow.sweep.design_space import LabeledPoint
from fuseflow.sweep.point import Task, TaskOutcome
from fuseflow.sweep.sweep import PointCallback as PointReport
from fuseflow.sweep.sweep import SweepProgress

EVERY = 10.0
"""The seconds between two lines about a sweep if there is no terminal."""


@contextmanager
def sweep_progress(tally: SweepProgress, axes: tuple[str, ...], quiet: bool) -> Iterator[PointReport]:
    """Yield a callback for `Sweep.run` that counts points and shows the progress: a bar on a terminal, else a line now and then."""
    err = console(stderr=True)
    shown = time.monotonic()

    def plain(place: LabeledPoint, task: Task, outcome: TaskOutcome) -> None:
        nonlocal shown
        tally.note(place, task.mode, outcome)
        if not quiet and time.monotonic() > shown + EVERY:
            shown = time.monotonic()
            err.print(tally.line(axes), soft_wrap=True, markup=False)

    if quiet or not err.is_terminal:
        yield plain
        return
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task_id = bar.add_task(tally.line(axes), total=tally.total, completed=tally.done)

        def live(place: LabeledPoint, task: Task, outcome: TaskOutcome) -> None:
            tally.note(place, task.mode, outcome)
            bar.update(task_id, completed=tally.done, description=tally.line(axes))

        yield live
