"""Flatten joins two levels into one, and split divides one into two."""

from __future__ import annotations

from fuseflow.rules.context import Builder, RuleContext
from fuseflow.rules.expressions import const, mux
from fuseflow.rules.nested_streams import EnclosingStreams
from fuseflow.rules.rules import DONE, Module, seen_above
from fuseflow.samml import nodes as n


def flatten(node: n.Flatten, context: RuleContext, m: Module) -> None:
    outer, inner = context.inputs(m)
    (out,) = context.outputs(m)
    nest = EnclosingStreams(m, [outer])
    for opening in nest.openings():
        (above,) = nest.coordinates(opening)
        value, heads = {out: m.value(out, above * node.size + inner.payload)}, [inner, *opening.heads]
        m.rule(
            f"value {opening.label}",
            ~inner.control & opening.when,
            heads,
            gives=value,
            sets=opening.sets,
            expects=opening.expects,
        )
    for opening in nest.childless(inner):
        label, expects = f"childless {opening.label}", opening.expects
        m.rule(label, opening.when, opening.heads, [inner], sets=opening.sets, expects=expects)
    due = ~nest.is_childless(inner)
    for end in nest.endings(inner):
        gives = {out: m.stop(out, *seen_above(inner.low, inner.high, 1))} if end.ended else {}
        heads, sets = [inner, *end.heads], {"open": end.still_open}
        m.rule(f"stop {end.ended}", due & end.when, heads, gives=gives, sets=sets, closes=True, expects=end.expects)
    done = {out: m.mark(out, DONE)}
    m.rule("done", inner.is_done, [outer, inner], gives=done, closes=True, expects=nest.are_done)


def split(node: n.SplitLevel, context: RuleContext, m: Module) -> None:
    """`open` says that an inner fiber is open, and `current` is its outer coordinate."""
    crd = context.input(m, 0)
    outer, inner = context.outputs(m)
    is_open, current = m.register("open", 1), m.register("current", crd.width)
    above, below = crd.payload // node.size, crd.payload % node.size
    value, same = ~crd.control, current.is_(above)
    low = mux(is_open, const(0, m.level_bits), crd.low + 1)
    stops = {outer: m.passed(outer, crd), inner: m.stop(inner, low, crd.high + 1)}
    m.rule("stop", crd.is_stop, [crd], gives=stops, sets={"open": 0}, closes=True)
    m.rule("done", crd.is_done, [crd], gives={outer: m.mark(outer, DONE), inner: m.mark(inner, DONE)}, closes=True)
    m.rule("next", value & is_open & ~same, looks=[crd], gives={inner: m.stop(inner, 0, 0)}, sets={"open": 0}, closes=True)
    first = {outer: m.value(outer, above), inner: m.value(inner, below)}
    m.rule("first", value & ~is_open, [crd], gives=first, sets={"open": 1, "current": above})
    m.rule("value", value & is_open & same, [crd], gives={inner: m.value(inner, below)})


RULES: dict[type[n.Node], Builder] = {n.Flatten: flatten, n.SplitLevel: split}
