"""Productions of parallel lanes: streams dealt to lanes in turn, and gathered again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from fuseflow.ops import REDUCERS
from fuseflow.samml import nodes as n
from fuseflow.samml.stream_alignment import StreamShape

from .builder import Builder, Known
from .loops import scan_of, scannable
from .values import any_source, at_values, folded, load_of

T = TypeVar("T", int, float)


def fork(b: Builder) -> bool:
    """A stream, and now and then others that are aligned with it: lane k of each is aligned with lane k of the others."""
    first = b.pick(lambda k: k.depth >= 1)
    if first is None or not b.fits(3 * b.count[first.shape]):
        return False
    lanes = b.rng.choice((1, 2, 2, 3, 5))
    others = b.rng.choices(b.at[first.shape], k=b.rng.choice((0, 0, 1, 2)))
    for x in dict.fromkeys((first, *others)):
        deal(b, x, lanes)
    return True


def merge(b: Builder) -> bool:
    """One stream of each lane, of one kind, whatever became of it there."""
    first = b.pick(lambda k: k.shape.origin[0] == "lane")
    if first is None or not b.fits(b.count[first.shape] * 4):
        return False
    match first.shape.origin:
        case ("lane", StreamShape() as dealt, int() as lanes, int()):
            shapes = [b.context.shapes.lane(dealt, lanes, k) for k in range(lanes)]
        case _:
            return False
    gathered = []
    for shape in shapes:
        lane = b.pick(lambda k: k.kind == first.kind and k.position == first.position, b.at.get(shape, ()))
        if lane is None:
            return False
        gathered.append(lane)
    gather(b, gathered, 0)
    return True


def parallel(b: Builder) -> bool:
    """References dealt to lanes, in each lane the fibers below them down to some level, all gathered again: coordinates, references,
    values, or the values reduced."""
    ref = b.pick(lambda k: scannable(b, k) and k.depth >= 1)
    source = any_source(b, lambda s: bool(s.decl.shape)) if ref else None
    if ref is None or source is None:
        return False
    others = b.sources.keys() - {source.decl.name}  # all lanes read one tensor
    lanes = deal(b, ref, b.rng.choice((2, 2, 3, 4)))
    levels = 0
    while scannable(b, lanes[0]) and (levels == 0 or b.chance(0.5)):
        scans = [scan_of(b, lane, others) for lane in lanes]
        if not all(scans):
            break
        lanes, levels = [refs for _, refs in scans], levels + 1
        if b.chance(0.7):
            gather(b, [crds for crds, _ in scans], levels)
    if at_values(b, lanes[0]):
        values = [load_of(b, lane, b.sources[lane.position.tensor]) for lane in lanes if lane.position]
        if b.chance(0.4) and levels and not any(k.nullable for k in values):
            function = b.rng.choice(list(REDUCERS))
            totals = [b.add(n.Reduce, [k], function, extra=[(None, folded(b, function, k, k.shape))])[0] for k in values]
            gather(b, totals, levels - 1)
        gather(b, values, levels)
    elif b.chance(0.7):
        gather(b, lanes, levels)
    return True


def deal(b: Builder, x: Known, lanes: int) -> list[Known]:
    made = [(b.bound.get(x.shape), b.count[x.shape] / lanes)] * lanes
    return b.add(n.Fork, [x], lanes, made=made, extra=[(x.bound, x.limit)] * lanes)


def gather(b: Builder, lanes: list[Known], levels: int) -> Known:
    """The merge of streams whose lanes were dealt `levels` levels above their elements."""
    made = [(_largest(b.bound.get(k.shape) for k in lanes), sum(b.count[k.shape] for k in lanes))]
    extra = [(_largest(k.bound for k in lanes), _largest(k.limit for k in lanes))]
    return b.add(n.Merge, lanes, levels, made=made, extra=extra)[0]


def _largest(bounds: Iterable[T | None]) -> T | None:
    """The largest of all bounds; none if one of them is missing."""
    found = list(bounds)
    return None if None in found else max(bound for bound in found if bound is not None)
