"""Nodes as kernels see them: the cycle of the next firing, and where the cycles between firings go."""

from __future__ import annotations

from typing import Any

from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    CONTROL,
    READER_SIZE,
    STREAM_SIZE,
    head_run,
    is_control,
    left,
    push,
    reader_at,
    room,
    stream_at,
    take,
    visible,
)
from fuseflow.sim.native.jit import call_note
from fuseflow.sim.native.records import Record, inline

NODE = Record(
    "kernel state inputs outputs arity ports "  # addresses of the kernel's function and its state, of the first input and output
    "interval pause burst ready "  # `pause`: the interval after a stop; `burst`: most firings in one piece
    "firings closings first last starved blocked waited "
    "waits fault "
    "tracer"  # address of what notes its firings; 0: nothing does
)
TRACED = Record("note")
"""The start of a tracer (`tracer.py`): the address of the function to call."""
node_at, traced_at = NODE.at, TRACED.at

# What a node waits for: an input; a slot of an output; or a service of the engine or its other half
NOTHING, INPUT, OUTPUT, BUFFER, GROW = 0, 1 << 10, 2 << 10, 3 << 10, 4 << 10
ANSWER, TOUCH, ROOM = 5 << 10, 6 << 10, 7 << 10  # of the memory: an answer; that a line is needed; room for requests
ENDED = 8 << 10
WAIT = -1  # in place of a cycle: it is not known yet
# Faults, after which nothing is computed any more
MISALIGNED, REFUSED, OUTSIDE, TWICE, LARGE = 1, 2, 3, 4, 5


@inline
def source(node: Any, q: int) -> Any:
    """Input q."""
    return reader_at(node.inputs + READER_SIZE * q)


@inline
def target(node: Any, q: int) -> Any:
    """Output q."""
    return stream_at(node.outputs + STREAM_SIZE * q)


@inline
def awaits(node: Any, q: int) -> int:
    """Tokens left in the run at the head of input q; if none, the node waits for it."""
    k = left(source(node, q))
    if k == 0:
        node.waits = INPUT + q
    return k


@inline
def rooms(node: Any, q: int) -> int:
    """Tokens for which output q has room; if none, the node waits for it."""
    k = room(target(node, q))
    if k == 0:
        node.waits = OUTPUT + q
    return k


@inline
def look_everywhere(node: Any) -> int:
    """The cycle by which the next tokens of all inputs are visible; WAIT if one is missing."""
    seen = 0
    for q in range(node.arity):
        if awaits(node, q) == 0:
            return WAIT
        seen = max(seen, visible(source(node, q)))
    return seen


@inline
def room_everywhere(node: Any) -> int:
    """The cycle from which all outputs have room for a token; WAIT if one has none."""
    free = 0
    for q in range(node.ports):
        if rooms(node, q) == 0:
            return WAIT
        free = max(free, target(node, q).free)
    return free


@inline
def take_everywhere(node: Any, word: int, t: int) -> None:
    """Take this control token from all inputs; a fault if one has another."""
    for q in range(node.arity):
        reader = source(node, q)
        if not is_control(reader) or head_run(reader).word != word:
            node.fault = MISALIGNED
            return
        take(reader, 1, t)


@inline
def push_everywhere(node: Any, word: int, t: int) -> None:
    """Produce this control token on all outputs."""
    for q in range(node.ports):
        push(target(node, q), CONTROL, word, 1, t)


@inline
def fire(node: Any, seen: int, free: int, k: int) -> int:
    """k firings on values at consecutive cycles; returns the first. `seen`: the cycle by which all that it looks at is visible;
    `free`: from which the slots that it needs are free. k is 1 if the interval is not."""
    t = max(node.ready, seen, free)
    if node.tracer != 0:
        call_note(traced_at(node.tracer).note, node.tracer, t, k, seen, free)
    _account(node, t, seen)
    node.firings += k
    node.last = t + k - 1
    node.ready = t + k - 1 + node.interval
    return t


@inline
def close(node: Any, seen: int, free: int) -> int:
    """One firing on a stop or `D`, after which the next may follow after the pause."""
    t = max(node.ready, seen, free)
    if node.tracer != 0:
        call_note(traced_at(node.tracer).note, node.tracer, t, 1, seen, free)
    _account(node, t, seen)
    node.firings += 1
    node.closings += 1
    node.last = t
    node.ready = t + node.pause
    return t


@inline
def _account(node: Any, t: int, seen: int) -> None:
    """Of the cycles since the last firing, those until the last token looked at was visible are starved, the rest blocked."""
    gap = t - node.last - 1
    if gap > 0:
        if node.firings == 0:
            node.first = node.starved = t
            return
        starved = min(max(seen - node.last - 1, 0), gap)
        node.starved += starved
        node.blocked += gap - starved
