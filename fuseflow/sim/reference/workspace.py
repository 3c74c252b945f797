"""Workspaces: a node holds back whole fibers, and gives them in the order of its coordinates. It has two processes and two
buffers.

The first process fills a workspace with values, one workspace for each fiber of the outermost coordinates. The second emits a workspace
while the first works on the next. Between them runs a stream of pairs of a workspace and the stop that ended the fiber. Its tokens are
visible L cycles after the last firing of the first process, and are taken in the last firing of the second one for them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias, TypeVar

from fuseflow.float32.arithmetic import folded_function
from fuseflow.samml.tokens import D, N, Stop, stop
from fuseflow.sim.reference.nested_streams import EnclosingStreams, seen_above
from fuseflow.sim.reference.node_context import NodeContext
from fuseflow.sim.reference.process import (
    BoundedFifo,
    Fifo,
    Process,
    Slots,
    Steps,
    Wait,
    await_slots,
    await_tokens,
    make_output,
)

W = TypeVar("W")

Workspace: TypeAlias = dict[tuple[int, ...], dict[int, Any]]
"""The values by the coordinates of the loops that are given: all but the last as one key, then the last. There is no entry without a
value."""

PutValue: TypeAlias = Callable[[int, Any], None]
"""A function that puts a value, by its innermost coordinate, below the outer coordinates that are open."""
RowOpener: TypeAlias = Callable[[Workspace, Sequence[int]], PutValue]
"""A function from a workspace and outer coordinates to the function that puts values below these."""

BUFFERS = 2


HalfSteps: TypeAlias = Callable[[Process, Slots], Steps]
"""The steps of one of the two processes, given the process and the buffers."""


def two_processes(context: NodeContext, fill_steps: HalfSteps, emit_steps: HalfSteps) -> Sequence[Process]:
    """Return the two processes of a node with two buffers, which are joined by a stream."""
    depth, buffers = context.machine.handover_depth, Slots(BUFFERS)
    link = Fifo() if depth is None else BoundedFifo(None, depth)
    fill = Process(context.node, context.inputs, (make_output(context.latency, (link,)),), context.interval)
    fill.steps = fill_steps(fill, buffers)
    emit = Process(context.node, (link,), context.outputs, context.timing.emission)
    emit.steps = emit_steps(emit, buffers)
    link.writer, buffers.reader = fill, emit
    if link.slots is not None:
        link.slots.reader = emit
    return fill, emit


def fill_and_emit(context: NodeContext, row_opener: Callable[[Process], RowOpener]) -> Sequence[Process]:
    """Return the two processes of a node that takes coordinates, outermost first, and values, and gives the same with as many levels or
    fewer, sorted."""
    lowered, folded = len(context.inputs) - len(context.outputs), folded_function(context.arithmetic)
    return two_processes(
        context, lambda p, buffers: _fill(p, row_opener(p), buffers), lambda p, buffers: _emit(p, lowered, buffers, folded)
    )


def _fill(p: Process, open_row: RowOpener, buffers: Slots) -> Steps:
    """One firing takes a token of the values, and one takes each coordinate with nothing below it."""
    *outer, crd, val = p.inputs
    (link,) = p.outputs
    nest = EnclosingStreams(p, outer)
    depth = nest.depth
    fire, take_crd, take_val = p.fire, crd.take, val.take
    work: Workspace | None = None
    put: PutValue
    while True:
        while not val:
            yield val
        token, visible = val[0]
        free = 0
        if token is not D and work is None and (token.__class__ is not Stop or token.low <= depth):
            work = {}
            free = yield from await_buffer(buffers)
        if token.__class__ is Stop:
            work = yield from fill_stop(p, nest, token, visible, free, work)
        elif token is D:
            visible = yield from await_tokens(visible, p.inputs)
            t = p.close(visible, (yield from await_slots(link)))
            nest.finish(t)
            take_crd(t)
            take_val(t)
            link.push((None, D), t)
            return
        elif token is N:
            raise p.refused()
        else:
            while not crd:
                yield crd
            key, crd_visible = crd[0]
            if crd_visible > visible:
                visible = crd_visible
            if nest.open < depth:
                visible = yield from nest.await_coordinates(visible, depth)
                t = fire(visible, free)
                nest.enter(t, depth)
                assert work is not None
                put = open_row(work, nest.crds)
            else:
                t = fire(visible)
            take_crd(t)
            take_val(t)
            put(key, token)


def await_buffer(buffers: Slots) -> Generator[Wait, None, int]:
    """Wait for an empty buffer, and take it. Returns the cycle from which it can be filled."""
    free = 0
    if not buffers.unused:
        while not buffers:
            yield buffers
        free = buffers[0]
    buffers.fill()
    return free


def fill_stop(
    p: Process, nest: EnclosingStreams, token: Stop, visible: int, free: int, work: W | None
) -> Generator[Wait, None, W | None]:
    """Take an inner stop with all that it ends. Hand the workspace over if it ends a fiber of the outermost coordinates. Returns the
    workspace that is open then."""
    *_, crd, val = p.inputs
    if nest.childless(token):
        levels = nest.depth - token.low
        visible = yield from nest.await_coordinates(visible, levels)
        nest.enter(p.close(visible, free), levels)  # on no value; a workspace fires every cycle on anything
    visible = yield from await_tokens(visible, (crd, *nest.ended_fifos(token)))
    if crd[0][0] is not token:
        raise p.misaligned(crd[0][0], token)
    if token.high >= nest.depth:
        free = max(free, (yield from await_slots(*p.outputs)))
    t = p.close(visible, free)
    nest.leave(t, token)
    crd.take(t)
    val.take(t)
    if token.high < nest.depth:
        return work
    p.outputs[0].push((work, token), t)
    return None


def _emit(p: Process, lowered: int, buffers: Slots, folded: Callable[[Any], Any]) -> Steps:
    """One firing gives an entry, with an outer coordinate at its first entry, and one gives every stop of the innermost streams. That
    stop is the one that ended the fiber, lowered by `lowered` levels."""
    (link,) = p.inputs
    outermost = len(p.outputs) - 2  # its level, seen from the innermost streams
    p.most_held = 0
    while True:
        while not link:
            yield link
        (work, token), visible = link[0]
        if work is not None:
            yield from emit_entries(p, work, visible, folded)
        if token is D:
            t = p.close(visible, (yield from await_slots(*p.outputs)))
            link.take(t)
            for out in p.outputs:
                out.push(D, t)
            return
        end = seen_above(token, lowered)
        if work is not None:
            end = stop(0 if work else outermost, end.high)
        t = yield from emit_stop(p, end, visible)
        link.take(t)
        if work is not None:
            count_entries(p, work)
            buffers.append(t + 1)


def count_entries(p: Process, work: Workspace) -> None:
    """Count the entries of a workspace that was given as a whole."""
    p.most_held = max(p.most_held or 0, sum(map(len, work.values())))


def emit_entries(p: Process, work: Workspace, visible: int, folded: Callable[[Any], Any]) -> Steps:
    """Give the entries of a workspace in the order of their coordinates, with the stops between them. `folded` makes the token
    from a folded value."""
    *outer, crd, val = p.outputs
    fire, push_crd, push_val, bounded = p.fire, crd.push, val.push, p.bounded
    last: tuple[int, ...] | None = None
    for prefix in sorted(work):
        same = 0  # outer coordinates that this row shares with the last one
        if last is not None:
            same = next(k for k, (a, b) in enumerate(zip(last, prefix, strict=True)) if a != b)
            yield from emit_stop(p, stop(0, len(prefix) - 1 - same), visible)
        last, fresh = prefix, tuple(zip(outer, prefix, strict=True))[same:]
        for key, value in sorted(work[prefix].items()):
            t = fire(visible, (yield from await_slots(crd, val, *(out for out, _ in fresh))) if bounded else 0)
            for out, coordinate in fresh:
                out.push(coordinate, t)
            fresh = ()
            push_crd(key, t)
            push_val(folded(value), t)


def emit_stop(p: Process, token: Stop, visible: int) -> Generator[Wait, None, int]:
    """Give a stop of the innermost streams, and of each outer stream in which it ends a list. Returns its cycle."""
    *crds, val = p.outputs
    stops = [(out, seen_above(token, above)) for above, out in enumerate(reversed(crds)) if token.high >= above]
    t = p.close(visible, (yield from await_slots(val, *(out for out, _ in stops))))
    for out, end in stops:
        out.push(end, t)
    val.push(token, t)
    return t
