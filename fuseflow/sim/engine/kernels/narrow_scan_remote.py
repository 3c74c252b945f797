"""At a memory that takes time, this part of a `scan` emits the coordinates of a level that stores them in 32 bits.

Kernels read words of 64 bits. Widening a whole level would take 8 bytes an entry, twice its size. So the coordinates stay in 32
bits, and only emitted coordinates are widened, into the ring of the stream, which is a few times as large as its FIFOs.
"""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import get_int32, inline, set_int
from fuseflow.sim.engine.kernels.scan_remote import scan_at
from fuseflow.sim.engine.memory_ports import answer_cycle, requester_at, wait_for_answer
from fuseflow.sim.engine.node_records import ENDED, WAIT, close, fire, node_at, room_at, source, target, tokens_at
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    SCRATCH,
    head_run,
    next_word,
    push,
    scratch_address,
    take,
    visible,
)


def run_give_narrow(address: int) -> int:
    """Run the part: fire once for each token, after the answer to its request, and emit the coordinates and references of a scan.
    The reference of a coordinate is its position, so the stream of coordinates is read only for the cycles of its tokens."""
    node = node_at(address)
    s = scan_at(node.state)
    crd, ref, requests, crds, refs = source(node, 0), source(node, 1), source(node, 2), target(node, 0), target(node, 1)
    while True:
        k = min(_tokens(node), node.burst)
        if k == 0:
            return 0
        visible_at, control, answer = visible(crd), head_run(crd).kind == CONTROL, 0
        if not control:
            answer = answer_cycle(node, requester_at(s.crd), next_word(requests))
            if answer == WAIT:
                return 0
        k = min(k, room_at(node, 0))
        if k == 0:
            return 0
        k = min(k, room_at(node, 1))
        if k == 0:
            return 0
        free, word = max(crds.free, refs.free), 0
        if control:
            word = head_run(crd).word
            t = close(node, visible_at, free)
            push(crds, CONTROL, word, 1, t)
            push(refs, CONTROL, word, 1, t)
        else:
            t = fire(node, wait_for_answer(node, visible_at, answer), free, k)
            position, into = next_word(ref), scratch_address(crds)
            for i in range(k):
                set_int(into, i, get_int32(s.crds, position + i))
            push(crds, SCRATCH, into, k, t)
            push(refs, AFFINE, position, k, t)
        take(crd, k, t)
        take(ref, k, t)
        take(requests, k, t)
        if word == DONE:
            node.waits = ENDED
            return 0


@inline
def _tokens(node: Any) -> int:
    """Return the number of tokens that every one of the three inputs has."""
    k = tokens_at(node, 0)
    if k > 0:
        k = min(k, tokens_at(node, 1))
    if k > 0:
        k = min(k, tokens_at(node, 2))
    return k
