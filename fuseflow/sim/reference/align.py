"""Align: subtrees are carried from old coordinates to new ones."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, Stop, stop
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps, Wait, await_slots, await_tokens


def align(node: n.Align, context: NodeContext) -> Sequence[Process]:
    old, _, x = context.types
    return context.process(_align, x.depth - old.depth)


def _align(p: Process, levels: int) -> Steps:
    """One firing compares the heads of `old` and `new`, and one takes a token of a subtree. `held_level` is the lowest level of the stop
    that ends the last subtree in the output. How far up that stop reaches is known only when the next coordinate of `new` is looked
    at."""
    (old, new, _), (out,) = p.inputs, p.outputs
    held_level: int | None = None
    empty = True  # no coordinate of `old` since the last stop: then the end of x's list is no subtree's
    while True:
        visible = yield from await_tokens(0, (old, new))
        old_token, new_token = old[0][0], new[0][0]
        if new_token is D or (_stops(old_token) and _stops(new_token)):
            yield from _end(p, levels, held_level, empty)
            if new_token is D:
                return
            held_level, empty = None, True
            continue
        pending_stop = None if _stops(new_token) else held_level  # the stop that goes before what follows
        t = p.fire(visible, 0 if pending_stop is None else (yield from await_slots(out)))
        if pending_stop is not None:
            out.push(stop(pending_stop, levels - 1), t)
            held_level = None
        is_dropped = _stops(new_token) or (not _stops(old_token) and old_token < new_token)
        is_new = not is_dropped and (_stops(old_token) or new_token < old_token)
        if not is_dropped:
            new.take(t)
        if is_new:
            held_level = levels - 1
        else:
            old.take(t)
            empty = False
            low_level = yield from _subtree(p, levels, carried=not is_dropped)
            held_level = held_level if is_dropped else low_level


def _stops(token: Any) -> bool:
    return token is D or token.__class__ is Stop


def _subtree(p: Process, levels: int, carried: bool) -> Generator[Wait, None, int]:
    """Take the subtree of one coordinate, and emit it without its end if it is carried. Returns the lowest level of its end."""
    (_, _, x), (out,) = p.inputs, p.outputs
    while True:
        while not x:
            yield x
        token, visible = x[0]
        if token is D:
            raise p.misaligned(token, "a subtree")
        is_stop = token.__class__ is Stop
        is_end = is_stop and token.high >= levels - 1
        emit = carried and not is_end
        free = (yield from await_slots(out)) if emit and p.bounded else 0
        t = p.close(visible, free) if is_stop else p.fire(visible, free)
        x.take(t)
        if emit:
            out.push(token, t)
        if is_end:
            return int(token.low)


def _end(p: Process, levels: int, held_level: int | None, empty: bool) -> Steps:
    """Take the stop of both coordinate streams, or `D`, which ends the list of the output too. If `old` has no coordinate in the list, x
    has a stop there that is no subtree's, and it is taken as well."""
    (old, new, x), (out,) = p.inputs, p.outputs
    token = new[0][0]
    ending_fifos = (old, new, x) if empty else (old, new)
    visible = yield from await_tokens(0, ending_fifos)
    heads = [fifo[0][0] for fifo in ending_fifos]
    end = D if token is D else token.raised(levels)
    if heads[0] is not token or (empty and heads[2] is not end):
        raise p.misaligned(*heads)
    t = p.close(visible, (yield from await_slots(out)))
    for fifo in ending_fifos:
        fifo.take(t)
    out.push(end if held_level is None else end.with_low(held_level), t)


RULES: dict[type[n.Node], Rule] = {n.Align: align}
