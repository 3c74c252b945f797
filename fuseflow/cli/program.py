"""The options of the program that a command compiles: a model and its schedule."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fuseflow.cli.auto import AutoOptions, auto_options
from fuseflow.cli.command import Command
from fuseflow.cli.model_options import model_options
from fuseflow.cli.propagation_options import propagation_options
from fuseflow.cli.schedule_options import schedule_options

if TYPE_CHECKING:
    from fuseflow.frontend.model_spec import ModelSpec
    from fuseflow.schedule import Schedule


def program_options(
    simulates: bool = False, saved_schedule: Callable[[Path], Schedule] | None = None
) -> Callable[[Command], Command]:
    """Return a decorator that adds MODEL with the options of models, schedules and `auto`, and passes them on as `program`, a
    `ProgramRequest`. `--print-schedule` prints the schedule and ends the command. A command that `simulates` has the options of simulated
    trials, too. If MODEL may be a directory of artifacts, `saved_schedule` returns the schedule in it."""

    def wrap(command: Command) -> Command:
        @functools.wraps(command)
        def build(*args: Any, spec: ModelSpec, schedule: Schedule, print_schedule: bool, auto: AutoOptions, **kwargs: Any) -> Any:
            from fuseflow.cli.request import ProgramRequest  # `--help` does without

            request = ProgramRequest(spec, schedule, auto)
            if not print_schedule:
                return command(*args, program=request, **kwargs)
            if saved_schedule is not None and request.path.is_dir():
                schedule = saved_schedule(request.path)
            return click.echo(str(schedule), nl=False)

        return model_options(propagation_options(schedule_options(auto_options(simulates)(build))))  # type: ignore[return-value]

    return wrap
