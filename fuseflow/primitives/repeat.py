"""Repeat: a value is given once for every value in a fiber of the signal."""

from __future__ import annotations

from fuseflow.rules.context import Builder, RuleContext
from fuseflow.rules.rules import DONE, KIND_BITS, Module, seen_above
from fuseflow.samml import nodes as n


def repeat(node: n.Repeat, context: RuleContext, m: Module) -> None:
    """`held` says that x was taken for the fiber, whether it has a value or not."""
    x, signal = context.inputs(m)
    (out,) = context.outputs(m)
    held, what = m.register("held", 1), m.register("what", x.width + KIND_BITS)
    value, inner = ~signal.control, signal.low.is_(0)
    m.rule("first", value & ~held, [x, signal], gives={out: x.token}, sets={"held": 1, "what": x.token}, expects=~x.control)
    m.rule("value", value & held, [signal], gives={out: what})
    m.rule("empty", signal.is_stop & inner & ~held, [x], [signal], sets={"held": 1}, expects=~x.control)
    due = signal.is_stop & (held | ~inner)
    stop = {out: m.stop(out, signal.low, signal.high)}
    m.rule("stop", due & signal.high.is_(0), [signal], gives=stop, sets={"held": 0}, closes=True)
    same, higher = x.holds_stop(*seen_above(signal.low, signal.high, 1)), due & signal.high.is_not(0)
    m.rule("higher stop", higher, [signal, x], gives=stop, sets={"held": 0}, closes=True, expects=same)
    m.rule("done", signal.is_done, [signal, x], gives={out: m.mark(out, DONE)}, closes=True)


RULES: dict[type[n.Node], Builder] = {n.Repeat: repeat}
