"""The loop visits the parts of all nodes in graph order, runs each until it is blocked, and stops when none can fire. At a memory
that takes time, the memory then advances.

The horizon is the cycle to which the memory may advance: before it, no part makes a request that is not known yet. Only parts
that decide about the horizon are visited. Others are visited later, and then run through many windows at once.

A blocked part waits for one thing: a token, a slot, an answer, or the other part of its node. So its next firing comes no earlier
than the next firing of the part that provides that thing, plus the stream's latency, or the way back of the slot. Nor does it
come before the cycle in which the part itself is ready. So a walk from an asker along the awaited parts, whose every step adds
to the delay, gives a bound of the asker's next firing: the latest of the cycles in which the parts on the way are ready, each
plus the delay so far. The walk

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

from fuseflow.memory.ports import FOREVER, memory_at, port_at
from fuseflow.memory.sending import next_request
from fuseflow.native.bitsets import SHIFT, add, discard, is_member, next_in_word
from fuseflow.native.records import get_int, inline
from fuseflow.native.signatures import call_advance
from fuseflow.sim.engine.memory_ports import awaited_answer
from fuseflow.sim.engine.node_firing import ANSWER, BUFFER, INPUT, OUTPUT, node_at, source
from fuseflow.sim.engine.stream_rings import MANY, tokens_left, visible
from fuseflow.sim.engine.visits import (
    ABROAD,
    ASKER_SIZE,
    ENGINE,
    FAULTY,
    NODE_SIZE,
    OUTLOOK_SIZE,
    REPLY,
    STEP_SIZE,
    UNASKED,
    UNKNOWN,
    agenda_at,
    asker_at,
    may_go_on,
    needs_engine,
    note_moves,
    outlook_at,
    run_part,
    step_at,
    still_waits,
    visit,
    visit_alone,
    wake_all,
    wake_answered,
)

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
            a.unresolved += asker.bound < horizon
    return fired


@inline
def forget_bounds(nodes: int, a: Any) -> None:
    """Reset all bounds of requests and firings, after the engine has made room."""
    for k in range(a.asking):
        asker = asker_at(a.askers + ASKER_SIZE * k)
        asker.source = UNKNOWN
        if asker.bound != UNASKED:
            asker.bound = 0
    if a.defers != 0:
        for part in range(a.count):
            if is_member(a.members, part):
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
        if bound < horizon and outlook.awaited >= 0 and depth + 1 < a.count:
            depth += 1
            step = step_at(a.path + STEP_SIZE * depth)
            step.part, step.bound, step.delay = outlook.awaited, bound, delay + outlook.delay
            continue
        stale = _last_stale_step(a, depth) if fired > 0 else -1
        if bound >= horizon:
            _note_bounds(a, stale + 1, depth, bound)
        if stale < 0:
            if bound < horizon and outlook.awaited == ABROAD:
                asker.bound = bound
                add(a.wanted, part - a.count)
            else:
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
        if outlook.awaited != ABROAD:
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


STUCK, BUSY, FAULT, HELD, SHORT = range(5)
"""These are the statuses with which the loop returns; `sweep` and `sweep_at_memory` explain them."""
STATUS_COUNT = 8
"""A number larger than every status: `sweep_at_memory` returns a status plus this number times a cycle."""


@inline
def visit_due_parts(nodes: int, a: Any, at_memory: bool) -> int:
    """Visit every part once that is due in the agenda `a`, and run it until it is blocked. Return the number of firings, or
    FAULTY. Only with `at_memory` the waits of parts are noted. `nodes` is the address of the records of all parts."""
    fired = 0
    for k in range(a.words):
        bit = -1
        while True:
            bit = next_in_word(get_int(a.due, k), bit)  # also parts that become due on the way
            if bit < 0:
                break
            part = (k << SHIFT) + bit
            if still_waits(node_at(nodes + NODE_SIZE * part)):
                discard(a.due, part)
                continue
            made = visit(nodes, a, part) if at_memory else run_part(nodes, a, part)
            if made == FAULTY:
                return FAULTY
            fired += made
    return fired


def sweep(nodes: int, agenda: int, budget: int) -> int:
    """Visit the due parts in rounds, and return a status. `nodes` and `agenda` are addresses. STUCK means that nothing can fire,
    BUSY that more than `budget` firings were made, FAULT that a part has a fault."""
    a = agenda_at(agenda)
    wake_all(a)
    fired, complete = 0, True
    while True:
        new_firings = visit_due_parts(nodes, a, False)
        if new_firings == FAULTY:
            return FAULT
        if new_firings == 0 and complete:
            return STUCK
        complete = new_firings == 0
        if complete:
            wake_all(a)
        fired += new_firings
        if fired > budget:
            return BUSY


def sweep_at_memory(nodes: int, agenda: int, budget: int, memory: int, advance: int, step: int) -> int:
    """Sweep as `sweep` does, and let the memory advance by up to `step` cycles whenever no part can fire. In between, let it
    advance repeatedly while only parts that decide about requests need to fire. `advance` is the address of the memory's
    function. STUCK also means that nothing is requested. HELD means that the engine must first make room for the firings up to
    the returned cycle; SHORT means that the memory needs room to advance to that cycle."""
    a = agenda_at(agenda)
    wake_all(a)
    forget_bounds(nodes, a)
    fired, complete = 0, True
    while True:
        new_firings = visit_due_parts(nodes, a, True)
        if new_firings == FAULTY:
            return FAULT
        fired += new_firings
        if fired > budget:
            return BUSY
        if new_firings > 0:
            complete = False
            continue
        start = next_turn(memory)
        if start == FOREVER:
            if complete:
                return STUCK
            wake_all(a)
            complete = True
            continue
        held = earliest_held_firing(nodes, a)
        if held <= start:
            return HELD + STATUS_COUNT * start
        until = min(start + step, held)
        while True:
            if call_advance(advance, memory, until) != 0:
                return SHORT + STATUS_COUNT * until
            if memory_at(memory).open == 0 or a.defers == 0:
                break
            until = memory_at(memory).now + step
            new_firings = meet_horizon(nodes, a, until)
            if new_firings < 0:
                break
            fired += new_firings
            if fired > budget:
                return BUSY
        if new_firings == FAULTY:
            return FAULT
        if a.defers != 0:
            wake_all(a)  # walks decided about some, and left the others as they were
        else:
            wake_answered(a)
        complete = False


@inline
def next_turn(memory: int) -> int:
    """Return the cycle from which the memory at an address advances, past idle cycles, or FOREVER if nothing is requested."""
    m, due = memory_at(memory), next_request(memory)
    if m.open > 0:
        return int(m.now)
    return FOREVER if due == FOREVER else max(m.now, due)


@inline
def earliest_held_firing(nodes: int, a: Any) -> int:
    """Return the first cycle in which a part may fire that waits for the engine to grow a ring, or -1 if a part waits for room of
    another kind, which is soon made. The memory must not go past this cycle: requests may follow from that firing."""
    earliest = MANY
    for k in range(a.words):
        bit = -1
        while True:
            bit = next_in_word(get_int(a.held, k), bit)
            if bit < 0:
                break
            part = (k << SHIFT) + bit
            node = node_at(nodes + NODE_SIZE * part)
            if not needs_engine(node):  # it was served, and waits for the model again
                discard(a.held, part)
            elif node.waits < OUTPUT or node.waits >= BUFFER:
                return -1
            else:
                earliest = min(earliest, node.ready)
    return earliest
