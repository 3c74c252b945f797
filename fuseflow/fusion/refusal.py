"""Alternatives that cannot be: a refusal is a value where others are tried too, and an error once none is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from fuseflow.errors import FusionError

Outcome = TypeVar("Outcome")
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an alternative cannot be: the `error` to raise if nothing else is possible."""

    error: FusionError


def attempt(step: Callable[Arguments, Outcome], *given: Arguments.args, **named: Arguments.kwargs) -> Outcome | Refusal:
    """What a step gives for these arguments; or, where it raises a `FusionError`, why it gives nothing."""
    try:
        return step(*given, **named)
    except FusionError as error:
        return Refusal(error)
