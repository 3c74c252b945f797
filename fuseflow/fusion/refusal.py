"""Refusals of alternatives. A refusal is a value where other alternatives are tried too, and an error once none is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from fuseflow.errors import FusionError

Outcome = TypeVar("Outcome")
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why an alternative is impossible: the `error` to raise if nothing else is possible."""

    error: FusionError


def attempt(step: Callable[Arguments, Outcome], *arguments: Arguments.args, **keywords: Arguments.kwargs) -> Outcome | Refusal:
    """Call a step with these arguments. Return its result, or a `Refusal` if it raises a `FusionError`. The error loses its
    traceback, whose frames would keep all that the step had made, and often the refusal itself."""
    try:
        return step(*arguments, **keywords)
    except FusionError as error:
        return Refusal(error.with_traceback(None))
