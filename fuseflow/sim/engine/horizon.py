"""The horizon is the cycle to which the memory may advance: before it, no part makes a request that is not known. Only what decides
that is visited. All else is visited later, and then runs through many windows at once.

A part that is blocked waits for one thing: a token, a slot, an answer, its other half. Its next firing needs that, so it comes no
earlier than the next firing of the part that gives it, plus what the stream between them takes. Nor does it come before the cycle in
which the part itself is ready. So a walk from a part along what is awaited, whose every step adds to the delay, finds a bound of the
part's next firing: the latest of the cycles in which the parts on the way are ready, each plus the delay so far. The walk ends

- when the bound reaches the horizon,
- at a part that is due: it is visited, and the walk begins again,
- at an answer that is not known: it is visible no earlier than `horizon`, since no window is longer than the look-ahead of the memory,
- behind as many steps as there are parts: these wait for each other in a circle, and none of them ever fires.

A part that asks does so in firings. If the bounds of all of them reach the horizon, no request before it is missing. A bound is about
the one next firing, and times never change, so it stays true until the part fires.
"""

from __future__ import annotations

from typing import Any

from fuseflow.sim.engine.agenda import ENGINE, NEVER, OUTLOOK_SIZE, REPLY, is_member, outlook_at
from fuseflow.sim.engine.node_records import INPUT, OUTPUT, node_at, source
from fuseflow.sim.engine.stream_rings import tokens_left, visible
from fuseflow.sim.engine.visits import FAULTY, NODE_SIZE, still_waits, visit
from fuseflow.sim.memory.ports import FOREVER
from fuseflow.sim.native.records import get_int, inline, set_int

NOBODY, UNSURE = -1, -2
"""A walk ends at a part, at NOBODY if none needs a visit, or is UNSURE if a part on its way waits for the engine."""


@inline
def meet_horizon(nodes: int, a: Any, horizon: int) -> int:
    """Visit parts until no request before the horizon is missing, and return the number of firings, FAULTY, or UNSURE if that may
    not be reached without the engine."""
    fired = 0
    for k in range(a.asking):
        while get_int(a.bounds, k) < horizon:
            part, bound = _walk(nodes, a, get_int(a.askers, k), horizon)
            if part == NOBODY:
                set_int(a.bounds, k, bound)
            elif part == UNSURE:
                return UNSURE
            else:
                made = visit(nodes, a, part)
                if made == FAULTY:
                    return FAULTY
                fired += made
    return fired


@inline
def forget_bounds(a: Any) -> None:
    """Forget what is known about requests, after the engine changed something."""
    for k in range(a.asking):
        set_int(a.bounds, k, 0)


@inline
def _walk(nodes: int, a: Any, part: int, horizon: int) -> tuple[int, int]:
    """Return the part to be visited on the way from a part along what is awaited, or NOBODY, or UNSURE; and a bound of the first
    part's next firing."""
    bound, delay = 0, 0
    for _ in range(a.count):
        outlook = outlook_at(a.outlooks + OUTLOOK_SIZE * part)
        bound = max(bound, outlook.ready + delay)
        if bound >= horizon:
            return NOBODY, bound
        if outlook.awaited == ENGINE:
            return UNSURE, bound
        if outlook.awaited == REPLY or is_member(a.due, part):
            node = node_at(nodes + NODE_SIZE * part)
            if not still_waits(node):
                bound = max(bound, _visible(node) + delay)
                return (NOBODY if bound >= horizon else part), bound
            if outlook.awaited == REPLY:
                return NOBODY, horizon + delay
        if outlook.awaited == NEVER:
            return NOBODY, FOREVER
        delay += outlook.delay
        part = outlook.awaited
    return NOBODY, FOREVER


@inline
def _visible(node: Any) -> int:
    """Return the cycle from which the token is visible that a part waited for, or 0 if it waited for something else."""
    wait = node.waits
    if INPUT <= wait < OUTPUT and tokens_left(source(node, wait - INPUT)) > 0:
        return visible(source(node, wait - INPUT))
    return 0
