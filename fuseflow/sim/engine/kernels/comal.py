"""The `comal` machine: the kernels that differ where the public Comal simulator takes other times. See docs/streams.md.

FIFOs are unbounded and every latency and interval is 1, so room in the rings is the only thing that a kernel ever waits for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels import comal_accumulate, write
from fuseflow.sim.engine.kernels.reduce import reduce as reduce_elsewhere
from fuseflow.sim.engine.node_layout import Link, NodeLayout, Part, Rule, words
from fuseflow.sim.engine.node_records import (  # fmt: skip
    ENDED,
    GROW,
    INPUT,
    MISALIGNED,
    REFUSED,
    WAIT,
    awaits,
    close,
    fire,
    node_at,
    rooms,
    source,
    target,
    traced_at,
)
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    CONTROL,
    DONE,
    ELEMENT,
    EMPTY,
    REPEATED,
    SCRATCH,
    WORD_OFFSET,
    behind,
    copy,
    element,
    head_address,
    head_run,
    high_of,
    is_control,
    low_of,
    next_word,
    push,
    scratch,
    seen_above,
    take,
    take_too,
    visible,
)
from fuseflow.sim.native.jit import call_fold, call_fold_into, call_note
from fuseflow.sim.native.records import Record, get_int, inline, set_float

REPEAT = Record("words")
REDUCE = Record("fold pending at words tile", floats="value identity")
"""`pending`: the stop still to be given, plus 1, in the firing in cycle `at`; `tile`: address of the value so far, if it is a tile (`words`
above 1)."""
VALUE = REDUCE.offset("value")
repeat_at, reduce_at, write_at = REPEAT.at, REDUCE.at, write.WRITE.at


def repeat(node: n.Repeat, place: NodeLayout) -> list[Part]:
    """Two parts in series. The first reads the signal, the node's input 1."""
    (x, signal), link, width = node.inputs, Link(), words(place.types[0].tile)
    (part,) = place.part(run_repeat, place.state(REPEAT, words=width), computes=width > 1)
    return [replace(part, kernel=run_generator, inputs=(signal,), outputs=(link,), first=1), replace(part, inputs=(x, link))]


def run_generator(address: int) -> int:
    """Signal generator: one firing a token, which it passes on. What values it gives does not matter."""
    node = node_at(address)
    signal, link = source(node, 0), target(node, 0)
    while True:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        k = min(k, rooms(node, 0))
        if k == 0:
            return 0
        control, word = is_control(signal), head_run(signal).word
        t = fire(node, visible(signal), 0, k)
        take(signal, k, t)
        if not control:
            push(link, REPEATED, 0, k, t)
            continue
        push(link, CONTROL, word, 1, t)
        if word == DONE:
            node.waits = ENDED
            return 0


def run_repeat(address: int) -> int:
    """One firing a token of the signal. On a value it looks at x and gives it, on a stop see `_stop_of_x`."""
    node = node_at(address)
    x, signal, out, s = source(node, 0), source(node, 1), target(node, 0), repeat_at(node.state)
    while True:
        k = min(awaits(node, 1), node.burst)
        if k == 0 or awaits(node, 0) == 0:
            return 0
        k = min(k, rooms(node, 0))
        if k == 0:
            return 0
        seen, run = max(visible(signal), visible(x)), head_run(x)
        control, word = is_control(signal), head_run(signal).word
        if control and word != DONE:
            t = _stop_of_x(node, x, word, seen)
            if t == WAIT:
                return 0
        elif (run.kind == CONTROL) != control or (control and run.word != DONE):
            node.fault = MISALIGNED
            return 0
        elif control:
            t = close(node, seen, 0)
            take(x, 1, t)
        else:
            t = fire(node, seen, 0, k)
        take(signal, k, t)
        if not control:
            if s.words > 1 and run.kind != EMPTY:
                into = scratch(out)
                for i in range(k):
                    copy(into + 8 * s.words * i, element(x), s.words)
                push(out, SCRATCH, into, k, t)
            else:
                push(out, EMPTY if run.kind == EMPTY else REPEATED, next_word(x), k, t)
            continue
        push(out, CONTROL, word, 1, t)
        if word == DONE:
            node.waits = ENDED
            return 0


@inline
def _stop_of_x(node: Any, x: Any, word: int, seen: int) -> int:
    """Take what a stop of the signal ends: x itself, if there was a fiber of it, and the stop of x behind it if it closes more. The
    firing looks at the token of x behind x, stop or not. Its cycle, or WAIT."""
    fiber = low_of(word) == 0
    following = head_run(x).word if is_control(x) else ELEMENT
    if fiber:
        if following != ELEMENT:
            node.fault = MISALIGNED
            return WAIT
        later, following = behind(x)
        if later == WAIT:
            node.waits = INPUT
            return WAIT
        seen = max(seen, later)
    ends = high_of(word) > 0
    if (following >= 0) != ends or (ends and following != seen_above(word, 1)):
        node.fault = MISALIGNED
        return WAIT
    t = close(node, seen, 0)
    if fiber:
        take(x, 1, t)
    if ends:
        take_too(x, t)
    return t


def reduce(node: n.Reduce, place: NodeLayout) -> list[Part]:
    """Of scalars or tiles, as elsewhere."""
    (part,) = reduce_elsewhere(node, place)
    fields = {name: part.state[name][0] for name in ("fold", "value", "identity", "words", "tile")}
    return [replace(part, kernel=run_reduce, state=place.state(REDUCE, **fields))]


def run_reduce(address: int) -> int:
    """One firing a token. The stop that ends a fiber gives the fold and, if it closes more, the outgoing stop in the same cycle."""
    node = node_at(address)
    s = reduce_at(node.state)
    val, out = source(node, 0), target(node, 0)
    while True:
        if s.pending != 0:
            if rooms(node, 0) == 0:
                return 0
            push(out, CONTROL, s.pending - 1, 1, s.at)
            s.pending = 0
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        run = head_run(val)
        seen, word = visible(val), run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if run.kind != CONTROL:
            if s.words > 1:
                for i in range(k):
                    call_fold_into(s.fold, s.tile, element(val) + 8 * s.words * i, 1, s.words)
            elif run.kind == REPEATED:
                s.value = call_fold(s.fold, s.value, head_address(val) + WORD_OFFSET, 0, k)
            else:
                s.value = call_fold(s.fold, s.value, run.word + 8 * val.offset, 1, k)
            take(val, k, fire(node, seen, 0, k))
            continue
        if rooms(node, 0) == 0:
            return 0
        s.at = close(node, seen, 0)
        take(val, 1, s.at)
        if word == DONE:
            push(out, CONTROL, DONE, 1, s.at)
            node.waits = ENDED
            return 0
        if low_of(word) == 0 and s.words > 1:
            into = scratch(out)
            copy(into, s.tile, s.words)
            push(out, SCRATCH, into, 1, s.at)
            for i in range(s.words):
                set_float(s.tile, i, s.identity)
        elif low_of(word) == 0:
            push(out, REPEATED, get_int(node.state + VALUE, 0), 1, s.at)
            s.value = s.identity
        if high_of(word) > 0:
            s.pending = seen_above(word, 1) + 1


def write_level(node: n.WriteLevel, place: NodeLayout) -> list[Part]:
    return [replace(part, kernel=run_write_level) for part in write.write_level(node, place)]


def write_values(node: n.WriteValues, place: NodeLayout) -> list[Part]:
    return [replace(part, kernel=run_write_values) for part in write.write_values(node, place)]


def run_write_level(address: int) -> int:
    """One firing a coordinate, and one for a stop behind one; other stops are taken without a firing."""
    node = node_at(address)
    s = write_at(node.state)
    crd = source(node, 0)
    while True:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        run, seen = head_run(crd), visible(crd)
        if run.kind != CONTROL:
            k = min(k, s.limit - s.count)
            if k == 0:
                node.waits = GROW
                return 0
            write.append_coordinates(s, crd, k)
            take(crd, k, fire(node, seen, 0, k))
            s.behind = 1
            continue
        if s.ended == s.limit:
            node.waits = GROW
            return 0
        word = run.word
        if word == DONE:
            take(crd, 1, close(node, seen, 0))
            node.waits = ENDED
            return 0
        take_too(crd, close(node, seen, 0) if s.behind != 0 else _pass(node, seen))
        write.end_fiber(s, word)
        s.behind = 0


def run_write_values(address: int) -> int:
    """One firing a value; stops are taken without a firing."""
    node = node_at(address)
    s = write_at(node.state)
    val = source(node, 0)
    while True:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        run, seen = head_run(val), visible(val)
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if run.kind != CONTROL:
            k = min(k, s.limit - s.count)
            if k == 0:
                node.waits = GROW
                return 0
            write.append_values(s, val, k)
            take(val, k, fire(node, seen, 0, k))
            continue
        if run.word == DONE:
            take(val, 1, close(node, seen, 0))
            node.waits = ENDED
            return 0
        take_too(val, _pass(node, seen))


@inline
def _pass(node: Any, seen: int) -> int:
    """Look at a token without firing: the node is there no earlier than the token. Returns the cycle."""
    if node.tracer != 0:
        call_note(traced_at(node.tracer).note, node.tracer, max(node.ready, seen), 0, seen, 0)
    idle = seen - node.last - 1
    if idle > 0:
        node.starved += idle
        node.last = seen - 1
        node.ready = seen
    return node.ready


RULES: dict[type[n.Node], Rule] = {
    n.Repeat: repeat,
    n.Reduce: reduce,
    n.Accumulate: comal_accumulate.accumulate,
    n.WriteLevel: write_level,
    n.WriteValues: write_values,
}
