"""The state of a nest of loops while the builder of a table fills it: of its views and completed producers, and of one loop in it."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from fuseflow.einsum.nodes import TensorType
from fuseflow.fusion.tree import Producer, Tree, View
from fuseflow.samml.nodes import Port
from fuseflow.table.join_trees import JoinedPayload
from fuseflow.table.node_interning import LoopContext

T = TypeVar("T")


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

    @classmethod
    def of(cls, view: View, tensor: TensorType, single: Collection[str]) -> ViewLevels:
        """Return the levels of a view of a stored tensor. Levels of `single` indices need no loop."""
        assert tensor.format is not None
        stored = zip(tensor.format.order, tensor.format.levels, strict=True)
        levels = tuple([(view.indices[d], level.full) for d, level in stored])
        positions = {v: p for p, (v, _) in reversed([*enumerate(levels)])}
        needed = [p for p, (v, _) in enumerate(levels) if v not in single]
        after = tuple([next((p for p in needed if p >= start), len(levels)) for start in range(len(levels) + 1)])
        return cls(levels, positions, after)


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


Env: TypeAlias = Mapping[Tree, ViewCursor | Bundle]
"""The position of every view and completed producer of a nest."""


class Step(NamedTuple, Generic[T]):
    """The outcome of a step of a builder, and the nodes that it uses, in the order in which they were needed, with their
    stages."""

    outcome: T
    used: Mapping[str, str]


Steps: TypeAlias = dict[Hashable, Step[T]]
"""Steps from one nest, by keys of whatever else they depend on."""


@dataclass(slots=True, eq=False)
class Nest:
    """The nest of loops that computes a `producer`: the loops that have run, outermost first, the positions of its views and
    bundles (`env`), and the producers that are `completed`.

    `nests` and `bundles` have the outcomes of the steps that were taken from here: tables of one region in other orders share
    them.
    """

    producer: Producer
    loops: LoopContext = ()
    env: Env = field(default_factory=dict)
    completed: frozenset[Tree] = frozenset()
    nests: Steps[Nest] = field(default_factory=dict)
    bundles: Steps[Bundle] = field(default_factory=dict)

    @property
    def body(self) -> Tree:
        return self.producer.body

    @property
    def depth(self) -> int:
        return len(self.loops)

    @property
    def indices(self) -> tuple[str, ...]:
        """The loops that have run."""
        return tuple([v for v, _ in self.loops])

    def inside(self, v: str, crd: Port) -> Nest:
        """Return the nest inside one more loop, whose final coordinate stream is `crd`."""
        return Nest(self.producer, (*self.loops, (v, crd)), self.env, self.completed)

    def standing(self, places: Env) -> Nest:
        """Return the nest with the views and producers of `places` at these positions."""
        new = [node for node in places if isinstance(node, Producer) and node not in self.completed]
        return Nest(self.producer, self.loops, {**self.env, **places}, self.completed.union(new) if new else self.completed)

    def without(self, producers: Collection[Tree]) -> Nest:
        """Return the nest with these producers not completed."""
        env = {node: place for node, place in self.env.items() if node not in producers}
        return Nest(self.producer, self.loops, env, self.completed.difference(producers))

    def of(self, producer: Producer, inside: frozenset[Producer]) -> Nest:
        """Return the nest of a producer in the body, inside the same loops. Only completed producers `inside` it matter there."""
        return Nest(producer, self.loops, self.env, self.completed & inside)


@dataclass(frozen=True, slots=True)
class Loop:
    """The innermost loop of a `nest` after its join. `scanned` has the references of the views that were scanned for it, and
    `moved` the stream of each payload after the join. `located` has the references that a locate in a kept level emits instead of
    a scan."""

    nest: Nest
    scanned: Mapping[View, Port]
    moved: Mapping[Port, JoinedPayload]
    located: Mapping[Port, Port]

    @property
    def index(self) -> str:
        return self.nest.loops[-1][0]

    @property
    def crd(self) -> Port:
        """The final coordinate stream of the loop."""
        return self.nest.loops[-1][1]
