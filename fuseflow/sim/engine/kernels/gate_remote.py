"""At a memory that takes time, a gate lets tokens through once the answers to their requests are there (docs/memory.md)."""

from __future__ import annotations

from fuseflow.native.records import Record
from fuseflow.sim.engine.memory_ports import answer_cycle, requester_at, wait_for_answer
from fuseflow.sim.engine.node_records import ENDED, WAIT, close, fire, node_at, room_at, source, target, tokens_at
from fuseflow.sim.engine.stream_rings import CONTROL, DONE, REPEATED, head_run, next_word, pass_on, push, take, visible

GATE = Record("array asked entries kept")
"""`array` is the address of the requester of a gate; `asked` counts the tokens with a request. The gate consumes the first
`entries` tokens (of a kept level), and `kept` counts them."""
state_at = GATE.at


def run_gate(address: int) -> int:
    """Run the gate: fire once for each token of input 0, together with the number of its request at input 1."""
    node = node_at(address)
    s = state_at(node.state)
    tokens, requests, out = source(node, 0), source(node, 1), target(node, 0)
    while True:
        k = min(tokens_at(node, 0), node.burst)
        if k == 0:
            return 0
        k = min(k, tokens_at(node, 1))
        if k == 0:
            return 0
        visible_at, answer, has_request = max(visible(tokens), visible(requests)), 0, 0
        if head_run(requests).kind == REPEATED:
            answer = answer_cycle(node, requester_at(s.array), next_word(requests))
            if answer == WAIT:
                return 0
            has_request = 1
        if s.kept < s.entries:
            k = min(k, s.entries - s.kept)
            t = fire(node, wait_for_answer(node, visible_at, answer), 0, k)
            take(tokens, k, t)
            take(requests, k, t)
            s.kept += k
            s.asked += has_request * k
            continue
        k = min(k, room_at(node, 0))
        if k == 0:
            return 0
        visible_at = wait_for_answer(node, visible_at, answer)
        run = head_run(tokens)
        if run.kind == CONTROL:
            word = run.word
            t = close(node, visible_at, out.free)
            take(tokens, 1, t)
            take(requests, 1, t)
            push(out, CONTROL, word, 1, t)
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        kind, word = pass_on(run, tokens.offset, out, k)
        t = fire(node, visible_at, out.free, k)
        take(tokens, k, t)
        take(requests, k, t)
        push(out, kind, word, k, t)
        s.asked += has_request * k
