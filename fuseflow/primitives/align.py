"""Align: subtrees are carried from old coordinates to new ones."""

from __future__ import annotations

from fuseflow.rules.context import Builder, RuleContext
from fuseflow.rules.expressions import const, mux
from fuseflow.rules.rules import DONE, Head, Module
from fuseflow.samml import nodes as n

COMPARING, CARRYING, LOSING = range(3)
"""The states of the node: it compares coordinates, carries a subtree, or takes one that has no place."""


def align(node: n.Align, context: RuleContext, m: Module) -> None:
    """A stop that ends the last subtree in the output is `held` until the next coordinate of `new` is seen; `low` is its lowest level.
    `empty`: there was no coordinate of `old` since the last stop."""
    levels = context.types[2].depth - context.types[0].depth
    old, new, x = context.inputs(m)
    (out,) = context.outputs(m)
    m.register("state", 2), m.register("held", 1), m.register("low", m.level_bits), m.register("empty", 1, 1)
    _compare(m, out, old, new, levels)
    _end(m, out, old, new, x, levels)
    _subtree(m, out, x, levels)


def _compare(m: Module, out: str, old: Head, new: Head, levels: int) -> None:
    comparing = m.register("state", 2).is_(COMPARING) & ~(old.control & new.control)
    held, low = m.register("held", 1), m.register("low", m.level_bits)
    dropped = new.control | (~old.control & (old.payload < new.payload))
    fresh = ~dropped & (old.control | (new.payload < old.payload))
    stop = {out: m.stop(out, low, levels - 1)}
    lost, carried = {"state": LOSING, "empty": 0}, {"state": CARRYING, "empty": 0, "held": 0}
    for pending in (False, True):
        due = comparing & (held & ~new.control if pending else ~held | new.control)
        gives, after = (stop, {"held": 0}) if pending else ({}, {})
        name = " behind a subtree" if pending else ""
        m.rule(f"loses{name}", due & dropped, [old], [new], gives=gives, sets={**lost, **after}, expects=~new.is_done)
        m.rule(f"new{name}", due & fresh, [new], [old], gives=gives, sets={"held": 1, "low": levels - 1})
        m.rule(f"carries{name}", due & ~dropped & ~fresh, [old, new], gives=gives, sets=carried)


def _end(m: Module, out: str, old: Head, new: Head, x: Head, levels: int) -> None:
    comparing, empty = m.register("state", 2).is_(COMPARING), m.register("empty", 1, 1)
    held, low = m.register("held", 1), m.register("low", m.level_bits)
    stop = m.stop(out, mux(held, low, new.low + levels), new.high + levels)
    gives = {out: mux(new.is_done, m.mark(out, DONE), stop)}
    ends = comparing & old.control & new.control
    same, sets = old.same_control(new), {"held": 0, "empty": 1}
    below = (new.is_done & x.is_done) | (new.is_stop & x.holds_stop(new.low + levels, new.high + levels))
    for without, heads, expects in ((empty, [old, new, x], same & below), (~empty, [old, new], same)):
        m.rule(f"end of {len(heads)}", ends & without, heads, gives=gives, sets=sets, closes=True, expects=expects)


def _subtree(m: Module, out: str, x: Head, levels: int) -> None:
    state, low = m.register("state", 2), m.register("low", m.level_bits)
    end = x.is_stop & ~(x.high < levels - 1)
    for name, here, gives in (("carried", state.is_(CARRYING), {out: m.passed(out, x)}), ("lost", state.is_(LOSING), {})):
        m.rule(f"{name} value", here & ~x.control, [x], gives=gives)
        m.rule(f"{name} stop", here & x.is_stop & ~end, [x], gives=gives, closes=True)
    carried = state.is_(CARRYING)
    after = {"state": const(COMPARING, 2), "held": m.register("held", 1) | carried, "low": mux(carried, x.low, low)}
    m.rule("end of subtree", state.is_not(COMPARING) & end, [x], sets=after, closes=True)


RULES: dict[type[n.Node], Builder] = {n.Align: align}
