"""The primitive `write` stores streams in memory, one token a firing. Elements gather in buffers, which the engine empties when
they are full. At the end of a fiber of a level that pads, there is a firing for each entry that the fiber lacks. The recorder keeps every
token of a stream with the cycle from which it is visible, for checks and comparisons, and changes no cycle."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuseflow.native.records import Record, address, get_float, get_int, inline, set_float, set_float32, set_int, set_int32
from fuseflow.samml import nodes as n
from fuseflow.samml.nodes import Port
from fuseflow.sim.engine.memory_ports import elements_before_full, flush, requester_at, write_element, write_elements
from fuseflow.sim.engine.node_firing import (
    ENDED,
    GROW,
    LARGE,
    REFUSED,
    WAIT,
    close,
    common_tokens,
    fire,
    node_at,
    source,
    tokens_at,
)
from fuseflow.sim.engine.node_layout import Array, LayoutRule, NodeLayout, Part, element_capacity, word_count
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SLICE,
    WORD_OFFSET,
    copy,
    element_address,
    head_address,
    head_run,
    low_of,
    take,
    visible,
    word_in,
)
from fuseflow.tile_ops import TileShape

WRITE = Record(
    "elements count words narrow ends ended limit total level behind sums room held "
    "array ports closing next phase"  # at a memory that takes time
)
"""`narrow` says whether the buffer's elements have 32 bits, and `level` whether they are coordinates. On `comal` only, `behind` says
whether the last token was a value, and `sums` whether the values are sums. `room` is the number of entries of every fiber of a level
that pads, else 0, and `held` how many entries the open fiber has. At a memory that takes time, there are also the requester of the
array written with every element (0: none), an array of the requesters of arrays written at the end of a fiber, their number, the
next of them, and the phase."""
write_at = WRITE.at
TAKING, FLUSHING, ENDING = 0, 1, 2


def write_level(node: n.WriteLevel, layout: NodeLayout) -> list[Part]:
    return layout.part(run_write, layout.state(WRITE, **level_buffers(node, layout)))


def write_values(node: n.WriteValues, layout: NodeLayout) -> list[Part]:
    return layout.part(run_write, layout.state(WRITE, **value_buffers(node, layout)))


def level_buffers(node: n.WriteLevel, layout: NodeLayout) -> dict[str, int]:
    """Return the fields of `WRITE` with the buffers for coordinates and for the ends of fibers."""
    decl = layout.declared[node.tensor]
    narrow = decl.size(node.level) <= np.iinfo(np.int32).max
    buffers = _buffers(layout, np.int32 if narrow else np.int64, layout.limits.writer_elements)
    return {**buffers, "level": 1, "room": decl.room(node.level) or 0}


def value_buffers(node: n.WriteValues, layout: NodeLayout) -> dict[str, int]:
    """Return the fields of `WRITE` with the buffer for values."""
    decl = layout.declared[node.tensor]
    buffers = _buffers(layout, np.float32 if decl.dtype == "f32" else np.float64, 0, decl.tile)
    return {**buffers, "room": decl.room(-1) or 0}


def _buffers(layout: NodeLayout, kind: Any, ends: int, tile: TileShape = ()) -> dict[str, int]:
    """Return the fields of new buffers for elements of the dtype `kind`, and for `ends` ends of fibers."""
    limit, width = element_capacity(layout.limits.writer_elements, tile), word_count(tile)
    return {
        "elements": layout.buffer(kind, limit * width), "words": width, "narrow": int(np.dtype(kind).itemsize == 4),
        "ends": layout.buffer(np.int64, ends), "limit": limit,
    }  # fmt: skip


def run_write(address: int) -> int:
    """Run a writer: append every coordinate or value. For coordinates, a stop that ends a fiber appends the number so far."""
    node = node_at(address)
    s = write_at(node.state)
    reader = source(node, 0)
    while True:
        k = common_tokens(node, 1)
        if k == 0:
            return 0
        run = head_run(reader)
        visible_at, word = visible(reader), run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if run.kind == CONTROL:
            if s.ended == s.limit:
                node.waits = GROW
                return 0
            _fill_up(node, s, word, visible_at)
            take(reader, 1, close(node, visible_at, 0))
            if word == DONE:
                node.waits = ENDED
                return 0
            end_fiber(s, word)
            continue
        k = min(k, s.limit - s.count)
        if k == 0:
            node.waits = GROW
            return 0
        append(s, reader, k)
        take(reader, k, fire(node, visible_at, 0, k))


@inline
def _fill_up(node: Any, s: Any, word: int, visible_at: int) -> None:
    """If the stop `word` ends a fiber of a level that pads, fire once for each entry that the fiber lacks."""
    if word == DONE or low_of(word) != 0:
        return
    while s.held < s.room:
        k = min(s.room - s.held, node.burst)
        fire(node, visible_at, 0, k)
        s.held += k
    s.held = 0


@inline
def append(s: Any, reader: Any, k: int) -> None:
    """Append the next k tokens of a reader, which are coordinates or values, to the buffer."""
    if s.level != 0:
        _append_coordinates(s, reader, k)
    else:
        _append_values(s, reader, k)
    s.count += k
    s.total += k
    s.held += k


@inline
def _append_coordinates(s: Any, crd: Any, k: int) -> None:
    """Append the next k tokens of reader `crd`, which are coordinates, to the buffer."""
    run, first, end = head_run(crd), crd.offset, s.count
    if s.narrow == 0:
        for i in range(k):
            set_int(s.elements, end + i, word_in(run, first + i))
    elif run.kind == AFFINE:
        for i in range(k):
            set_int32(s.elements, end + i, run.word + first + i)
    else:
        for i in range(k):
            set_int32(s.elements, end + i, word_in(run, first + i))


@inline
def _append_values(s: Any, val: Any, k: int) -> None:
    """Append the next k tokens of reader `val`, which are values, to the buffer."""
    stride = 0 if head_run(val).kind == REPEATED else 1
    start = head_address(val) + WORD_OFFSET if stride == 0 else element_address(val)
    end = s.count * s.words
    if s.narrow != 0:
        for i in range(k * s.words):
            set_float32(s.elements, end + i, get_float(start, stride * i))
    else:
        for i in range(k * s.words):
            set_float(s.elements, end + i, get_float(start, stride * i))


@inline
def end_fiber(s: Any, word: int) -> None:
    """If the stop `word` ends a fiber of coordinates, append the number of entries so far to `ends`."""
    if s.level != 0 and low_of(word) == 0:
        set_int(s.ends, s.ended, s.total)
        s.ended += 1


def run_write_remote(address: int) -> int:
    """Run a writer at a memory that takes time: it requests a line to be written in the firing that fills it, and the last lines
    after `D` (docs/explanation/memory.md)."""
    node = node_at(address)
    s = write_at(node.state)
    while s.phase == TAKING:
        k = common_tokens(node, 1)
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
    if not _fill_up_remote(node, s, visible_at):
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
def _fill_up_remote(node: Any, s: Any, visible_at: int) -> bool:
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
        k = min(k, s.limit - s.count, max(elements_before_full(r), 1))  # elements that fill no line, or one that does
        if k == 0:
            node.waits = GROW
            return False
        t = _write(node, r, k, visible(reader))
        if t == WAIT:
            return False
    append(s, reader, k)
    take(reader, k, t)
    return True


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


RECORD = Record("tokens count limit words")
record_at = RECORD.at


def recorder(port: Port, tile: TileShape, limit: int, arrays: dict[int, Array]) -> Part:
    """Return a part that reads the stream at a port and keeps kind, visible cycle and word or words of every token. Its buffer,
    for about `limit` elements, is put into `arrays`."""
    limit = element_capacity(limit, tile)
    tokens, state = np.empty((limit, 2 + word_count(tile)), np.int64), RECORD.array(1)  # only counted tokens are read
    arrays[address(tokens)] = tokens
    state["tokens"], state["limit"], state["words"] = address(tokens), limit, word_count(tile)
    return Part(run_record, state, (port,), ())


def run_record(at: int) -> int:
    """Run the part at an address: record every token, as many at a time as the buffer has room for."""
    node = node_at(at)
    s = record_at(node.state)
    reader = source(node, 0)
    while True:
        k = tokens_at(node, 0)
        if k == 0:
            return 0
        k = min(k, s.limit - s.count)
        if k == 0:
            node.waits = GROW
            return 0
        run, first, visible_at = head_run(reader), reader.offset, visible(reader)
        for i in range(k):
            cell = s.tokens + 8 * (2 + s.words) * (s.count + i)
            set_int(cell, 0, run.kind)
            set_int(cell, 1, visible_at + i)
            if run.kind >= SLICE:
                copy(cell + 16, element_address(reader) + 8 * s.words * i, s.words)
            else:
                set_int(cell, 2, word_in(run, first + i))
        last = run.kind == CONTROL and run.word == DONE
        take(reader, k, visible_at)
        node.firings += k
        s.count += k
        if last:
            node.waits = ENDED
            return 0


RULES: dict[type[n.Node], LayoutRule] = {
    n.WriteLevel: write_level,
    n.WriteValues: write_values,
    n.WriteLaneLevel: write_level,
    n.WriteLaneValues: write_values,
}
