"""Reduce: every innermost fiber is folded into one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fuseflow.float32.arithmetic import folded_function, scalar_function
from fuseflow.ops import Reducer, reducer
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop
from fuseflow.sim.reference.nested_streams import seen_above
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps, await_slots
from fuseflow.tile_ops import constant_tile, map_elements


def reduce(node: n.Reduce, context: NodeContext) -> Sequence[Process]:
    (value,) = context.types
    op = reducer(node.function)
    return context.process(
        _reduce, fold_function(op, context), constant_tile(value.tile, op.identity), folded_function(context.arithmetic)
    )


def fold_function(op: Reducer, context: NodeContext) -> Callable[[Any, Any], Any]:
    """Return the reduction of two values, which goes element by element if they are tiles."""
    scalar = scalar_function(op, context.arithmetic)
    return partial(map_elements, scalar) if context.types[-1].tile else scalar


def _reduce(p: Process, fold: Callable[[Any, Any], Any], identity: Any, folded: Callable[[Any], Any]) -> Steps:
    """One firing takes a token. The stop that ends a fiber gives the fold. If it closes more, a second firing, without input, gives the
    outgoing stop."""
    (source,), (out,) = p.inputs, p.outputs
    fire, take = p.fire, source.take
    total = identity
    while True:
        while not source:
            yield source
        token, visible = source[0]
        if token.__class__ is Stop:
            t = p.close(visible, (yield from await_slots(out)))
            take(t)
            if token.low == 0:
                out.push(folded(total), t)
                total = identity
                if token.high > 0:
                    out.push(seen_above(token, 1), p.close(0, (yield from await_slots(out))))
            else:
                out.push(seen_above(token, 1), t)
        elif token is D:
            t = p.close(visible, (yield from await_slots(out)))
            take(t)
            out.push(D, t)
            return
        elif token is N:
            raise p.refused()
        else:
            take(fire(visible))
            total = fold(total, token)


RULES: dict[type[n.Node], Rule] = {n.Reduce: reduce}
