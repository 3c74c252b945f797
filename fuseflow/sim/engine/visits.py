"""A visit runs a part as far as it gets. This module says when one may be worth it, and when the next one is."""

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
"""This stands for the number of firings of a part that has a fault."""


@inline
def visit(nodes: int, a: Any, part: int) -> int:
    """Run a part as far as it gets, and note its wait then. Return the number of its firings, or FAULTY."""
    node = node_at(nodes + NODE_SIZE * part)
    waited = node.waits
    made = run_part(nodes, a, part)
    if made != FAULTY:
        _note_wait(a, node, part, waited, made)
    return made


@inline
def visit_alone(nodes: int, a: Any, part: int) -> int:
    """Visit a part, but do not decide which parts are due. All parts become due before due parts are visited."""
    node = node_at(nodes + NODE_SIZE * part)
    made = run_kernel(nodes + NODE_SIZE * part)
    if made != FAULTY:
        _note_wait(a, node, part, node.waits, made)
    return made


@inline
def run_part(nodes: int, a: Any, part: int) -> int:
    """Run a part as far as it gets, and decide which parts are due then. Return the number of its firings, or FAULTY. Where the memory
    answers at once, this is all of a visit."""
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
    """Run the part whose node has this address as far as it gets, and return the number of its firings, or FAULTY."""
    node = node_at(address)
    firings_before = node.firings
    call_kernel(node.kernel, address)
    made: int = FAULTY if node.fault != 0 else node.firings - firings_before
    return made


@inline
def still_waits(node: Any) -> bool:
    """Return whether the end of a part's wait has certainly not come; only quick checks are made."""
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
    """Note the wait of a part: for the engine, for another part, or for an answer. `waited` is its wait before its visit, in
    which it `made` that number of firings."""
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
    """Note how often the part has fired that a part waits for."""
    if outlook.awaited >= 0:
        outlook.since = outlook_at(a.outlooks + OUTLOOK_SIZE * outlook.awaited).moves


@inline
def may_go_on(a: Any, outlook: Any) -> bool:
    """Return whether the wait of a part may have ended since it was looked at last."""
    if outlook.awaited < 0:
        return bool(outlook.awaited == REPLY)
    return bool(outlook_at(a.outlooks + OUTLOOK_SIZE * outlook.awaited).moves != outlook.since)


@inline
def _awaited(node: Any, part: int) -> tuple[int, int]:
    """Return the part that has to fire before a part does, or a mark in its place, and the least delay between firings."""
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
    """Return whether a part waits for the engine, and not for the model."""
    wait = node.waits
    if INPUT <= wait < OUTPUT:
        return bool(source(node, wait - INPUT).stalled != 0)
    if OUTPUT <= wait < BUFFER:
        return bool(target(node, wait - OUTPUT).blocked == FULL_RING)
    return bool(wait in (GROW, ROOM))
