"""Repeat: a value is given once for every value in a fiber of the signal."""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, Stop
from fuseflow.sim.reference.nested_streams import seen_above
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps, await_slots, await_tokens


def repeat(node: n.Repeat, context: NodeContext) -> Sequence[Process]:
    return context.process(_repeat)


def _repeat(p: Process) -> Steps:
    """One firing takes a value of the signal, and the first in a fiber takes x too. An empty fiber of an existing x costs a firing that
    takes x. Then one firing takes the signal's stop, and x's own if the highest level is above 0. A bare higher stop takes both."""
    (x, signal), (out,) = p.inputs, p.outputs
    fire, take, push, bounded = p.fire, signal.take, out.push, p.bounded
    held = None  # the token of x that is being repeated
    while True:
        while not signal:
            yield signal
        token, visible = signal[0]
        if token.__class__ is Stop:
            if token.low == 0 and held is None:
                visible = yield from await_tokens(visible, (x,))
                if x[0][0] is D or x[0][0].__class__ is Stop:
                    raise p.misaligned(x[0][0], token)
                x.take(fire(visible))
            held = None
            yield from _stop(p, token)
        elif token is D:
            visible = yield from await_tokens(visible, (x,))
            t = p.close(visible, (yield from await_slots(out)))
            x.take(t)
            take(t)
            push(D, t)
            return
        else:
            first = held is None
            if first:
                while not x:
                    yield x
                held, x_visible = x[0]
                if held is D or held.__class__ is Stop:
                    raise p.misaligned(held, token)
                if x_visible > visible:
                    visible = x_visible
            t = fire(visible, (yield from await_slots(out)) if bounded else 0)
            if first:
                x.take(t)
            take(t)
            push(held, t)


def _stop(p: Process, token: Stop) -> Steps:
    """Pass on a stop of the signal, with x's own where it closes a list of x."""
    (x, signal), (out,) = p.inputs, p.outputs
    closes = token.high > 0
    visible = yield from await_tokens(0, (signal, x) if closes else (signal,))
    if closes and x[0][0] is not seen_above(token, 1):
        raise p.misaligned(x[0][0], seen_above(token, 1))
    t = p.close(visible, (yield from await_slots(out)))
    if closes:
        x.take(t)
    signal.take(t)
    out.push(token, t)


RULES: dict[type[n.Node], Rule] = {n.Repeat: repeat}
