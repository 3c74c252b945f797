"""The cursor of a view while its loops run: its references so far, and the loops of dense levels that are still to be located."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from fuseflow.samml.nodes import Port

LoopContext: TypeAlias = tuple[tuple[str, Port], ...]
"""The loops that have run, outermost first, each with its final coordinate stream (after every join of that loop)."""


class ViewCursor(NamedTuple):
    """The cursor of a view of a stored tensor: `port` holds the references after `level` storage levels.

    `waiting` has the coordinate streams of loops whose dense level is not reached yet: it is located as soon as the levels above it are
    reached (rule L2). `nullable` references may be `N`.
    """

    port: Port
    level: int = 0
    nullable: bool = False
    waiting: tuple[tuple[str, Port], ...] = ()


class ViewLevels(NamedTuple):
    """The levels of a view in storage order: the index of each, and whether it is dense. `positions` has the level of each index,
    and `after` has for each level the first one from it on that needs a loop."""

    levels: tuple[tuple[str, bool], ...]
    positions: Mapping[str, int]
    after: tuple[int, ...]


class Bundle(NamedTuple):
    """A completed producer: the coordinate streams of its remaining levels, and its values.

    `nullable` values may be `N`. While the bundle is `whole`, no loop has consumed a level of it.
    """

    levels: tuple[tuple[str, Port], ...]
    value: Port
    nullable: bool = False
    whole: bool = True

    @property
    def indices(self) -> tuple[str, ...]:
        return tuple(v for v, _ in self.levels)
