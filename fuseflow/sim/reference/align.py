"""Align: subtrees carried from old coordinates to new ones."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, Stop, stop
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps, Wait, await_slots, await_tokens


def align(node: n.Align, place: NodeContext) -> Sequence[Process]:
    old, _, x = place.types
    return place.process(_align, x.depth - old.depth)


def _align(p: Process, levels: int) -> Steps:
    """One firing a comparison of `old` and `new`, one a token of a subtree. `held` is the lowest level of the stop that ends the last
    subtree in the output: how far up it reaches is known when the next coordinate of `new` is looked at."""
    (old, new, _), (out,) = p.inputs, p.outputs
    held: int | None = None
    empty = True  # no coordinate of `old` since the last stop: then the end of x's list is no subtree's
    while True:
        seen = yield from await_tokens(0, (old, new))
        was, now = old[0][0], new[0][0]
        if now is D or (_stops(was) and _stops(now)):
            yield from _end(p, levels, held, empty)
            if now is D:
                return
            held, empty = None, True
            continue
        due = None if _stops(now) else held  # the stop that goes before what follows
        t = p.fire(seen, 0 if due is None else (yield from await_slots(out)))
        if due is not None:
            out.push(stop(due, levels - 1), t)
            held = None
        lost = _stops(now) or (not _stops(was) and was < now)
        added = not lost and (_stops(was) or now < was)
        if not lost:
            new.take(t)
        if added:
            held = levels - 1
        else:
            old.take(t)
            empty = False
            low = yield from _subtree(p, levels, carried=not lost)
            held = held if lost else low


def _stops(token: Any) -> bool:
    return token is D or token.__class__ is Stop


def _subtree(p: Process, levels: int, carried: bool) -> Generator[Wait, None, int]:
    """Take the subtree of one coordinate, emitting it without its end if it is carried. Returns the lowest level of its end."""
    (_, _, x), (out,) = p.inputs, p.outputs
    while True:
        while not x:
            yield x
        token, seen = x[0]
        if token is D:
            raise p.misaligned(token, "a subtree")
        is_stop = token.__class__ is Stop
        ended = is_stop and token.high >= levels - 1
        emit = carried and not ended
        free = (yield from await_slots(out)) if emit and p.bounded else 0
        t = p.close(seen, free) if is_stop else p.fire(seen, free)
        x.take(t)
        if emit:
            out.push(token, t)
        if ended:
            return int(token.low)


def _end(p: Process, levels: int, held: int | None, empty: bool) -> Steps:
    """Take the stop of both coordinate streams, or `D`; it ends the list of the output too. Where `old` has no coordinate there, x
    has a stop that is no subtree's, taken here."""
    (old, new, x), (out,) = p.inputs, p.outputs
    token = new[0][0]
    taken = (old, new, x) if empty else (old, new)
    seen = yield from await_tokens(0, taken)
    heads = [fifo[0][0] for fifo in taken]
    due = D if token is D else token.raised(levels)
    if heads[0] is not token or (empty and heads[2] is not due):
        raise p.misaligned(*heads)
    t = p.close(seen, (yield from await_slots(out)))
    for fifo in taken:
        fifo.take(t)
    out.push(due if held is None else due.with_low(held), t)


RULES: dict[type[n.Node], Rule] = {n.Align: align}
