"""Reduce: every innermost fiber is folded into one value."""

from __future__ import annotations

from fuseflow.firing_rules.context import Builder, RuleContext
from fuseflow.firing_rules.rules import DONE, Module, seen_above
from fuseflow.samml import nodes as n


def reduce(node: n.Reduce, context: RuleContext, m: Module) -> None:
    """The stop that ends a fiber gives the fold. If it closes more, it is `due`: the next firing, without input, gives it."""
    x = context.input(m, 0)
    (out,) = context.outputs(m)
    fold = context.fold(m, node.function, x.payload)
    due, level = m.register("due", 1), m.register("level", m.level_bits)
    ends = x.is_stop & x.low.is_(0)
    m.rule("due stop", due, gives={out: m.stop(out, 0, level)}, sets={"due": 0}, closes=True)
    m.rule("value", ~due & ~x.control, [x], sets=fold.begun, refuses=x)
    after = {**fold.emptied, "due": x.high.is_not(0), "level": x.high - 1}
    m.rule("fold", ~due & ends, [x], gives={out: m.value(out, fold.total)}, sets=after, closes=True)
    stop = {out: m.stop(out, *seen_above(x.low, x.high, 1))}
    m.rule("stop", ~due & x.is_stop & x.low.is_not(0), [x], gives=stop, closes=True)
    m.rule("done", ~due & x.is_done, [x], gives={out: m.mark(out, DONE)}, closes=True)
    fold.rules()


RULES: dict[type[n.Node], Builder] = {n.Reduce: reduce}
