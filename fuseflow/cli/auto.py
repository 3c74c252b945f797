"""`--fuse auto` and `--order auto`: what chooses, what is said about it, and where the schedule is written."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from fuseflow.cli.common import FILE, console, require_writable, write_out
from fuseflow.cli.progress import firings_bar, working
from fuseflow.compiler import Compiled, CompiledRegion, Progress, Result, Source, Watch, compile_source, load
from fuseflow.einsum.nodes import Program
from fuseflow.errors import UsageError
from fuseflow.estimate.program import Estimator
from fuseflow.explore.auto import TOP, Choice, choose
from fuseflow.report.auto_tables import auto_lines
from fuseflow.report.tables import print_table
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine, Machine, load_machine

Command = TypeVar("Command", bound=Callable[..., Any])
Observe = Callable[[Source | Program | CompiledRegion], None]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A compiled program, and how its schedule was chosen, if it was."""

    compiled: Compiled
    choice: Choice | None = None

    def run(self, progress: Progress | None, check: bool, engine: Engine, dedup: bool, watch: Watch | None) -> Result:
        return (self.choice or self.compiled).run(progress, check, engine, dedup, watch)

    def json(self, values: dict[str, Any]) -> dict[str, Any]:
        """These values, and what was tried."""
        return values if self.choice is None else {**values, "auto": self.choice.to_json()}


@dataclass(frozen=True, slots=True)
class Auto:
    """What the options say. `top`: how many of the best schedules by estimate are simulated; `file`: where the chosen one is written."""

    top: int
    file: Path | None = None
    given: tuple[str, ...] = field(default=())

    def compile(
        self,
        model: Path,
        schedule: Schedule,
        machine: Machine | None = None,
        *,
        seed: int,
        quiet: bool = False,
        engine: Engine = "auto",
        estimator: Estimator | None = None,
        observe: Observe = lambda stage: None,
        **inputs: Any,
    ) -> Chosen:
        """Compile a model, after choosing what its schedule leaves open; says on standard error what was tried."""
        if not schedule.open and self.given:
            raise UsageError(
                f"`{self.given[0]}` without `auto`", hint="leave something to it: `--fuse auto`, `--order auto` or both"
            )
        machine = machine or load_machine("rda")
        with working("compiling", quiet):
            source = load(model, seed=seed, **inputs)
            observe(source)
            if not schedule.open:
                return Chosen(compile_source(source, schedule, machine, seed, observe))
        with working("choosing", quiet or self.top > 0), firings_bar(quiet) as progress:
            choice = choose(
                source, schedule, machine, seed=seed, top=self.top, engine=engine, estimator=estimator, progress=progress
            )
        observe(choice.compiled.program)
        for region in choice.compiled.regions:
            observe(region)
        if self.file is not None:
            write_out(choice.schedule.to_yaml(), self.file)
        if not quiet:
            say(choice)
        return Chosen(choice.compiled, choice)


def say(choice: Choice) -> None:
    """What was tried, on standard error."""
    err = console(stderr=True)
    for piece in auto_lines(choice):
        if isinstance(piece, str):
            err.print(piece, soft_wrap=True)
        else:
            print_table(err, piece)
    err.print()


def _refuse_shared(
    file: Path, json_file: Path | None = None, emit: str | None = None, output: Path | None = None, **_: Any
) -> None:
    """The schedule and another output in one file, or one stream, are neither."""
    emitted = None if emit is None else output or Path("-")
    for option, other in (("--json", json_file), ("--emit", emitted)):
        if other == file:
            raise UsageError(f"`--auto-schedule` and `{option}` both write `{file}`", hint="give one of them another file")


def auto_options(simulates: bool = False) -> Callable[[Command], Command]:
    """`--auto-schedule`, and for a command that simulates `--auto-top`; passed on as `auto`, an `Auto`."""

    def wrap(command: Command) -> Command:
        @functools.wraps(command)
        def build(*args: Any, auto_schedule: Path | None, auto_top: int | None = None, **kwargs: Any) -> Any:
            if auto_schedule is not None:
                _refuse_shared(auto_schedule, **kwargs)
                if str(auto_schedule) != "-":
                    require_writable(auto_schedule, directory=False)
            options = {"--auto-top": auto_top, "--auto-schedule": auto_schedule}
            given = tuple(name for name, value in options.items() if value is not None)
            top = (TOP if auto_top is None else auto_top) if simulates else 0
            return command(*args, auto=Auto(top, auto_schedule, given), **kwargs)

        show = f"Of `auto`: simulate the K best by estimate; 0: none.  [default: {TOP}]"
        top = click.option("--auto-top", metavar="K", type=click.IntRange(min=0), help=show)
        file = click.option(
            "--auto-schedule", metavar="FILE", type=FILE, help="Write the schedule that `auto` chose; - is stdout."
        )
        made = file(build)
        return top(made) if simulates else made  # type: ignore[return-value]

    return wrap
