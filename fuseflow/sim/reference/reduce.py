"""Reduce: the fold of every innermost fiber."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fuseflow.ops import Reducer, reducer
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop
from fuseflow.sim.reference.nested_streams import seen_above
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps, room
from fuseflow.tile_ops import TileShape, constant_tile, map_elements


def reduce(node: n.Reduce, place: NodeContext) -> Sequence[Process]:
    (value,) = place.types
    op = reducer(node.function)
    return place.process(_reduce, folding(op, value.tile), constant_tile(value.tile, op.identity))


def folding(op: Reducer, tile: TileShape) -> Callable[[Any, Any], Any]:
    """The reduction of two values, element by element if they are tiles."""
    return partial(map_elements, op.scalar) if tile else op.scalar


def _reduce(p: Process, fold: Callable[[Any, Any], Any], identity: Any) -> Steps:
    """One firing a token. The stop that ends a fiber makes the fold; its second firing, without input, the outgoing stop."""
    (source,), (out,) = p.inputs, p.outputs
    fire, take = p.fire, source.take
    total = identity
    while True:
        while not source:
            yield source
        token, seen = source[0]
        if token.__class__ is Stop:
            t = p.close(seen, (yield from room(out)))
            take(t)
            if token.low == 0:
                out.push(total, t)
                total = identity
                if token.high > 0:
                    out.push(seen_above(token, 1), p.close(0, (yield from room(out))))
            else:
                out.push(seen_above(token, 1), t)
        elif token is D:
            t = p.close(seen, (yield from room(out)))
            take(t)
            out.push(D, t)
            return
        elif token is N:
            raise p.refused()
        else:
            take(fire(seen))
            total = fold(total, token)


RULES: dict[type[n.Node], Rule] = {n.Reduce: reduce}
