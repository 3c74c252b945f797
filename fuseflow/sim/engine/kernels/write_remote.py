"""At a memory that takes time, a `write` requests a line to be written in the firing that fills it, and the last lines after `D`
(docs/memory.md)."""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, get_int, inline
from fuseflow.sim.engine.kernels import write
from fuseflow.sim.engine.kernels.write import append_coordinates, append_values, end_fiber
from fuseflow.sim.engine.memory_ports import elements_before_full, flush, requester_at, write_element, write_elements
from fuseflow.sim.engine.node_records import ENDED, GROW, LARGE, REFUSED, WAIT, close, fire, node_at, source, tokens_at
from fuseflow.sim.engine.stream_rings import CONTROL, DONE, EMPTY, head_run, low_of, take, visible

REMOTE_WRITE = Record(f"{write.FIELDS} array ports closing next level phase")
"""To the state of a write this adds the requester of the array written with every element (0: none), an array of the requesters
of arrays written at the end of a fiber, their number, the next of them, whether coordinates are written, and the phase."""
state_at = REMOTE_WRITE.at
TAKING, FLUSHING, ENDING = 0, 1, 2


def run_write_remote(address: int) -> int:
    """Run the part: append every coordinate or value. For coordinates, a stop that ends a fiber appends the number of coordinates
    so far."""
    node = node_at(address)
    s = state_at(node.state)
    while s.phase == TAKING:
        k = min(tokens_at(node, 0), node.burst)
        if k == 0:
            return 0
        kind = head_run(source(node, 0)).kind
        if kind == EMPTY:
            node.fault = REFUSED
            return 0
        if not (_take_control(node, s) if kind == CONTROL else _take_elements(node, s, k)):
            return 0
    if s.phase == FLUSHING:
        if s.array != 0 and not flush(node, requester_at(s.array)):
            return 0
        s.phase = ENDING
    while s.next < s.closing:
        if not flush(node, requester_at(get_int(s.ports, s.next))):
            return 0
        s.next += 1
    node.waits = ENDED
    return 0


@inline
def _take_control(node: Any, s: Any) -> bool:
    """Fire on a stop or `D` of the input, and return whether that was possible."""
    reader = source(node, 0)
    visible_at, word = visible(reader), head_run(reader).word
    if word == DONE or low_of(word) != 0:
        take(reader, 1, close(node, visible_at, 0))
        s.phase = FLUSHING if word == DONE else TAKING
        return True
    if not _fill_up(node, s, visible_at):
        return False
    if s.level == 0:
        take(reader, 1, close(node, visible_at, 0))
        s.held = 0
        return True
    if s.ended == s.limit:
        node.waits = GROW
        return False
    t = close(node, visible_at, 0) if s.closing == 0 else WAIT
    while s.next < s.closing:
        t = _write(node, requester_at(get_int(s.ports, s.next)), 1, visible_at)
        if t == WAIT:
            return False
        s.next += 1
    s.next = s.held = 0
    end_fiber(s, word)
    take(reader, 1, t)
    return True


@inline
def _fill_up(node: Any, s: Any, visible_at: int) -> bool:
    """Fire for each entry that the open fiber lacks, and return whether all are written."""
    while s.held < s.room:
        r = requester_at(s.array)
        k = min(s.room - s.held, node.burst, max(elements_before_full(r), 1))
        if _write(node, r, k, visible_at) == WAIT:
            return False
        s.held += k
    return True


@inline
def _take_elements(node: Any, s: Any, k: int) -> bool:
    """Fire on as many of the next k elements as have room, and return whether there were any."""
    reader = source(node, 0)
    if s.array == 0:
        k = min(k, s.limit - s.count)
        if k == 0:
            node.waits = GROW
            return False
        t = fire(node, visible(reader), 0, k)
    else:
        r = requester_at(s.array)
        k = _room(node, s, r, k)
        if k == 0:
            return False
        t = _write(node, r, k, visible(reader))
        if t == WAIT:
            return False
    if s.level == 0:
        append_values(s, reader, k)
    else:
        append_coordinates(s, reader, k)
    take(reader, k, t)
    return True


@inline
def _room(node: Any, s: Any, r: Any, k: int) -> int:
    """Return how many of k elements can be written together (0: wait): elements that fill no line, or one element that does."""
    k = min(k, s.limit - s.count, max(elements_before_full(r), 1))
    if k == 0:
        node.waits = GROW
    return k


@inline
def _write(node: Any, r: Any, k: int, visible_at: int) -> int:
    """Fire to write k elements through the requester `r`. Return the cycle of the first firing, or of the last where an element
    takes several, or WAIT if the element may not be written yet."""
    if elements_before_full(r) == 0:
        return write_element(node, r, visible_at)
    if r.filled + r.size * k > r.length:
        node.fault = LARGE
        return WAIT
    write_elements(r, k)
    return fire(node, visible_at, 0, k)
