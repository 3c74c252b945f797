"""Write to a memory that takes time: a line is asked for in the firing that fills it, the last ones after `D` (docs/memory.md)."""

from __future__ import annotations

from typing import Any

from fuseflow.sim.engine.kernels import write
from fuseflow.sim.engine.kernels.write import append_coordinates, append_values, end_fiber
from fuseflow.sim.engine.memory import Record, inline
from fuseflow.sim.engine.nodes import ENDED, GROW, LARGE, REFUSED, WAIT, awaits, close, fire, node_at, source
from fuseflow.sim.engine.ports import flush, requester_at, unfilled
from fuseflow.sim.engine.ports import write as send_element
from fuseflow.sim.engine.streams import CONTROL, DONE, EMPTY, head_run, low_of, take, visible

REMOTE_WRITE = Record(f"{write.FIELDS} array pos phase")
"""Of a write; requesters: of coordinates or values, and of positions; what is left to do."""
state_at = REMOTE_WRITE.at
TAKING, FLUSHING, ENDING = 0, 1, 2


def run_write_level_remote(address: int) -> int:
    """Append every coordinate; a stop that ends a fiber appends the number of coordinates so far."""
    node = node_at(address)
    s = state_at(node.state)
    r, ends = requester_at(s.array), requester_at(s.pos)
    crd = source(node, 0)
    while s.phase == TAKING:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        run = head_run(crd)
        seen, word = visible(crd), run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if run.kind != CONTROL:
            k = _room(node, s, r, k)
            if k == 0:
                return 0
            t = _write(node, r, k, seen)
            if t == WAIT:
                return 0
            append_coordinates(s, crd, k)
            take(crd, k, t)
            continue
        if word == DONE or low_of(word) != 0:
            take(crd, 1, close(node, seen, 0))
            s.phase = FLUSHING if word == DONE else TAKING
            continue
        if s.ended == s.limit:
            node.waits = GROW
            return 0
        t = _write(node, ends, 1, seen)
        if t == WAIT:
            return 0
        end_fiber(s, word)
        take(crd, 1, t)
    if s.phase == FLUSHING:
        if not flush(node, r):
            return 0
        s.phase = ENDING
    if flush(node, ends):
        node.waits = ENDED
    return 0


def run_write_values_remote(address: int) -> int:
    """Append every value."""
    node = node_at(address)
    s = state_at(node.state)
    r = requester_at(s.array)
    val = source(node, 0)
    while s.phase == TAKING:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        run = head_run(val)
        seen, word = visible(val), run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if run.kind == CONTROL:
            take(val, 1, close(node, seen, 0))
            s.phase = FLUSHING if word == DONE else TAKING
            continue
        k = _room(node, s, r, k)
        if k == 0:
            return 0
        t = _write(node, r, k, seen)
        if t == WAIT:
            return 0
        append_values(s, val, k)
        take(val, k, t)
    if flush(node, r):
        node.waits = ENDED
    return 0


@inline
def _room(node: Any, s: Any, r: Any, k: int) -> int:
    """How many of k elements can be written at once: none of them fills a line, or one does."""
    k = min(k, s.limit - s.count, max(unfilled(r), 1))
    if k == 0:
        node.waits = GROW
    return k


@inline
def _write(node: Any, r: Any, k: int, seen: int) -> int:
    """The firings that write so many elements: the cycle of the first, or of the last where one takes several; WAIT if it may not yet."""
    if unfilled(r) == 0:
        return send_element(node, r, seen)
    if r.filled + r.size * k > r.length:
        node.fault = LARGE
        return WAIT
    r.filled += r.size * k
    return fire(node, seen, 0, k)
