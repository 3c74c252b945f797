"""Select: it keeps the entries of largest magnitude, or the greatest or least ones, of each fiber, or of each group of its coordinates,
in the order of arrival.

It has two processes and two buffers, as all nodes with workspaces (`workspace`). A group ends in the firing that sees the first
coordinate of the next one, or the stop of the fiber.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from fuseflow.keep_rules import largest
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop, stop
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.timed_process import Process, Slots, Steps, Wait, await_slots, await_tokens
from fuseflow.sim.reference.workspace import (
    EnclosingStreams,
    await_buffer,
    emit_done,
    emit_stop,
    fill_done,
    fill_stop,
    two_processes,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A value with its coordinates, outermost first. The coordinates outside level `fresh` are equal to those of the entry
    before."""

    fresh: int
    crds: tuple[int, ...]
    value: float


def select(node: n.Select, context: NodeContext) -> Sequence[Process]:
    return two_processes(context, lambda p, buffers: _fill(p, node.every, buffers), lambda p, buffers: _emit(p, node, buffers))


def keep_largest(entries: Sequence[Entry], node: n.Select) -> list[Entry]:
    """Return the entries that the node keeps, in order. Fresh levels of a dropped entry become fresh in the next."""
    chosen: list[Entry] = []
    fresh = 0
    for entry, stays in zip(entries, largest([entry.value for entry in entries], node.keep, node.by), strict=True):
        fresh = min(fresh, entry.fresh)
        if stays:
            chosen.append(Entry(fresh, entry.crds, 1.0 if node.marks else entry.value))
            fresh = len(entry.crds)
    return chosen


def _fill(p: Process, every: int, buffers: Slots) -> Steps:
    """Run the first process: it fires once for each token of the values, and once for each coordinate with an empty fiber. A group
    has `every` coordinates (0: a fiber is one group)."""
    *outer, crd, val = p.inputs
    nest = EnclosingStreams(p, outer)
    entries: list[Entry] | None = None  # of the fiber or the group that is open
    fresh = p.most_held = 0  # `fresh`: the outermost level whose coordinate differs from the last entry's
    while True:
        while not val:
            yield val
        token, visible = val[0]
        free = 0
        if token is D:
            yield from fill_done(p, visible)
            return
        if token.__class__ is Stop:
            if entries is None and token.low <= nest.depth:
                entries, free = [], (yield from await_buffer(buffers))
            entries = yield from fill_stop(p, nest, token, visible, free, entries)
            fresh = min(fresh, nest.open)
            continue
        if token is N:
            raise p.refused()
        visible = yield from await_tokens(visible, (crd,))
        key = crd[0][0]
        if key is D or key.__class__ is Stop:
            raise p.misaligned(key, token)
        ended = entries is not None and bool(entries and every) and key // every != entries[-1].crds[-1] // every
        if entries is None or ended:
            free = yield from await_buffer(buffers)
        if ended:
            free = max(free, (yield from await_slots(*p.outputs)))
        visible = yield from nest.await_coordinates(visible, nest.depth)
        t = p.fire(visible, free)
        if ended:
            p.outputs[0].push((entries, None), t)
        if entries is None or ended:
            entries = []
        nest.enter(t, nest.depth)
        crd.take(t)
        val.take(t)
        entries.append(Entry(fresh, (*nest.crds, key), token))
        fresh = nest.depth
        p.most_held = max(p.most_held, len(entries))


def _emit(p: Process, node: n.Select, buffers: Slots) -> Steps:
    """Run the second process: one firing emits each entry of a group that is kept, with new outer coordinates, and one emits
    each stop of the innermost streams. A group has a stop only if it is the last of its fiber."""
    (link,) = p.inputs
    outermost = len(p.outputs) - 2  # its level, seen from the innermost streams
    while True:
        while not link:
            yield link
        (entries, token), visible = link[0]
        if token is D:
            yield from emit_done(p, visible)
            return
        t = (yield from _emit_entries(p, keep_largest(entries, node), visible)) if entries else 0
        if token is not None:
            end = token if entries is None else stop(0 if entries else outermost, token.high)
            t = yield from emit_stop(p, end, visible)
        link.take(t)
        if entries is not None:
            buffers.append(t + 1)


def _emit_entries(p: Process, entries: Sequence[Entry], visible: int) -> Generator[Wait, None, int]:
    """Emit entries, with the stops between them. Returns the cycle of the last entry."""
    depth, t = len(p.outputs) - 2, 0
    for k, entry in enumerate(entries):
        if k > 0 and entry.fresh < depth:
            yield from emit_stop(p, stop(0, depth - 1 - entry.fresh), visible)
        outer, inner = p.outputs[entry.fresh : depth], p.outputs[depth:]
        t = p.fire(visible, (yield from await_slots(*inner, *outer)))
        for out, item in zip((*outer, *inner), (*entry.crds, entry.value)[entry.fresh :], strict=True):
            out.push(item, t)
    return t


RULES: dict[type[n.Node], Rule] = {n.Select: select}
