"""The drop of the public Comal simulator, which reads two levels of coordinates and nothing else.

One step takes an outer coordinate with the whole list below it. An inner coordinate leaves as soon as it comes, in any number a
cycle; the outer one leaves with the end of its list, unless that is empty. A stop of the outer coordinates takes a separate step.

In that simulator, the stops of empty lists stay in the inner stream. Here such a stop is merged into the next emitted stop, as on
all machines. No cycle depends on that, because a writer takes a stop behind a stop in no time.
"""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.samml import nodes as n
from fuseflow.samml.public_streams import is_coordinate_drop
from fuseflow.samml.tokens import D, Stop, stop
from fuseflow.sim.reference.node_context import NodeContext
from fuseflow.sim.reference.rule_processes import interpret
from fuseflow.sim.reference.timed_process import Process, Steps, await_tokens
from fuseflow.sim.reference.workspace import seen_above


def drop(node: n.Drop, context: NodeContext) -> Sequence[Process]:
    return context.process(lambda p: _CoordinateDrop(p).steps()) if is_coordinate_drop(node) else interpret(node, context)


class _CoordinateDrop:
    """The steps of a drop. The process reads the inner coordinates twice, as inputs 1 and 2, and emits them twice."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.outer, *self.inner = process.inputs
        self.outer_out, *self.inner_outs = process.outputs
        self.held: int | None = (
            None  # the cycle of the end of a list, which divides the coordinates so far from those that may follow
        )
        self.kept = False  # whether the list of the outer coordinates has any left
        self.end: Stop | None = None  # the inner stop that ended the list of the outer coordinates

    def steps(self) -> Steps:
        p, outer = self.process, self.outer
        while True:
            visible = yield from await_tokens(0, (outer,))
            token = outer[0][0]
            if token is D:
                t = p.close((yield from await_tokens(visible, self.inner)))
                self.expect(D, t)
                outer.take(t)
                for out in p.outputs:
                    out.push(D, t)
                return
            if token.__class__ is Stop:
                yield from self.outer_stop(token, visible)
            else:
                yield from self.fiber(token, visible)

    def outer_stop(self, token: Stop, visible: int) -> Steps:
        p, end = self.process, self.end
        if end is None:  # a list without coordinates, and so without lists below
            visible = yield from await_tokens(visible, self.inner)
            end = self.inner[0][0][0]
        if end.__class__ is not Stop or seen_above(end, 1) is not token:
            raise p.misaligned(token, end)
        t = p.close(visible)
        if self.end is None:
            self.expect(end, t)
            self.push_inner(end, t)
        self.outer.take(t)
        self.outer_out.push(token, t)
        self.end, self.kept = None, False

    def fiber(self, crd: int, visible: int) -> Steps:
        """Pass on the inner list below the outer coordinate `crd`, then the coordinate."""
        p, filled = self.process, False
        visible = max(visible, p.ready)
        while True:
            visible = yield from await_tokens(visible, self.inner)
            token = self.inner[0][0][0]
            if token is D:
                raise p.misaligned(token, crd)
            if token.__class__ is Stop:
                break
            if self.held is not None:
                self.push_inner(stop(0, 0), self.held)
                self.held = None
            self.expect(token, visible)
            self.push_inner(token, visible)
            filled = True
        if token.low > 0:
            raise p.misaligned(token, crd)
        t = p.fire(visible)
        self.expect(token, t)
        self.outer.take(t)
        if filled:
            self.outer_out.push(crd, t)
            self.held, self.kept = t, True
        if token.high > 0:
            self.push_inner(token if self.kept else token.with_low(1), t)
            self.held, self.end = None, token

    def expect(self, token: object, t: int) -> None:
        """Take `token` from both inputs of inner coordinates in cycle t. Raise `SimulationError` if another token is there."""
        for fifo in self.inner:
            self.process.take(fifo, token, t)

    def push_inner(self, token: object, t: int) -> None:
        for out in self.inner_outs:
            out.push(token, t)
