"""The names of the simulators, and the error with which one gives way to the other."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Engine: TypeAlias = Literal["auto", "reference", "fast"]
ENGINES: tuple[Engine, ...] = get_args(Engine)


class FiringLimitError(Exception):
    """A run passed its limit of firings."""
