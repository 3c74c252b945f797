"""A nest of loops while it is filled, and one loop of it: what the builder of a table needs to know wherever it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from fuseflow.fusion.tree import Reduction, Tree, View
from fuseflow.samml.nodes import Port
from fuseflow.table.join_trees import JoinedPayload
from fuseflow.table.view_cursor import Bundle, LoopContext, ViewCursor

Env: TypeAlias = Mapping[Tree, ViewCursor | Bundle]
"""Where every view and completed reduction of a nest stands."""


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops that compute a `reduction`: those that have run so far, outermost first, and where everything in its body stands then."""

    reduction: Reduction
    loops: LoopContext = ()
    env: Env = field(default_factory=dict)

    @property
    def body(self) -> Tree:
        return self.reduction.body

    @property
    def depth(self) -> int:
        return len(self.loops)

    @property
    def indices(self) -> tuple[str, ...]:
        """The loops that have run."""
        return tuple(v for v, _ in self.loops)

    def inside(self, v: str, crd: Port) -> Nest:
        """The nest inside one more loop, with the final coordinate stream of that."""
        return replace(self, loops=(*self.loops, (v, crd)))

    def standing(self, places: Env) -> Nest:
        """The nest with other places for some views and reductions."""
        return replace(self, env={**self.env, **places})

    def of(self, reduction: Reduction) -> Nest:
        """The nest of a reduction in the body, inside the same loops."""
        return replace(self, reduction=reduction)


@dataclass(frozen=True, slots=True)
class Loop:
    """The innermost loop of a `nest` after its join: the references of the views that were `scanned` for it, and where each payload is
    now."""

    nest: Nest
    scanned: Mapping[View, Port]
    moved: Mapping[Port, JoinedPayload]

    @property
    def index(self) -> str:
        return self.nest.loops[-1][0]

    @property
    def crd(self) -> Port:
        """Its final coordinate stream."""
        return self.nest.loops[-1][1]
