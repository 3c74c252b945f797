"""Signs of life on long runs: on standard error, on a terminal only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from fuseflow.cli.common import console
from fuseflow.compiler import Progress as Report


@contextmanager
def working(what: str, quiet: bool) -> Iterator[None]:
    """Show `what` while the block runs."""
    err = console(stderr=True)
    if quiet or not err.is_terminal:
        yield
        return
    with err.status(what):
        yield


@contextmanager
def firings_bar(quiet: bool) -> Iterator[Report | None]:
    """A callback for `Compiled.run` that shows the region and its firings; None where nobody would see it."""
    err = console(stderr=True)
    if quiet or not err.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.completed:,} firings"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        tasks = dict[str, int]()

        def report(region: str, firings: int) -> None:
            if region not in tasks:
                tasks[region] = bar.add_task(region, total=None)
            bar.update(tasks[region], completed=firings)  # type: ignore[arg-type]

        yield report
