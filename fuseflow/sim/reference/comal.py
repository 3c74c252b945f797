"""The rules of machines with `rules: comal`, where the public Comal simulator takes other times than docs/streams.md. Values are the
same.

In that simulator a node has a clock t. Looking at a token sets t to the token's time if that is later, sending stamps t + 1, and a step
ends with t + 1. That is the time of docs/streams.md with L = II = 1 and unbounded FIFOs, where a step is a firing in cycle t. These
things differ:

- **End.** The step on `D` costs nothing: a process that sees `D` in cycle t ends at t, and sends `D` stamped t + 1. Only roots and value
  writers take a cycle for it. A region takes as long as its last process (`region_cycles`).
- **Broadcast.** A stream with several readers passes a node that copies it, so each reader sees its tokens a cycle later. That node does
  not limit the rate (`broadcast_delays`).
- **Repeat** is two processes in series: a signal generator, with one firing a token, and the repeat. Repeats of one signal share one
  generator, whose output they get through a broadcast of its own (`repeat`).
- **Reduce** gives the sum and the stop behind it in one firing (`reduce`).
- **Accumulate** is one process, and gives all entries of a workspace in one firing (`accumulate`).
- **Write**: some stops cost nothing (`write_level`, `write_values`).
- **Tiles** come later than stops, which wait for those before them (`LaggedOutput`). The interval of a product also separates stops
  (`alu`).

All other rules are those of the other modules. This holds for root, scan, range, join of all kinds, locate, load and operators on
scalars. It also holds for align, drop, fork, merge, flatten and split, for which there is no published cycle count to compare with.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from fuseflow.ops import reducer
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop, stop
from fuseflow.sim.reference import pointwise, write
from fuseflow.sim.reference.nested_streams import EnclosingStreams, seen_above
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Fifo, Item, Output, Process, Steps, Wait, await_tokens, make_output
from fuseflow.sim.reference.reduce import fold_function
from fuseflow.sim.reference.workspace import Workspace, emit_entries, emit_stop
from fuseflow.tile_ops import constant_tile


class DelayedFifo(Fifo):
    """A FIFO behind broadcasts, each of whose tokens is visible `delay` cycles later than the writer says."""

    __slots__ = ("delay",)

    def __init__(self, edge: n.Edge, delay: int) -> None:
        super().__init__(edge)
        self.delay = delay

    def append(self, item: Item) -> None:
        token, visible = item
        super().append((token, visible + self.delay))


class LaggedOutput(Output):
    """A stream whose values become visible `lag` cycles later than its stops would. A stop becomes visible no earlier than the value
    before it."""

    __slots__ = ("lag", "last")

    def __init__(self, fifos: Sequence[Fifo], lag: int) -> None:
        super().__init__(1, fifos)
        self.lag = lag
        self.last = 0  # when the last value is given

    def push(self, token: Any, t: int) -> None:
        if token is D or token.__class__ is Stop:
            super().push(token, max(t, self.last))
        else:
            self.last = t + self.lag
            super().push(token, self.last)


def alu(node: n.Alu, context: NodeContext) -> Sequence[Process]:
    processes = pointwise.alu(node, context)
    for process in processes:
        process.pause = process.interval
    return processes


def repeat(node: n.Repeat, context: NodeContext) -> Sequence[Process]:
    x, signal = context.inputs
    link = Fifo(signal.edge)
    generator = Process(node, (signal,), (make_output(context.latency, (link,)),), context.interval)
    generator.steps = _generate(generator)
    process = Process(node, (x, link), context.outputs, context.interval)
    process.steps = _repeat(process)
    link.writer = generator
    return generator, process


def _generate(p: Process) -> Steps:
    """The signal generator has one firing a token, which it passes on."""
    (source,), (out,) = p.inputs, p.outputs
    while True:
        while not source:
            yield source
        token, visible = source[0]
        t = p.fire(visible)
        source.take(t)
        out.push(token, t)
        if token is D:
            return


def _repeat(p: Process) -> Steps:
    """One firing takes a token of the signal. On a value it looks at x and gives its value; for a stop see `_repeat_stop`."""
    (x, signal), (out,) = p.inputs, p.outputs
    while True:
        visible = yield from await_tokens(0, (signal, x))
        token, repeated = signal[0][0], x[0][0]
        if token is D:
            t = p.close(visible)
            x.take(t)
            repeated = D
        elif token.__class__ is Stop:
            t = yield from _repeat_stop(p, token, visible)
            repeated = token
        elif repeated is D or repeated.__class__ is Stop:
            raise p.misaligned(repeated, token)
        else:
            t = p.fire(visible)
        signal.take(t)
        out.push(repeated, t)
        if token is D:
            return


def _repeat_stop(p: Process, token: Stop, visible: int) -> Generator[Wait, None, int]:
    """Take what a stop of the signal ends: x itself, if there was a fiber of it, and the stop of x behind it if it closes more. The
    firing looks at the token of x behind x, stop or not. Returns its cycle."""
    x, _ = p.inputs
    expected = seen_above(token, 1) if token.high > 0 else None
    fiber = token.low == 0
    if fiber:
        if x[0][0] is D or x[0][0].__class__ is Stop:
            raise p.misaligned(x[0][0], token)
        visible = yield from _look_behind(visible, x)
    following = x[int(fiber)][0]
    if (following if following.__class__ is Stop else None) is not expected:
        raise p.misaligned(following, token)
    t = p.close(visible)
    if fiber:
        x.take(t)
    if expected is not None:
        x.take(t)
    return t


def _look_behind(visible: int, fifo: Fifo) -> Generator[Wait, None, int]:
    """Wait for the token behind the head of a FIFO. Returns the cycle by which it is visible, or `visible` if that is later."""
    head = fifo.popleft()
    visible = yield from await_tokens(visible, (fifo,))
    fifo.appendleft(head)
    return visible


def reduce(node: n.Reduce, context: NodeContext) -> Sequence[Process]:
    op, (value,) = reducer(node.function), context.types
    return context.process(_reduce, fold_function(op, value.tile), constant_tile(value.tile, op.identity))


def _reduce(p: Process, fold: Callable[[Any, Any], Any], identity: Any) -> Steps:
    """One firing takes a token. The stop that ends a fiber gives the fold and, if it closes more, the outgoing stop in the same cycle."""
    (source,), (out,) = p.inputs, p.outputs
    total = identity
    while True:
        while not source:
            yield source
        token, visible = source[0]
        if token is N:
            raise p.refused()
        t = p.fire(visible) if token.__class__ is not Stop and token is not D else p.close(visible)
        source.take(t)
        if token is D:
            out.push(D, t)
            return
        if token.__class__ is not Stop:
            total = fold(total, token)
            continue
        if token.low == 0:
            out.push(total, t)
            total = identity
        if token.high > 0:
            out.push(seen_above(token, 1), t)


def accumulate(node: n.Accumulate, context: NodeContext) -> Sequence[Process]:
    process = Process(node, context.inputs, context.outputs, context.interval)
    burst = _Burst(node, (), context.outputs, context.interval)
    process.steps = _accumulate(process, burst, node.order, fold_function(reducer(node.function), context.types[-1].tile))
    return [process]


class _Burst(Process):
    """A process that gives all entries of a workspace in the one firing at cycle `at`."""

    at = 0

    def fire(self, visible: int, free: int = 0) -> int:
        return self.at

    close = fire


def _accumulate(p: Process, burst: _Burst, order: int, fold: Callable[[Any, Any], Any]) -> Steps:
    """One firing takes a token of the values, except for a stop that ends an empty fiber of the reduced coordinates; and one takes each
    stop of the reduced coordinates.

    On a value it looks at its coordinate. On the first value below outer coordinates it also looks at these, and takes them. On a stop
    that ends a list below the reduced coordinates it also takes the outer coordinates with nothing below them, and the stops of the
    streams between. On a stop of the reduced coordinates it takes that stop (and the innermost ones, if the fiber was empty). It then
    gives everything that was folded, with the stop behind it, as tokens of one time.
    """
    *outer, crd, val = p.inputs
    nest = EnclosingStreams(p, outer)
    work: Workspace = {}
    row: dict[int, Any] = {}
    while True:
        while not val:
            yield val
        token, visible = val[0]
        if token is N:
            raise p.refused()
        if token is D:
            t = p.close((yield from await_tokens(visible, p.inputs)))
            nest.finish(t)
            crd.take(t)
            val.take(t)
            for out in p.outputs:
                out.push(D, t)
            return
        visible = yield from await_tokens(visible, (crd,))
        if token.__class__ is Stop:
            if crd[0][0] is not token:
                raise p.misaligned(crd[0][0], token)
            if token.low < order:
                yield from _inner_stop(p, nest, token, visible)
            if token.high >= order:
                yield from _flush(p, nest, burst, token, visible, work)
                work = {}
            continue
        opens = nest.open < order
        visible = yield from nest.await_coordinates(visible, order)
        t = p.fire(visible)
        nest.enter(t, order)
        if opens:
            row = work.setdefault(tuple(nest.crds[1:]), {})
        key = crd[0][0]
        crd.take(t)
        val.take(t)
        row[key] = fold(row[key], token) if key in row else token


def _inner_stop(p: Process, nest: EnclosingStreams, token: Stop, visible: int) -> Steps:
    """This firing ends a list below the reduced coordinates."""
    *_, crd, val = p.inputs
    levels, between = nest.depth - token.low, [level for level in nest.ended_levels(token) if level > 0]
    visible = yield from nest.await_coordinates(visible, levels)
    for level in between:
        fifo = nest.fifos[level]
        opens_here = nest.open <= level < levels  # the stop is behind the coordinate
        visible = yield from _look_behind(visible, fifo) if opens_here else await_tokens(visible, (fifo,))
    t = p.close(visible)
    nest.enter(t, levels)
    nest.leave(t, token, between)
    crd.take(t)
    val.take(t)


def _flush(p: Process, nest: EnclosingStreams, burst: _Burst, token: Stop, visible: int, work: Workspace) -> Steps:
    """This firing takes a stop of the reduced coordinates. `visible` is the cycle from which the stop of the values is visible."""
    *_, crd, val = p.inputs
    alone = token.low >= nest.depth  # there was no list below the reduced coordinates, so nothing was taken yet
    ended_levels = nest.ended_levels(token) if alone else (0,)
    burst.at = t = p.close((yield from await_tokens(visible, (nest.fifos[level] for level in ended_levels))))
    nest.leave(t, token, ended_levels)
    if alone:
        crd.take(t)
        val.take(t)
    yield from emit_entries(burst, work, t)
    end = seen_above(token, 1)
    yield from emit_stop(burst, end if token.low > nest.depth else stop(0 if work else nest.depth - 1, end.high), t)


def write_level(node: n.WriteLevel, context: NodeContext) -> Sequence[Process]:
    return write.write_level(node, context, partial(_write, counts=True))


def write_values(node: n.WriteValues, context: NodeContext) -> Sequence[Process]:
    return write.write_values(node, context, partial(_write, counts=False))


def _write(p: Process, elements: array[int] | array[float] | write.Tiles, positions: array[int], counts: bool) -> Steps:
    """One firing takes a value, and one takes a stop behind a value if stops count (`counts`). Other stops are taken without a firing,
    in the first cycle that is no earlier than the stop, and the next token may be taken in the same cycle."""
    (source,) = p.inputs
    behind = False  # a value
    while True:
        while not source:
            yield source
        token, visible = source[0]
        if token is N:
            raise p.refused()
        if token.__class__ is Stop:
            source.take(p.close(visible) if counts and behind else _pass(p, visible))
            if token.low == 0:
                positions.append(len(elements))
        elif token is D:
            source.take(p.close(visible))
            return
        else:
            source.take(p.fire(visible))
            elements.append(token)
        behind = token.__class__ is not Stop


def _pass(p: Process, visible: int) -> int:
    """Look at a token without firing: the process goes on no earlier than the token is visible. Returns the cycle."""
    if visible > p.after:
        p.starved += visible - p.after
        p.after = p.ready = visible
    return p.after


RULES: dict[type[n.Node], Rule] = {
    n.Alu: alu,
    n.Repeat: repeat,
    n.Reduce: reduce,
    n.Accumulate: accumulate,
    n.WriteLevel: write_level,
    n.WriteValues: write_values,
}
