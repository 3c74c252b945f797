"""Workspaces: a node holds back whole fibers, and emits their entries in the order of coordinates. It has two processes and two
buffers.

The first process fills a workspace with values, one workspace for each fiber of the outermost coordinates. The second emits a
workspace while the first works on the next. Between them runs a stream of pairs of a workspace and the stop that ended the fiber.
A pair is visible L cycles after the last firing of the first process, and is taken in the last firing of the second process for
that workspace.
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
"""The values by their output coordinates: a tuple of all coordinates but the last, then the last. Every entry has a value."""

PutValue: TypeAlias = Callable[[int, Any], None]
"""A function that stores a value, by its innermost coordinate, below the open outer coordinates."""
RowOpener: TypeAlias = Callable[[Workspace, Sequence[int]], PutValue]
"""A function from a workspace and outer coordinates to the function that stores values below them."""

BUFFERS = 2


HalfSteps: TypeAlias = Callable[[Process, Slots], Steps]
"""A function from one of the two processes and the buffers to the steps of that process."""


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
    """Return the two processes of a node that takes coordinates, outermost first, and values, and emits them sorted, with the
    same number of levels or fewer. `row_opener` returns, for the first process, the function that opens a row of a workspace."""
    lowered, folded = len(context.inputs) - len(context.outputs), folded_function(context.arithmetic)
    return two_processes(
        context, lambda p, buffers: _fill(p, row_opener(p), buffers), lambda p, buffers: _emit(p, lowered, buffers, folded)
    )


def _fill(p: Process, open_row: RowOpener, buffers: Slots) -> Steps:
    """Run the first process: it fires once for each token of the values, and once for each coordinate with an empty fiber."""
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
    """Take the inner stop `token` with the stops of outer streams. Pass the workspace `work` to the second process if a fiber of
    the outermost coordinates ends. Returns the workspace that is still open, or None."""
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
    """Run the second process: one firing emits each entry, with new outer coordinates, and one emits each stop of the innermost
    streams. The last is the stop that ended the fiber, lowered by `lowered` levels."""
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
    """Raise `p.most_held` to the number of entries of a workspace that has been emitted."""
    p.most_held = max(p.most_held or 0, sum(map(len, work.values())))


def emit_entries(p: Process, work: Workspace, visible: int, folded: Callable[[Any], Any]) -> Steps:
    """Emit the entries of a workspace in the order of their coordinates, with the stops between them. `folded` turns a folded
    value into the token."""
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
    """Emit a stop of the innermost streams, and a stop of each outer stream whose list ends. Returns the cycle."""
    *crds, val = p.outputs
    stops = [(out, seen_above(token, above)) for above, out in enumerate(reversed(crds)) if token.high >= above]
    t = p.close(visible, (yield from await_slots(val, *(out for out, _ in stops))))
    for out, end in stops:
        out.push(end, t)
    val.push(token, t)
    return t
