"""Reduce: every innermost fiber is folded into one value."""

from __future__ import annotations

from fuseflow.hardware.node_context import Builder, NodeContext
from fuseflow.hardware.rules import DONE, LEVEL_BITS, Module, seen_above
from fuseflow.hardware.tile_array import TileArray, TileOperand
from fuseflow.hardware.tile_work import fold_work
from fuseflow.samml import nodes as n


def reduce(node: n.Reduce, context: NodeContext, m: Module) -> None:
    """The stop that ends a fiber gives the fold. If it closes more, it is `due`: the next firing, without input, gives it."""
    x, arithmetic = context.input(m, 0), context.arithmetic
    (out,) = context.outputs(m)
    work = fold_work(node.function, arithmetic, context.types[0].tile)
    array = TileArray(m, arithmetic, work, [TileOperand(x.payload)], context.timing.emission, keeps=True)
    due, level = m.register("due", 1), m.register("level", LEVEL_BITS)
    ends = x.is_stop & x.low.is_(0)
    m.rule("due stop", due, gives={out: m.stop(out, 0, level)}, sets={"due": 0}, closes=True)
    m.rule("value", ~due & ~x.control, [x], sets=array.begun)
    after = {**array.emptied, "due": x.high.is_not(0), "level": x.high - 1}
    m.rule("fold", ~due & ends, [x], gives={out: m.value(out, array.total)}, sets=after, closes=True)
    stop = {out: m.stop(out, *seen_above(x.low, x.high, 1))}
    m.rule("stop", ~due & x.is_stop & x.low.is_not(0), [x], gives=stop, closes=True)
    m.rule("done", ~due & x.is_done, [x], gives={out: m.mark(out, DONE)}, closes=True)
    array.rules()


RULES: dict[type[n.Node], Builder] = {n.Reduce: reduce}
