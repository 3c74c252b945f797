"""Productions that make and use values: loads, operators, reductions, and what leaves with a value."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.samml import nodes as n
from fuseflow.samml.stream_alignment import StreamShape

from .builder import Builder, Known
from .data import INF, Source

IMPLICIT = (0.0, 0.0, 1.0, -1.5, 2.0, -INF)
CONSTANTS = (0.0, 1.0, 2.0, -0.5, 3.0, INF, -INF)
BOUNDED = ("sigmoid", "tanh", "sin", "cos", "erf", "eq", "ne", "lt", "le", "gt", "ge")
"""Operators whose result is at most 1."""
LATER = ("threshold",)
"""Operators that came after the seeds of cases that are told of: only productions of their own draw them."""
LARGEST = ("neg", "abs", "relu", "copy", "max", "min", "where")
"""Operators whose result is no larger than the largest operand."""
KEPT = (1, 1, 1, 2, 2, 3, 5)
"""How many entries a select keeps."""


def load(b: Builder) -> bool:
    # The root's references index the value of a tensor without dimensions.
    ref = b.pick(lambda k: at_values(b, k) or (k.position == b.root.position and b.chance(0.1)), nullable=0.5)
    if ref is None or ref.position is None:
        return False
    source = b.sources[ref.position.tensor] if ref.position.tensor else any_source(b, lambda s: not s.decl.shape)
    if source is None:
        return False
    load_of(b, ref, source)
    return True


def alu(b: Builder) -> bool:
    first = b.pick(lambda k: k.kind == "val", nullable=0.5)
    if first is None or not b.fits(b.count[first.shape]):
        return False
    arities = b.rng.choice((1, 2, 2, 3))
    function = b.rng.choice([o.name for o in OPERATORS.values() if o.arity == arities and o.name not in LATER])
    values = [k for k in b.at[first.shape] if k.kind == "val"]
    streams = [first, *b.rng.choices(values, k=arities - 1)]
    b.rng.shuffle(streams)
    fixed = [b.chance(0.25) for _ in streams]
    fixed[b.rng.randrange(arities)] = False
    slots = tuple(n.Operand(b.rng.choice(CONSTANTS if c else IMPLICIT), c) for c in fixed)
    alu_of(b, function, [k for k, c in zip(streams, fixed, strict=True) if not c], slots)
    return True


def reduce(b: Builder) -> bool:
    val = solid(b, b.pick(lambda k: k.kind == "val" and k.depth >= 1))
    if val is None:
        return False
    function = b.rng.choice(list(REDUCERS))
    b.add(n.Reduce, [val], function, extra=[(None, folded(b, function, val, val.shape))])
    return True


def normalize(b: Builder) -> bool:
    """A value that meets the reduction of its own fiber: it waits for the whole fiber."""
    val = solid(b, b.pick(lambda k: k.kind == "val" and k.depth >= 1))
    if val is None or not b.fits(2 * b.count[val.shape]):
        return False
    function = b.rng.choice(list(REDUCERS))
    (total,) = b.add(n.Reduce, [val], function, extra=[(None, folded(b, function, val, val.shape))])
    signal = b.rng.choice(b.at[val.shape])
    (again,) = b.add(n.Repeat, [total, signal], extra=[(None, total.limit)])
    alu_of(b, b.rng.choice(("div", "sub", "mul", "ge")), [val, again], (n.Operand(0.0), n.Operand(0.0)))
    return True


def accumulate(b: Builder) -> bool:
    val = b.pick(lambda k: k.kind == "val" and k.depth >= 2)
    if val is None:
        return False
    order = b.rng.choice((1, 2, min(3, val.depth - 1)))
    order = min(order, val.depth - 1)
    chain = b.chain(val.shape, order + 1)
    if chain is None or not b.fits((order + 1) * b.count[val.shape]):
        return False
    val = solid(b, val)
    assert val is not None
    function = b.rng.choice(list(REDUCERS))
    limit = folded(b, function, val, chain[0].shape, empty=False)
    made = [(b.bound[crd.shape], b.count[crd.shape]) for crd in chain[1:]]
    b.add(n.Accumulate, [*chain, val], function, order, made=made, extra=[*[(None, None)] * order, (None, limit)])
    return True


def permute(b: Builder) -> bool:
    val = b.pick(lambda k: k.kind == "val" and k.depth >= 2)
    if val is None:
        return False
    levels = min(b.rng.choice((2, 2, 3, 4)), val.depth)
    chain = b.chain(val.shape, levels)
    if chain is None or not b.fits((levels + 1) * b.count[val.shape]):
        return False
    val = solid(b, val)
    assert val is not None
    order = tuple(b.rng.sample(range(levels), levels))
    made = [(b.bound[chain[level].shape], b.count[val.shape]) for level in order]
    b.add(n.Permute, [*chain, val], order, made=made, extra=[*[(None, None)] * levels, (None, val.limit)])
    return True


def drop(b: Builder) -> bool:
    """Of `N` or of a value, one to three levels at once; the last stream may be of any kind."""
    by_value, least = b.chance(0.5), b.rng.choice((1, 3))
    last = b.pick(lambda k: k.depth >= least and (k.kind == "val" or not by_value), nullable=0.6)
    if last is None:
        return False
    by_value = by_value or (last.kind == "val" and not last.nullable and b.chance(0.8))  # else nothing would leave
    levels = min(last.depth, b.rng.choice((1, 2, 3)) if least == 1 else 3)
    chain = b.chain(last.shape, levels)
    if chain is None or not b.fits((levels + 1) * b.count[last.shape]):
        return False
    made = [(b.bound[crd.shape], b.count[crd.shape]) for crd in chain]
    value = b.rng.choice((0.0, 0.0, 1.0, -INF)) if by_value else None
    b.add(n.Drop, [*chain, last], value, made=made, extra=[*[(None, None)] * levels, (last.bound, last.limit)])
    return True


def select(b: Builder) -> bool:
    """Of fibers, of groups of coordinates, or of all below one to three levels; of values that often have equal magnitudes."""
    many = b.chance(0.8)  # something is to leave
    val = b.pick(lambda k: k.kind == "val" and k.depth >= 1 and (b.count[k.shape] >= 4 or not many))
    if val is None:
        return False
    levels = min(val.depth, b.rng.choice((1, 1, 2, 2, 3)))
    every = b.rng.choice((0, 0, 0, 0, 1, 2, 3, 4, 4, 7, 256)) if levels == 1 else 0
    keep = min(b.rng.choice(KEPT), every or max(KEPT))
    chain = b.chain(val.shape, levels)
    if chain is None or not b.fits((levels + 2) * b.count[val.shape]):
        return False
    val = solid(b, val)
    assert val is not None
    if b.chance(0.3):  # ties
        val = alu_of(b, b.rng.choice(("ge", "lt", "pow")), [val], (n.Operand(0.0), n.Operand(0.0, constant=True)))
    made = [(b.bound[crd.shape], b.count[crd.shape]) for crd in chain]
    later = random.Random(f"{b.count} {keep} {every} {levels}")  # what was drawn before this stays as it was
    order = later.choice(((False, False), (False, False), (True, False), (False, True)))
    marks = later.random() < 0.2
    fields = keep, every, levels, *order, marks
    b.add(n.Select, [*chain, val], *fields, made=made, extra=[*[(None, None)] * levels, (None, 1.0 if marks else val.limit)])
    return True


def threshold(b: Builder) -> bool:
    """What a threshold keeps, and a drop of the rest."""
    val = solid(b, b.pick(lambda k: k.kind == "val" and k.depth >= 1))
    chain = None if val is None else b.chain(val.shape, 1)
    if val is None or chain is None or not b.fits(3 * b.count[val.shape]):
        return False
    least = n.Operand(b.rng.choice((0.0, 0.5, 1.0, 2.0, INF)), constant=True)
    large = alu_of(b, "threshold", [val], (n.Operand(0.0), least))
    made = [(b.bound[chain[0].shape], b.count[chain[0].shape])]
    b.add(n.Drop, [*chain, large], 0.0, made=made, extra=[(None, None), (None, large.limit)])
    return True


def load_of(b: Builder, ref: Known, source: Source) -> Known:
    fill = abs(source.decl.fill)  # also what dense levels hold where nothing was stored
    limit = None if source.limit is None or fill == INF else max(source.limit, fill)
    return b.add(n.Load, [ref], source.decl.name, sequential(b, ref), extra=[(None, limit)])[0]


def alu_of(b: Builder, function: str, streams: list[Known], slots: tuple[n.Operand, ...]) -> Known:
    rest = iter(streams)
    sizes = []
    for slot in slots:
        stream = None if slot.constant else next(rest)
        mine = abs(slot.value) if stream is None else INF if stream.limit is None else stream.limit
        sizes.append(max(mine, abs(slot.value)) if stream is not None and stream.nullable else mine)
    return b.add(n.Alu, streams, function, slots, extra=[(None, _limit(function, sizes))])[0]


def _limit(function: str, sizes: list[float]) -> float | None:
    """The largest magnitude of an operator's result, None if it may be infinite or NaN."""
    if INF in sizes:
        return None
    if function in BOUNDED:
        return 1.0
    if function in LARGEST:
        return max(sizes)
    found = {"add": sum(sizes), "sub": sum(sizes), "mul": math.prod(sizes)}.get(function)
    return found if found is not None and found < 1e30 else None


def folded(b: Builder, function: str, val: Known, reduced: StreamShape, empty: bool = True) -> float | None:
    """The largest magnitude of a reduction over the fibers of `reduced`, which may be empty."""
    if val.limit is None or reduced not in b.bound or (empty and function in ("max", "min")) or function == "prod":
        return None
    return val.limit * max(b.bound[reduced], 1) if function == "sum" else val.limit


def solid(b: Builder, val: Known | None) -> Known | None:
    """The stream without `N`."""
    return alu_of(b, "copy", [val], (n.Operand(b.rng.choice(IMPLICIT)),)) if val and val.nullable else val


def any_source(b: Builder, fits: Callable[[Source], bool]) -> Source | None:
    found = [s for s in b.sources.values() if fits(s)]
    return b.rng.choice(found) if found else None


def at_values(b: Builder, k: Known) -> bool:
    """Whether references index values."""
    return k.position is not None and k.position.tensor != "" and k.position.level == len(b.sources[k.position.tensor].decl.shape)


def sequential(b: Builder, ref: Known) -> bool:
    return ref.port.node in b.context.parents and b.chance(0.5)
