"""These kernels replace the usual ones on the `comal` machine, to match the cycles of the public Comal simulator. See
docs/reference/streams.md.

FIFOs are unbounded and every latency and interval is 1, so room in the rings is the only thing that a kernel ever waits for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fuseflow.native.records import Record, inline
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels import comal_accumulate, comal_drop, write
from fuseflow.sim.engine.kernels.levels import range_ as range_with_empty
from fuseflow.sim.engine.kernels.levels import scan as scan_with_empty
from fuseflow.sim.engine.kernels.reduce import emit_fold, fold_values, reduce_at
from fuseflow.sim.engine.kernels.reduce import reduce as pipelined_reduce
from fuseflow.sim.engine.node_firing import (
    ENDED,
    GROW,
    INPUT,
    MISALIGNED,
    REFUSED,
    WAIT,
    close,
    common_room,
    common_tokens,
    fire,
    look_only,
    node_at,
    room_at,
    source,
    target,
    tokens_at,
)
from fuseflow.sim.engine.node_layout import LayoutRule, Link, NodeLayout, Part, word_count
from fuseflow.sim.engine.stream_rings import (
    CONTROL,
    DONE,
    ELEMENT,
    EMPTY,
    REPEATED,
    SCRATCH,
    copy,
    element_address,
    head_run,
    high_of,
    is_control,
    low_of,
    lower_stop,
    next_word,
    push,
    scratch_address,
    second_token,
    take,
    take_in_same_cycle,
    visible,
)

REPEAT = Record("words")
repeat_at, write_at = REPEAT.at, write.WRITE.at


def scan(node: n.Scan, layout: NodeLayout) -> list[Part]:
    return _joint(scan_with_empty(node, layout))


def range_(node: n.Range, layout: NodeLayout) -> list[Part]:
    return _joint(range_with_empty(node, layout))


def _joint(parts: list[Part]) -> list[Part]:
    """Return parts of scans, set to close an empty fiber in one firing."""
    for part in parts:
        part.state["joint"] = 1
    return parts


def repeat(node: n.Repeat, layout: NodeLayout) -> list[Part]:
    """Return two parts in series. The first reads the signal, the node's input 1."""
    (x, signal), link, width = node.inputs, Link(), word_count(layout.types[0].tile)
    (part,) = layout.part(run_repeat, layout.state(REPEAT, words=width), computes=width > 1)
    return [replace(part, kernel=run_generator, inputs=(signal,), outputs=(link,), first=1), replace(part, inputs=(x, link))]


def run_generator(address: int) -> int:
    """Run the part that passes on the signal of a `repeat`, a token in each firing. The emitted values do not matter."""
    node = node_at(address)
    signal, link = source(node, 0), target(node, 0)
    while True:
        k = common_room(node, 1, common_tokens(node, 1))
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
    """Run the second part: fire for each token of the signal. A value emits the token of x; `_stop_of_x` handles a stop."""
    node = node_at(address)
    x, signal, out, s = source(node, 0), source(node, 1), target(node, 0), repeat_at(node.state)
    while True:
        k = min(tokens_at(node, 1), node.burst)
        if k == 0 or tokens_at(node, 0) == 0:
            return 0
        k = min(k, room_at(node, 0))
        if k == 0:
            return 0
        visible_at, run = max(visible(signal), visible(x)), head_run(x)
        control, word = is_control(signal), head_run(signal).word
        if control and word != DONE:
            t = _stop_of_x(node, x, word, visible_at)
            if t == WAIT:
                return 0
        elif (run.kind == CONTROL) != control or (control and run.word != DONE):
            node.fault = MISALIGNED
            return 0
        elif control:
            t = close(node, visible_at, 0)
            take(x, 1, t)
        else:
            t = fire(node, visible_at, 0, k)
        take(signal, k, t)
        if not control:
            if s.words > 1 and run.kind != EMPTY:
                into = scratch_address(out)
                for i in range(k):
                    copy(into + 8 * s.words * i, element_address(x), s.words)
                push(out, SCRATCH, into, k, t)
            else:
                push(out, EMPTY if run.kind == EMPTY else REPEATED, next_word(x), k, t)
            continue
        push(out, CONTROL, word, 1, t)
        if word == DONE:
            node.waits = ENDED
            return 0


@inline
def _stop_of_x(node: Any, x: Any, word: int, visible_at: int) -> int:
    """Fire to take the tokens of the reader x that the stop `word` of the signal ends: the repeated token, if it has a fiber, and
    the stop behind it if `word` closes more. The firing inspects the next token of x in any case. Return the cycle, or WAIT."""
    has_fiber = low_of(word) == 0
    following = head_run(x).word if is_control(x) else ELEMENT
    if has_fiber:
        if following != ELEMENT:
            node.fault = MISALIGNED
            return WAIT
        following_cycle, following = second_token(x)
        if following_cycle == WAIT:
            node.waits = INPUT
            return WAIT
        visible_at = max(visible_at, following_cycle)
    ends = high_of(word) > 0
    if (following >= 0) != ends or (ends and following != lower_stop(word, 1)):
        node.fault = MISALIGNED
        return WAIT
    t = close(node, visible_at, 0)
    if has_fiber:
        take(x, 1, t)
    if ends:
        take_in_same_cycle(x, t)
    return t


def reduce(node: n.Reduce, layout: NodeLayout) -> list[Part]:
    """Return the part of a reduction of scalars or tiles as on other machines, but with the kernel of this machine."""
    (part,) = pipelined_reduce(node, layout)
    part.state["sums"] = layout.sums
    return [replace(part, kernel=run_reduce)]


def run_reduce(address: int) -> int:
    """Fire once for each token. The stop that ends a fiber emits the fold and, if it closes more, a stop in the same cycle. If
    values are sums, a stop that is not behind a value costs another firing first."""
    node = node_at(address)
    s = reduce_at(node.state)
    val, out = source(node, 0), target(node, 0)
    while True:
        if s.pending != 0:
            if room_at(node, 0) == 0:
                return 0
            push(out, CONTROL, s.pending - 1, 1, s.at)
            s.pending = 0
        k = min(tokens_at(node, 0), node.burst)
        if k == 0:
            return 0
        run = head_run(val)
        visible_at, word = visible(val), run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if run.kind != CONTROL:
            fold_values(s, val, k)
            take(val, k, fire(node, visible_at, 0, k))
            s.behind = 1
            continue
        if room_at(node, 0) == 0:
            return 0
        if s.sums > s.behind and word != DONE:
            close(node, visible_at, 0)
        s.at, s.behind = close(node, visible_at, 0), 0
        take(val, 1, s.at)
        if word == DONE:
            push(out, CONTROL, DONE, 1, s.at)
            node.waits = ENDED
            return 0
        if low_of(word) == 0:
            emit_fold(node, s, s.at)
        if high_of(word) > 0:
            s.pending = lower_stop(word, 1) + 1


def write_level(node: n.WriteLevel, layout: NodeLayout) -> list[Part]:
    return [replace(part, kernel=run_write) for part in write.write_level(node, layout)]


def write_values(node: n.WriteValues, layout: NodeLayout) -> list[Part]:
    (part,) = write.write_values(node, layout)
    part.state["sums"] = layout.sums
    return [replace(part, kernel=run_write)]


def run_write(address: int) -> int:
    """Store coordinates or values: fire once for each. A stop of coordinates costs a firing if it is behind one. Other stops are
    taken without a firing, but if values are sums, a stop that is not behind a value costs one."""
    node = node_at(address)
    s = write_at(node.state)
    reader = source(node, 0)
    while True:
        k = common_tokens(node, 1)
        if k == 0:
            return 0
        run, visible_at = head_run(reader), visible(reader)
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if run.kind != CONTROL:
            k = min(k, s.limit - s.count)
            if k == 0:
                node.waits = GROW
                return 0
            write.append(s, reader, k)
            take(reader, k, fire(node, visible_at, 0, k))
            s.behind = 1
            continue
        if s.ended == s.limit:
            node.waits = GROW
            return 0
        word = run.word
        if word == DONE:
            take(reader, 1, close(node, visible_at, 0))
            node.waits = ENDED
            return 0
        if s.sums > s.behind:
            close(node, visible_at, 0)
        fires = s.level != 0 and s.behind != 0
        take_in_same_cycle(reader, close(node, visible_at, 0) if fires else look_only(node, visible_at))
        write.end_fiber(s, word)
        s.behind = 0


COMAL_RULES: dict[type[n.Node], LayoutRule] = {
    n.Scan: scan,
    n.Range: range_,
    n.Repeat: repeat,
    n.Reduce: reduce,
    n.Accumulate: comal_accumulate.accumulate,
    n.Drop: comal_drop.drop,
    n.WriteLevel: write_level,
    n.WriteValues: write_values,
}
