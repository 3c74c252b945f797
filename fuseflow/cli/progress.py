"""Progress of long runs on standard error, and what the package logs. Bars appear on a terminal only; elsewhere a search writes lines."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import click

from fuseflow.cli.command import VERBOSE
from fuseflow.cli.common import console, print_lines
from fuseflow.errors import visible
from fuseflow.loop_progress import listening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import Console
    from rich.progress import Progress

    from fuseflow.loop_progress import Listener
    from fuseflow.run.callback_types import ProgressCallback as Report
    from fuseflow.run.compiled import Compiled


LOG_SECONDS = 10.0
"""The seconds between two lines of a search or a sweep that is not shown on a terminal."""
RECENT = 30
"""The candidates of which a search takes the rate."""
MOST_NAME = 24
"""The characters of the name of a region in a bar."""


@contextmanager
def terminal_bar(err: Console | None, *columns: str) -> Iterator[Progress | None]:
    """Yield a bar on a terminal, or None if there is none. A column is a key of `named`, or a text with fields."""
    if err is None or not err.is_terminal:
        yield None
        return
    from rich import progress

    named = {
        "spinner": progress.SpinnerColumn(),
        "activity": progress.TextColumn("{task.description}", markup=False),
        "bar": progress.BarColumn(bar_width=12),
        "wide bar": progress.BarColumn(),
        "done of all": progress.MofNCompleteColumn(),
        "passed": progress.TimeElapsedColumn(),
        "left": progress.TimeRemainingColumn(),
    }
    shown = (named[column] if column in named else progress.TextColumn(column) for column in columns)
    with progress.Progress(*shown, console=err, transient=True) as bar:
        yield bar


@contextmanager
def working(activity: str, quiet: bool) -> Iterator[None]:
    """Show the activity while the block runs, and for how long it has."""
    with terminal_bar(None if quiet else console(stderr=True), "spinner", "activity", "passed") as bar:
        if bar is not None:
            bar.add_task(activity, total=None)
        yield


@contextmanager
def following(activity: str, quiet: bool) -> Iterator[None]:
    """Show the activity while the block runs, and how far each of its counted loops is, with its rate and the time that is left. Print
    the notices of the block, such as why a model is imported anew in every run."""
    with (
        nullcontext() if quiet else log_lines(logging.INFO),
        _loop_bar(activity, quiet) as tell,
        nullcontext() if tell is None else listening(tell),
    ):
        yield


@contextmanager
def counting_bar(activity: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Yield a function to be called with the number of items that are done, and of all items. A terminal shows both, with the
    rate and the time that is left."""
    with _loop_bar(activity, quiet) as tell:
        yield lambda done, total: None if tell is None else tell(activity, done, total)


@contextmanager
def _loop_bar(activity: str, quiet: bool) -> Iterator[Listener | None]:
    """Yield a listener that shows the loops inside the block, or None if `quiet` or without a terminal."""
    columns = ("spinner", "activity", "bar", "done of all", "{task.fields[rate]}", "passed", "left")
    with terminal_bar(None if quiet else console(stderr=True), *columns) as bar:
        if bar is None:
            yield None
            return
        task = bar.add_task(activity, total=None, rate="")
        shown, began = activity, time.monotonic()

        def tell(loop: str, done: int, total: int) -> None:
            nonlocal shown, began
            if loop != shown:
                shown, began = loop, time.monotonic()
                bar.reset(task, description=loop, rate="")
            rate = done / max(time.monotonic() - began, 1e-9)
            bar.update(task, completed=done, total=total, rate=f"{rate:,.{0 if rate >= 10 else 1}f}/s" if done else "")

        yield tell


@contextmanager
def search_bar(quiet: bool, limit: float | None) -> Iterator[Callable[[str, int], None]]:
    """Yield a function to be called with each candidate that a search tries, and with the most candidates that may follow. A
    terminal shows the candidate, the number so far and their rate; a file or a pipe gets a line with these every few seconds.
    Both show the time that is left up to the `limit` in seconds, or else how many candidates may follow, and how long these take at the
    rate of the latest ones, as soon as there are enough of them."""
    if quiet:
        yield lambda text, most: None
        return
    err, start, tried = console(stderr=True), time.monotonic(), 0
    recent = deque[float](maxlen=RECENT)

    def counted(most: int) -> tuple[str, str]:
        """Count one more candidate. Return texts about the candidates that were tried, and about the candidates and the time that
        are left at `most`."""
        nonlocal tried
        tried += 1
        recent.append(time.monotonic())
        passed = recent[-1] - start
        rate = tried / max(passed, 1e-9)
        text = f"{tried:,} tried, {rate:,.{0 if rate >= 10 else 1}f}/s"
        if limit is not None:
            return text, f"at most {max(0, limit - passed):,.0f} s left"
        seconds = most * (recent[-1] - recent[0]) / max(len(recent) - 1, 1)
        known = len(recent) == recent.maxlen
        return text, f"at most {most:,} left" + (f", {seconds:,.0f} s at the latest rate" if known else "")

    with terminal_bar(err, "spinner", "{task.fields[counts]}", "passed", "{task.fields[left]}", "activity") as bar:
        task = None if bar is None else bar.add_task("searching", total=None, counts="", left="")
        logged = start

        def tell(what: str, most: int) -> None:
            nonlocal logged
            tally, left = counted(most)
            if bar is not None and task is not None:
                bar.update(task, description=visible(what), counts=tally, left=left)
            elif (now := time.monotonic()) - logged >= LOG_SECONDS:
                logged = now
                print_lines(err, [f"searching: {tally}, {left}: {visible(what)}"])

        yield tell


class ExpectedFirings:
    """The firings that the regions of a program are expected to take, in the order in which they run, corrected by those that have run.

    A region that runs like an earlier one is not simulated, and says nothing: it has run when a later one says something.
    """

    def __init__(self, expected: Mapping[str, float]) -> None:
        self.expected = dict(expected)
        self.places = {name: place for place, name in enumerate(expected)}
        self.fired: dict[str, int] = {}

    def note(self, region: str, firings: int) -> tuple[float, float]:
        """Note the firings of a region so far. Return those of all regions so far, and those that are expected in the end."""
        if region in self.places:
            self.fired[region] = firings
        latest = max((self.places[name] for name in self.fired), default=0)
        ended = [name for name, place in self.places.items() if place < latest and name != region]
        ran, guessed = (sum(each.get(name, 0.0) for name in ended) for each in (self.fired, self.expected))
        ratio = ran / guessed if guessed and ran else 1.0
        left = sum(ratio * count for name, count in self.expected.items() if self.places[name] > latest)
        now = max(firings, ratio * self.expected.get(region, 0.0)) if region in self.places else 0.0
        return sum(self.fired.values()), ran + now + left


@contextmanager
def firings_bar(quiet: bool, compiled: Compiled | None = None) -> Iterator[Report | None]:
    """Yield a callback for `Compiled.run` that shows the region and its firings, or None if `quiet` or without a terminal.

    With the program that runs, the bar shows the part that is done by its estimate, and the time that is left.
    """
    if quiet:
        yield None
        return
    err = console(stderr=True)
    expected = {} if compiled is None else {region.name: region.estimate.firings for region in compiled.regions}
    columns = ("spinner", "activity", "{task.fields[fired]:,} firings", "{task.fields[rate]}", "passed")
    with log_lines(logging.INFO), terminal_bar(err, *columns, *(("bar", "left") if expected else ())) as bar:
        if bar is None:
            yield None
            return
        fired = dict[str, int]()
        start, total, left = time.monotonic(), sum(expected.values()), ExpectedFirings(expected)
        task = bar.add_task("", total=total or None, fired=0, rate="")

        def report(region: str, firings: int) -> None:
            fired[region] = firings
            done = sum(fired.values())
            rate = done / max(time.monotonic() - start, 1e-9)
            known, in_all = left.note(region, firings)
            bar.update(
                task,
                completed=known,
                total=in_all or None,
                description=visible(region)[:MOST_NAME],
                fired=done,
                rate=f"{rate:,.0f}/s",
            )

        yield report


class _Lines(logging.Handler):
    """A log handler that prints messages of the package, such as why a first run takes longer."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.err = console(stderr=True)

    def emit(self, record: logging.LogRecord) -> None:
        print_lines(self.err, [visible(record.getMessage())])


@contextmanager
def log_lines(level: int = logging.DEBUG) -> Iterator[None]:
    """Print what the package logs from a level on while the block runs. Notices, of level INFO, are said once if the user asks for all."""
    context = click.get_current_context(silent=True)
    if level > logging.DEBUG and context is not None and context.meta.get(VERBOSE):
        yield
        return
    logger, handler = logging.getLogger("fuseflow"), _Lines(level)
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False  # a library may have set up another handler, which would say it again
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
