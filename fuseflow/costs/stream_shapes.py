"""The expected shapes of the streams of a graph, from tensor statistics alone: how many elements there are at each nesting depth.

Every primitive maps the shapes of its inputs to the shapes of its outputs. Coordinates are taken as independent and uniform, so a
join of densities p and q keeps p*q of the coordinates (intersect), or 1-(1-p)(1-q) (union).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol, assert_never

from fuseflow.costs.statistics import TensorStatistics, auxiliary_statistics
from fuseflow.samml.nodes import (
    Accumulate,
    Align,
    Drop,
    Flatten,
    Fork,
    Graph,
    Join,
    Link,
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
    Select,
    SplitLevel,
    TensorDecl,
    TensorWriter,
)

TensorLevel = tuple[str, int]
"""A level of a tensor, by the name of the tensor and the number of the level."""


class Overlap(Protocol):
    """A source of facts about pairs of tensors."""

    def lookup_rate(self, source_level: TensorLevel, level: TensorLevel) -> LookupRate | None:
        """Return the rate at which coordinates are found in the outermost level of a tensor, and the elements below them in `level`.

        The coordinates occur as often as `source_level` stores them. None if nothing is known.
        """


@dataclass(frozen=True, slots=True)
class LookupRate:
    """The result of looking up coordinates: `rate` is the share that is found, `fanout` the mean number of elements below each of
    these."""

    rate: float
    fanout: float


class ExpectedStream(NamedTuple):
    """The expected shape of a stream.

    It has `counts[d]` elements at nesting depth d+1. `size` is the size of the innermost dimension, 0 if it does not matter.
    `present` is the share of elements that are not `N`. `origins` are the sparse levels that the coordinates of the elements come
    from: how often a coordinate occurs there decides how often it occurs in the stream. If they are the coordinates that a lookup
    found, `among` is the density of all coordinates that were looked up, else 0.
    """

    counts: tuple[float, ...] = ()
    size: int = 0
    present: float = 1.0
    origins: tuple[TensorLevel, ...] = ()
    among: float = 0.0

    @property
    def elements(self) -> float:
        """The number of innermost elements."""
        return self.counts[-1] if self.counts else 1.0

    @property
    def fibers(self) -> float:
        """The number of innermost lists."""
        return self.counts[-2] if len(self.counts) > 1 else 1.0

    @property
    def density(self) -> float:
        """The share of the coordinates of the innermost dimension that a list has."""
        full = self.fibers * self.size
        return min(1.0, self.elements / full) if full else 0.0

    @property
    def tokens(self) -> float:
        """The number of tokens: the elements, a stop for each innermost list, and the token that ends the stream."""
        counts = self.counts  # read here and not by `elements` and `fibers`, since this is asked for most of all
        return counts[-1] + (counts[-2] if len(counts) > 1 else 1.0) + 1 if counts else 2.0

    def inner(self, elements: float, size: int = 0) -> ExpectedStream:
        """Return a stream that is one level deeper, with so many innermost elements, of a dimension of `size`."""
        return ExpectedStream((*self.counts, elements), size)

    def resized(self, elements: float) -> ExpectedStream:
        """Return a stream of the same lists with another number of innermost elements."""
        return ExpectedStream((*self.counts[:-1], elements), self.size)

    def holding(self, present: float, origins: tuple[TensorLevel, ...] = ()) -> ExpectedStream:
        """Return a stream of the same lists with other elements. The share `present` of them is not `N`."""
        return ExpectedStream(self.counts, self.size, present, origins, self.among)

    @property
    def stored(self) -> float:
        """The number of elements that are not `N`."""
        return self.elements * self.present


def stream_shapes(graph: Graph, statistics: Mapping[str, TensorStatistics]) -> dict[Port, ExpectedStream]:
    """Return the expected shape of every stream of `graph`, given the statistics of the tensors that it reads."""
    shapes: dict[Port, ExpectedStream] = {}
    statistics = {**statistics, **auxiliary_statistics(graph)}
    for node in graph.nodes:
        outputs = output_shapes(node, [shapes[p] for p in node.inputs], graph.declared, statistics)
        shapes |= {Port(node.name, k): s for k, s in enumerate(outputs)}
    return shapes


def output_shapes(
    node: Primitive,
    inputs: list[ExpectedStream],
    tensors: Mapping[str, TensorDecl],
    statistics: Mapping[str, TensorStatistics],
    overlap: Overlap | None = None,
) -> list[ExpectedStream]:
    """Return the expected shapes of the outputs of a node. Without `overlap`, coordinates of any two tensors are independent."""
    match node:
        case Repeat():
            return [inputs[1].holding(inputs[0].present, inputs[0].origins)]
        case Locate():
            stored_share = 1.0
            if not tensors[node.tensor].format.levels[node.level].full:
                fanout, size = statistics[node.tensor].fanouts[node.level], statistics[node.tensor].sizes[node.level]
                stored_share = min(1.0, fanout / size) if size else 0.0
            return [inputs[-1].holding(inputs[-1].present * stored_share, inputs[0].origins)]
        case Pointwise():
            return [inputs[0].holding(1.0, inputs[0].origins)]
        case Scan():
            return _scan(node, inputs[0], statistics[node.tensor], overlap)
        case Join():
            return _join(node, inputs, overlap)
        case Align():
            return [_align(*inputs)]
        case Reduce():
            return [ExpectedStream(inputs[0].counts[:-1])]
        case Accumulate():
            return _accumulate(node, inputs)
        case Drop():
            return _drop(inputs)
        case Select():
            return _select(node, inputs)
        case Permute():
            return _permute(node, inputs)
        case TensorWriter():
            return []
        case Range():
            return [inputs[0].inner(inputs[0].elements * node.size, node.size)]
        case Root():
            return [ExpectedStream()]
        case Link():
            return [inputs[0]]
        case Fork():
            return [inputs[0].resized(inputs[0].elements / node.lanes)._replace(present=inputs[0].present)] * node.lanes
        case Merge():
            counts, dealt = (
                inputs[0].counts,
                len(inputs[0].counts) - 1 - node.levels,
            )  # the inner levels have the elements of all lanes
            return [inputs[0]._replace(counts=(*counts[:dealt], *(count * node.lanes for count in counts[dealt:])))]
        case Flatten():
            outer, inner = inputs
            return [ExpectedStream((*outer.counts[:-1], inner.elements), outer.size * node.size)]
        case SplitLevel():
            return _split(node, inputs[0])
        case unknown:
            assert_never(unknown)


def expected_comparisons(node: Node, inputs: list[ExpectedStream]) -> float:
    """Return the expected comparisons of a node that merges: the coordinates that any of its sides has. 0 for other nodes."""
    if isinstance(node, Join):
        sides = [inputs[crd] for crd, _ in node.sides()]
    elif isinstance(node, Align):
        sides = inputs[:2]
    else:
        return 0.0
    first = sides[0]
    missed = math.prod(1 - side.density for side in sides)
    return max(first.fibers * first.size * (1 - missed), *(side.elements for side in sides))


def expected_read(node: Node, output: ExpectedStream, statistics: Mapping[str, TensorStatistics]) -> float:
    """Return how many coordinates a node is expected to read for a stream: its elements, or the level that a locate keeps."""
    return statistics[node.tensor].fanouts[node.level] if isinstance(node, Locate) else output.elements


def _scan(node: Scan, ref: ExpectedStream, stats: TensorStatistics, overlap: Overlap | None) -> list[ExpectedStream]:
    elements = ref.stored * stats.fanouts[node.level]
    for origin in ref.origins if overlap else ():
        if overlap and (rate := overlap.lookup_rate(origin, (node.tensor, node.level))) is not None:
            elements = ref.stored * rate.fanout
    size = stats.sizes[node.level]
    stored = stats.fanouts[node.level] < size
    scanned = ref.inner(elements, size)
    return [scanned.holding(1.0, ((node.tensor, node.level),) if stored else ()), scanned]


def _rates(node: Join, inputs: list[ExpectedStream], overlap: Overlap | None) -> list[float]:
    """Return the density of each side of a join among all coordinates, or among those of the first side if that is known."""
    sides = [inputs[crd] for crd, _ in node.sides()]
    rates = [side.density / side.among if side.among and node.kind == "intersect" else side.density for side in sides]
    if overlap is None or node.kind == "union":
        return rates
    for k, side in enumerate(sides[1:], 1):
        for origin in sides[0].origins:
            for tensor, level in side.origins:
                if level == 0 and (rate := overlap.lookup_rate(origin, (tensor, 1))) is not None:
                    rates[k] = rate.rate
    return rates


def _join(node: Join, inputs: list[ExpectedStream], overlap: Overlap | None) -> list[ExpectedStream]:
    """Return the shapes of the coordinates and of every payload, which is `N` where its side lacks a coordinate."""
    sides = node.sides()
    densities = _rates(node, inputs, overlap)
    first = inputs[sides[0][0]]
    density_by_kind = {"left": densities[0], "intersect": math.prod(densities), "union": 1 - math.prod(1 - d for d in densities)}
    density = density_by_kind[node.kind]
    joined = first if node.kind == "left" else first.resized(first.fibers * first.size * density)
    origin_sides = {"left": sides[:1], "intersect": sides, "union": ()}[node.kind]
    origins = tuple(dict.fromkeys(origin for crd, _ in origin_sides for origin in inputs[crd].origins))
    joined = joined.holding(joined.present, origins)
    shapes = [joined]
    for side, (crd, payloads) in enumerate(sides):
        others = tuple(origin for origin in origins if origin not in inputs[crd].origins)
        kept = 1.0
        if node.kind == "union" and density:
            kept = densities[side] / density
        elif node.kind == "left" and side > 0:
            kept = densities[side]
        shapes += [joined.holding(inputs[p].present * kept, others) for p in payloads]
    return shapes


def _align(old: ExpectedStream, new: ExpectedStream, stream: ExpectedStream) -> ExpectedStream:
    """Return the shape of `stream` aligned. Its deeper levels shrink by the share of `old` that is in `new`."""
    kept = min(1.0, new.elements / old.elements) if old.elements else 0.0
    depth = len(new.counts)
    return ExpectedStream((*new.counts, *(c * kept for c in stream.counts[depth:])), stream.size, stream.present)


def _accumulate(node: Accumulate, inputs: list[ExpectedStream]) -> list[ExpectedStream]:
    """Return the shapes of the outputs. A workspace has the coordinates that any fiber below one fiber of the first input has."""
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
    """Return the shapes of the outputs. A coordinate stays unless it is absent, or all coordinates below it are missing."""
    *crds, val = inputs
    counts = list(val.counts)
    counts[-1] *= val.present
    for crd, below in reversed(list(pairwise(crds))):
        depth = len(crd.counts)
        full = counts[depth - 1] * below.size
        density = min(1.0, counts[depth] / full) if full else 0.0
        counts[depth - 1] *= 1 - (1 - density) ** below.size
    among = crds[0].density if len(crds) == 1 and val.present < 1 else 0.0
    return [ExpectedStream(tuple(counts[: len(s.counts)]), s.size, among=among) for s in inputs]


def _select(node: Select, inputs: list[ExpectedStream]) -> list[ExpectedStream]:
    """Return the shapes of the outputs. Of each fiber of the first input, or each group of its coordinates, at most `node.keep`
    entries stay.

    Which entries these are does not depend on where they are. So an outer coordinate stays unless all entries below it are
    dropped.
    """
    *crds, val = inputs
    groups = crds[0].fibers * (-(-crds[0].size // node.every) if node.every else 1)
    kept = min(val.elements, groups * node.keep)
    share = kept / val.elements if val.elements else 0.0
    counts = [*val.counts[:-1], kept]
    for crd in crds[:-1]:
        below = val.elements / crd.elements if crd.elements else 0.0
        counts[len(crd.counts) - 1] *= 1 - (1 - share) ** below
    return [ExpectedStream(tuple(counts[: len(s.counts)]), s.size) for s in inputs]


def _split(node: SplitLevel, crd: ExpectedStream) -> list[ExpectedStream]:
    """Return the shapes of one level split in two. An outer coordinate exists if any of the coordinates below it does."""
    size = -(-crd.size // node.size)
    outer = crd.fibers * size * (1 - (1 - crd.density) ** node.size)
    return [ExpectedStream((*crd.counts[:-1], outer), size), ExpectedStream((*crd.counts[:-1], outer, crd.elements), node.size)]


def _permute(node: Permute, inputs: list[ExpectedStream]) -> list[ExpectedStream]:
    """Return the shapes of the outputs. Each workspace holds the entries below one fiber of the first input, scattered evenly
    over its coordinates.

    It has the coordinates of an output level that have an entry below them.
    """
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


def result_statistics(
    tensor: TensorDecl, levels: Sequence[ExpectedStream], statistics: Mapping[str, TensorStatistics]
) -> TensorStatistics:
    """Return the statistics of a result, whose level writers read streams of these shapes. `statistics` has those of the tensor that it
    may be like."""
    if tensor.like:
        return statistics[tensor.like]
    fanouts = [
        level.expected(s.size, 0.0) if level.pads else s.elements / s.fibers if s.fibers else 0.0
        for level, s in zip(tensor.format.levels, levels, strict=True)
    ]
    return TensorStatistics(tuple(s.size for s in levels), tuple(fanouts))
