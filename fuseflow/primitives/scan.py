"""Root, scan and range: the nodes from which coordinates and references come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from fuseflow.firing_rules.context import Builder, Fiber, RuleContext
from fuseflow.firing_rules.expressions import YES, Expr, const, mux
from fuseflow.firing_rules.rules import DONE, Head, Module
from fuseflow.samml import nodes as n

IDLE, WITHIN, BEHIND = range(3)
"""The states of a scan: between fibers, within one, and behind the last element of one."""


def root(node: n.Root, context: RuleContext, m: Module) -> None:
    give_root(context, m, YES)


def give_root(context: RuleContext, m: Module, loaded: Expr) -> None:
    """Add the rules of a root, which fires first once `loaded` holds."""
    (out,) = context.outputs(m)
    step = m.register("step", 2)
    m.rule("reference", step.is_(0) & loaded, gives={out: m.value(out, const(0, m.outputs[out]))}, sets={"step": 1})
    m.rule("done", step.is_(1), gives={out: m.mark(out, DONE)}, sets={"step": 2}, closes=True)


def scan(node: n.Scan | n.Range, context: RuleContext, m: Module) -> None:
    ref, outs = context.input(m, 0), context.outputs(m)
    fiber = context.fiber(m, node, ref)
    walk(m, ref, outs, fiber, ~ref.control if isinstance(node, n.Range) else ref.is_value, gives_elements(m, outs, fiber))


def place_of(m: Module, first: Expr) -> Expr:
    """Return the place of the scan. While it is idle, this is the place of the first element."""
    return mux(m.register("state", 2).is_(IDLE), first, m.register("at", first.width))


def computed(m: Module, ref: Head, size: int) -> Fiber:
    """Below reference r are the coordinates 0 to size - 1, with the references r * size + coordinate."""
    start, end = const(0, ref.width), const(size, ref.width)
    crd = place_of(m, start)
    idle = m.register("state", 2).is_(IDLE)
    below = mux(idle, ref.payload * size, m.register("below", ref.width) + 1)
    return Fiber(start < end, start, end, crd, crd, below)


def listed(m: Module, ref: Expr, own_references: bool) -> Fiber:
    """Below reference r are the coordinates of an array from `low[r]` to `high[r]`. The reference of each is its place, or stands in an
    array of its own."""
    low, high = (m.array(name, ref, ref.width) for name in ("low", "high"))
    at = place_of(m, low)
    below = m.array("refs", at, ref.width) if own_references else at
    return Fiber(low < high, low, high, at, m.array("crds", at, ref.width), below)


ElementRules: TypeAlias = Callable[[str, Expr, Sequence[Head], Mapping[str, Expr | int]], None]
"""A function that adds the rules of a firing with an element: label, condition, taken heads, and registers after them."""


def gives_elements(m: Module, outs: Sequence[str], fiber: Fiber) -> ElementRules:
    """Return a function that adds a rule that gives the coordinate and the reference at the place of the scan."""
    parts = (fiber.crd, fiber.ref)[: len(outs)]
    element = {out: m.value(out, part) for out, part in zip(outs, parts, strict=True)}

    def add(label: str, when: Expr, takes: Sequence[Head], sets: Mapping[str, Expr | int]) -> None:
        m.rule(label, when, takes, gives=element, sets=sets)

    return add


def walk(
    m: Module,
    ref: Head,
    outs: Sequence[str],
    fiber: Fiber,
    has_fiber: Expr,
    element: ElementRules,
    ready: Expr = YES,
    on: str = "",
) -> None:
    """One firing gives an element, and the first takes the reference too, once it is `ready`. The closing one looks at the next token, and
    merges a stop with the end of the fiber."""
    state, end = m.register("state", 2), m.register("end", fiber.end.width)
    idle, within, behind = (state.is_(k) for k in (IDLE, WITHIN, BEHIND))
    after = mux(idle, fiber.first, m.register("at", fiber.end.width)) + 1
    moved: dict[str, Expr | int] = {"at": after}
    if "below" in m.registers:
        moved["below"] = fiber.ref
    some = has_fiber & fiber.some

    def next_state(last: Expr) -> Expr:
        return mux(after.is_(last), const(BEHIND, 2), const(WITHIN, 2))

    begins = idle & ~ref.control & ready
    element("first", begins & some, [ref], {**moved, "end": fiber.end, "state": next_state(fiber.end)})
    m.rule("empty", begins & ~some, [ref], sets={"state": BEHIND}, on=on)
    element("element", within, [], {**moved, "state": next_state(end)})
    stops = {out: m.stop(out, ref.low + 1, ref.high + 1) for out in outs}
    m.rule("stop", idle & ref.is_stop, [ref], gives=stops, closes=True, on=on)
    m.rule("done", idle & ref.is_done, [ref], gives={out: m.mark(out, DONE) for out in outs}, closes=True, on=on)
    merged = {out: m.stop(out, 0, ref.high + 1) for out in outs}
    alone = {out: m.stop(out, 0, 0) for out in outs}
    ends, idle_again = behind & ref.is_stop, {"state": IDLE}
    m.rule("closes with", ends, [ref], gives=merged, sets=idle_again, closes=True, on=on, expects=ref.low.is_(0))
    m.rule("closes", behind & ~ref.is_stop, looks=[ref], gives=alone, sets=idle_again, closes=True, on=on)


RULES: dict[type[n.Node], Builder] = {n.Root: root, n.Scan: scan, n.Range: scan}
