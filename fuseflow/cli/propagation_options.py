"""The options of propagation, which leaves out of a program the elements that its outputs do not need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from fuseflow.cli.common import bundled
from fuseflow.errors import UsageError

if TYPE_CHECKING:
    from fuseflow.frontend.model_spec import ModelSpec, PropagationSpec


def _knowledge(fixed: tuple[str, ...], constants: bool) -> PropagationSpec:
    from fuseflow.frontend.model_spec import PropagationSpec  # `--help` does without

    return PropagationSpec(fixed, constants)


knowledge_options = bundled(
    "knowledge",
    _knowledge,
    click.option(
        "--fixed",
        multiple=True,
        metavar="PATTERN",
        help="Inputs that store the same entries in every run, such as a graph: 'adj'; repeatable.",
    ),
    click.option("--constants", is_flag=True, help="The numbers of weights and buffers are known, and not only their zeros."),
)
"""Adds the options that say which values of a model are known, and passes them on as `knowledge`, a `PropagationSpec`."""


def _propagated(spec: ModelSpec, propagate: bool, knowledge: PropagationSpec) -> ModelSpec:
    if propagate:
        return replace(spec, propagate=knowledge)
    refuse_knowledge(knowledge)
    return spec


propagation_options = bundled(
    "spec",
    _propagated,
    click.option("--propagate", is_flag=True, help="Leave out what no output needs, as `fuseflow propagate` shows it."),
    knowledge_options,
)
"""Adds `--propagate` and the options of `knowledge_options`, and passes them on in `spec`, the `ModelSpec`."""


def refuse_knowledge(knowledge: PropagationSpec) -> None:
    """Raise `UsageError` for an option that says which values are known, if nothing is propagated."""
    given = {"--fixed": bool(knowledge.fixed), "--constants": knowledge.constants}
    for option, is_given in given.items():
        if is_given:
            raise UsageError(f"`{option}` without `--propagate`", hint="it says what is known, so that more can be left out")
