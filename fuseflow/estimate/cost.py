"""What a graph costs, estimated from tensor statistics: firings of every node, FLOPs, bytes and a bound on its cycles.

A stream is described by how many elements it has at each nesting depth; every primitive maps the shapes of its inputs to those of its
outputs. Coordinates are taken as independent and uniform, so a join of densities p and q keeps p*q (intersect) or 1-(1-p)(1-q) (union).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from fuseflow.estimate.statistics import TensorStatistics
from fuseflow.ops import OPERATORS
from fuseflow.samml.nodes import (
    Accumulate,
    Align,
    Alu,
    Drop,
    Graph,
    Join,
    Load,
    Node,
    Permute,
    Port,
    Range,
    Reduce,
    Repeat,
    Root,
    Scan,
    WriteLevel,
    WriteValues,
)
from fuseflow.tensors.levels.base import CRD_BYTES, POS_BYTES

VALUE_BYTES = {"f32": 4, "i32": 4, "f64": 8, "i64": 8}


@dataclass(frozen=True, slots=True)
class Shape:
    """`counts[d]` elements at nesting depth d+1; `size` is the extent of the innermost dimension (0 where it does not matter)."""

    counts: tuple[float, ...] = ()
    size: int = 0

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

    def inner(self, elements: float, size: int = 0) -> Shape:
        """A level further in."""
        return Shape((*self.counts, elements), size)

    def resized(self, elements: float) -> Shape:
        """The same lists with another number of elements in the innermost ones."""
        return Shape((*self.counts[:-1], elements), self.size)


OVERLAP = 0.9
"""Share of the work outside the busiest node that is assumed to happen at the same time."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """`cycles` are the firings of the busiest node: no machine with one firing a cycle needs fewer."""

    cycles: float
    firings: float
    flops: float
    bytes: float

    @property
    def rank(self) -> float:
        """Expected cycles, for comparing loop orders: the bound, and what does not overlap with it."""
        return self.cycles + (1 - OVERLAP) * (self.firings - self.cycles)

    def __add__(self, other: Estimate) -> Estimate:
        """One graph after the other."""
        return Estimate(
            self.cycles + other.cycles, self.firings + other.firings, self.flops + other.flops, self.bytes + other.bytes
        )


def estimate(graph: Graph, known: Mapping[str, TensorStatistics]) -> tuple[Estimate, dict[str, TensorStatistics]]:
    """The cost of `graph`, and the statistics expected of the tensors it writes."""
    found = shapes(graph, known)
    written: dict[str, dict[int, Shape]] = {}
    busiest = total = flops = 0.0
    for node in graph.nodes:
        inputs, outputs = _streams(node, found)
        if isinstance(node, WriteLevel):
            written.setdefault(node.tensor, {})[node.level] = inputs[0]
        work = _firings(node, inputs, outputs)
        busiest, total = max(busiest, work), total + work
        flops += _flops(node, inputs)
    results = {name: _written(levels) for name, levels in written.items()}
    return Estimate(busiest, total, flops, sum(traffic(graph, found).values())), results


def shapes(graph: Graph, known: Mapping[str, TensorStatistics]) -> dict[Port, Shape]:
    """The expected shape of every stream of `graph`; `known` are the statistics of the tensors it reads."""
    found: dict[Port, Shape] = {}
    for node in graph.nodes:
        outputs = _outputs(node, [found[p] for p in node.inputs], known)
        found |= {Port(node.name, k): s for k, s in enumerate(outputs)}
    return found


def traffic(graph: Graph, found: Mapping[Port, Shape]) -> dict[str, float]:
    """The bytes expected to be read or written of every tensor of `graph`, whose streams have the shapes `found`."""
    moved = dict.fromkeys(graph.declared, 0.0)
    for node in graph.nodes:
        if isinstance(node, Scan | Load | WriteLevel | WriteValues):
            tensor = graph.declared[node.tensor]
            full = tensor.format.levels[node.level].full if isinstance(node, Scan | WriteLevel) else False
            moved[node.tensor] += _bytes(node, *_streams(node, found), full, VALUE_BYTES[tensor.dtype])
    return moved


def _streams(node: Node, found: Mapping[Port, Shape]) -> tuple[list[Shape], list[Shape]]:
    outputs = (Port(node.name, k) for k in range(len(node.port_names())))
    return [found[p] for p in node.inputs], [found[p] for p in outputs if p in found]


def _outputs(node: Node, inputs: list[Shape], known: Mapping[str, TensorStatistics]) -> list[Shape]:
    match node:
        case Root():
            return [Shape()]
        case Scan():
            stats = known[node.tensor]
            below = inputs[0].inner(inputs[0].elements * stats.fanouts[node.level], stats.sizes[node.level])
            return [below, below]
        case Range():
            return [inputs[0].inner(inputs[0].elements * node.size, node.size)]
        case Repeat():
            return [inputs[1]]
        case Join():
            joined = _join(node, inputs)
            return [joined] * (1 + sum(node.payloads))
        case Align():
            return [_align(*inputs)]
        case Reduce():
            return [Shape(inputs[0].counts[:-1])]
        case Accumulate():
            return _accumulate(node, inputs)
        case Drop():
            return _drop(inputs)
        case Permute():
            return _permute(node, inputs)
        case WriteLevel() | WriteValues():
            return []
        case _:
            return [inputs[0]] * len(node.port_names())


def _join(node: Join, inputs: list[Shape]) -> Shape:
    sides = [inputs[crd] for crd, _ in node.sides()]
    first = sides[0]
    if node.kind == "left":
        return first
    present = math.prod(s.density for s in sides)
    density = present if node.kind == "intersect" else 1 - math.prod(1 - s.density for s in sides)
    return first.resized(first.fibers * first.size * density)


def _align(old: Shape, new: Shape, stream: Shape) -> Shape:
    """Deeper levels keep their fan-out, as far as coordinates of `old` are in `new`."""
    kept = min(1.0, new.elements / old.elements) if old.elements else 0.0
    depth = len(new.counts)
    return Shape((*new.counts, *(c * kept for c in stream.counts[depth:])), stream.size)


def _accumulate(node: Accumulate, inputs: list[Shape]) -> list[Shape]:
    """Each workspace merges the fibers below one fiber of crd_0: a coordinate is in it unless it is in none of them."""
    reduced = inputs[0]
    merged = reduced.elements / reduced.fibers if reduced.fibers else 0.0
    out: list[Shape] = []
    above = Shape(reduced.counts[:-1])
    for crd in inputs[1:-1]:
        density = 1 - (1 - crd.density) ** merged
        above = above.inner(above.elements * crd.size * density, crd.size)
        out.append(above)
    return [*out, above]


def _drop(inputs: list[Shape]) -> list[Shape]:
    """A coordinate stays unless all the places below it are empty."""
    *crds, val = inputs
    counts = list(val.counts)
    for crd, below in reversed(list(pairwise(crds))):
        depth = len(crd.counts)
        full = counts[depth - 1] * below.size
        density = min(1.0, counts[depth] / full) if full else 0.0
        counts[depth - 1] *= 1 - (1 - density) ** below.size
    return [Shape(tuple(counts[: len(s.counts)]), s.size) for s in inputs]


def _permute(node: Permute, inputs: list[Shape]) -> list[Shape]:
    """Each workspace holds the entries below one fiber of crd_0, anywhere among its coordinates: a coordinate of an output level is in
    it unless no entry is below it."""
    outer, entries = inputs[0], inputs[-2].elements
    sizes = [inputs[level].size for level in node.order]
    places = outer.fibers * math.prod(sizes)
    density = min(1.0, entries / places) if places else 0.0
    out: list[Shape] = []
    above = Shape(outer.counts[:-1])
    prefixes = outer.fibers
    for level, size in enumerate(sizes):
        prefixes *= size
        above = above.inner(prefixes * (1 - (1 - density) ** math.prod(sizes[level + 1 :])), size)
        out.append(above)
    return [*out, above]


def _firings(node: Node, inputs: list[Shape], outputs: list[Shape]) -> float:
    match node:
        case Join(kind="intersect" | "union"):
            return max([outputs[0].tokens, *(inputs[crd].tokens for crd, _ in node.sides())])
        case Accumulate() | Permute():
            return max(inputs[-1].tokens, outputs[-1].tokens)
        case _:
            return max(s.tokens for s in (*inputs, *outputs))


def _flops(node: Node, inputs: list[Shape]) -> float:
    match node:
        case Alu():
            return OPERATORS[node.function].flops * inputs[0].elements
        case Reduce() | Accumulate():
            return inputs[-1].elements
        case _:
            return 0.0


def _bytes(node: Node, inputs: list[Shape], outputs: list[Shape], full: bool, value_bytes: int) -> float:
    match node:
        case Load() | WriteValues():
            return inputs[0].elements * value_bytes
        case Scan() if not full:
            return inputs[0].elements * 2 * POS_BYTES + outputs[0].elements * CRD_BYTES
        case WriteLevel() if not full:
            return inputs[0].fibers * POS_BYTES + inputs[0].elements * CRD_BYTES
        case _:
            return 0.0


def _written(levels: Mapping[int, Shape]) -> TensorStatistics:
    shapes = [levels[p] for p in range(len(levels))]
    fanouts = (s.elements / s.fibers if s.fibers else 0.0 for s in shapes)
    return TensorStatistics(tuple(s.size for s in shapes), tuple(fanouts))
