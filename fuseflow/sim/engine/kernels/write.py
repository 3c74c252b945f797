"""Write: streams to memory, one firing a token. Elements gather in buffers, which the engine empties when they are full."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_layout import NodeLayout, Part, Rule, fitting, words
from fuseflow.sim.engine.node_records import ENDED, GROW, REFUSED, awaits, close, fire, node_at, source
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    WORD_OFFSET,
    element,
    head_address,
    head_run,
    low_of,
    take,
    visible,
    word_in,
)
from fuseflow.sim.native.records import Record, get_float, inline, set_float, set_float32, set_int, set_int32
from fuseflow.tile_ops import TileShape

FIELDS = "elements count words narrow ends ended limit total behind"
WRITE = Record(FIELDS)
"""`narrow`: the buffer's elements have 32 bits; `behind`: the last token was a value (comal)."""
state_at = WRITE.at


def write_level(node: n.WriteLevel, place: NodeLayout) -> list[Part]:
    return place.part(run_write_level, place.state(WRITE, **level_buffers(node, place)))


def write_values(node: n.WriteValues, place: NodeLayout) -> list[Part]:
    return place.part(run_write_values, place.state(WRITE, **value_buffers(node, place)))


def level_buffers(node: n.WriteLevel, place: NodeLayout) -> dict[str, int]:
    """The fields of `WRITE` that say where coordinates and the ends of fibers gather."""
    decl = place.declared[node.tensor]
    narrow = decl.shape[decl.format.order[node.level]] <= np.iinfo(np.int32).max
    return _buffers(place, np.int32 if narrow else np.int64, place.limits.written)


def value_buffers(node: n.WriteValues, place: NodeLayout) -> dict[str, int]:
    """The same of values."""
    decl = place.declared[node.tensor]
    return _buffers(place, np.float32 if decl.dtype == "f32" else np.float64, 0, decl.tile)


def _buffers(place: NodeLayout, kind: Any, ends: int, tile: TileShape = ()) -> dict[str, int]:
    """Buffers for elements of a dtype, and for the ends of fibers."""
    limit, width = fitting(place.limits.written, tile), words(tile)
    return {
        "elements": place.buffer(kind, limit * width), "words": width, "narrow": int(np.dtype(kind).itemsize == 4),
        "ends": place.buffer(np.int64, ends), "limit": limit,
    }  # fmt: skip


def run_write_level(address: int) -> int:
    """Append every coordinate; a stop that ends a fiber appends the number of coordinates so far."""
    node = node_at(address)
    s = state_at(node.state)
    crd = source(node, 0)
    while True:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        run = head_run(crd)
        seen, word = visible(crd), run.word
        if run.kind == CONTROL:
            if s.ended == s.limit:
                node.waits = GROW
                return 0
            take(crd, 1, close(node, seen, 0))
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
        take(crd, k, fire(node, seen, 0, k))


def run_write_values(address: int) -> int:
    """Append every value."""
    node = node_at(address)
    s = state_at(node.state)
    val = source(node, 0)
    while True:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        run = head_run(val)
        seen, word = visible(val), run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if run.kind == CONTROL:
            take(val, 1, close(node, seen, 0))
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        k = min(k, s.limit - s.count)
        if k == 0:
            node.waits = GROW
            return 0
        append_values(s, val, k)
        take(val, k, fire(node, seen, 0, k))


@inline
def append_coordinates(s: Any, crd: Any, k: int) -> None:
    """Store the next k tokens."""
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


@inline
def append_values(s: Any, val: Any, k: int) -> None:
    """Store the next k tokens."""
    stride = 0 if head_run(val).kind == REPEATED else 1
    start = head_address(val) + WORD_OFFSET if stride == 0 else element(val)
    end = s.count * s.words
    if s.narrow != 0:
        for i in range(k * s.words):
            set_float32(s.elements, end + i, get_float(start, stride * i))
    else:
        for i in range(k * s.words):
            set_float(s.elements, end + i, get_float(start, stride * i))
    s.count += k
    s.total += k


@inline
def end_fiber(s: Any, word: int) -> None:
    """Note where the fiber that a stop ends is over, if it ends one."""
    if low_of(word) == 0:
        set_int(s.ends, s.ended, s.total)
        s.ended += 1


RULES: dict[type[n.Node], Rule] = {n.WriteLevel: write_level, n.WriteValues: write_values}
