"""At a memory that takes time, this part of a `load` emits values once the memory has answered (docs/memory.md)."""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, inline
from fuseflow.sim.engine.kernels import load
from fuseflow.sim.engine.kernels.load import load_scalars, load_tiles
from fuseflow.sim.engine.memory_ports import answer_cycle, requester_at, wait_for_answer
from fuseflow.sim.engine.node_records import ENDED, WAIT, close, fire, node_at, room_at, source, target, tokens_at
from fuseflow.sim.engine.stream_rings import CONTROL, DONE, REPEATED, head_run, next_word, push, take, visible

REMOTE_LOAD = Record(f"{load.FIELDS} visible_at val", load.FLOATS)
"""To the state of a load this adds the cycle in which the next token and its answer are visible, and the requester."""
state_at = REMOTE_LOAD.at
FILL, VALUE = REMOTE_LOAD.offset("fill"), REMOTE_LOAD.offset("value")


def run_load_answered(address: int) -> int:
    """Run the part: fire once for each token, after the answer to its request, and emit the values of a `load`."""
    node = node_at(address)
    s = state_at(node.state)
    ref, out = source(node, 0), target(node, 0)
    while True:
        k = _answered_tokens(node, s)
        if k == 0:
            return 0
        run, first = head_run(ref), ref.offset
        visible_at = s.visible_at
        if run.kind == CONTROL:
            word = run.word
            t = close(node, visible_at, out.free)
            take(ref, 1, t)
            take(source(node, 1), 1, t)
            push(out, CONTROL, word, 1, t)
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        if s.words > 1:
            kind, word = load_tiles(node, s, run, first, k, out)
        else:
            kind, word = load_scalars(node, s, run, first, k, out, node.state + FILL, node.state + VALUE)
        t = fire(node, visible_at, out.free, k)
        take(ref, k, t)
        take(source(node, 1), k, t)
        push(out, kind, word, k, t)


@inline
def _answered_tokens(node: Any, s: Any) -> int:
    """Return how many of the next tokens share one answer that has come, and have room (0: wait). Its cycle is put into
    `s.visible_at`."""
    k = min(tokens_at(node, 0), node.burst)
    if k == 0:
        return 0
    k = min(k, tokens_at(node, 1))
    if k == 0:
        return 0
    answer = 0
    if head_run(source(node, 1)).kind == REPEATED:
        answer = answer_cycle(node, requester_at(s.val), next_word(source(node, 1)))
        if answer == WAIT:
            return 0
    k = min(k, room_at(node, 0))
    if k > 0:
        s.visible_at = wait_for_answer(node, visible(source(node, 0)), answer)
    return k
