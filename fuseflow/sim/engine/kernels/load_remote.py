"""Load at a memory that takes time: the part that gives values once they are there (docs/memory.md)."""

from __future__ import annotations

from typing import Any

from fuseflow.sim.engine.kernels import load
from fuseflow.sim.engine.kernels.load import scalars, tiles
from fuseflow.sim.engine.memory_ports import answer, answered, requester_at
from fuseflow.sim.engine.node_records import ENDED, WAIT, awaits, close, fire, node_at, rooms, source, target
from fuseflow.sim.engine.stream_rings import CONTROL, DONE, REPEATED, head_run, next_word, push, take, visible
from fuseflow.sim.native.records import Record, inline

REMOTE_LOAD = Record(f"{load.FIELDS} seen val", load.FLOATS)
"""Of a load; when the next token was answered; the requester."""
state_at = REMOTE_LOAD.at
FILL, VALUE = REMOTE_LOAD.offset("fill"), REMOTE_LOAD.offset("value")


def run_load_answered(address: int) -> int:
    """One firing a token, once what was asked for is there: the values of a load."""
    node = node_at(address)
    s = state_at(node.state)
    ref, out = source(node, 0), target(node, 0)
    while True:
        k = _answered(node, s)
        if k == 0:
            return 0
        run, first = head_run(ref), ref.offset
        seen = s.seen
        if run.kind == CONTROL:
            word = run.word
            t = close(node, seen, out.free)
            take(ref, 1, t)
            take(source(node, 1), 1, t)
            push(out, CONTROL, word, 1, t)
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        if s.words > 1:
            kind, word = tiles(node, s, run, first, k, out)
        else:
            kind, word = scalars(node, s, run, first, k, out, node.state + FILL, node.state + VALUE)
        t = fire(node, seen, out.free, k)
        take(ref, k, t)
        take(source(node, 1), k, t)
        push(out, kind, word, k, t)


@inline
def _answered(node: Any, s: Any) -> int:
    """How many of the next tokens have one answer, known and noted in `s.seen`, and room."""
    k = min(awaits(node, 0), node.burst)
    if k == 0:
        return 0
    k = min(k, awaits(node, 1))
    if k == 0:
        return 0
    told = 0
    if head_run(source(node, 1)).kind == REPEATED:
        told = answer(node, requester_at(s.val), next_word(source(node, 1)))
        if told == WAIT:
            return 0
    k = min(k, rooms(node, 0))
    if k > 0:
        s.seen = answered(node, visible(source(node, 0)), told)
    return k
