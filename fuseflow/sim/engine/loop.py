"""The joint loop: nodes in graph order, each until it is blocked, until nothing moves. At a memory that takes time, it goes on then."""

from __future__ import annotations

from fuseflow.sim.engine.jit import call_advance, call_kernel
from fuseflow.sim.engine.memory import inline
from fuseflow.sim.engine.nodes import BUFFER, ENDED, GROW, INPUT, NODE, OUTPUT, ROOM, node_at, source, target
from fuseflow.sim.engine.streams import FULL_RING, MANY, left
from fuseflow.sim.memory.ports import FOREVER, PORT_SIZE, memory_at, port_at

NODE_SIZE = NODE.size
STUCK, BUSY, FAULT, HELD, SHORT = range(5)
KINDS = 8
"""`sweep_at_memory` gives a status plus so many times a cycle."""


@inline
def visit(nodes: int, count: int) -> int:
    """Every node once, as far as it comes. Returns how often they fired; -1 if one has a fault."""
    fired = 0
    for i in range(count):
        address = nodes + NODE_SIZE * i
        node = node_at(address)
        wait = node.waits
        if wait == ENDED or (INPUT <= wait < OUTPUT and left(source(node, wait - INPUT)) == 0):
            continue
        fired -= node.firings
        call_kernel(node.kernel, address)
        fired += node.firings
        if node.fault != 0:
            return -1
    return fired


def sweep(nodes: int, count: int, budget: int) -> int:
    """Visit the nodes in rounds. STUCK: a round without a firing; BUSY: more than `budget` firings; FAULT: a node has a fault."""
    fired = 0
    while True:
        more = visit(nodes, count)
        if more <= 0:
            return STUCK if more == 0 else FAULT
        fired += more
        if fired > budget:
            return BUSY


def sweep_at_memory(nodes: int, count: int, budget: int, memory: int, advance: int, step: int) -> int:
    """The same; whenever nothing moves, the memory goes on by up to `step` cycles. STUCK: nothing is asked for either. HELD: the engine
    must make room for what happens up to a cycle before the memory goes on. SHORT: the memory needs room to go on to a cycle."""
    fired = 0
    while True:
        more = visit(nodes, count)
        if more < 0:
            return FAULT
        fired += more
        if fired > budget:
            return BUSY
        if more > 0:
            continue
        start = next_turn(memory)
        if start == FOREVER:
            return STUCK
        held = held_from(nodes, count)
        if held <= start:
            return HELD + KINDS * start
        until = min(start + step, held)
        if call_advance(advance, memory, until) != 0:
            return SHORT + KINDS * until


@inline
def next_turn(memory: int) -> int:
    """The cycle from which the memory goes on, past those in which it idles; FOREVER if nothing is asked for."""
    m = memory_at(memory)
    asked, idle, due = False, True, FOREVER
    for k in range(m.count):
        p = port_at(m.ports + PORT_SIZE * k)
        asked = asked or p.answered < p.issued
        idle = idle and p.answered >= p.sent
        due = min(due, p.due)
    if not asked:
        return FOREVER
    start: int = max(m.now, due) if idle else m.now
    return start


@inline
def held_from(nodes: int, count: int) -> int:
    """The first cycle in which a node may fire that waits for the engine and not for the model; -1 if that is easily served. The memory
    must not go past it: what follows from that firing may be asked for from then on."""
    found = MANY
    for i in range(count):
        node = node_at(nodes + NODE_SIZE * i)
        wait = node.waits
        if wait in (GROW, ROOM):
            return -1
        if INPUT <= wait < OUTPUT and source(node, wait - INPUT).stalled != 0:
            return -1
        if OUTPUT <= wait < BUFFER and target(node, wait - OUTPUT).blocked == FULL_RING:
            found = min(found, node.ready)
    return found
