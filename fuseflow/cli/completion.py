"""The completions that a shell offers for an option that names a part of the model on its line: regions, Einsums, tensors and indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from fuseflow.schedule.section import Completion

if TYPE_CHECKING:
    from fuseflow.frontend.import_cache.entry import ProgramNames

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def names_of_model(which: Completion, end: str = "", others: tuple[str, ...] = ()) -> Complete:
    """Return a function that completes an option by names of the model on the command line, each with an `end` such as `=`, and
    by `others`. `which` is the kind of names.

    The names come from a program text, or from the import that the cache kept. A model that was never imported has none.
    """

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = _names(context)
        known = {"parts": (*names.modules, *names.einsums), "tensors": names.tensors, "indices": names.indices, "": ()}
        words = (*others, *(name + end for name in known[which]))
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]

    return complete


def _names(context: click.Context) -> ProgramNames:
    from fuseflow.cli.model_options import model_spec
    from fuseflow.frontend.import_cache.entry import ProgramNames, program_names

    try:
        return program_names(model_spec(context.params))
    except Exception:  # a line that is not finished may hold anything, and a message would stand in the middle of it
        return ProgramNames()
