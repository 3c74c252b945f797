"""The `comal` machine: the rules that differ where the public Comal simulator takes other times. Values are the same.

In that simulator a node has a clock t. Looking at a token sets t to the token's time if that is later; sending stamps t + 1; a step ends
with t + 1. That is the time of docs/streams.md with L = II = 1 and unbounded FIFOs: a step is a firing in cycle t. What differs:

- **End.** The step on `D` costs nothing: a process that sees `D` in cycle t ends at t, and sends `D` stamped t + 1. Root and value
  writers alone take a cycle for it. A region takes as long as its last process (`cycles`).
- **Broadcast.** A stream with several readers passes a node that copies it: each reader sees its tokens a cycle later. That node does
  not limit the rate. (`delays`)
- **Repeat** is two processes in series: a signal generator, one firing a token, and the repeat. Repeats of one signal share one
  generator, whose output they get through a broadcast of its own. (`repeat`)
- **Reduce** gives the sum and the stop behind it in one firing. (`reduce`)
- **Accumulate** is one process, and gives all entries of a workspace in one firing. (`accumulate`)
- **Write**: some stops cost nothing. (`write_level`, `write_values`)
- **Tiles** come later than stops, which wait for those before them. (`LaggedOutput`) A product's interval separates stops, too. (`alu`)

All other rules are those of the other modules: root, scan, range, join of all kinds, locate, load, alus of scalars; and without a
published cycle count to compare with, align, drop, fork, merge, flatten, split.
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
from fuseflow.sim.reference.process import Fifo, Item, Output, Process, Steps, Wait, look, output
from fuseflow.sim.reference.reduce import folding
from fuseflow.sim.reference.workspace import Workspace, emit_entries, emit_stop
from fuseflow.tile_ops import constant_tile


class DelayedFifo(Fifo):
    """The tokens behind broadcasts: each is visible `delay` cycles later than the writer says."""

    __slots__ = ("delay",)

    def __init__(self, edge: n.Edge, delay: int) -> None:
        super().__init__(edge)
        self.delay = delay

    def append(self, item: Item) -> None:
        token, visible = item
        super().append((token, visible + self.delay))


class LaggedOutput(Output):
    """A stream whose values are visible `lag` cycles later than its stops would be; a stop no earlier than the value before it."""

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


def alu(node: n.Alu, place: NodeContext) -> Sequence[Process]:
    made = pointwise.alu(node, place)
    for process in made:
        process.pause = process.interval
    return made


def repeat(node: n.Repeat, place: NodeContext) -> Sequence[Process]:
    x, signal = place.inputs
    link = Fifo(signal.edge)
    generator = Process(node, (signal,), (output(place.latency, (link,)),), place.interval)
    generator.steps = _generate(generator)
    process = Process(node, (x, link), place.outputs, place.interval)
    process.steps = _repeat(process)
    link.writer = generator
    return generator, process


def _generate(p: Process) -> Steps:
    """Signal generator: one firing a token, which it passes on."""
    (source,), (out,) = p.inputs, p.outputs
    while True:
        while not source:
            yield source
        token, seen = source[0]
        t = p.fire(seen)
        source.take(t)
        out.push(token, t)
        if token is D:
            return


def _repeat(p: Process) -> Steps:
    """One firing a token of the signal. On a value it looks at x and gives it, on a stop see `_repeat_stop`."""
    (x, signal), (out,) = p.inputs, p.outputs
    while True:
        seen = yield from look(0, (signal, x))
        token, given = signal[0][0], x[0][0]
        if token is D:
            t = p.close(seen)
            x.take(t)
            given = D
        elif token.__class__ is Stop:
            t = yield from _repeat_stop(p, token, seen)
            given = token
        elif given is D or given.__class__ is Stop:
            raise p.misaligned(given, token)
        else:
            t = p.fire(seen)
        signal.take(t)
        out.push(given, t)
        if token is D:
            return


def _repeat_stop(p: Process, token: Stop, seen: int) -> Generator[Wait, None, int]:
    """Take what a stop of the signal ends: x itself, if there was a fiber of it, and the stop of x behind it if it closes more. The
    firing looks at the token of x behind x, stop or not. Returns its cycle."""
    x, _ = p.inputs
    due = seen_above(token, 1) if token.high > 0 else None
    fiber = token.low == 0
    if fiber:
        if x[0][0] is D or x[0][0].__class__ is Stop:
            raise p.misaligned(x[0][0], token)
        seen = yield from _look_behind(seen, x)
    following = x[int(fiber)][0]
    if (following if following.__class__ is Stop else None) is not due:
        raise p.misaligned(following, token)
    t = p.close(seen)
    if fiber:
        x.take(t)
    if due is not None:
        x.take(t)
    return t


def _look_behind(seen: int, fifo: Fifo) -> Generator[Wait, None, int]:
    """Wait for the token behind the head of a FIFO; the cycle by which it is visible, or `seen` if that is later."""
    head = fifo.popleft()
    seen = yield from look(seen, (fifo,))
    fifo.appendleft(head)
    return seen


def reduce(node: n.Reduce, place: NodeContext) -> Sequence[Process]:
    op, (value,) = reducer(node.function), place.types
    return place.process(_reduce, folding(op, value.tile), constant_tile(value.tile, op.identity))


def _reduce(p: Process, fold: Callable[[Any, Any], Any], identity: Any) -> Steps:
    """One firing a token. The stop that ends a fiber gives the fold and, if it closes more, the outgoing stop in the same cycle."""
    (source,), (out,) = p.inputs, p.outputs
    total = identity
    while True:
        while not source:
            yield source
        token, seen = source[0]
        if token is N:
            raise p.refused()
        t = p.fire(seen) if token.__class__ is not Stop and token is not D else p.close(seen)
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


def accumulate(node: n.Accumulate, place: NodeContext) -> Sequence[Process]:
    process = Process(node, place.inputs, place.outputs, place.interval)
    burst = _Burst(node, (), place.outputs, place.interval)
    process.steps = _accumulate(process, burst, node.order, folding(reducer(node.function), place.types[-1].tile))
    return [process]


class _Burst(Process):
    """The entries of a workspace, all given in the one firing at cycle `at`."""

    at = 0

    def fire(self, seen: int, free: int = 0) -> int:
        return self.at

    close = fire


def _accumulate(p: Process, burst: _Burst, order: int, fold: Callable[[Any, Any], Any]) -> Steps:
    """One firing a token of the values, but for a stop that ends an empty fiber of the reduced coordinates; one for each stop of the
    reduced coordinates.

    On a value it looks at its coordinate, and at the first below them at the outer coordinates, which it takes too. On a stop that ends
    a list below the reduced coordinates it also takes the outer coordinates with nothing below them and the stops of the streams between.
    On a stop of the reduced coordinates it takes that stop (and the innermost ones, where the fiber was empty) and gives everything that
    was folded, with the stop behind it, as tokens of one time.
    """
    *outer, crd, val = p.inputs
    nest = EnclosingStreams(p, outer)
    work: Workspace = {}
    row: dict[int, Any] = {}
    while True:
        while not val:
            yield val
        token, seen = val[0]
        if token is N:
            raise p.refused()
        if token is D:
            t = p.close((yield from look(seen, p.inputs)))
            nest.finish(t)
            crd.take(t)
            val.take(t)
            for out in p.outputs:
                out.push(D, t)
            return
        seen = yield from look(seen, (crd,))
        if token.__class__ is Stop:
            if crd[0][0] is not token:
                raise p.misaligned(crd[0][0], token)
            if token.low < order:
                yield from _inner_stop(p, nest, token, seen)
            if token.high >= order:
                yield from _flush(p, nest, burst, token, seen, work)
                work = {}
            continue
        opens = nest.open < order
        seen = yield from nest.look(seen, order)
        t = p.fire(seen)
        nest.enter(t, order)
        if opens:
            row = work.setdefault(tuple(nest.crds[1:]), {})
        key = crd[0][0]
        crd.take(t)
        val.take(t)
        row[key] = fold(row[key], token) if key in row else token


def _inner_stop(p: Process, nest: EnclosingStreams, token: Stop, seen: int) -> Steps:
    """The firing that ends a list below the reduced coordinates."""
    *_, crd, val = p.inputs
    levels, between = nest.depth - token.low, [level for level in nest.ended(token) if level > 0]
    seen = yield from nest.look(seen, levels)
    for level in between:
        fifo = nest.fifos[level]
        taken = nest.open <= level < levels  # the stop is behind the coordinate
        seen = yield from _look_behind(seen, fifo) if taken else look(seen, (fifo,))
    t = p.close(seen)
    nest.enter(t, levels)
    nest.leave(t, token, between)
    crd.take(t)
    val.take(t)


def _flush(p: Process, nest: EnclosingStreams, burst: _Burst, token: Stop, seen: int, work: Workspace) -> Steps:
    """The firing on a stop of the reduced coordinates. `seen`: the cycle by which the stop of the values is there."""
    *_, crd, val = p.inputs
    alone = token.low >= nest.depth  # there was no list below the reduced coordinates, so nothing was taken yet
    ended = nest.ended(token) if alone else (0,)
    burst.at = t = p.close((yield from look(seen, (nest.fifos[level] for level in ended))))
    nest.leave(t, token, ended)
    if alone:
        crd.take(t)
        val.take(t)
    yield from emit_entries(burst, work, t)
    end = seen_above(token, 1)
    yield from emit_stop(burst, end if token.low > nest.depth else stop(0 if work else nest.depth - 1, end.high), t)


def write_level(node: n.WriteLevel, place: NodeContext) -> Sequence[Process]:
    return write.write_level(node, place, partial(_write, counts=True))


def write_values(node: n.WriteValues, place: NodeContext) -> Sequence[Process]:
    return write.write_values(node, place, partial(_write, counts=False))


def _write(p: Process, elements: array[int] | array[float] | write.Tiles, ends: array[int], counts: bool) -> Steps:
    """One firing a value, and one for a stop behind a value if stops `counts`. Other stops are taken without a firing, at the first
    cycle that is no earlier than the stop; the next token may be taken in the same cycle."""
    (source,) = p.inputs
    behind = False  # a value
    while True:
        while not source:
            yield source
        token, seen = source[0]
        if token is N:
            raise p.refused()
        if token.__class__ is Stop:
            source.take(p.close(seen) if counts and behind else _pass(p, seen))
            if token.low == 0:
                ends.append(len(elements))
        elif token is D:
            source.take(p.close(seen))
            return
        else:
            source.take(p.fire(seen))
            elements.append(token)
        behind = token.__class__ is not Stop


def _pass(p: Process, seen: int) -> int:
    """Look at a token without firing: the process is there no earlier than the token. Returns the cycle."""
    if seen > p.after:
        p.starved += seen - p.after
        p.after = p.ready = seen
    return p.after


RULES: dict[type[n.Node], Rule] = {
    n.Alu: alu,
    n.Repeat: repeat,
    n.Reduce: reduce,
    n.Accumulate: accumulate,
    n.WriteLevel: write_level,
    n.WriteValues: write_values,
}
