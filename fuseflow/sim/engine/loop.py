"""The loop visits the parts of all nodes in graph order, runs each until it is blocked, and stops when none can fire. At a memory
that takes time, the memory then advances."""

from __future__ import annotations

from typing import Any

from fuseflow.memory.ports import FOREVER, memory_at
from fuseflow.memory.sending import next_request
from fuseflow.native.bitsets import SHIFT, discard, next_in_word
from fuseflow.native.records import get_int, inline
from fuseflow.native.signatures import call_advance
from fuseflow.sim.engine.agenda import agenda_at, wake_all, wake_answered
from fuseflow.sim.engine.horizon import forget_bounds, meet_horizon
from fuseflow.sim.engine.node_records import BUFFER, OUTPUT, node_at
from fuseflow.sim.engine.stream_rings import MANY
from fuseflow.sim.engine.visits import FAULTY, NODE_SIZE, needs_engine, run_part, still_waits, visit

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
