"""Progress of long runs on standard error. Bars appear on a terminal only."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fuseflow.cli.common import console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from fuseflow.run.execution import ProgressCallback as Report


@contextmanager
def working(activity: str, quiet: bool) -> Iterator[None]:
    """Show the activity while the block runs."""
    err = None if quiet else console(stderr=True)
    if err is None or not err.is_terminal:
        yield
        return
    with err.status(activity):
        yield


class _Notice(logging.Handler):
    """A log handler that prints the notices of the simulators, such as why a first run takes longer."""

    def __init__(self, err: Console) -> None:
        super().__init__(logging.INFO)
        self.err = err

    def emit(self, record: logging.LogRecord) -> None:
        self.err.print(record.getMessage(), soft_wrap=True, highlight=False)


@contextmanager
def _notices(err: Console) -> Iterator[None]:
    logger, handler = logging.getLogger("fuseflow"), _Notice(err)
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False  # a library may have set up another handler, which would say it again
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


@contextmanager
def firings_bar(quiet: bool) -> Iterator[Report | None]:
    """Yield a callback for `Compiled.run` that shows the region and its firings, or None if nobody would see it."""
    if quiet:
        yield None
        return
    err = console(stderr=True)
    with _notices(err):
        yield from _bar(err)


def _bar(err: Console) -> Iterator[Report | None]:
    if not err.is_terminal:
        yield None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.completed:,} firings"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        tasks = dict[str, int]()

        def report(region: str, firings: int) -> None:
            if region not in tasks:
                tasks[region] = bar.add_task(region, total=None)
            bar.update(tasks[region], completed=firings)  # type: ignore[arg-type]

        yield report
