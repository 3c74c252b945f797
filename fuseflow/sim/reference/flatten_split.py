"""Flatten joins two levels into one, and split divides one into two. They have one firing for each token of the inner stream."""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, Stop, stop
from fuseflow.sim.reference.nested_streams import EnclosingStreams, seen_above
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps, await_slots, await_tokens


def flatten(node: n.Flatten, context: NodeContext) -> Sequence[Process]:
    return context.process(_flatten, node.size)


def split(node: n.SplitLevel, context: NodeContext) -> Sequence[Process]:
    return context.process(_split, node.size)


def _flatten(p: Process, size: int) -> Steps:
    """An outer coordinate is taken with its first inner one. One with nothing below it costs a firing."""
    (outer, inner), (out,) = p.inputs, p.outputs
    nest = EnclosingStreams(p, (outer,))
    while True:
        while not inner:
            yield inner
        token, visible = inner[0]
        if token is D:
            visible = yield from await_tokens(visible, p.inputs)
            t = p.close(visible, (yield from await_slots(out)))
            nest.finish(t)
            inner.take(t)
            out.push(D, t)
            return
        if token.__class__ is Stop:
            if nest.childless(token):
                nest.enter(p.fire((yield from nest.await_coordinates(visible, 1))), 1)
            visible = yield from await_tokens(visible, nest.ended_fifos(token))
            ends_outer = token.high > 0
            t = p.close(visible, (yield from await_slots(out)) if ends_outer else 0)
            nest.leave(t, token)
            inner.take(t)
            if ends_outer:
                out.push(seen_above(token, 1), t)
        else:
            visible = yield from nest.await_coordinates(visible, 1)
            t = p.fire(visible, (yield from await_slots(out)))
            nest.enter(t, 1)
            inner.take(t)
            out.push(nest.crds[0] * size + token, t)


def _split(p: Process, size: int) -> Steps:
    """If a coordinate starts a new outer one, the inner fiber before it is ended by a firing that only looks at it."""
    (crd,), (outer, inner) = p.inputs, p.outputs
    current = None  # the outer coordinate whose inner fiber is open
    while True:
        while not crd:
            yield crd
        token, visible = crd[0]
        if token is D or token.__class__ is Stop:
            t = p.close(visible, (yield from await_slots(outer, inner)))
            crd.take(t)
            outer.push(token, t)
            if token.__class__ is not Stop:
                inner.push(D, t)
                return
            inner.push(token.raised() if current is None else stop(0, token.high + 1), t)
            current = None
            continue
        above, below = divmod(token, size)
        if current is not None and above != current:
            t = p.close(visible, (yield from await_slots(inner)))
            inner.push(stop(0, 0), t)
            current = None
        starts = current is None
        t = p.fire(visible, (yield from await_slots(*((outer, inner) if starts else (inner,)))))
        crd.take(t)
        if starts:
            outer.push(above, t)
            current = above
        inner.push(below, t)


RULES: dict[type[n.Node], Rule] = {n.Flatten: flatten, n.SplitLevel: split}
