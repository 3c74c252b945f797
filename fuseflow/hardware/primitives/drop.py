"""Drop: entries are left out, and with them the coordinates below which nothing is left."""

from __future__ import annotations

from fuseflow.hardware.expressions import Expr, const, mux
from fuseflow.hardware.node_context import Builder, NodeContext
from fuseflow.hardware.primitives.nested_streams import EnclosingStreams, Opening
from fuseflow.hardware.rules import DONE, LEVEL_BITS, Head, Module, seen_above
from fuseflow.samml import nodes as n

HELD_BITS = LEVEL_BITS + 1
"""A level that is held, plus 1; 0 if none is."""


def drop(node: n.Drop, context: NodeContext, m: Module) -> None:
    """`emitted` open coordinates were given, a stop is `held` up to a level, and `kept` says that the list of the outermost coordinates
    has a kept value."""
    *outer, crd, val = context.inputs(m)
    nest = EnclosingStreams(m, outer)
    m.register("emitted", nest.open.width), m.register("held", HELD_BITS), m.register("kept", 1)
    gone = val.is_empty
    if node.value is not None:
        arithmetic = context.arithmetic
        equal = arithmetic.apply("eq", val.payload, const(arithmetic.word(node.value), arithmetic.width))
        gone = gone | (val.is_value & equal.is_not(arithmetic.word(0.0)))
    outs = context.outputs(m)
    _values(m, nest, crd, val, gone, outs)
    _stops(m, nest, crd, val, outs)
    m.rule("done", val.is_done, [*outer, crd, val], gives={out: m.mark(out, DONE) for out in outs}, closes=True)


def _values(m: Module, nest: EnclosingStreams, crd: Head, val: Head, gone: Expr, outs: list[str]) -> None:
    held, value = m.register("held", HELD_BITS), ~val.control
    for opening in nest.openings():
        leaves = value & gone & opening.when
        m.rule(f"leaves {opening.label}", leaves, [val, crd, *opening.heads], sets=opening.sets)
        stays = value & ~gone & held.is_(0) & opening.when
        for emitted in range(opening.first + 1):
            _keep(m, nest, opening, emitted, stays, crd, val, outs)
    for level in range(nest.depth):  # a stop is held below the outermost coordinates only
        gives = _stop(m, outs, const(0, LEVEL_BITS), const(level, LEVEL_BITS), nest.depth, level)
        m.rule(f"held stop {level}", value & ~gone & held.is_(level + 1), looks=[val], gives=gives, sets={"held": 0}, closes=True)


def _keep(
    m: Module, nest: EnclosingStreams, opening: Opening, emitted: int, stays: Expr, crd: Head, val: Head, outs: list[str]
) -> None:
    """The rule of a value that stays, while so many open coordinates were given: it gives the others, too."""
    tokens = [*(m.value(out, c) for out, c in zip(outs, nest.coordinates(opening), strict=False)), crd.token, val.token]
    gives = dict(list(zip(outs, tokens, strict=True))[emitted:])
    when = stays & m.register("emitted", nest.open.width).is_(emitted)
    after = {**opening.sets, "emitted": nest.depth, "kept": 1}
    m.rule(f"keeps {opening.label} after {emitted}", when, [val, crd, *opening.heads], gives=gives, sets=after)


def _stops(m: Module, nest: EnclosingStreams, crd: Head, val: Head, outs: list[str]) -> None:
    depth, due = nest.depth, ~nest.is_childless(val)
    kept, held, emitted = m.register("kept", 1), m.register("held", HELD_BITS), m.register("emitted", nest.open.width)
    for opening in nest.childless(val):
        m.rule(f"childless {opening.label}", opening.when, opening.heads, [val], sets=opening.sets)
    for ended, when, heads, still_open in nest.endings(val):
        sets: dict[str, Expr | int] = {"open": still_open, "emitted": mux(emitted < still_open, emitted, still_open)}
        if ended == depth:
            low = mux(kept, const(0, LEVEL_BITS), mux(val.low < depth, const(depth, LEVEL_BITS), val.low))
            gives = _stop(m, outs, low, val.high, depth, depth)
            sets |= {"held": 0, "kept": 0}
        else:
            gives, level = {}, const(ended + 1, HELD_BITS)
            sets |= {"held": mux(kept & (held < level), level, held)}
        m.rule(f"stop {ended}", due & when, [val, crd, *heads], gives=gives, sets=sets, closes=True)


def _stop(m: Module, outs: list[str], low: Expr, high: Expr, depth: int, level: int) -> dict[str, Expr]:
    """Return a stop for the innermost streams, and for the outer ones in which a stop up to `level` ends a list."""
    above = {out: max(depth - k, 0) for k, out in enumerate(outs)}
    return {out: m.stop(out, *seen_above(low, high, levels)) for out, levels in above.items() if level >= levels}


RULES: dict[type[n.Node], Builder] = {n.Drop: drop}
