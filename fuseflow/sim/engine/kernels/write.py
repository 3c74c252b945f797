"""The primitive `write` stores streams in memory, one token a firing. Elements gather in buffers, which the engine empties when
they are full. At the end of a fiber of a level that pads, there is a firing for each entry that the fiber lacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuseflow.native.records import Record, get_float, inline, set_float, set_float32, set_int, set_int32
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part, element_capacity, word_count
from fuseflow.sim.engine.node_records import ENDED, GROW, REFUSED, close, fire, node_at, source, tokens_at
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    WORD_OFFSET,
    element_address,
    head_address,
    head_run,
    low_of,
    take,
    visible,
    word_in,
)
from fuseflow.tile_ops import TileShape

FIELDS = "elements count words narrow ends ended limit total behind sums room held"
WRITE = Record(FIELDS)
"""`narrow` says whether the buffer's elements have 32 bits. On `comal` only, `behind` says whether the last token was a value,
and `sums` whether the values are sums. `room` is the number of entries of every fiber of a level that pads, else 0, and `held`
how many entries the open fiber has."""
state_at = WRITE.at


def write_level(node: n.WriteLevel, layout: NodeLayout) -> list[Part]:
    return layout.part(run_write_level, layout.state(WRITE, **level_buffers(node, layout)))


def write_values(node: n.WriteValues, layout: NodeLayout) -> list[Part]:
    return layout.part(run_write_values, layout.state(WRITE, **value_buffers(node, layout)))


def level_buffers(node: n.WriteLevel, layout: NodeLayout) -> dict[str, int]:
    """Return the fields of `WRITE` with the buffers for coordinates and for the ends of fibers."""
    decl = layout.declared[node.tensor]
    narrow = decl.shape[decl.format.order[node.level]] <= np.iinfo(np.int32).max
    buffers = _buffers(layout, np.int32 if narrow else np.int64, layout.limits.writer_elements)
    return {**buffers, "room": decl.room(node.level) or 0}


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


def run_write_level(address: int) -> int:
    """Run a writer of coordinates: append every coordinate. A stop that ends a fiber appends the number of coordinates so far."""
    node = node_at(address)
    s = state_at(node.state)
    crd = source(node, 0)
    while True:
        k = min(tokens_at(node, 0), node.burst)
        if k == 0:
            return 0
        run = head_run(crd)
        visible_at, word = visible(crd), run.word
        if run.kind == CONTROL:
            if s.ended == s.limit:
                node.waits = GROW
                return 0
            _fill_up(node, s, word, visible_at)
            take(crd, 1, close(node, visible_at, 0))
            if word == DONE:
                node.waits = ENDED
                return 0
            end_fiber(s, word)
            continue
        k = min(k, s.limit - s.count)
        if k == 0:
            node.waits = GROW
            return 0
        append_coordinates(s, crd, k)
        take(crd, k, fire(node, visible_at, 0, k))


def run_write_values(address: int) -> int:
    """Run a writer of values: append every value to the buffer."""
    node = node_at(address)
    s = state_at(node.state)
    val = source(node, 0)
    while True:
        k = min(tokens_at(node, 0), node.burst)
        if k == 0:
            return 0
        run = head_run(val)
        visible_at, word = visible(val), run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if run.kind == CONTROL:
            _fill_up(node, s, word, visible_at)
            take(val, 1, close(node, visible_at, 0))
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        k = min(k, s.limit - s.count)
        if k == 0:
            node.waits = GROW
            return 0
        append_values(s, val, k)
        take(val, k, fire(node, visible_at, 0, k))


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
def append_coordinates(s: Any, crd: Any, k: int) -> None:
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
    s.count += k
    s.total += k
    s.held += k


@inline
def append_values(s: Any, val: Any, k: int) -> None:
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
    s.count += k
    s.total += k
    s.held += k


@inline
def end_fiber(s: Any, word: int) -> None:
    """If the stop `word` ends a fiber, append the number of entries so far to `ends`."""
    if low_of(word) == 0:
        set_int(s.ends, s.ended, s.total)
        s.ended += 1


RULES: dict[type[n.Node], LayoutRule] = {
    n.WriteLevel: write_level,
    n.WriteValues: write_values,
    n.WriteLaneLevel: write_level,
    n.WriteLaneValues: write_values,
}
