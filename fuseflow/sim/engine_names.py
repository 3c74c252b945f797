"""The names of the simulators."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Engine: TypeAlias = Literal["auto", "reference", "fast"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
