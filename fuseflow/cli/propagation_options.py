"""The options that leave out of a program what its outputs do not need."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fuseflow.cli.common import with_options
from fuseflow.errors import UsageError

if TYPE_CHECKING:
    from fuseflow.frontend.model_spec import ModelSpec, PropagationSpec

Command = TypeVar("Command", bound=Callable[..., Any])


def knowledge_options(command: Command) -> Command:
    """Add the options that say what is known of a model, and pass them on as `knowledge`, a `PropagationSpec`."""
    options = [
        click.option(
            "--fixed",
            multiple=True,
            metavar="PATTERN",
            help="Inputs that store the same entries in every run, such as a graph: 'adj'; repeatable.",
        ),
        click.option("--constants", is_flag=True, help="The numbers of weights and buffers are known, and not only their zeros."),
    ]

    @functools.wraps(command)
    def build(*args: Any, fixed: tuple[str, ...], constants: bool, **kwargs: Any) -> Any:
        from fuseflow.frontend.model_spec import PropagationSpec  # `--help` does without

        return command(*args, knowledge=PropagationSpec(fixed, constants), **kwargs)

    return with_options(options, build)  # type: ignore[return-value]


def propagation_options(command: Command) -> Command:
    """Add `--propagate` with what is known of a model, and pass it on in `spec`, the `ModelSpec`."""
    options = [
        click.option("--propagate", is_flag=True, help="Leave out what no output needs, as `fuseflow propagate` shows it.")
    ]

    @functools.wraps(command)
    def build(*args: Any, spec: ModelSpec, propagate: bool, knowledge: PropagationSpec, **kwargs: Any) -> Any:
        if not propagate:
            refuse_knowledge(knowledge)
            return command(*args, spec=spec, **kwargs)
        return command(*args, spec=replace(spec, propagate=knowledge), **kwargs)

    return with_options(options, knowledge_options(build))  # type: ignore[return-value]


def refuse_knowledge(knowledge: PropagationSpec) -> None:
    """Raise `UsageError` for an option that says what is known where nothing asks for it."""
    given = {"--fixed": bool(knowledge.fixed), "--constants": knowledge.constants}
    for option, is_given in given.items():
        if is_given:
            raise UsageError(f"`{option}` without `--propagate`", hint="it says what is known, so that more can be left out")
