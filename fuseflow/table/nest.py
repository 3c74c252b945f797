"""The state of a nest of loops while the builder of a table fills it, and of one loop in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from fuseflow.fusion.tree import Reduction, Tree, View
from fuseflow.samml.nodes import Port
from fuseflow.table.join_trees import JoinedPayload
from fuseflow.table.view_cursor import Bundle, LoopContext, ViewCursor

Env: TypeAlias = Mapping[Tree, ViewCursor | Bundle]
"""The position of every view and completed reduction of a nest."""


@dataclass(frozen=True)  # with a place for what is computed once
class Nest:
    """The nest of loops that computes a `reduction`: the loops that have run, outermost first, and the positions of its views
    and bundles."""

    reduction: Reduction
    loops: LoopContext = ()
    env: Env = field(default_factory=dict)

    @property
    def body(self) -> Tree:
        return self.reduction.body

    @property
    def depth(self) -> int:
        return len(self.loops)

    @cached_property
    def completed(self) -> frozenset[Tree]:
        """The reductions that are completed."""
        return frozenset([node for node in self.env if isinstance(node, Reduction)])

    @cached_property
    def indices(self) -> tuple[str, ...]:
        """The loops that have run."""
        return tuple(v for v, _ in self.loops)

    def inside(self, v: str, crd: Port) -> Nest:
        """Return the nest inside one more loop, whose final coordinate stream is `crd`."""
        return replace(self, loops=(*self.loops, (v, crd)))

    def standing(self, places: Env) -> Nest:
        """Return the nest with other positions for some views and reductions."""
        return replace(self, env={**self.env, **places})

    def of(self, reduction: Reduction) -> Nest:
        """Return the nest of a reduction in the body, inside the same loops."""
        return replace(self, reduction=reduction)


@dataclass(frozen=True, slots=True)
class Loop:
    """The innermost loop of a `nest` after its join. `scanned` has the references of the views that were scanned for it, and `moved` the
    stream of each payload after the join."""

    nest: Nest
    scanned: Mapping[View, Port]
    moved: Mapping[Port, JoinedPayload]

    @property
    def index(self) -> str:
        return self.nest.loops[-1][0]

    @property
    def crd(self) -> Port:
        """The final coordinate stream of the loop."""
        return self.nest.loops[-1][1]
