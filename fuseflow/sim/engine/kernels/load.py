"""The primitive `load` emits the value at every reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuseflow.native.records import Record, get_float, get_float32, get_int, inline, set_float
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.memory_ports import answer_cycle, requester_at, wait_for_answer
from fuseflow.sim.engine.node_firing import (
    OUTSIDE,
    WAIT,
    common_room,
    common_tokens,
    fire,
    node_at,
    pass_control,
    room_at,
    source,
    target,
)
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part, word_count
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    EMPTY,
    REPEATED,
    SCRATCH,
    SLICE,
    copy,
    fetch_upcoming,
    head_run,
    next_word,
    push,
    scratch_address,
    take,
    visible,
    word_in,
)

LOAD = Record("values count single absent words tile visible_at val", "fill value")
"""`single` says whether the array holds float32, and `absent` counts the tokens `N`. `tile` is the address of a tile of the
implicit value, of `words` words. At a memory that takes time, `val` is the requester, and `visible_at` the cycle in which the
next token and its answer are visible."""
state_at = LOAD.at
FILL, VALUE = LOAD.offset("fill"), LOAD.offset("value")


def load(node: n.Load, layout: NodeLayout) -> list[Part]:
    return layout.part(run_load, layout.state(LOAD, **load_fields(node, layout)))


def load_fields(node: n.Load, layout: NodeLayout) -> dict[str, float]:
    """Return the fields of `LOAD` for a node: the address and number of the values, their type, and the implicit value."""
    values = layout.tensors[node.tensor].values
    if values.dtype != np.float32:
        values = values.astype(np.float64, copy=False)
    single = int(values.dtype == np.float32)
    decl = layout.declared[node.tensor]
    return {
        "values": layout.tensor_array(values), "count": len(values), "single": single, "fill": decl.fill,
        "words": word_count(decl.tile), "tile": layout.constant_tile(decl.tile, decl.fill),
    }  # fmt: skip


def run_load(address: int) -> int:
    """Run a `load`: fire once for each token. Consecutive float64 values are not copied."""
    node = node_at(address)
    s = state_at(node.state)
    ref, out = source(node, 0), target(node, 0)
    while True:
        k = common_room(node, 1, common_tokens(node, 1))
        if k == 0:
            return 0
        run, first = head_run(ref), ref.offset
        fetch_upcoming(ref, s.values, (4 if s.single != 0 else 8) * s.words)
        visible_at = visible(ref)
        if run.kind == CONTROL:
            if not pass_control(node, run.word, visible_at, out.free):
                return 0
            continue
        kind, word = _load_values(node, s, run, first, k, out)
        if node.fault != 0:
            return 0
        t = fire(node, visible_at, out.free, k)
        take(ref, k, t)
        push(out, kind, word, k, t)


@inline
def _load_values(node: Any, s: Any, run: Any, first: int, k: int, out: Any) -> tuple[int, int]:
    """Return kind and word of a run of the values at k references of `run` from `first` on, or set the fault of one outside."""
    if s.words > 1:
        return _load_tiles(node, s, run, first, k, out)
    return _load_scalars(node, s, run, first, k, out, node.state + FILL, node.state + VALUE)


@inline
def _load_scalars(node: Any, s: Any, run: Any, first: int, k: int, out: Any, fill: int, value: int) -> tuple[int, int]:
    """Return kind and word of a run of the values at the k references of `run` from `first` on, or set a fault for a reference
    outside. `fill` and `value` are the addresses of these fields of the state."""
    values = s.values  # not loaded again behind every store
    if run.kind == EMPTY:
        s.absent += k
        return REPEATED, get_int(fill, 0)
    if run.kind == REPEATED:
        if run.word < 0 or run.word >= s.count:
            node.fault = OUTSIDE
            return WAIT, 0
        s.value = get_float32(values, run.word) if s.single != 0 else get_float(values, run.word)
        return REPEATED, get_int(value, 0)
    if run.kind == AFFINE:
        r = run.word + first
        if r < 0 or r + k > s.count:
            node.firings += max(s.count - r, 0) if r >= 0 else 0  # firings before the fault
            node.fault = OUTSIDE
            return WAIT, 0
        if s.single == 0:
            return SLICE, values + 8 * r
        word = scratch_address(out)
        for i in range(k):
            set_float(word, i, get_float32(values, r + i))
        return SCRATCH, word
    word = scratch_address(out)
    for i in range(k):
        r = get_int(run.word, first + i)
        if r < 0 or r >= s.count:
            node.firings += i
            node.fault = OUTSIDE
            return WAIT, 0
        set_float(word, i, get_float32(values, r) if s.single != 0 else get_float(values, r))
    return SCRATCH, word


@inline
def _load_tiles(node: Any, s: Any, run: Any, first: int, k: int, out: Any) -> tuple[int, int]:
    """Return kind and word of a run of the tiles at the k references of `run` from `first` on, or set a fault for one outside."""
    copies = run.kind != AFFINE or s.single != 0
    into = scratch_address(out)
    for i in range(k):
        tile_address = into + out.bytes * i
        if run.kind == EMPTY:
            copy(tile_address, s.tile, s.words)
            continue
        r = word_in(run, first + i)
        if r < 0 or r >= s.count:
            node.firings += i
            node.fault = OUTSIDE
            return WAIT, 0
        if copies:
            _copy_tile(s, tile_address, s.words * r)
    if run.kind == EMPTY:
        s.absent += k
    if not copies:
        return SLICE, s.values + out.bytes * (run.word + first)
    return SCRATCH, into


@inline
def _copy_tile(s: Any, into: int, first: int) -> None:
    """Copy a tile to the address `into`. Its first word is element `first` of the values."""
    if s.single == 0:
        copy(into, s.values + 8 * first, s.words)
    else:
        for i in range(s.words):
            set_float(into, i, get_float32(s.values, first + i))


def run_load_answered(address: int) -> int:
    """Run the part of a `load`, at a memory that takes time, that emits values: fire once for each token, after the answer to its
    request (docs/explanation/memory.md)."""
    node = node_at(address)
    s = state_at(node.state)
    ref, out = source(node, 0), target(node, 0)
    while True:
        k = _answered_tokens(node, s)
        if k == 0:
            return 0
        run, first = head_run(ref), ref.offset
        visible_at = s.visible_at
        if run.kind == CONTROL:
            if not pass_control(node, run.word, visible_at, out.free):
                return 0
            continue
        kind, word = _load_values(node, s, run, first, k, out)
        t = fire(node, visible_at, out.free, k)
        take(ref, k, t)
        take(source(node, 1), k, t)
        push(out, kind, word, k, t)


@inline
def _answered_tokens(node: Any, s: Any) -> int:
    """Return how many of the next tokens have room and share one answer that has come, in cycle `s.visible_at` (0: wait)."""
    k = common_tokens(node, 2)
    if k == 0:
        return 0
    answer = 0
    if head_run(source(node, 1)).kind == REPEATED:
        answer = answer_cycle(node, requester_at(s.val), next_word(source(node, 1)))
        if answer == WAIT:
            return 0
    k = min(k, room_at(node, 0))
    if k > 0:
        s.visible_at = wait_for_answer(node, visible(source(node, 0)), answer)
    return k


RULES: dict[type[n.Node], LayoutRule] = {n.Load: load}
