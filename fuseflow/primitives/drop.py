"""Drop: entries are left out, and with them the coordinates below which nothing is left."""

from __future__ import annotations

from fuseflow.rules.context import Builder, RuleContext
from fuseflow.rules.expressions import Expr, const, mux
from fuseflow.rules.nested_streams import EnclosingStreams, Opening, nested_stop
from fuseflow.rules.rules import DONE, Head, Module
from fuseflow.samml import nodes as n


def drop(node: n.Drop, context: RuleContext, m: Module) -> None:
    """`emitted` open coordinates were given. `held` is the level up to which a stop is held, plus 1, and 0 if none is. `kept` says that the
    list of the outermost coordinates has a kept value."""
    *outer, crd, val = context.inputs(m)
    nest = EnclosingStreams(m, outer)
    m.register("emitted", nest.open.width), m.register("held", m.level_bits + 1), m.register("kept", 1)
    gone = val.is_empty
    if node.value is not None:
        gone = gone | (val.is_value & context.holds(context.apply("eq", val.payload, context.number(node.value))))
    outs = context.outputs(m)
    _values(m, nest, crd, val, gone, outs)
    _stops(m, nest, crd, val, outs)
    done, expects = {out: m.mark(out, DONE) for out in outs}, nest.are_done
    m.rule("done", val.is_done, [*outer, crd, val], gives=done, closes=True, expects=expects)


def _values(m: Module, nest: EnclosingStreams, crd: Head, val: Head, gone: Expr, outs: list[str]) -> None:
    held, value = m.register("held", m.level_bits + 1), ~val.control
    for opening in nest.openings():
        leaves = value & gone & opening.when
        heads, expects = [val, crd, *opening.heads], opening.expects & ~crd.control
        m.rule(f"leaves {opening.label}", leaves, heads, sets=opening.sets, expects=expects)
        stays = value & ~gone & held.is_(0) & opening.when
        for emitted in range(opening.first + 1):
            _keep(m, nest, opening, emitted, stays, crd, val, outs)
    for level in range(nest.depth):  # a stop is held below the outermost coordinates only
        gives = nested_stop(m, outs, const(0, m.level_bits), const(level, m.level_bits), level)
        m.rule(f"held stop {level}", value & ~gone & held.is_(level + 1), looks=[val], gives=gives, sets={"held": 0}, closes=True)


def _keep(
    m: Module, nest: EnclosingStreams, opening: Opening, emitted: int, stays: Expr, crd: Head, val: Head, outs: list[str]
) -> None:
    """Add the rule of a value that stays when `emitted` open coordinates were given before: it gives the others, too."""
    tokens = [*(m.value(out, c) for out, c in zip(outs, nest.coordinates(opening), strict=False)), crd.token, val.token]
    gives = dict(list(zip(outs, tokens, strict=True))[emitted:])
    when = stays & m.register("emitted", nest.open.width).is_(emitted)
    after = {**opening.sets, "emitted": nest.depth, "kept": 1}
    heads, expects = [val, crd, *opening.heads], opening.expects & ~crd.control
    m.rule(f"keeps {opening.label} after {emitted}", when, heads, gives=gives, sets=after, expects=expects)


def _stops(m: Module, nest: EnclosingStreams, crd: Head, val: Head, outs: list[str]) -> None:
    depth, due = nest.depth, ~nest.is_childless(val)
    kept, held, emitted = m.register("kept", 1), m.register("held", m.level_bits + 1), m.register("emitted", nest.open.width)
    for opening in nest.childless(val):
        label, expects = f"childless {opening.label}", opening.expects
        m.rule(label, opening.when, opening.heads, [val], sets=opening.sets, expects=expects)
    for end in nest.endings(val):
        open_ = end.still_open
        sets: dict[str, Expr | int] = {"open": open_, "emitted": mux(emitted < open_, emitted, open_)}
        if end.ended == depth:
            low = mux(kept, const(0, m.level_bits), mux(val.low < depth, const(depth, m.level_bits), val.low))
            gives = nested_stop(m, outs, low, val.high, depth)
            sets |= {"held": 0, "kept": 0}
        else:
            gives, level = {}, const(end.ended + 1, held.width)
            sets |= {"held": mux(kept & (held < level), level, held)}
        heads, expects = [val, crd, *end.heads], end.expects & crd.holds_stop(val.low, val.high)
        m.rule(f"stop {end.ended}", due & end.when, heads, gives=gives, sets=sets, closes=True, expects=expects)


RULES: dict[type[n.Node], Builder] = {n.Drop: drop}
