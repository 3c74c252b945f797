"""The options of the program that a command compiles: a model, what its outputs need, a schedule, and what `auto` may choose."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fuseflow.cli.auto_options import AutoOptions, auto_options
from fuseflow.cli.command import Command, options_of
from fuseflow.cli.common import FILE, bundled, completed, with_options
from fuseflow.cli.model_options import model_options, names_of_model, sparsity_option, trained
from fuseflow.errors import UsageError
from fuseflow.schedule.section import KEYWORDS, Fused, Named, Names, Section, Word
from fuseflow.schedule.sections import SECTIONS

if TYPE_CHECKING:
    from fuseflow.frontend.model_spec import ModelSpec, PropagationSpec
    from fuseflow.schedule import Schedule

training_option = options_of("Training")
_schedule_option = options_of("Schedule")


def _knowledge(fixed: tuple[str, ...], constants: bool) -> PropagationSpec:
    from fuseflow.frontend.model_spec import PropagationSpec  # `--help` does without

    return PropagationSpec(fixed, constants)


knowledge_options = bundled(
    "knowledge",
    _knowledge,
    sparsity_option(
        "--fixed",
        multiple=True,
        metavar="PATTERN",
        help="Inputs that store the same entries in every run, such as a graph: 'adj'; repeatable.",
    ),
    sparsity_option("--constants", is_flag=True, help="The numbers of weights and buffers are known, and not only their zeros."),
)
"""Adds the options that say which values of a model are known, and passes them on as `knowledge`, a `PropagationSpec`."""


def _propagated(spec: ModelSpec, propagate: bool, knowledge: PropagationSpec) -> ModelSpec:
    given = {"--fixed": bool(knowledge.fixed), "--constants": knowledge.constants}
    for option, is_given in given.items():
        if is_given and not propagate:
            raise UsageError(f"`{option}` without `--propagate`", hint="it says what is known, so that more can be left out")
    return replace(spec, propagate=knowledge) if propagate else spec


propagation_options = bundled(
    "spec",
    _propagated,
    sparsity_option("--propagate", is_flag=True, help="Leave out what no output needs, as `fuseflow propagate` shows it."),
    knowledge_options,
)
"""Adds `--propagate` and the options of `knowledge_options`, and passes them on in `spec`, the `ModelSpec`."""


def _trained(spec: ModelSpec, train: bool, loss: str | None, optimizer: str | None, gradients: bool) -> ModelSpec:
    given = {"--loss": loss is not None, "--optimizer": optimizer is not None, "--gradients": gradients}
    for option, is_given in given.items():
        if is_given and not train:
            raise UsageError(f"`{option}` without `--train`", hint="it is of a training step")
    return trained(spec, {"train": train, "loss": loss, "optimizer": optimizer, "gradients": gradients})


def _losses() -> Iterable[str]:
    from fuseflow.training.losses import LOSSES

    return LOSSES


def _optimizers() -> Iterable[str]:
    from fuseflow.training.optimizers.formulas import OPTIMIZERS

    return OPTIMIZERS


training_options = bundled(
    "spec",
    _trained,
    training_option("--train", is_flag=True, help="Take a training step of the model: forward, loss, backward and update."),
    training_option(
        "--loss",
        metavar="LOSS",
        shell_complete=completed(_losses),
        help="Of --train: cross_entropy:label_smoothing=0.1, mse,...  [default: what the model file says]",
    ),
    training_option(
        "--optimizer",
        metavar="OPTIMIZER",
        shell_complete=completed(_optimizers),
        help="Of --train: sgd:lr=0.2,momentum=0.9, adamw,...  [default: what the model file says, or sgd:lr=0.1]",
    ),
    training_option("--gradients", is_flag=True, help="Of --train: the gradients of parameters are outputs, too."),
)
"""Adds the options of a training step, and passes them on in `spec`, the `ModelSpec`."""


def _option(section: Section) -> Callable[[Any], Any]:
    """Return the command-line option that sets a section of a schedule."""
    flag = f"--{section.key.replace('_', '-')}"
    match section:
        case Named() | Names():
            others = KEYWORDS if isinstance(section, Fused) else ()
            complete = (
                names_of_model(section.completion, "=" * isinstance(section, Named), others) if section.completion else None
            )
            return _schedule_option(flag, multiple=True, metavar=section.metavar, shell_complete=complete, help=section.help)
        case Word(words=words):
            return _schedule_option(flag, type=click.Choice(words), help=section.help)
        case Section(of=kind) if kind is bool:
            return _schedule_option(f"--no-{section.key}", section.key, flag_value=False, default=None, help=section.help)
        case _:
            return _schedule_option(flag, type=int if section.of is int else FILE, metavar=section.metavar, help=section.help)


OPTIONS = (
    *(_option(section) for section in SECTIONS if section.help),
    _schedule_option("--schedule", "file", metavar="FILE", type=FILE, help="A schedule file; flags win."),
    _schedule_option("--print-schedule", is_flag=True, help="Print the schedule, which `--schedule` reads, and end."),
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

        options = schedule_options(auto_options(simulates)(build))
        return model_options(training_options(propagation_options(options)))  # type: ignore[return-value]

    return wrap
