"""The options of a schedule."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fuseflow.cli.command import Command
from fuseflow.cli.common import FILE, with_options
from fuseflow.cli.completion import names_of_model
from fuseflow.schedule.section import KEYWORDS, Fused, Named, Names, Section, Word
from fuseflow.schedule.sections import SECTIONS


def _option(section: Section) -> Callable[[Any], Any]:
    """Return the command-line option that sets a section of a schedule."""
    flag = f"--{section.key.replace('_', '-')}"
    match section:
        case Named() | Names():
            others = KEYWORDS if isinstance(section, Fused) else ()
            complete = (
                names_of_model(section.completion, "=" * isinstance(section, Named), others) if section.completion else None
            )
            return click.option(flag, multiple=True, metavar=section.metavar, shell_complete=complete, help=section.help)
        case Word(words=words):
            return click.option(flag, type=click.Choice(words), help=section.help)
        case Section(of=kind) if kind is bool:
            return click.option(f"--no-{section.key}", section.key, flag_value=False, default=None, help=section.help)
        case _:
            return click.option(flag, type=int if section.of is int else FILE, metavar=section.metavar, help=section.help)


OPTIONS = (
    *(_option(section) for section in SECTIONS if section.help),
    click.option("--schedule", "file", metavar="FILE", type=FILE, help="A schedule file; flags win."),
    click.option("--print-schedule", is_flag=True, help="Print the schedule, which `--schedule` reads, and end."),
)
"""The options, in the order of the help."""


def schedule_options(command: Command) -> Command:
    """Add the options of a schedule, and pass them on as `schedule`, a `Schedule`, and `print_schedule`, which asks to print it and end."""

    @functools.wraps(command)
    def build(*args: Any, file: Path | None, **kwargs: Any) -> Any:
        from fuseflow.schedule import Schedule  # `--help` does without

        base = None if file is None else Schedule.load(file)
        flags = {section.key: kwargs.pop(section.key) for section in SECTIONS if section.help}
        return command(*args, schedule=Schedule.from_flags(base=base, **flags), **kwargs)

    return with_options(OPTIONS, build)  # type: ignore[return-value]
