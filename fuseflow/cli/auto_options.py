"""The options of `--fuse auto`, `--plan auto` and `--order auto`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fuseflow.autoscheduler.search_defaults import DEFAULT_TOP
from fuseflow.cli.command import Command, options_of
from fuseflow.cli.common import FILE, require_writable_file
from fuseflow.errors import UsageError

_auto_option = options_of("Schedule")


@dataclass(frozen=True, slots=True)
class AutoOptions:
    """The options of automatic scheduling. `top` is the number of the best schedules by estimate that are simulated, `file` is where the
    chosen schedule is written, and `flags` are the options that were passed."""

    top: int
    file: Path | None = None
    flags: tuple[str, ...] = ()


def _refuse_shared(
    file: Path, json_file: Path | None = None, emit: str | None = None, output: Path | None = None, **_: Any
) -> None:
    """Raise `UsageError` if the schedule and another output would go to one file or stream."""
    emitted = None if emit is None else output or Path("-")
    for option, other in (("--json", json_file), ("--emit", emitted)):
        if other == file:
            raise UsageError(f"`--auto-schedule` and `{option}` both write `{file}`", hint="give one of them another file")


def auto_options(simulates: bool = False) -> Callable[[Command], Command]:
    """Return a decorator that adds `--auto-schedule` and passes it on as `auto`, an `AutoOptions`. A command that simulates has
    `--auto-top`, too."""

    def wrap(command: Command) -> Command:
        @functools.wraps(command)
        def build(*args: Any, auto_schedule: Path | None, auto_top: int | None = None, **kwargs: Any) -> Any:
            if auto_schedule is not None:
                _refuse_shared(auto_schedule, **kwargs)
                require_writable_file(auto_schedule)
            options = {"--auto-top": auto_top, "--auto-schedule": auto_schedule}
            flags = tuple(name for name, value in options.items() if value is not None)
            top = (DEFAULT_TOP if auto_top is None else auto_top) if simulates else 0
            return command(*args, auto=AutoOptions(top, auto_schedule, flags), **kwargs)

        show = f"Of `auto`: simulate the K best by estimate; 0: none.  [default: {DEFAULT_TOP}]"
        top = _auto_option("--auto-top", metavar="K", type=click.IntRange(min=0), help=show)
        file = _auto_option(
            "--auto-schedule", metavar="FILE", type=FILE, help="Write the schedule that `auto` chose; - is stdout."
        )
        optioned = file(build)
        return top(optioned) if simulates else optioned  # type: ignore[return-value]

    return wrap
