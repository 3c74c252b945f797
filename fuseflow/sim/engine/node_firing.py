"""A node record is what a kernel sees of its part: inputs, outputs, the next possible cycle of a firing, and counts of cycles."""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, inline, set_int
from fuseflow.native.signatures import call_note
from fuseflow.sim.engine.stream_rings import (
    CONTROL,
    DONE,
    READER_SIZE,
    STREAM_SIZE,
    head_run,
    high_of,
    is_control,
    low_of,
    lower_stop,
    next_word,
    push,
    reader_at,
    room,
    stream_at,
    take,
    tokens_left,
    visible,
)

NODE = Record(
    "kernel state inputs outputs arity ports "  # addresses of the kernel's function and its state, of the first input and output
    "interval pause burst ready "  # `pause`: the interval after a stop; `burst`: most firings in one piece
    "firings closings first last starved blocked waited "
    "waits fault "
    "asked_port request "  # where it waits for an answer: the port and its request
    "special"  # address of its `SPECIAL` record, if its firings take turns or are noted; 0: none
)
SPECIAL = Record("note turns turn")
"""`note` is the address of the function that notes firings, if this is the start of a tracer (`tracer.py`), else 0. The node fires on
values in cycles t with t mod `turns` = `turn`, or in any if `turns` is 0."""
node_at, special_at = NODE.at, SPECIAL.at

# The wait of a node: for an input; for a slot of an output; or for room that the engine makes, or for another part of its node
NOTHING, INPUT, OUTPUT, BUFFER, GROW = 0, 1 << 10, 2 << 10, 3 << 10, 4 << 10
ANSWER, TOUCH, ROOM = 5 << 10, 6 << 10, 7 << 10  # of the memory: an answer; that a line is needed; room for requests
ENDED = 8 << 10
WAIT = -1  # in place of a cycle that is not known yet
# Faults, after which nothing is computed any more
MISALIGNED, REFUSED, OUTSIDE, TWICE, LARGE = 1, 2, 3, 4, 5


@inline
def source(node: Any, q: int) -> Any:
    """Return the reader at input q."""
    return reader_at(node.inputs + READER_SIZE * q)


@inline
def target(node: Any, q: int) -> Any:
    """Return the stream at output q."""
    return stream_at(node.outputs + STREAM_SIZE * q)


@inline
def tokens_at(node: Any, q: int) -> int:
    """Return the number of tokens left in the run at the head of input q. If there are none, the node waits for the input."""
    k = tokens_left(source(node, q))
    if k == 0:
        node.waits = INPUT + q
    return k


@inline
def room_at(node: Any, q: int) -> int:
    """Return the number of tokens for which output q has room. If there is none, the node waits for the output."""
    k = room(target(node, q), node.ready)
    if k == 0:
        node.waits = OUTPUT + q
    return k


@inline
def look_everywhere(node: Any) -> int:
    """Return the cycle by which the next tokens of all inputs are visible, or WAIT if one is missing."""
    visible_at = 0
    for q in range(node.arity):
        if tokens_at(node, q) == 0:
            return WAIT
        visible_at = max(visible_at, visible(source(node, q)))
    return visible_at


@inline
def room_everywhere(node: Any) -> int:
    """Return the cycle from which all outputs have room for a token, or WAIT if one has none."""
    free = 0
    for q in range(node.ports):
        if room_at(node, q) == 0:
            return WAIT
        free = max(free, target(node, q).free)
    return free


@inline
def common_tokens(node: Any, inputs: int) -> int:
    """Return the number of tokens, at most a burst, that each of the first `inputs` inputs has in the run at its head (0: it waits)."""
    k: int = node.burst
    for q in range(inputs):
        k = min(k, tokens_at(node, q))
        if k == 0:
            return 0
    return k


@inline
def common_room(node: Any, outputs: int, k: int) -> int:
    """Return for how many of k tokens each of the first `outputs` outputs has room (0: the node waits)."""
    for q in range(outputs):
        if k == 0:  # the node already waits
            return 0
        k = min(k, room_at(node, q))
    return k


@inline
def take_everywhere(node: Any, word: int, t: int) -> None:
    """Take the control token `word` from all inputs in cycle t. If an input has another token, set the fault MISALIGNED."""
    for q in range(node.arity):
        reader = source(node, q)
        if not is_control(reader) or head_run(reader).word != word:
            node.fault = MISALIGNED
            return
        take(reader, 1, t)


@inline
def push_everywhere(node: Any, word: int, t: int) -> None:
    """Emit the control token `word` on all outputs, in the firing in cycle t."""
    for q in range(node.ports):
        push(target(node, q), CONTROL, word, 1, t)


@inline
def fire(node: Any, visible_at: int, free: int, k: int) -> int:
    """Fire k times on values, at consecutive cycles, and return the first cycle. `visible_at` is the cycle by which all tokens
    that the firing inspects are visible, `free` the cycle from which the slots that it needs are free. If the initiation interval
    is above 1, or the node takes turns, k must be 1."""
    t = max(node.ready, visible_at, free)
    if node.special != 0:
        turns = special_at(node.special).turns
        if turns != 0:
            t += (special_at(node.special).turn - t) % turns
        _note(node, t, k, visible_at, free)
    _account(node, t, visible_at)
    node.firings += k
    node.last = t + k - 1
    node.ready = t + k - 1 + node.interval
    return t


@inline
def close(node: Any, visible_at: int, free: int) -> int:
    """Fire once on a stop or `D`, and return the cycle. The next firing may follow `node.pause` cycles later. Arguments as in
    `fire`."""
    t = max(node.ready, visible_at, free)
    if node.special != 0:
        _note(node, t, 1, visible_at, free)
    _account(node, t, visible_at)
    node.firings += 1
    node.closings += 1
    node.last = t
    node.ready = t + node.pause
    return t


@inline
def pass_control(node: Any, word: int, visible_at: int, free: int) -> bool:
    """Fire to take the control token `word` from all inputs and to emit it on all outputs. Return False after `D`, or with a fault
    if an input has another token."""
    t = close(node, visible_at, free)
    take_everywhere(node, word, t)
    if node.fault != 0:
        return False
    push_everywhere(node, word, t)
    if word == DONE:
        node.waits = ENDED
        return False
    return True


@inline
def finish(node: Any) -> None:
    """Fire to take `D` from all inputs and to emit it on all outputs, once all are there and have room."""
    visible_at = look_everywhere(node)
    if visible_at != WAIT:
        free = room_everywhere(node)
        if free != WAIT:
            pass_control(node, DONE, visible_at, free)


@inline
def _note(node: Any, t: int, k: int, visible_at: int, free: int) -> None:
    """Note k firings from cycle t on, if the node has a tracer."""
    note = special_at(node.special).note
    if note != 0:
        call_note(note, node.special, t, k, visible_at, free)


@inline
def _account(node: Any, t: int, visible_at: int) -> None:
    """Count the idle cycles between the last firing and cycle t: up to `visible_at` they are starved, later ones blocked."""
    gap = t - node.last - 1
    if gap > 0:
        if node.firings == 0:
            node.first = node.starved = t
            return
        starved = min(max(visible_at - node.last - 1, 0), gap)
        node.starved += starved
        node.blocked += gap - starved


@inline
def look_only(node: Any, visible_at: int) -> int:
    """Inspect a token that is visible from cycle `visible_at` on, without firing. Return the cycle of the inspection."""
    if node.special != 0:
        _note(node, max(node.ready, visible_at), 0, visible_at, 0)
    idle = visible_at - node.last - 1
    if idle > 0:
        node.starved += idle
        node.last = visible_at - 1
        node.ready = visible_at
    return node.ready


NEST = Record("depth open crds")  # `crds`: address of the open coordinates
"""The coordinate streams around an inner stream: inputs 0..depth-1 of a node, outermost first. A coordinate is *open* from the firing of
its first inner value until the stop that ends its list. It is taken in that first firing. A coordinate with an empty list below has no
inner value, so a separate firing takes it before the inner stop. A stop of an outer stream is taken with the inner stop that ends the same
list."""
nest_at = NEST.at


@inline
def is_childless(nest: Any, word: int) -> bool:
    """Return whether the inner stop `word` ends an empty list below a coordinate that has not been taken."""
    return nest.open < nest.depth - low_of(word)


@inline
def look_at_coordinates(node: Any, nest: Any, levels: int) -> int:
    """Return the cycle by which the coordinates to be opened, down to the outermost `levels`, are visible, or WAIT."""
    visible_at = 0
    for level in range(nest.open, levels):
        if tokens_at(node, level) == 0:
            return WAIT
        visible_at = max(visible_at, visible(source(node, level)))
    return visible_at


@inline
def take_coordinates(node: Any, nest: Any, levels: int, t: int) -> None:
    """Take the coordinates to be opened, down to the outermost `levels`, in cycle t."""
    for level in range(nest.open, levels):
        reader = source(node, level)
        if is_control(reader):
            node.fault = MISALIGNED
            return
        set_int(nest.crds, level, next_word(reader))
        take(reader, 1, t)
    nest.open = max(nest.open, levels)


@inline
def look_at_stops(node: Any, nest: Any, word: int) -> int:
    """Return the cycle by which the stops of the outer streams whose lists the inner stop `word` ends are visible, or WAIT."""
    visible_at = 0
    for level in range(max(nest.depth - high_of(word), 0), nest.depth):
        if tokens_at(node, level) == 0:
            return WAIT
        visible_at = max(visible_at, visible(source(node, level)))
    return visible_at


@inline
def take_stops(node: Any, nest: Any, word: int, t: int) -> None:
    """Take the stops of the outer streams whose lists the inner stop `word` ends, in cycle t. Another token there is a fault."""
    for level in range(max(nest.depth - high_of(word), 0), nest.depth):
        reader = source(node, level)
        if not is_control(reader) or head_run(reader).word != lower_stop(word, nest.depth - level):
            node.fault = MISALIGNED
            return
        take(reader, 1, t)
    nest.open = min(nest.open, max(nest.depth - 1 - high_of(word), 0))
