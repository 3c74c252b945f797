"""The pool of streams that a graph grows from. What is known of a stream is what the verifier's rules say, and a little more."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from fuseflow.samml import nodes as n
from fuseflow.samml.graph import UNBOUNDED
from fuseflow.samml.node_check import GraphContext, NodeCheck, Position, StreamFacts
from fuseflow.samml.stream_alignment import StreamShape

from .data import Source


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """A stream of the pool. `bound`: its numbers are coordinates below it (None: no coordinates). `limit`: the largest magnitude of
    its values, None if they may be infinite or NaN."""

    port: n.Port
    stream: StreamFacts
    bound: int | None = None
    limit: float | None = None

    @property
    def kind(self) -> n.Kind:
        return self.stream.type.kind

    @property
    def depth(self) -> int:
        return self.stream.type.depth

    @property
    def shape(self) -> StreamShape:
        return self.stream.shape

    @property
    def nullable(self) -> bool:
        return self.stream.nullable

    @property
    def position(self) -> Position | None:
        return self.stream.position


@dataclass
class Builder:
    """Adds nodes, each checked by its rule. `cap`: the most elements that a stream is expected to have, `room` all together."""

    rng: random.Random
    sources: dict[str, Source]
    sizes: tuple[int, ...]
    cap: float
    room: float
    nodes: list[n.Node] = field(default_factory=list)
    outputs: list[n.TensorDecl] = field(default_factory=list)
    pool: list[Known] = field(default_factory=list)
    at: dict[StreamShape, list[Known]] = field(default_factory=dict)  # the streams of a shape
    below: dict[StreamShape, list[StreamShape]] = field(default_factory=dict)  # the shapes below a shape that have coordinates
    bound: dict[StreamShape, int] = field(default_factory=dict)  # coordinates of a shape are below it
    count: dict[StreamShape, float] = field(default_factory=dict)  # expected elements of a shape
    read: set[n.Port] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.context = GraphContext("random", {name: s.decl for name, s in self.sources.items()}, frozenset())
        self.count[self.context.shapes.single] = 1.0
        self.root = self.add(n.Root)[0]

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def size(self) -> int:
        return self.rng.choice(self.sizes)

    def fits(self, count: float) -> bool:
        """Whether one more stream of `count` elements may be made."""
        return count <= self.cap and count <= self.room

    def add(
        self,
        kind: type[n.Node],
        inputs: Sequence[Known] = (),
        *attributes: object,
        made: Iterable[tuple[int | None, float]] = (),
        extra: Iterable[tuple[int | None, float | None]] = (),
    ) -> list[Known]:
        """Add a node. `made` gives bound and expected elements of each new shape among its outputs, in order; `extra` bound and limit
        of each output that has one: repeated coordinates, values."""
        node = kind(f"{kind.op}{len(self.nodes)}", tuple(k.port for k in inputs), *attributes)
        rows = node.check(NodeCheck(self.context, node.name, node.op, node.inputs, [k.stream for k in inputs]))
        self.context.add(node.name, partial(n.stream_name, node), node.gives_parents)
        self.nodes.append(node)
        self.read.update(node.inputs)
        for shape, (bound, count) in zip(dict.fromkeys(row.shape for row in rows), made, strict=False):
            self.learn(shape, bound, count)
        types = node.outputs([k.stream.type for k in inputs])
        bounds = node.bounds([k.stream.bound for k in inputs], self.context.tensors)
        more = [*extra, *[(None, None)] * len(rows)]
        found = []
        for output, (type_, row, proved, (bound, limit)) in enumerate(zip(types, rows, bounds, more, strict=False)):
            stream = StreamFacts(type_, row.shape, row.nullable, row.position, proved)
            bound = self.bound.get(row.shape) if type_.kind == "crd" else bound
            if bound is not None and bound < proved < UNBOUNDED:  # what is known here, but not to the verifier, does not count
                bound = proved
                if type_.kind == "crd":
                    self.bound[row.shape] = bound
            found.append(Known(n.Port(node.name, output), stream, bound, limit))
        for known in found:
            self._enter(known)
        return found

    def _enter(self, known: Known) -> None:
        shape, parent = known.shape, known.shape.parent
        self.pool.append(known)
        self.at.setdefault(shape, []).append(known)
        self.room -= self.count[shape] + (self.count[parent] if parent else 0.0)
        if known.kind == "crd" and parent is not None:
            siblings = self.below.setdefault(parent, [])
            if shape not in siblings:
                siblings.append(shape)

    def learn(self, shape: StreamShape, bound: int | None, count: float) -> None:
        if bound is not None:
            self.bound[shape] = bound
        at: StreamShape | None = shape
        # Subtrees that were carried or gathered may have levels above them that no stream has.
        while at is not None and at not in self.count:
            self.count[at] = count
            at = at.parent

    def pick(self, fits: Callable[[Known], object], among: Sequence[Known] | None = None, nullable: float = 0.0) -> Known | None:
        """One of the streams for which `fits` holds, rather a late one; None if there is none. With the probability `nullable` one
        that may hold `N`, if there is one."""
        found = [k for k in (self.pool if among is None else among) if fits(k)]
        if nullable and self.chance(nullable):
            found = [k for k in found if k.nullable] or found
        return found[len(found) - 1 - int(len(found) * self.rng.random() ** 1.5)] if found else None

    def crd(self, shape: StreamShape | None) -> Known | None:
        """A coordinate stream of a shape."""
        found = [k for k in self.at.get(shape, ()) if k.kind == "crd"] if shape else []
        return self.rng.choice(found) if found else None

    def chain(self, shape: StreamShape, levels: int) -> list[Known] | None:
        """Coordinate streams of a shape and those above it, outermost first; None if one is missing."""
        found: list[Known] = []
        at: StreamShape | None = shape
        while len(found) < levels:
            crd = self.crd(at)
            if crd is None or at is None:
                return None
            found.append(crd)
            at = at.parent
        return found[::-1]
