"""What streams of a graph will look like, estimated from tensor statistics alone: how many elements at each nesting depth.

Every primitive maps the shapes of its inputs to those of its outputs. Coordinates are taken as independent and uniform, so a join of
densities p and q keeps p*q (intersect) or 1-(1-p)(1-q) (union).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, assert_never

from fuseflow.estimate.statistics import TensorStatistics
from fuseflow.samml.nodes import (
    Accumulate,
    Align,
    Drop,
    Flatten,
    Fork,
    Graph,
    Join,
    Locate,
    Merge,
    Node,
    Permute,
    Pointwise,
    Port,
    Primitive,
    Range,
    Reduce,
    Repeat,
    Root,
    Scan,
    SplitLevel,
    TensorDecl,
    Writes,
)

TensorLevel = tuple[str, int]
"""A storage level of a tensor."""


class Overlap(Protocol):
    """What is known of two tensors together."""

    def reached(self, drawn: TensorLevel, level: TensorLevel) -> LookupRate | None:
        """Of coordinates as often as they are stored at `drawn`, looked up in the outermost level of a tensor, of which `level` is the
        next; None: nothing is known."""


@dataclass(frozen=True, slots=True)
class LookupRate:
    """`rate`: the share of coordinates that are there; `fanout`: how many elements those have below them, on average."""

    rate: float
    fanout: float


@dataclass(frozen=True, slots=True)
class ExpectedStream:
    """`counts[d]` elements at nesting depth d+1; `size` is the extent of the innermost dimension (0 where it does not matter); `present`
    the share of elements that are not `N`; `drawn` the levels that the coordinates behind the elements come from, where these are
    stored: how often a coordinate occurs there says how often it occurs here."""

    counts: tuple[float, ...] = ()
    size: int = 0
    present: float = 1.0
    drawn: tuple[TensorLevel, ...] = ()

    @property
    def elements(self) -> float:
        return self.counts[-1] if self.counts else 1.0

    @property
    def fibers(self) -> float:
        """Number of innermost lists."""
        return self.counts[-2] if len(self.counts) > 1 else 1.0

    @property
    def density(self) -> float:
        full = self.fibers * self.size
        return min(1.0, self.elements / full) if full else 0.0

    @property
    def tokens(self) -> float:
        """Elements and stops: every list but the outermost of a run closes with one."""
        return self.elements + (self.fibers if self.counts else 0.0) + 1

    def inner(self, elements: float, size: int = 0) -> ExpectedStream:
        """A level further in."""
        return ExpectedStream((*self.counts, elements), size)

    def resized(self, elements: float) -> ExpectedStream:
        """The same lists with another number of elements in the innermost ones."""
        return ExpectedStream((*self.counts[:-1], elements), self.size)

    @property
    def stored(self) -> float:
        """Elements that are not `N`."""
        return self.elements * self.present


def stream_shapes(graph: Graph, known: Mapping[str, TensorStatistics]) -> dict[Port, ExpectedStream]:
    """The expected shape of every stream of `graph`; `known` are the statistics of the tensors it reads."""
    found: dict[Port, ExpectedStream] = {}
    for node in graph.nodes:
        outputs = output_shapes(node, [found[p] for p in node.inputs], graph.declared, known)
        found |= {Port(node.name, k): s for k, s in enumerate(outputs)}
    return found


def output_shapes(
    node: Primitive,
    inputs: list[ExpectedStream],
    tensors: Mapping[str, TensorDecl],
    known: Mapping[str, TensorStatistics],
    pairs: Overlap | None = None,
) -> list[ExpectedStream]:
    """The expected shapes of what a node makes of streams of these. Without `pairs`, coordinates of any two tensors are independent."""
    match node:
        case Root():
            return [ExpectedStream()]
        case Scan():
            return _scan(node, inputs[0], known[node.tensor], pairs)
        case Range():
            return [inputs[0].inner(inputs[0].elements * node.size, node.size)]
        case Repeat():
            return [replace(inputs[1], present=inputs[0].present, drawn=inputs[0].drawn)]
        case Locate():
            there = 1.0 if tensors[node.tensor].format.levels[node.level].full else _density(known[node.tensor], node.level)
            return [replace(inputs[-1], present=inputs[-1].present * there, drawn=inputs[0].drawn)]
        case Join():
            return _join(node, inputs, pairs)
        case Align():
            return [_align(*inputs)]
        case Reduce():
            return [ExpectedStream(inputs[0].counts[:-1])]
        case Accumulate():
            return _accumulate(node, inputs)
        case Drop():
            return _drop(inputs)
        case Permute():
            return _permute(node, inputs)
        case Writes():
            return []
        case Pointwise():
            return [replace(inputs[0], present=1.0)]
        case Fork():
            return [replace(inputs[0].resized(inputs[0].elements / node.lanes), present=inputs[0].present)] * node.lanes
        case Merge():
            return [_merge(node, inputs[0])]
        case Flatten() | SplitLevel():
            return [inputs[0]] * len(node.port_names())
        case unknown:
            assert_never(unknown)


def expected_comparisons(node: Node, inputs: list[ExpectedStream]) -> float:
    """The comparisons expected of a node that merges: coordinates that any side has."""
    if isinstance(node, Join):
        sides = [inputs[crd] for crd, _ in node.sides()]
    elif isinstance(node, Align):
        sides = inputs[:2]
    else:
        return 0.0
    first = sides[0]
    missed = math.prod(1 - side.density for side in sides)
    return max(first.fibers * first.size * (1 - missed), *(side.elements for side in sides))


def _merge(node: Merge, lane: ExpectedStream) -> ExpectedStream:
    """All lanes are like the first: as many elements each, from the dealt level on."""
    dealt = len(lane.counts) - 1 - node.levels
    return replace(lane, counts=(*lane.counts[:dealt], *(count * node.lanes for count in lane.counts[dealt:])))


def _scan(node: Scan, ref: ExpectedStream, stats: TensorStatistics, pairs: Overlap | None) -> list[ExpectedStream]:
    elements = ref.stored * stats.fanouts[node.level]
    for drawn in ref.drawn if pairs else ():
        if pairs and (found := pairs.reached(drawn, (node.tensor, node.level))) is not None:
            elements = ref.stored * found.fanout
    size = stats.sizes[node.level]
    stored = stats.fanouts[node.level] < size
    below = ref.inner(elements, size)
    return [replace(below, drawn=((node.tensor, node.level),) if stored else ()), replace(below, drawn=())]


def _density(stats: TensorStatistics, level: int) -> float:
    """The share of the coordinates of a dimension that a fiber has."""
    return min(1.0, stats.fanouts[level] / stats.sizes[level]) if stats.sizes[level] else 0.0


def _rates(node: Join, inputs: list[ExpectedStream], pairs: Overlap | None) -> list[float]:
    """For each side the share of all coordinates that it has; of those of the first side, where more is known of the two."""
    sides = [inputs[crd] for crd, _ in node.sides()]
    found = [side.density for side in sides]
    if pairs is None or node.kind == "union":
        return found
    for k, side in enumerate(sides[1:], 1):
        for drawn in sides[0].drawn:
            for tensor, level in side.drawn:
                if level == 0 and (reached := pairs.reached(drawn, (tensor, 1))) is not None:
                    found[k] = reached.rate
    return found


def _join(node: Join, inputs: list[ExpectedStream], pairs: Overlap | None) -> list[ExpectedStream]:
    """The coordinates, then every payload: of a side that has not all of them, some are `N`."""
    sides = node.sides()
    densities = _rates(node, inputs, pairs)
    first = inputs[sides[0][0]]
    either = {"left": densities[0], "intersect": math.prod(densities), "union": 1 - math.prod(1 - d for d in densities)}
    density = either[node.kind]
    joined = first if node.kind == "left" else first.resized(first.fibers * first.size * density)
    kinds = {"left": sides[:1], "intersect": sides, "union": ()}[node.kind]
    drawn = tuple(dict.fromkeys(place for crd, _ in kinds for place in inputs[crd].drawn))
    joined = replace(joined, drawn=drawn)
    found = [joined]
    for side, (crd, payloads) in enumerate(sides):
        others = tuple(place for place in drawn if place not in inputs[crd].drawn)
        kept = 1.0
        if node.kind == "union" and density:
            kept = densities[side] / density
        elif node.kind == "left" and side > 0:
            kept = densities[side]
        found += [replace(joined, present=inputs[p].present * kept, drawn=others) for p in payloads]
    return found


def _align(old: ExpectedStream, new: ExpectedStream, stream: ExpectedStream) -> ExpectedStream:
    """Deeper levels keep their fan-out, as far as coordinates of `old` are in `new`."""
    kept = min(1.0, new.elements / old.elements) if old.elements else 0.0
    depth = len(new.counts)
    return ExpectedStream((*new.counts, *(c * kept for c in stream.counts[depth:])), stream.size, stream.present)


def _accumulate(node: Accumulate, inputs: list[ExpectedStream]) -> list[ExpectedStream]:
    """Each workspace merges the fibers below one fiber of crd_0: a coordinate is in it unless it is in none of them."""
    reduced = inputs[0]
    merged = reduced.elements / reduced.fibers if reduced.fibers else 0.0
    out: list[ExpectedStream] = []
    above = ExpectedStream(reduced.counts[:-1])
    for crd in inputs[1:-1]:
        density = 1 - (1 - crd.density) ** merged
        above = above.inner(above.elements * crd.size * density, crd.size)
        out.append(above)
    return [*out, above]


def _drop(inputs: list[ExpectedStream]) -> list[ExpectedStream]:
    """A coordinate stays unless all the places below it are empty."""
    *crds, val = inputs
    counts = list(val.counts)
    for crd, below in reversed(list(pairwise(crds))):
        depth = len(crd.counts)
        full = counts[depth - 1] * below.size
        density = min(1.0, counts[depth] / full) if full else 0.0
        counts[depth - 1] *= 1 - (1 - density) ** below.size
    return [ExpectedStream(tuple(counts[: len(s.counts)]), s.size) for s in inputs]


def _permute(node: Permute, inputs: list[ExpectedStream]) -> list[ExpectedStream]:
    """Each workspace holds the entries below one fiber of crd_0, anywhere among its coordinates: a coordinate of an output level is in
    it unless no entry is below it."""
    outer, entries = inputs[0], inputs[-2].elements
    sizes = [inputs[level].size for level in node.order]
    places = outer.fibers * math.prod(sizes)
    density = min(1.0, entries / places) if places else 0.0
    out: list[ExpectedStream] = []
    above = ExpectedStream(outer.counts[:-1])
    prefixes = outer.fibers
    for level, size in enumerate(sizes):
        prefixes *= size
        above = above.inner(prefixes * (1 - (1 - density) ** math.prod(sizes[level + 1 :])), size)
        out.append(above)
    return [*out, above]


def result_statistics(levels: Sequence[ExpectedStream]) -> TensorStatistics:
    """The statistics of a tensor whose level writers get streams of these shapes."""
    fanouts = (s.elements / s.fibers if s.fibers else 0.0 for s in levels)
    return TensorStatistics(tuple(s.size for s in levels), tuple(fanouts))
