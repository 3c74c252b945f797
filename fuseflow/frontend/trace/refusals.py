"""Refusals of a model: everything in it that has no Einsum form, each with its place, in one error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.fx import Node

from fuseflow.errors import FrontendError, Span
from fuseflow.frontend.hints import HINT_EVAL, HINT_LIBRARY, HINT_OUTSIDE
from fuseflow.frontend.trace.fx_origin import library_line, module_path, module_suffix, source_span

_PLACES_IN_NOTE = 4


@dataclass(frozen=True, slots=True)
class OperatorPlace:
    """Where an operator stands: the path of its module, the line of the library that calls it, or '' for both, and the shape of
    its value, or None if that is no tensor."""

    module: str
    library: str
    shape: tuple[int, ...] | None


class OperatorError(FrontendError):
    """An operator of the model has no Einsum form."""

    def __init__(
        self, message: str, place: OperatorPlace, *, hint: str = "", notes: Sequence[str] = (), span: Span | None = None
    ) -> None:
        super().__init__(message, hint=hint, notes=notes, span=span)
        self.place = place


class BlockedError(FrontendError):
    """Several things are in the way of a model. The text is that of the first one, with a note for each kind of the others."""

    def __init__(self, refusals: Sequence[FrontendError]) -> None:
        first, *others = refusals
        super().__init__(first.message, hint=first.hint, notes=(*first.notes, *_summary(others)), span=first.span)
        self.refusals = tuple(refusals)


def refusal(node: Node, message: str, hint: str) -> OperatorError:
    """Return an error that names the module and the user's line, and in a note the line of a library and the shape of the result."""
    span, line, value = source_span(node), library_line(node), node.meta.get("val")
    if isinstance(value, tuple | list) and value:
        value = value[0]  # An operator of several results is told by its first one.
    shape = tuple(value.shape) if isinstance(value, Tensor) else None
    notes = [f"it computes values{'' if shape is None else f' of shape {shape}'} in {line}"] if line else []
    place = OperatorPlace(module_path(node), line, shape)
    if line and hint == HINT_OUTSIDE:
        hint = HINT_LIBRARY
    return OperatorError(f"{message}{module_suffix(node)}", place, hint=hint, notes=notes, span=span)


def without_followed_advice(refusals: Iterable[FrontendError], module: nn.Module) -> list[FrontendError]:
    """Return the refusals, without the hint to call `.eval()` if no part of the module is in training mode."""
    refused = list(refusals)
    if not any(part.training for part in module.modules()):
        for error in refused:
            if error.hint.startswith(HINT_EVAL):
                error.hint = error.hint.removeprefix(HINT_EVAL).removeprefix(", or ").removeprefix("; ") or HINT_OUTSIDE
    return refused


def refusals_of(error: FrontendError) -> tuple[FrontendError, ...]:
    """Return all errors that an error combines: the refusals of a model."""
    return error.refusals if isinstance(error, BlockedError) else (error,)


def raise_all(refusals: Sequence[FrontendError]) -> None:
    """Raise one error for all refusals, if there are any."""
    if refusals:
        raise BlockedError(refusals)


def _summary(refusals: Sequence[FrontendError]) -> list[str]:
    """Return one note for each kind of refusal: `also a sliding window (...) at module `stem`, and 3 more`."""
    by_problem: dict[str, list[str]] = {}
    for error in refusals:
        problem, _, place = error.message.partition(" at module ")
        by_problem.setdefault(problem, []).append(place)
    notes = []
    for problem, places in by_problem.items():
        where = ", ".join(list(dict.fromkeys(place for place in places if place))[:_PLACES_IN_NOTE])
        count = f", {len(places)} times" if len(places) > 1 else ""
        notes.append(f"also {problem}{count}" + (f", at module {where}" if where else ""))
    return notes
