"""What a shell offers where an option names a part of the model on its line: regions, Einsums, tensors and indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from fuseflow.schedule.settings import KEYWORDS

if TYPE_CHECKING:
    from fuseflow.frontend.import_cache.kept_program import ProgramNames

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def names_of_model(names: Callable[[ProgramNames], tuple[str, ...]], end: str = "", others: tuple[str, ...] = ()) -> Complete:
    """Return what completes an option by some names of the model on the line, each with an `end` such as `=`, and by `others`.

    The names are those of a program text, or of the import that the cache kept. A model that was never imported has none.
    """

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        words = (*others, *(name + end for name in names(_names(context))))
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]

    return complete


def _names(context: click.Context) -> ProgramNames:
    from fuseflow.cli.model_options import model_spec
    from fuseflow.frontend.import_cache.kept_program import ProgramNames, program_names

    try:
        return program_names(model_spec(context.params))
    except Exception:  # a line that is not finished may hold anything, and a message would stand in the middle of it
        return ProgramNames()


complete_fused = names_of_model(lambda names: (*names.modules, *names.einsums), others=KEYWORDS)
complete_named = names_of_model(lambda names: (*names.modules, *names.einsums))
complete_region = names_of_model(lambda names: (*names.modules, *names.einsums), "=")
complete_tensor = names_of_model(lambda names: names.tensors)
complete_tensor_value = names_of_model(lambda names: names.tensors, "=")
complete_index = names_of_model(lambda names: names.indices, "=")
