"""Fork deals elements to parallel lanes in turn, and merge takes them from the lanes in the same turn. The time of arrival never
matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, Stop, stop
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps, await_slots, await_tokens


def fork(node: n.Fork, context: NodeContext) -> Sequence[Process]:
    return context.process(_fork)


def merge(node: n.Merge, context: NodeContext) -> Sequence[Process]:
    return context.process(_merge, node.levels)


def _fork(p: Process) -> Steps:
    """One firing takes a token: a value goes to the lane whose turn it is, and a stop or `D` to all lanes. The turn runs on across
    fibers. A fiber without a value in a lane is an empty one there, so its stop stays as it is."""
    (source,), lanes = p.inputs, p.outputs
    turn = 0
    while True:
        while not source:
            yield source
        token, visible = source[0]
        if token is D or token.__class__ is Stop:
            t = p.close(visible, (yield from await_slots(*lanes)))
            source.take(t)
            for lane in lanes:
                lane.push(token, t)
            if token is D:
                return
        else:
            t = p.fire(visible, (yield from await_slots(lanes[turn])))
            source.take(t)
            lanes[turn].push(token, t)
            turn = (turn + 1) % len(lanes)


def _merge(p: Process, levels: int) -> Steps:
    """One firing takes a token, from the lane whose turn it is. The turn passes when an element ends. That is a value (`levels` 0), or a
    list that a stop with a highest level of `levels` - 1 or more ends. A stop that ends no element is the same in all lanes and taken
    from all.

    Elements that are lists end with a stop that also says whether the lane has another one in the same dealt list. If not, the dealt
    list ends at this point, or goes on in the next lane. That is visible at the head of the next lane if it had no element of the list
    yet.
    """
    lanes, (out,) = p.inputs, p.outputs
    turn, elements_taken = 0, 0  # elements taken of the dealt list
    lane_ends: list[Stop] = []  # the stops that ended this list in a lane
    while True:
        lane = lanes[turn]
        while not lane:
            yield lane
        token, visible = lane[0]
        is_stop = token.__class__ is Stop
        if token is D or (is_stop and token.low >= levels):
            yield from _pass_all(p, token)
            if token is D:
                return
            continue
        sources, emitted, height = [lane], token, token.high if is_stop else -1
        if height >= levels - 1:
            turn, elements_taken = (turn + 1) % len(lanes), elements_taken + 1
        if height >= levels:
            lane_ends.append(token)
            is_over = len(lane_ends) == len(lanes)
            if elements_taken < len(lanes):  # the lanes from `turn` on had none of its elements
                visible = yield from await_tokens(visible, (lanes[turn],))
                is_over = _ends_nothing(lanes[turn][0][0], levels)
            if is_over:
                sources += [lanes[(turn + k) % len(lanes)] for k in range(len(lanes) - elements_taken)]
                visible = yield from await_tokens(visible, sources[1:])
                _check_end(p, [*lane_ends, *(fifo[0][0] for fifo in sources[1:])])
                elements_taken, lane_ends = 0, []
            else:
                emitted = stop(token.low, levels - 1)
        free = yield from await_slots(out)
        t = p.close(visible, free) if is_stop else p.fire(visible, free)
        for fifo in sources:
            fifo.take(t)
        out.push(emitted, t)


def _ends_nothing(token: Any, levels: int) -> bool:
    """Return whether a token at the start of an element is a stop that ends none. Then the lane has no (further) element in the dealt
    list."""
    return token.__class__ is Stop and bool(token.low >= levels)


def _pass_all(p: Process, token: Any) -> Steps:
    """Take a stop that ends no element, or `D`, from all lanes."""
    lanes, (out,) = p.inputs, p.outputs
    visible = yield from await_tokens(0, lanes)
    heads = [lane[0][0] for lane in lanes]
    if any(head is not token for head in heads):
        raise p.misaligned(*heads)
    t = p.close(visible, (yield from await_slots(out)))
    for lane in lanes:
        lane.take(t)
    out.push(token, t)


def _check_end(p: Process, ends: Sequence[Any]) -> None:
    """Refuse ends of a dealt list that differ from lane to lane in what they close above it."""
    if any(end.__class__ is not Stop or end.high != ends[0].high for end in ends):
        raise p.misaligned(*ends)


RULES: dict[type[n.Node], Rule] = {n.Fork: fork, n.Merge: merge}
