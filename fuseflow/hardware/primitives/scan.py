"""Root, scan and range: the nodes from which coordinates and references come."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.hardware.expressions import Expr, const, mux
from fuseflow.hardware.node_context import Builder, NodeContext
from fuseflow.hardware.rules import DONE, Head, Module
from fuseflow.samml import nodes as n

IDLE, WITHIN, BEHIND = range(3)
"""The states of a scan: between fibers, within one, and behind the last element of one."""


@dataclass(frozen=True, slots=True)
class Fiber:
    """The fiber below a reference: whether it has an element, its first place, the place behind its last one, and the coordinate and
    the reference at the place where the scan is."""

    some: Expr
    first: Expr
    end: Expr
    crd: Expr
    ref: Expr


def root(node: n.Root, context: NodeContext, m: Module) -> None:
    (out,) = context.outputs(m)
    step = m.register("step", 2)
    m.rule("reference", step.is_(0), gives={out: m.value(out, const(0, context.index))}, sets={"step": 1})
    m.rule("done", step.is_(1), gives={out: m.mark(out, DONE)}, sets={"step": 2}, closes=True)


def scan(node: n.Scan, context: NodeContext, m: Module) -> None:
    level, ref, outs = context.level(node), context.input(m, 0), context.outputs(m)
    if level.full and not level.stored:
        _walk(m, ref, outs, _computed(m, ref, context.size(node)), ref.is_value)
    else:
        _walk(m, ref, outs, _listed(m, ref, own_references=level.follows or not level.unique), ref.is_value)


def range_(node: n.Range, context: NodeContext, m: Module) -> None:
    ref, outs = context.input(m, 0), context.outputs(m)
    _walk(m, ref, outs, _computed(m, ref, node.size), ~ref.control)


def _place(m: Module, first: Expr) -> Expr:
    """Return the place of the scan, which is that of the first element while it is idle."""
    return mux(m.register("state", 2).is_(IDLE), first, m.register("at", first.width))


def _computed(m: Module, ref: Head, size: int) -> Fiber:
    """Below reference r are the coordinates 0 to size - 1, with the references r * size + coordinate."""
    start, end = const(0, ref.width), const(size, ref.width)
    crd = _place(m, start)
    idle = m.register("state", 2).is_(IDLE)
    below = mux(idle, ref.payload * size, m.register("below", ref.width) + 1)
    return Fiber(start < end, start, end, crd, below)


def _listed(m: Module, ref: Head, own_references: bool) -> Fiber:
    """Below reference r are the coordinates of an array from `low[r]` to `high[r]`. The reference of each is its place, or stands in an
    array of its own."""
    low, high = (m.array(name, ref.payload, ref.width) for name in ("low", "high"))
    at = _place(m, low)
    below = m.array("refs", at, ref.width) if own_references else at
    return Fiber(low < high, low, high, m.array("crds", at, ref.width), below)


def _walk(m: Module, ref: Head, outs: list[str], fiber: Fiber, has_fiber: Expr) -> None:
    """One firing gives an element, and the first takes the reference too. The closing one looks at the next token, and merges a stop with
    the end of the fiber."""
    state, end = m.register("state", 2), m.register("end", ref.width)
    idle, within, behind = (state.is_(k) for k in (IDLE, WITHIN, BEHIND))
    after = mux(idle, fiber.first, m.register("at", ref.width)) + 1
    parts = (fiber.crd, fiber.ref)[: len(outs)]
    element = {out: m.value(out, part) for out, part in zip(outs, parts, strict=True)}
    moved: dict[str, Expr | int] = {"at": after}
    if "below" in m.registers:
        moved["below"] = fiber.ref
    some = has_fiber & fiber.some

    def next_state(last: Expr) -> Expr:
        return mux(after.is_(last), const(BEHIND, 2), const(WITHIN, 2))

    m.rule(
        "first",
        idle & ~ref.control & some,
        [ref],
        gives=element,
        sets={**moved, "end": fiber.end, "state": next_state(fiber.end)},
    )
    m.rule("empty", idle & ~ref.control & ~some, [ref], sets={"state": BEHIND})
    m.rule("element", within, gives=element, sets={**moved, "state": next_state(end)})
    stops = {out: m.stop(out, ref.low + 1, ref.high + 1) for out in outs}
    m.rule("stop", idle & ref.is_stop, [ref], gives=stops, closes=True)
    m.rule("done", idle & ref.is_done, [ref], gives={out: m.mark(out, DONE) for out in outs}, closes=True)
    merged = {out: m.stop(out, 0, ref.high + 1) for out in outs}
    alone = {out: m.stop(out, 0, 0) for out in outs}
    m.rule("closes with", behind & ref.is_stop, [ref], gives=merged, sets={"state": IDLE}, closes=True)
    m.rule("closes", behind & ~ref.is_stop, looks=[ref], gives=alone, sets={"state": IDLE}, closes=True)


RULES: dict[type[n.Node], Builder] = {n.Root: root, n.Scan: scan, n.Range: range_}
