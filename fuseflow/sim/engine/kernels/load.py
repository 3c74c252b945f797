"""Load: the value at every reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_layout import NodeLayout, Part, Rule, words
from fuseflow.sim.engine.node_records import ENDED, OUTSIDE, WAIT, awaits, close, fire, node_at, rooms, source, target
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SCRATCH,
    SLICE,
    coming,
    copy,
    head_run,
    push,
    scratch,
    take,
    visible,
    word_in,
)
from fuseflow.sim.native.records import Record, get_float, get_float32, get_int, inline, prefetch, set_float

FIELDS, FLOATS = "values count single absent words tile", "fill value"
LOAD = Record(FIELDS, FLOATS)
"""`single`: the array holds float32; `absent`: how many `N`; `tile`: address of a tile of the implicit value, of `words` words."""
state_at = LOAD.at
FILL, VALUE = LOAD.offset("fill"), LOAD.offset("value")


def load(node: n.Load, place: NodeLayout) -> list[Part]:
    fields = values_of(node, place)
    return place.part(run_load_tiles if fields["words"] > 1 else run_load, place.state(LOAD, **fields))


def values_of(node: n.Load, place: NodeLayout) -> dict[str, float]:
    """The fields of `LOAD` that say where the values are."""
    values = place.tensors[node.tensor].values
    if values.dtype != np.float32:
        values = values.astype(np.float64, copy=False)
    single = int(values.dtype == np.float32)
    decl = place.declared[node.tensor]
    return {
        "values": place.array(values), "count": len(values), "single": single, "fill": decl.fill,
        "words": words(decl.tile), "tile": place.filled(decl.tile, decl.fill),
    }  # fmt: skip


def run_load(address: int) -> int:
    """One firing a token. Consecutive float64 values are not copied."""
    node = node_at(address)
    s = state_at(node.state)
    ref, out = source(node, 0), target(node, 0)
    while True:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        k = min(k, rooms(node, 0))
        if k == 0:
            return 0
        run, first = head_run(ref), ref.offset
        prefetch(s.values + (4 if s.single != 0 else 8) * coming(ref))
        seen = visible(ref)
        if run.kind == CONTROL:
            word = run.word
            t = close(node, seen, out.free)
            take(ref, 1, t)
            push(out, CONTROL, word, 1, t)
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        kind, word = scalars(node, s, run, first, k, out, node.state + FILL, node.state + VALUE)
        if node.fault != 0:
            return 0
        t = fire(node, seen, out.free, k)
        take(ref, k, t)
        push(out, kind, word, k, t)


@inline
def scalars(node: Any, s: Any, run: Any, first: int, k: int, out: Any, fill: int, value: int) -> tuple[int, int]:
    """Kind and word of the values at the k references from `first` on of a run, or a fault. `fill`, `value`: addresses of two fields."""
    if run.kind == EMPTY:
        s.absent += k
        return REPEATED, get_int(fill, 0)
    if run.kind == REPEATED:
        if run.word < 0 or run.word >= s.count:
            node.fault = OUTSIDE
            return WAIT, 0
        s.value = get_float32(s.values, run.word) if s.single != 0 else get_float(s.values, run.word)
        return REPEATED, get_int(value, 0)
    if run.kind == AFFINE:
        r = run.word + first
        if r < 0 or r + k > s.count:
            node.firings += max(s.count - r, 0) if r >= 0 else 0  # those before the fault
            node.fault = OUTSIDE
            return WAIT, 0
        if s.single == 0:
            return SLICE, s.values + 8 * r
        word = scratch(out)
        for i in range(k):
            set_float(word, i, get_float32(s.values, r + i))
        return SCRATCH, word
    word = scratch(out)
    for i in range(k):
        r = get_int(run.word, first + i)
        if r < 0 or r >= s.count:
            node.firings += i
            node.fault = OUTSIDE
            return WAIT, 0
        set_float(word, i, get_float32(s.values, r) if s.single != 0 else get_float(s.values, r))
    return SCRATCH, word


def run_load_tiles(address: int) -> int:
    """The same where a value is a tile."""
    node = node_at(address)
    s = state_at(node.state)
    ref, out = source(node, 0), target(node, 0)
    while True:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        k = min(k, rooms(node, 0))
        if k == 0:
            return 0
        run, first = head_run(ref), ref.offset
        seen = visible(ref)
        if run.kind == CONTROL:
            word = run.word
            t = close(node, seen, out.free)
            take(ref, 1, t)
            push(out, CONTROL, word, 1, t)
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        kind, word = tiles(node, s, run, first, k, out)
        if node.fault != 0:
            return 0
        t = fire(node, seen, out.free, k)
        take(ref, k, t)
        push(out, kind, word, k, t)


@inline
def tiles(node: Any, s: Any, run: Any, first: int, k: int, out: Any) -> tuple[int, int]:
    """The same of tiles."""
    copied = run.kind != AFFINE or s.single != 0
    into = scratch(out)
    for i in range(k):
        place = into + out.bytes * i
        if run.kind == EMPTY:
            copy(place, s.tile, s.words)
            continue
        r = word_in(run, first + i)
        if r < 0 or r >= s.count:
            node.firings += i
            node.fault = OUTSIDE
            return WAIT, 0
        if copied:
            _copy_tile(s, place, s.words * r)
    if run.kind == EMPTY:
        s.absent += k
    if not copied:
        return SLICE, s.values + out.bytes * (run.word + first)
    return SCRATCH, into


@inline
def _copy_tile(s: Any, into: int, first: int) -> None:
    if s.single == 0:
        copy(into, s.values + 8 * first, s.words)
    else:
        for i in range(s.words):
            set_float(into, i, get_float32(s.values, first + i))


RULES: dict[type[n.Node], Rule] = {n.Load: load}
