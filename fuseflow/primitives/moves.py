"""The primitives that put elements elsewhere: repeat gives a value once for every value in a fiber of the signal, fork deals elements to
parallel lanes in turn, and merge takes them from the lanes in the same turn."""

from __future__ import annotations

from collections.abc import Mapping

from fuseflow.firing_rules.context import Builder, RuleContext
from fuseflow.firing_rules.expressions import Expr, all_of, const, count_bits, mux
from fuseflow.firing_rules.rules import DONE, KIND_BITS, Head, Module, seen_above
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


def fork(node: n.Fork, context: RuleContext, m: Module) -> None:
    x, lanes = context.input(m, 0), context.outputs(m)
    turn = m.register("turn", count_bits(len(lanes)))
    m.rule("control", x.control, [x], gives=dict.fromkeys(lanes, x.token), closes=True)
    for k in m.turns("turn", lanes):
        m.rule(f"to {k}", ~x.control & turn.is_(k), [x], gives={lanes[k]: x.token}, sets={"turn": (k + 1) % len(lanes)})


def link(node: n.Link, context: RuleContext, m: Module) -> None:
    x, (out,) = context.input(m, 0), context.outputs(m)
    m.rule("control", x.control, [x], gives={out: x.token}, closes=True)
    m.rule("value", ~x.control, [x], gives={out: x.token})


def merge(node: n.Merge, context: RuleContext, m: Module) -> None:
    """The rules of each lane, for when it is its turn. An element is a value, or a list that a stop with a highest level of `levels` - 1
    or more ends. Of the dealt list `taken` elements were had, and `ended` lanes have come to its end."""
    lanes = context.inputs(m)
    (out,) = context.outputs(m)
    turn, counted = m.register("turn", count_bits(len(lanes))), count_bits(len(lanes) + 1)
    taken, ended = m.register("taken", counted), m.register("ended", counted)
    for k in m.turns("turn", [lane.name for lane in lanes]):
        lane = lanes[k]
        mine, whole = turn.is_(k), lane.is_done | (lane.is_stop & ~(lane.low < node.levels))  # what all lanes have
        same = all_of(other.same_control(lane) for other in lanes if other is not lane)
        m.rule(f"{k} whole", mine & whole, lanes, gives={out: lane.token}, closes=True, expects=same)
        following = {"turn": const((k + 1) % len(lanes), turn.width), "taken": mux(taken.is_(len(lanes)), taken, taken + 1)}
        part = mine & ~whole
        if node.levels == 0:
            m.rule(f"{k} element", part, [lane], gives={out: lane.token}, sets=following)
        else:
            _lists(m, out, lanes, k, node.levels, part, following, taken, ended)


def _lists(
    m: Module,
    out: str,
    lanes: list[Head],
    k: int,
    levels: int,
    part: Expr,
    following: Mapping[str, Expr],
    taken: Expr,
    ended: Expr,
) -> None:
    """The rules of lane k where elements are lists."""
    lane, count = lanes[k], len(lanes)
    passed = {out: lane.token}
    m.rule(f"{k} value", part & ~lane.control, [lane], gives=passed)
    m.rule(f"{k} inner stop", part & lane.is_stop & (lane.high < levels - 1), [lane], gives=passed, closes=True)
    m.rule(f"{k} element", part & lane.is_stop & lane.high.is_(levels - 1), [lane], gives=passed, sets=following, closes=True)
    ends = part & lane.is_stop & ~(lane.high < levels)
    all_had, over = ~(taken < count - 1), ended.is_(count - 1)
    alone = {out: m.stop(out, lane.low, levels - 1)}
    goes_on = {**following, "ended": ended + 1}
    begins = {"turn": following["turn"], "taken": const(0, taken.width), "ended": const(0, ended.width)}
    closed = m.note("closed", m.level_bits)  # the highest level of the first end
    same, notes = ended.is_(0) | closed.is_(lane.high), {"closed": lane.high}
    m.rule(f"{k} last end", ends & all_had & over, [lane], gives=passed, sets=begins, closes=True, expects=same)
    m.rule(f"{k} end", ends & all_had & ~over, [lane], (), alone, goes_on, closes=True, expects=same, notes=notes)
    if count == 1:
        return
    after = lanes[(k + 1) % count]
    nothing = after.is_stop & ~(after.low < levels)
    before = ends & ~all_had & ~nothing
    m.rule(f"{k} end before more", before, [lane], [after], alone, goes_on, closes=True, expects=same, notes=notes)
    for had in range(1, count):
        rest = [lanes[(k + 1 + d) % count] for d in range(count - had)]
        when, alike = ends & taken.is_(had - 1) & nothing, all_of(other.is_stop & other.high.is_(lane.high) for other in rest)
        m.rule(f"{k} end of {had}", when, [lane, *rest], gives=passed, sets=begins, closes=True, expects=same & alike)


RULES: dict[type[n.Node], Builder] = {n.Repeat: repeat, n.Fork: fork, n.Merge: merge, n.Link: link}
