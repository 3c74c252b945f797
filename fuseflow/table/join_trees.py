"""Join trees say which coordinates an expression must visit at one loop, and which joins find them.

An expression is *total* at a loop if it is defined at every coordinate (an operand that lacks the index, a dense level); otherwise it has
*sides*: coordinate streams with the payloads that go with them. Operands combine by which of them annihilate:

    annihilating sides  ->  their intersection, the other sides probed (`left`)
    no annihilating side, some operand total  ->  every coordinate, all sides probed
    no annihilating side, no operand total    ->  the union of the sides

A side that would scan the outermost level of a tensor again in every loop is kept instead, where the other sides of an intersection or of a
`left` join say which coordinates matter: these are located in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, assert_never

from fuseflow.samml.nodes import Drop, Join, Locate, Port
from fuseflow.table.node_interning import Cells

JoinKind: TypeAlias = Literal["intersect", "union", "left"]


class Total(NamedTuple):
    """A visit of every coordinate, at which the sides in `probed` are looked up."""

    probed: tuple[JoinTree, ...] = ()


class Side(NamedTuple):
    """One coordinate stream and the payloads that are aligned with it."""

    crd: Port
    payloads: tuple[Port, ...] = ()


class JoinNode(NamedTuple):
    kind: JoinKind
    sides: tuple[JoinTree, ...]


class Placed(NamedTuple):
    """A visit of the coordinates of one side, at which the sides in `probed` are looked up: what is at the places of a tensor."""

    side: Side
    probed: tuple[JoinTree, ...] = ()


JoinTree: TypeAlias = Total | Side | JoinNode | Placed
EVERYWHERE = Total()
"""The tree of a node that is defined at every coordinate and probes no side."""


def join_of(kind: JoinKind, trees: Iterable[JoinTree]) -> JoinTree:
    """Return an n-ary join, in which nested joins of one kind are one join and equal sides are one side."""
    flat: list[JoinTree] = []
    for k, tree in enumerate(trees):
        nested = isinstance(tree, JoinNode) and tree.kind == kind and (kind != "left" or k == 0)
        flat += tree.sides if nested and isinstance(tree, JoinNode) else (tree,)
    distinct = tuple(dict.fromkeys(flat))
    return distinct[0] if len(distinct) == 1 else JoinNode(kind, distinct)


def placed_tree(trees: Sequence[JoinTree]) -> Placed | None:
    """Return the tree of trees that visit the coordinates of one side, if one of them is `Placed`; None for other trees. So no join is
    left between tensors that share their places."""
    sides = [tree.side if isinstance(tree, Placed) else tree for tree in trees]
    first = sides[0] if sides else None
    if not isinstance(first, Side) or not any(isinstance(tree, Placed) for tree in trees):
        return None
    if not all(isinstance(side, Side) and side.crd == first.crd for side in sides):
        return None
    probed = (*sides[1:], *(below for tree in trees if isinstance(tree, Placed) for below in tree.probed))
    return Placed(first, tuple([tree for tree in dict.fromkeys(probed) if tree != first]))


def combine_operands(operands: Sequence[tuple[JoinTree, bool]]) -> JoinTree:
    """Return the join tree of an operator, given those of its operands, each with whether it fixes the result where it is absent."""
    deciding: list[JoinTree] = []
    others: list[JoinTree] = []
    probed: list[JoinTree] = []
    for tree, annihilates in operands:
        if isinstance(tree, Total):
            probed += tree.probed
        else:
            (deciding if annihilates else others).append(tree)
    if (deciding or len(others) == len(operands)) and (placed := placed_tree([*deciding, *others])) is not None:
        return placed._replace(probed=tuple(dict.fromkeys((*placed.probed, *probed))))
    if len(deciding) == 1 and not others and not probed:
        return deciding[0]
    if deciding:
        return join_of("left", (join_of("intersect", deciding), *others, *probed))
    if len(others) == len(operands) and others:
        return join_of("union", others)
    return Total(tuple(dict.fromkeys((*others, *probed)))) if others or probed else EVERYWHERE


class JoinedPayload(NamedTuple):
    """The stream of a payload after a join. A `nullable` payload may be `N`, a `faithful` one is `N` only where it is absent, and
    a `complete` one has lost no coordinate to another side."""

    port: Port
    nullable: bool = False
    faithful: bool = True
    complete: bool = True

    def better_than(self, other: JoinedPayload) -> bool:
        return (self.faithful, not self.nullable) > (other.faithful, not other.nullable)


Payloads: TypeAlias = dict[Port, JoinedPayload]


@dataclass(slots=True)
class Joiner:
    """A builder of the joins of the loop `index`. `driver` is the coordinate stream of a total loop, with its payloads. `kept`
    has the tensors whose outermost levels can be kept, by the coordinates that a scan would emit, and `located` the references
    that locates emit in place of such scans."""

    cells: Cells
    index: str
    driver: tuple[Port, Payloads] | None = None
    kept: dict[Port, str] = field(default_factory=dict)
    located: dict[Port, Port] = field(default_factory=dict)
    _uses: dict[Port, list[Port]] = field(default_factory=dict)  # payload -> the coordinate streams it was used with

    def run(self, tree: JoinTree) -> tuple[Port, Payloads]:
        """Build the joins of a tree. Return the final coordinate stream and the stream of every payload.

        A payload with several uses that a branch may have hidden (p in p*q + p*r) is probed once more, below the whole join.
        """
        crd, moved = self._realize(tree)
        for payload, crds in self._uses.items():
            if len(crds) > 1 and not moved[payload].faithful:
                crd, moved = self._join("left", [(crd, moved), (crds[0], {payload: JoinedPayload(payload)})])
        return crd, moved

    def _realize(self, tree: JoinTree) -> tuple[Port, Payloads]:
        match tree:
            case Side():
                for payload in tree.payloads:
                    self._uses.setdefault(payload, []).append(tree.crd)
                return tree.crd, {p: JoinedPayload(p) for p in tree.payloads}
            case Total():
                assert self.driver is not None, "a total loop has a driver"
                if not tree.probed:
                    return self.driver  # as in most loops: there is nothing to join
                return self._join("left", [self.driver, *map(self._realize, tree.probed)], full=True)
            case Placed():
                return self._join("left", [self._realize(tree.side), *map(self._realize, tree.probed)])
            case JoinNode():
                return self._join(tree.kind, [self._realize(s) for s in tree.sides])
            case unknown:
                assert_never(unknown)

    def _join(self, kind: JoinKind, parts: Sequence[tuple[Port, Payloads]], full: bool = False) -> tuple[Port, Payloads]:
        groups = _by_coordinates(parts)
        kept = self._kept_sides(kind, groups)
        crd, moved = self._merge(kind, {side: payloads for side, payloads in groups.items() if side not in kept}, full)
        located: dict[Port, Port] = {}  # by the references that scans of the kept levels would emit
        for side in kept:
            tensor = self.kept[side]
            (located[Port(side.node, 1)],) = self.cells.put(Locate(f"{tensor}_{self.index}.loc", (crd,), tensor, 0))
        self.located |= located
        if kind == "intersect" and located:
            groups = {crd: moved}
            for payload, port in located.items():
                present, ref = self.cells.put(Drop(f"drop_{self.index}", (crd, port)))
                groups[present] = {payload: JoinedPayload(ref)}
            return self._merge(kind, groups, full)
        looked_up = {payload: _after(kind, 1, JoinedPayload(port), full) for payload, port in located.items()}
        return crd, moved | {p: after for p, after in looked_up.items() if p not in moved or after.better_than(moved[p])}

    def _kept_sides(self, kind: JoinKind, groups: Mapping[Port, Payloads]) -> tuple[Port, ...]:
        """Return the sides of a join whose level is kept: sides with exactly the streams that their scan emits. At least one
        other side says which coordinates are looked up in them."""
        if kind == "union":
            return ()
        kept = tuple([crd for crd, payloads in groups.items() if crd in self.kept and payloads == _scanned(crd)])
        if kind == "left":
            return tuple([crd for crd in kept if crd != next(iter(groups))])
        return kept if len(kept) < len(groups) else kept[1:]

    def _merge(self, kind: JoinKind, groups: Mapping[Port, Payloads], full: bool) -> tuple[Port, Payloads]:
        """Build the join of sides with different coordinates, and return its streams. One side needs no join."""
        if len(groups) == 1:
            return next(iter(groups.items()))
        place: dict[Port, tuple[int, JoinedPayload]] = {}  # payload -> the group that carries it, and its state after the join
        for g, payloads in enumerate(groups.values()):
            for payload, before in payloads.items():
                after = _after(kind, g, before, full)
                if payload not in place or after.better_than(place[payload][1]):
                    place[payload] = g, after
        inputs: list[Port] = []
        carried: list[Port] = []
        counts: list[int] = []
        for g, (crd, payloads) in enumerate(groups.items()):
            mine = [p for p in place if place[p][0] == g]
            inputs += [crd, *(payloads[p].port for p in mine)]
            counts.append(len(mine))
            carried += mine
        crd, *outputs = self.cells.put(Join(f"{kind}_{self.index}", tuple(inputs), kind, tuple(counts)))
        if self.cells.recorder is not None:
            sides = ", ".join(["{}"] * len(groups))
            self.cells.note("join", self.index, f"{kind.capitalize()}({sides}) = {{}}", *groups, crd)
        return crd, {p: place[p][1]._replace(port=port) for p, port in zip(carried, outputs, strict=True)}


def _by_coordinates(parts: Sequence[tuple[Port, Payloads]]) -> dict[Port, Payloads]:
    """Return the payloads by coordinate stream: sides with the same stream become one."""
    groups: dict[Port, Payloads] = {}
    for crd, payloads in parts:
        group = groups.setdefault(crd, {})
        for payload, moved in payloads.items():
            if payload not in group or moved.better_than(group[payload]):
                group[payload] = moved
    return groups


def _scanned(crd: Port) -> Payloads:
    """Return the payloads that a scan emits beside its coordinates: its references."""
    return {Port(crd.node, 1): JoinedPayload(Port(crd.node, 1))}


def _after(kind: JoinKind, group: int, before: JoinedPayload, full: bool) -> JoinedPayload:
    """Return a payload of side number `group` after a join. `full` says that the first side has all coordinates."""
    probed = kind == "union" or (kind == "left" and group > 0)
    return before._replace(
        nullable=before.nullable or probed,
        faithful=before.faithful and (before.complete or not probed),
        complete=before.complete and (kind == "union" or full or (kind == "left" and group == 0)),
    )
