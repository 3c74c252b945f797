"""Drop: entries are left out, and with them the coordinates below which nothing is left."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop, stop
from fuseflow.sim.reference.nested_streams import EnclosingStreams, seen_above
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps, Wait, await_slots, await_tokens


def drop(node: n.Drop, context: NodeContext) -> Sequence[Process]:
    return context.process(lambda p: _Drop(p, node.value).steps())


class _Drop:
    """The process has one firing for each inner token, and one for each coordinate with nothing below it. A coordinate is emitted with
    its first kept value.

    A stop below the outermost coordinates divides a list only if a kept value follows in that list. It is held until then, and emitted
    in a firing of its own before the value.
    """

    def __init__(self, process: Process, value: float | None) -> None:
        self.process, self.value = process, value
        *outer, self.crd, self.val = process.inputs
        self.nest = EnclosingStreams(process, outer)
        self.emitted = 0  # open coordinates that were emitted
        self.held = -1  # the level up to which the held stop reaches
        self.kept = False  # whether the list of the outermost coordinates has a kept value

    def steps(self) -> Steps:
        val = self.val
        while True:
            while not val:
                yield val
            token, visible = val[0]
            if token is D:
                yield from self.done(visible)
                return
            if token.__class__ is Stop:
                yield from self.stop(token, visible)
            elif token is N or (self.value is not None and token == self.value):
                visible = yield from await_tokens(visible, (self.crd,))
                visible = yield from self.nest.await_coordinates(visible, self.nest.depth)
                self.take(self.process.fire(visible))
            else:
                yield from self.keep(token, visible)

    def keep(self, token: Any, visible: int) -> Steps:
        p, depth = self.process, self.nest.depth
        if self.held >= 0:
            yield from self.push_stop(stop(0, self.held), visible)
            self.held = -1
        visible = yield from await_tokens(visible, (self.crd,))
        visible = yield from self.nest.await_coordinates(visible, depth)
        outs = p.outputs[self.emitted :]
        t = p.fire(visible, (yield from await_slots(*outs)))
        crd = self.take(t)
        for out, item in zip(outs, (*self.nest.crds[self.emitted :], crd, token), strict=True):
            out.push(item, t)
        self.emitted, self.kept = depth, True

    def take(self, t: int) -> Any:
        """Take a value with its coordinates, and return the innermost coordinate."""
        self.nest.enter(t, self.nest.depth)
        crd = self.crd[0][0]
        if crd is D or crd.__class__ is Stop:
            raise self.process.misaligned(crd, self.val[0][0])
        self.crd.take(t)
        self.val.take(t)
        return crd

    def stop(self, token: Stop, visible: int) -> Steps:
        p, nest = self.process, self.nest
        if nest.childless(token):
            levels = nest.depth - token.low
            t = p.fire((yield from nest.await_coordinates(visible, levels)))
            nest.enter(t, levels)
        visible = yield from await_tokens(visible, (self.crd, *nest.ended_fifos(token)))
        if self.crd[0][0] is not token:
            raise p.misaligned(self.crd[0][0], token)
        outermost = token.high >= nest.depth
        if outermost:
            low = 0 if self.kept else max(token.low, nest.depth)
            t = yield from self.push_stop(token.with_low(low), visible)
            self.held, self.kept = -1, False
        else:
            t = p.close(visible)
            if self.kept:
                self.held = max(self.held, token.high)
        nest.leave(t, token)
        self.crd.take(t)
        self.val.take(t)
        self.emitted = min(self.emitted, nest.open)

    def push_stop(self, token: Stop, visible: int) -> Generator[Wait, None, int]:
        """This firing emits a stop of the innermost streams, and of the outer streams in which it ends a list."""
        p, depth = self.process, self.nest.depth
        stops = [(out, max(depth - k, 0)) for k, out in enumerate(p.outputs) if token.high >= depth - k]
        t = p.close(visible, (yield from await_slots(*(out for out, _ in stops))))
        for out, above in stops:
            out.push(seen_above(token, above), t)
        return t

    def done(self, visible: int) -> Steps:
        p = self.process
        visible = yield from await_tokens(visible, p.inputs)
        t = p.close(visible, (yield from await_slots(*p.outputs)))
        self.nest.finish(t)
        self.crd.take(t)
        self.val.take(t)
        for out in p.outputs:
            out.push(D, t)


RULES: dict[type[n.Node], Rule] = {n.Drop: drop}
