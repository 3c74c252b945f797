"""A visit runs a part until it is blocked. This module decides when a visit may be useful, and notes when the next one may be."""

from __future__ import annotations

from typing import Any

from fuseflow.native.bitsets import add, discard, is_member
from fuseflow.native.records import get_int, inline
from fuseflow.native.signatures import call_kernel
from fuseflow.sim.engine.agenda import ENGINE, NEVER, OUTLOOK_SIZE, REPLY, outlook_at, wake_neighbours
from fuseflow.sim.engine.memory_ports import awaited_answer
from fuseflow.sim.engine.node_records import (
    ANSWER,
    BUFFER,
    ENDED,
    GROW,
    INPUT,
    NODE,
    OUTPUT,
    ROOM,
    TOUCH,
    WAIT,
    node_at,
    source,
    target,
)
from fuseflow.sim.engine.stream_rings import FULL_RING, is_full, reader_at, stream_at, tokens_left

NODE_SIZE = NODE.size
FAULTY = -1
"""The result of a visit, in place of a number of firings, if the part has a fault."""


@inline
def visit(nodes: int, a: Any, part: int) -> int:
    """Run a part until it is blocked, and note in the agenda `a` what it waits for. Return the number of its firings, or
    FAULTY."""
    node = node_at(nodes + NODE_SIZE * part)
    waited = node.waits
    made = run_part(nodes, a, part)
    if made != FAULTY:
        _note_wait(a, node, part, waited, made)
    return made


@inline
def visit_alone(nodes: int, a: Any, part: int) -> int:
    """Visit a part, but do not update which parts are due: all become due before the next round. Return as `visit` does."""
    node = node_at(nodes + NODE_SIZE * part)
    made = run_kernel(nodes + NODE_SIZE * part)
    if made != FAULTY:
        _note_wait(a, node, part, node.waits, made)
    return made


@inline
def run_part(nodes: int, a: Any, part: int) -> int:
    """Run a part until it is blocked, and update which parts are due in the agenda `a`. Return the number of its firings, or
    FAULTY. Where the memory answers at once, a visit does no more than this."""
    discard(a.due, part)
    address = nodes + NODE_SIZE * part
    node, made = node_at(address), run_kernel(address)
    if made == FAULTY:
        return FAULTY
    if made > 0:
        wake_neighbours(a, part)
    if node.waits < INPUT or node.waits in (GROW, ROOM):
        add(a.due, part)
    return made


@inline
def run_kernel(address: int) -> int:
    """Run the part whose node record is at an address until it is blocked. Return the number of its firings, or FAULTY."""
    node = node_at(address)
    firings_before = node.firings
    call_kernel(node.kernel, address)
    made: int = FAULTY if node.fault != 0 else node.firings - firings_before
    return made


@inline
def still_waits(node: Any) -> bool:
    """Return whether a part certainly still waits, by a quick check: False may be wrong."""
    wait = node.waits
    if INPUT <= wait < OUTPUT:
        return bool(tokens_left(source(node, wait - INPUT)) == 0)
    if OUTPUT <= wait < BUFFER:
        return is_full(target(node, wait - OUTPUT))
    if wait == ANSWER:
        return bool(awaited_answer(node) == WAIT)
    return bool(wait == ENDED)


@inline
def _note_wait(a: Any, node: Any, part: int, waited: int, made: int) -> None:
    """Note what a part waits for: the engine, another part, or an answer. `waited` is its wait before the visit, in which it made
    `made` firings."""
    stuck = needs_engine(node)
    if stuck:
        add(a.held, part)
    elif is_member(a.held, part):
        discard(a.held, part)
    if a.defers != 0:
        outlook = outlook_at(a.outlooks + OUTLOOK_SIZE * part)
        outlook.ready = node.ready
        outlook.moves += made > 0
        outlook.awaited, outlook.delay = (ENGINE, 0) if stuck else _awaited(node, part)
        note_moves(a, outlook)
    elif node.waits == ANSWER:
        add(a.answers, part)
    elif waited == ANSWER:
        discard(a.answers, part)


@inline
def note_moves(a: Any, outlook: Any) -> None:
    """Note in an outlook the moves so far of the part that it awaits."""
    if outlook.awaited >= 0:
        outlook.since = outlook_at(a.outlooks + OUTLOOK_SIZE * outlook.awaited).moves


@inline
def may_go_on(a: Any, outlook: Any) -> bool:
    """Return whether the part that an outlook awaits has fired since the last visit, or an answer is awaited: the wait may be
    over."""
    if outlook.awaited < 0:
        return bool(outlook.awaited == REPLY)
    return bool(outlook_at(a.outlooks + OUTLOOK_SIZE * outlook.awaited).moves != outlook.since)


@inline
def _awaited(node: Any, part: int) -> tuple[int, int]:
    """Return the part that has to fire before `part` does, or NEVER, REPLY or ENGINE, and the least delay between both
    firings."""
    wait = node.waits
    if INPUT <= wait < OUTPUT:
        stream = stream_at(source(node, wait - INPUT).stream)
        return stream.writer, stream.latency
    if OUTPUT <= wait < BUFFER:
        stream = target(node, wait - OUTPUT)
        return reader_at(get_int(stream.readers, stream.blocked)).part, 1
    if wait == TOUCH:
        return part - 1, 1  # the part that fetches ahead
    if wait == BUFFER:
        return part + 1, 0  # who empties it
    if wait == ANSWER:
        return REPLY, 0
    return (NEVER if wait == ENDED else ENGINE), 0


@inline
def needs_engine(node: Any) -> bool:
    """Return whether a part waits for room that the engine makes, and not for anything of the model, such as a full FIFO."""
    wait = node.waits
    if INPUT <= wait < OUTPUT:
        return bool(source(node, wait - INPUT).stalled != 0)
    if OUTPUT <= wait < BUFFER:
        return bool(target(node, wait - OUTPUT).blocked == FULL_RING)
    return bool(wait in (GROW, ROOM))
