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

from fuseflow.float32.operator_precision import folded_function
from fuseflow.ops import reducer
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop, stop
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.rule_processes import fold_function
from fuseflow.sim.reference.timed_process import (
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


def seen_above(token: Stop, levels: int) -> Stop:
    """Return a stop as it appears in a stream that is `levels` shallower.

    >>> seen_above(stop(1, 3), 2)
    S1
    """
    return stop(max(token.low - levels, 0), token.high - levels)


class EnclosingStreams:
    """The coordinate streams around an inner stream, outermost first, each one level shallower than the next.

    A coordinate is *open*, and in `crds`, from the firing of its first inner value until the stop that ends its list. It is taken
    in that first firing; a coordinate with an empty list below has no inner value, so a separate firing takes it before the inner
    stop. A stop of an outer stream is taken with the inner stop that ends the same list.
    """

    __slots__ = ("crds", "depth", "fifos", "open", "process")

    def __init__(self, process: Process, fifos: Sequence[Fifo]) -> None:
        self.process, self.fifos = process, tuple(fifos)
        self.depth = len(self.fifos)
        self.open = 0
        self.crds: list[Any] = [None] * self.depth

    def await_coordinates(self, visible: int, levels: int) -> Generator[Wait, None, int]:
        """Wait for the coordinates to be opened, down to the outermost `levels`. Returns the cycle of the last, at least `visible`."""
        return await_tokens(visible, self.fifos[self.open : levels])

    def enter(self, t: int, levels: int) -> None:
        """Take the coordinates that are to be opened, down to the outermost `levels`, in cycle `t`."""
        for level in range(self.open, levels):
            crd = self.fifos[level][0][0]
            if crd is D or crd.__class__ is Stop:
                raise self.process.error(f"stream {level} holds {crd} where a coordinate is due")
            self.crds[level] = crd
            self.fifos[level].take(t)
        self.open = max(self.open, levels)

    def ended_levels(self, token: Stop) -> range:
        """Return the levels of the outer streams whose lists an inner stop ends."""
        return range(max(self.depth - token.high, 0), self.depth)

    def leave(self, t: int, token: Stop) -> None:
        """Take the stops of the outer streams whose lists the inner stop `token` ends, in cycle `t`."""
        for level in self.ended_levels(token):
            self.process.take(self.fifos[level], seen_above(token, self.depth - level), t)
        self.open = min(self.open, max(self.depth - 1 - token.high, 0))


W = TypeVar("W")

Workspace: TypeAlias = dict[tuple[int, ...], dict[int, Any]]
"""The values by their output coordinates: a tuple of all coordinates but the last, then the last. Every entry has a value."""

PutValue: TypeAlias = Callable[[int, Any], None]
"""A function that stores a value, by its innermost coordinate, below the open outer coordinates."""
RowOpener: TypeAlias = Callable[[Process, Workspace, Sequence[int]], PutValue]
"""A function from the first process, a workspace and outer coordinates to the function that stores values below them."""

BUFFERS = 2

HalfSteps: TypeAlias = Callable[[Process, Slots], Steps]
"""A function from one of the two processes and the buffers to the steps of that process."""


def two_processes(context: NodeContext, fill_steps: HalfSteps, emit_steps: HalfSteps) -> Sequence[Process]:
    """Return the two processes of a node with two buffers, which are joined by a stream."""
    depth, buffers = context.machine.handover_depth, Slots(BUFFERS)
    link = Fifo() if depth is None else BoundedFifo(None, depth)
    fill = Process(context.node, context.inputs, (make_output(context.latency, (link,)),), context.interval)
    fill.steps, fill.pause = fill_steps(fill, buffers), context.timing.pause
    emit = Process(context.node, (link,), context.outputs, context.timing.emission)
    emit.steps = emit_steps(emit, buffers)
    link.writer, buffers.reader = fill, emit
    if link.slots is not None:
        link.slots.reader = emit
    return fill, emit


def fill_and_emit(context: NodeContext, open_row: RowOpener) -> Sequence[Process]:
    """Return the two processes of a node that takes coordinates, outermost first, and values, and emits them sorted, with the
    same number of levels or fewer."""
    lowered, folded = len(context.inputs) - len(context.outputs), folded_function(context.arithmetic)
    return two_processes(
        context, lambda p, buffers: _fill(p, open_row, buffers), lambda p, buffers: _emit(p, lowered, buffers, folded)
    )


def _fill(p: Process, open_row: RowOpener, buffers: Slots) -> Steps:
    """Run the first process: it fires once for each token of the values, and once for each coordinate with an empty fiber."""
    *outer, crd, val = p.inputs
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
            yield from fill_done(p, visible)
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
                put = open_row(p, work, nest.crds)
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


def fill_done(p: Process, visible: int) -> Steps:
    """Take the `D` of every input, and pass it to the second process."""
    visible = yield from await_tokens(visible, p.inputs)
    t = p.close(visible, (yield from await_slots(*p.outputs)))
    for fifo in p.inputs:
        p.take(fifo, D, t)
    p.outputs[0].push((None, D), t)


def emit_done(p: Process, visible: int) -> Steps:
    """Take the `D` of the first process, and emit it on every stream."""
    t = p.close(visible, (yield from await_slots(*p.outputs)))
    p.inputs[0].take(t)
    for out in p.outputs:
        out.push(D, t)


def fill_stop(
    p: Process, nest: EnclosingStreams, token: Stop, visible: int, free: int, work: W | None
) -> Generator[Wait, None, W | None]:
    """Take the inner stop `token` with the stops of outer streams. Pass the workspace `work` to the second process if a fiber of
    the outermost coordinates ends. Returns the workspace that is still open, or None."""
    *_, crd, val = p.inputs
    levels = nest.depth - token.low
    if nest.open < levels:  # the stop ends an empty list below a coordinate that has not been taken
        visible = yield from nest.await_coordinates(visible, levels)
        nest.enter(p.close(visible, free), levels)  # on no value; a workspace fires every cycle on anything
    visible = yield from await_tokens(visible, (crd, *(nest.fifos[level] for level in nest.ended_levels(token))))
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
            yield from emit_done(p, visible)
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


def accumulate(node: n.Accumulate, context: NodeContext) -> Sequence[Process]:
    """A reduction over a loop that is not the innermost: it folds values whose coordinates are equal, except for the outermost."""
    fold = fold_function(reducer(node.function), context)

    def open_row(_: Process, work: Workspace, crds: Sequence[int]) -> PutValue:
        row = work.setdefault(tuple(crds[1:]), {})

        def put(key: int, value: Any) -> None:
            row[key] = fold(row[key], value) if key in row else value

        return put

    return fill_and_emit(context, open_row)


def permute(node: n.Permute, context: NodeContext) -> Sequence[Process]:
    """Emit the entries of a tensor with its levels in another order. Two values at the same coordinates are an error."""

    def open_row(fill: Process, work: Workspace, crds: Sequence[int]) -> PutValue:
        outer = tuple(crds)

        def put(key: int, value: Any) -> None:
            entry = (*outer, key)
            *above, last = [entry[level] for level in node.order]
            row = work.setdefault(tuple(above), {})
            if last in row:
                raise fill.error("got two values at the same coordinates, which it refuses: the entries of a tensor are unique")
            row[last] = value

        return put

    return fill_and_emit(context, open_row)


RULES: dict[type[n.Node], Rule] = {n.Accumulate: accumulate, n.Permute: permute}
