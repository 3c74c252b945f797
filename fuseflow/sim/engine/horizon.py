"""The horizon is the cycle to which the memory may advance: before it, no part makes a request that is not known yet. Only parts
that decide about the horizon are visited. Others are visited later, and then run through many windows at once.

A blocked part waits for one thing: a token, a slot, an answer, or the other part of its node. So its next firing comes no earlier
than the next firing of the part that provides that thing, plus the stream's latency. Nor does it come before the cycle in which
the part itself is ready. So a walk from an asker along the awaited parts, whose every step adds to the delay, gives a bound of
the asker's next firing: the latest of the cycles in which the parts on the way are ready, each plus the delay so far. The walk

- ends when the bound reaches the horizon,
- visits a part that may fire now, and continues from there, so that the part has fired up to the horizon before others are
  visited that wait for it,
- ends at an answer that is not known: it is visible no earlier than `horizon`, since no window is longer than the look-ahead of the
  memory,
- ends behind as many steps as there are parts: these wait for each other in a circle, and none of them ever fires.

Where a walk ends, parts on the way may have fired. Then it goes back to the last part that no longer waits for the next one on the way.

A part makes requests in firings. If the bounds of all askers reach the horizon, no request before it is missing. A bound is about
the next firing only, and times never change, so the bound holds until the part fires. In the same way, an asker that waits in the
end for an answer cannot fire before the part that waits for the answer: until then, a check of that part replaces a walk.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.ports import FOREVER, port_at
from fuseflow.native.records import inline
from fuseflow.sim.engine.agenda import (
    ASKER_SIZE,
    ENGINE,
    NEVER,
    OUTLOOK_SIZE,
    REPLY,
    STEP_SIZE,
    UNKNOWN,
    asker_at,
    outlook_at,
    step_at,
)
from fuseflow.sim.engine.memory_ports import awaited_answer
from fuseflow.sim.engine.node_records import ANSWER, INPUT, OUTPUT, node_at, source
from fuseflow.sim.engine.stream_rings import tokens_left, visible
from fuseflow.sim.engine.visits import FAULTY, NODE_SIZE, may_go_on, note_moves, still_waits, visit_alone

UNSURE = -2
"""The result of a walk, in place of a number of firings, if a part on the way waits for the engine."""


@inline
def meet_horizon(nodes: int, a: Any, horizon: int) -> int:
    """Visit parts of the agenda `a` until no request before the horizon is missing. Return the number of firings, FAULTY after a
    fault, or UNSURE if a part waits for the engine. `nodes` is the address of the records of all parts."""
    fired = 0
    for k in range(a.asking):
        asker = asker_at(a.askers + ASKER_SIZE * k)
        if asker.bound < horizon:
            if _waits_as_before(a, asker):
                asker.bound = horizon + asker.delay
                continue
            made = _walk(nodes, a, asker, horizon)
            if made < 0:
                return made
            fired += made
    return fired


@inline
def forget_bounds(nodes: int, a: Any) -> None:
    """Reset all bounds of requests and firings, after the engine has made room."""
    for k in range(a.asking):
        asker = asker_at(a.askers + ASKER_SIZE * k)
        asker.bound, asker.source = 0, UNKNOWN
    if a.defers != 0:
        for part in range(a.count):
            outlook_at(a.outlooks + OUTLOOK_SIZE * part).ready = node_at(nodes + NODE_SIZE * part).ready


@inline
def _waits_as_before(a: Any, asker: Any) -> bool:
    """Return whether the part at which the last walk of an asker ended has not fired since, and still waits for its answer."""
    if asker.source == UNKNOWN:
        return False
    outlook = outlook_at(a.outlooks + OUTLOOK_SIZE * asker.source)
    return bool(outlook.moves == asker.moves and port_at(asker.port).answered <= asker.request)


@inline
def _walk(nodes: int, a: Any, asker: Any, horizon: int) -> int:
    """Walk from an asker along the awaited parts until the bound of its next firing reaches the horizon, and note the bound.
    Return the number of firings on the way, FAULTY or UNSURE."""
    fired, depth, start = 0, 0, step_at(a.path)
    asker.source = UNKNOWN
    start.part, start.bound, start.delay = asker.part, 0, 0
    while True:
        step = step_at(a.path + STEP_SIZE * depth)
        part, delay = step.part, step.delay
        node, outlook = node_at(nodes + NODE_SIZE * part), outlook_at(a.outlooks + OUTLOOK_SIZE * part)
        bound = max(step.bound, outlook.ready + delay)
        if bound < horizon and outlook.awaited == ENGINE:
            return UNSURE
        if bound < horizon and may_go_on(a, outlook):
            if not still_waits(node):
                bound = max(bound, _available(node) + delay)
                if bound < horizon:
                    made = visit_alone(nodes, a, part)
                    if made == FAULTY:
                        return FAULTY
                    fired += made
                    if made > 0 and depth > 0 and outlook.ready + delay >= horizon:
                        depth -= 1  # to a part that waited for this one
                    continue
            elif outlook.awaited == REPLY:
                asker.source, asker.delay, asker.moves = part, delay, outlook.moves
                asker.port, asker.request = node.asked_port, node.request
                bound = horizon + delay
            else:
                note_moves(a, outlook)
        if bound < horizon and outlook.awaited != NEVER and depth + 1 < a.count:
            depth += 1
            step = step_at(a.path + STEP_SIZE * depth)
            step.part, step.bound, step.delay = outlook.awaited, bound, delay + outlook.delay
            continue
        stale = _last_stale_step(a, depth) if fired > 0 else -1
        if bound >= horizon:
            _note_bounds(a, stale + 1, depth, bound)
        if stale < 0:
            asker.bound = bound if bound >= horizon else FOREVER
            return fired
        asker.source = UNKNOWN
        depth = stale


@inline
def _last_stale_step(a: Any, depth: int) -> int:
    """Return the last step before `depth` of a walk whose part no longer waits for the part of the next step, or -1."""
    for k in range(depth - 1, -1, -1):
        step, following = step_at(a.path + STEP_SIZE * k), step_at(a.path + STEP_SIZE * (k + 1))
        outlook = outlook_at(a.outlooks + OUTLOOK_SIZE * step.part)
        if outlook.awaited != following.part or step.delay + outlook.delay != following.delay or may_go_on(a, outlook):
            return k
    return -1


@inline
def _note_bounds(a: Any, first: int, depth: int, bound: int) -> None:
    """Note for the part of each step of a walk, from `first` to `depth`, the least cycle of its next firing: the bound of the
    asker minus the delay. The last part decided that bound, since it did not reach the horizon before. So walks of other askers
    end at these parts."""
    for k in range(first, depth + 1):
        step = step_at(a.path + STEP_SIZE * k)
        outlook = outlook_at(a.outlooks + OUTLOOK_SIZE * step.part)
        outlook.ready = max(outlook.ready, bound - step.delay)


@inline
def _available(node: Any) -> int:
    """Return the cycle from which the token or the answer is visible that a part waited for, or 0 if it waited for something else."""
    wait = node.waits
    if wait == ANSWER:
        return awaited_answer(node)
    if INPUT <= wait < OUTPUT and tokens_left(source(node, wait - INPUT)) > 0:
        return visible(source(node, wait - INPUT))
    return 0
