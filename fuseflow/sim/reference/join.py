"""Join: the sorted merge of the coordinates of several sides."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps, await_slots


def join(node: n.Join, context: NodeContext) -> Sequence[Process]:
    return context.process(_join, node)


def _join(p: Process, node: n.Join) -> Steps:
    """One firing is one comparison, for which all heads must be visible. The sides at the smallest coordinate are taken together,
    whether it is emitted or not. A side at its stop waits for the others. When all are at a stop, one firing takes and emits it."""
    crd_out, *payload_outs = p.outputs
    outs = iter(payload_outs)
    sides = [(p.inputs[crd], [(p.inputs[k], next(outs)) for k in payloads]) for crd, payloads in node.sides()]
    all_sides = range(len(sides))
    heads: list[Any] = [None] * len(sides)  # coordinate at the head of each side, infinity at a stop
    side_visible = [0] * len(sides)  # cycle by which its heads are there
    taken_sides: Sequence[int] = all_sides  # the sides whose heads are new
    while True:
        for side in taken_sides:
            crd, payloads = sides[side]
            while not crd:
                yield crd
            head, visible = crd[0]
            for payload, _ in payloads:
                while not payload:
                    yield payload
                if payload[0][1] > visible:
                    visible = payload[0][1]
            heads[side], side_visible[side] = head if head.__class__ is int else inf, visible
        least, visible = min(heads), max(side_visible)
        if least is inf:
            token = p.inputs[0][0][0]
            yield from _pass_all(p, token, visible)
            if token is D:
                return
            taken_sides = all_sides
            continue
        taken_sides = [side for side in all_sides if heads[side] == least]
        emit = node.kind == "union" or (heads[0] == least if node.kind == "left" else len(taken_sides) == len(sides))
        t = p.fire(visible, (yield from await_slots(*p.outputs)) if emit and p.bounded else 0)
        if emit:
            crd_out.push(least, t)
            for side, (_, payloads) in enumerate(sides):
                for payload, out in payloads:
                    out.push(payload[0][0] if heads[side] == least else N, t)
        for side in taken_sides:
            crd, payloads = sides[side]
            crd.take(t)
            for payload, _ in payloads:
                payload.take(t)


def _pass_all(p: Process, token: object, visible: int) -> Steps:
    """Pass on a stop, or `D`, that is at the head of all inputs."""
    heads = [fifo[0][0] for fifo in p.inputs]
    if any(head is not token for head in heads):
        raise p.misaligned(*heads)
    t = p.close(visible, (yield from await_slots(*p.outputs)))
    for fifo in p.inputs:
        fifo.take(t)
    for out in p.outputs:
        out.push(token, t)


RULES: dict[type[n.Node], Rule] = {n.Join: join}
