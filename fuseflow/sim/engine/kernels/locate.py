"""The primitive `locate` emits the reference of a coordinate in a level, computed (dense level) or searched (stored fibers)."""

from __future__ import annotations

from typing import Any, assert_never

from fuseflow.errors import SimulationError
from fuseflow.native.records import Record, get_int, inline, set_int
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.memory_ports import loaded_cycle, wait_for_answer
from fuseflow.sim.engine.node_firing import (
    ENDED,
    MISALIGNED,
    OUTSIDE,
    WAIT,
    close,
    common_room,
    common_tokens,
    fire,
    node_at,
    pass_control,
    source,
    target,
)
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SCRATCH,
    head_run,
    next_word,
    push,
    scratch_address,
    take,
    visible,
    word_in,
)
from fuseflow.tensors.levels.base import Computed, Listed

LOCATE = Record("size")
state_at = LOCATE.at
STORED = Record("lows highs crds refs parents asked fiber told entries kept loads")
"""The state of a locate in stored fibers: where their coordinates are (`base.Listed`) and how many were looked up. At a memory
that takes time, it also has the elements of a fiber, and the number of coordinates that one element tells of. A locate that keeps
its level has the number of its entries, how many of them it keeps so far, and the requester of the lines that are loaded into the
scratchpad before (0: none)."""
stored_at = STORED.at


def locate(node: n.Locate, layout: NodeLayout) -> list[Part]:
    if node.keeps(layout.declared):
        return layout.part(run_locate_kept, layout.state(STORED, **kept_fields(node, layout)))
    if layout.level(node).stored:
        return layout.part(run_locate_stored, layout.state(STORED, **locate_fields(node, layout)))
    return layout.part(run_locate, layout.state(LOCATE, size=layout.size(node.tensor, node.level)))


def locate_fields(node: n.Locate, layout: NodeLayout) -> dict[str, int]:
    """Return the fields of `STORED` with the arrays of the level's fibers. Raise `SimulationError` for a computed level."""
    match walk := layout.tensors[node.tensor].levels[node.level].walk():
        case Listed():
            return {**layout.fiber_arrays(walk, "lows", "highs", "crds", "refs"), "parents": walk.parents}
        case Computed():
            raise SimulationError(f"node `{node.name}`: the fibers of a stored level of `{node.tensor}` are computed")
        case _:
            assert_never(walk)


def kept_fields(node: n.Locate, layout: NodeLayout) -> dict[str, int]:
    """Return the fields of `STORED` for a locate that keeps its level."""
    return {**locate_fields(node, layout), "entries": layout.tensors[node.tensor].levels[node.level].entries}


def run_locate(address: int) -> int:
    """Run a `locate` in a dense level: fire once for each token. A firing takes the coordinate, and the parent's reference below
    another level."""
    node = node_at(address)
    s = state_at(node.state)
    crd, ref, out = source(node, 0), source(node, node.arity - 1), target(node, 0)
    alone = node.arity == 1
    while True:
        k = common_room(node, 1, common_tokens(node, node.arity))
        if k == 0:
            return 0
        visible_at = max(visible(crd), visible(ref))
        run, first = head_run(crd), crd.offset
        parents, parent = head_run(ref), ref.offset
        if (run.kind == CONTROL) != (parents.kind == CONTROL) or (run.kind == CONTROL and run.word != parents.word):
            node.fault = MISALIGNED
            return 0
        if run.kind == CONTROL:
            if not pass_control(node, run.word, visible_at, out.free):
                return 0
            continue
        if run.kind == EMPTY or parents.kind == EMPTY:
            kind, word = EMPTY, 0
        elif run.kind == AFFINE and (alone or parents.kind == REPEATED):
            kind, word = AFFINE, run.word + first
            if not alone:
                word += parents.word * s.size
        else:
            kind, word = SCRATCH, scratch_address(out)
            for i in range(k):
                above = 0 if alone else word_in(parents, parent + i) * s.size
                set_int(word, i, above + word_in(run, first + i))
        t = fire(node, visible_at, out.free, k)
        take(crd, k, t)
        if not alone:
            take(ref, k, t)
        push(out, kind, word, k, t)


def run_locate_stored(address: int) -> int:
    """Run a `locate` in stored fibers: fire once for each token. A coordinate that is not stored emits `N`."""
    node = node_at(address)
    s = stored_at(node.state)
    crd, ref, out = source(node, 0), source(node, node.arity - 1), target(node, 0)
    alone = node.arity == 1
    while True:
        if common_room(node, 1, common_tokens(node, node.arity)) == 0:
            return 0
        visible_at = max(visible(crd), visible(ref))
        kind, word = _look_up_coordinate(node, s, crd, ref)
        if node.fault != 0:
            return 0
        t = close(node, visible_at, out.free) if kind == CONTROL else fire(node, visible_at, out.free, 1)
        take(crd, 1, t)
        if not alone:
            take(ref, 1, t)
        _push_result(out, kind, word, t)
        if kind == CONTROL and word == DONE:
            node.waits = ENDED
            return 0


def run_locate_kept(address: int) -> int:
    """Run a `locate` that keeps its level: fire once to keep each coordinate of the level, and then once for each token."""
    node = node_at(address)
    s = stored_at(node.state)
    while s.kept < s.entries:
        k = min(s.entries - s.kept, node.burst)
        fire(node, 0, 0, k)
        s.kept += k
    return run_locate_stored(address)


@inline
def _push_result(out: Any, kind: int, word: int, t: int) -> None:
    """Emit the result of `_look_up_coordinate` on the stream `out`, in cycle t."""
    if kind == SCRATCH:
        set_int(scratch_address(out), 0, word)
        word = scratch_address(out)
    push(out, kind, word, 1, t)


@inline
def _look_up_coordinate(node: Any, s: Any, crd: Any, ref: Any) -> tuple[int, int]:
    """Return the result of a locate for the next tokens of `crd` and of `ref`, the parents: the kind of a run, and its word. For
    a reference (`SCRATCH`), the word is the reference. Set a fault for tokens that do not fit."""
    run, parents = head_run(crd), head_run(ref)
    alone = node.arity == 1
    if run.kind == CONTROL or (not alone and parents.kind == CONTROL):
        if not alone and (run.kind != parents.kind or run.word != parents.word):
            node.fault = MISALIGNED
        return CONTROL, run.word
    if run.kind == EMPTY or (not alone and parents.kind == EMPTY):
        return EMPTY, 0
    parent = 0 if alone else next_word(ref)
    if parent < 0 or parent >= s.parents:
        node.fault = OUTSIDE
        return EMPTY, 0
    s.asked += 1
    coordinate = next_word(crd)
    low, high = get_int(s.lows, parent), get_int(s.highs, parent)
    while low < high:
        middle = (low + high) >> 1
        if get_int(s.crds, middle) < coordinate:
            low = middle + 1
        else:
            high = middle
    if low == get_int(s.highs, parent) or get_int(s.crds, low) != coordinate:
        return EMPTY, 0
    return SCRATCH, low if s.refs == 0 else get_int(s.refs, low)


def run_point(address: int) -> int:
    """Run the part: fire once for each token. Emit the element of the level's arrays that holds the coordinate, and on another
    stream the result of the locate."""
    node = node_at(address)
    s = stored_at(node.state)
    crd, ref, elements, out = source(node, 0), source(node, node.arity - 1), target(node, 0), target(node, 1)
    alone = node.arity == 1
    while True:
        if common_room(node, 2, common_tokens(node, node.arity)) == 0:
            return 0
        visible_at = max(visible(crd), visible(ref))
        kind, word = _look_up_coordinate(node, s, crd, ref)
        if node.fault != 0:
            return 0
        element_kind, element_word = kind, word
        if kind != CONTROL and head_run(crd).kind != EMPTY and (alone or head_run(ref).kind != EMPTY):
            parent = 0 if alone else next_word(ref)
            set_int(scratch_address(elements), 0, parent * s.fiber + next_word(crd) // s.told)
            element_kind, element_word = SCRATCH, scratch_address(elements)
        t = close(node, visible_at, out.free) if kind == CONTROL else fire(node, visible_at, out.free, 1)
        take(crd, 1, t)
        if not alone:
            take(ref, 1, t)
        push(elements, element_kind, element_word, 1, t)
        _push_result(out, kind, word, t)
        if kind == CONTROL and word == DONE:
            node.waits = ENDED
            return 0


def run_point_kept(address: int) -> int:
    """Run the part for a kept level: fire once for each element of the level, with `N` as the result, once the level is loaded into the
    scratchpad. Then fire once for each token and emit its reference, with no element to request."""
    node = node_at(address)
    s = stored_at(node.state)
    crd, elements, out = source(node, 0), target(node, 0), target(node, 1)
    while s.kept < s.entries:
        loaded = loaded_cycle(node, s.loads) if s.kept == 0 else 0
        k = 0 if loaded == WAIT else common_room(node, 2, min(s.entries - s.kept, node.burst))
        if k == 0:
            return 0
        t = fire(node, wait_for_answer(node, 0, loaded) if s.kept == 0 else 0, out.free, k)
        push(elements, AFFINE, s.kept, k, t)
        push(out, EMPTY, 0, k, t)
        s.kept += k
    while True:
        if common_room(node, 2, common_tokens(node, 1)) == 0:
            return 0
        kind, word = _look_up_coordinate(node, s, crd, crd)
        t = close(node, visible(crd), out.free) if kind == CONTROL else fire(node, visible(crd), out.free, 1)
        take(crd, 1, t)
        push(elements, CONTROL if kind == CONTROL else EMPTY, word if kind == CONTROL else 0, 1, t)
        _push_result(out, kind, word, t)
        if kind == CONTROL and word == DONE:
            node.waits = ENDED
            return 0


RULES: dict[type[n.Node], LayoutRule] = {n.Locate: locate}
