"""The blockers of a model: every operator and argument that has no Einsum form, and any error that stops a later stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fuseflow.errors import FrontendError, FusionError, GraphError, ProgramError, TensorError
from fuseflow.frontend.hints import HINTS_WITHOUT_ALTERNATIVE
from fuseflow.frontend.model_files import ModelFileError


@dataclass(frozen=True, slots=True)
class Blocker:
    """One problem that stops the compilation of a model.

    `module` is the module path, `library` the line of the library that calls the operator, and `line` the line of the user's own
    code. They are empty, or None, if they are not known. `shape` is the shape of the value that is computed. `hint` says what to do, and
    `alternative` whether the hint is another way to compute the same.
    """

    problem: str
    module: str
    library: str
    line: str | None
    shape: tuple[int, ...] | None
    hint: str
    alternative: bool
    notes: tuple[str, ...] = ()


def blockers_of(compile_model: Callable[[], object]) -> tuple[Blocker, ...]:
    """Return the blockers that stop `compile_model`; none if it succeeds. Raise errors of the user's request (files, options,
    schedules)."""
    try:
        compile_model()
    except ModelFileError:
        raise
    except FrontendError as error:
        from fuseflow.frontend.trace.refusals import refusals_of  # loads PyTorch, as the model just did

        return tuple(_blocker(refusal) for refusal in refusals_of(error))
    except (ProgramError, TensorError, FusionError, GraphError) as error:
        return (_blocker(error),)
    return ()


def _blocker(error: FrontendError | ProgramError | TensorError | FusionError | GraphError) -> Blocker:
    place = getattr(error, "place", None)
    line = None if error.span is None else str(error.span)
    problem, _, module = error.message.partition(" at module ")
    alternative = bool(error.hint) and error.hint not in HINTS_WITHOUT_ALTERNATIVE
    if place is None:
        return Blocker(problem, module.strip("`"), "", line, None, error.hint, alternative, error.notes)
    notes = tuple(note for note in error.notes if place.library not in note or not place.library)
    return Blocker(problem, place.module, place.library, line, place.shape, error.hint, alternative, notes)
