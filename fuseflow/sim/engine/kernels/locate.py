"""Locate: random access into a level, computed or stored."""

from __future__ import annotations

from typing import Any, assert_never

from fuseflow.errors import SimulationError
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_layout import NodeLayout, Part, Rule
from fuseflow.sim.engine.node_records import ENDED, MISALIGNED, OUTSIDE, awaits, close, fire, node_at, rooms, source, target
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SCRATCH,
    head_run,
    next_word,
    push,
    scratch,
    take,
    visible,
    word_in,
)
from fuseflow.sim.native.records import Record, get_int, inline, set_int
from fuseflow.tensors.levels.base import Computed, Listed

LOCATE = Record("size")
state_at = LOCATE.at
STORED = Record("lows highs crds refs parents asked fiber told")
"""Of a locate in fibers that are stored: their coordinates (`base.Listed`); how many were looked for; at a memory that takes time, the
elements of a fiber, and of how many coordinates one tells."""
stored_at = STORED.at
ABSENT = -1


def locate(node: n.Locate, place: NodeLayout) -> list[Part]:
    decl = place.declared[node.tensor]
    if decl.format.levels[node.level].stored:
        return place.part(run_locate_stored, place.state(STORED, **fibers_of(node, place)))
    return place.part(run_locate, place.state(LOCATE, size=decl.shape[decl.format.order[node.level]]))


def fibers_of(node: n.Locate, place: NodeLayout) -> dict[str, int]:
    """The fields of `STORED` that say where the fibers of the level are."""
    match walk := place.tensors[node.tensor].levels[node.level].walk():
        case Listed():
            fields = {"lows": walk.lows, "highs": walk.highs, "crds": walk.crds, "refs": walk.refs}
            arrays = {name: place.array(values) for name, values in fields.items() if values is not None}
            return {**arrays, "parents": walk.parents}
        case Computed():
            raise SimulationError(f"node `{node.name}`: the fibers of a stored level of `{node.tensor}` are computed")
        case _:
            assert_never(walk)


def run_locate(address: int) -> int:
    """One firing a token: the coordinate, and the parent unless the level is the outermost."""
    node = node_at(address)
    s = state_at(node.state)
    crd, ref, out = source(node, 0), source(node, node.arity - 1), target(node, 0)
    alone = node.arity == 1
    while True:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        seen = visible(crd)
        if not alone:
            k = min(k, awaits(node, 1))
            if k == 0:
                return 0
            seen = max(seen, visible(ref))
        k = min(k, rooms(node, 0))
        if k == 0:
            return 0
        run, first = head_run(crd), crd.offset
        parents, parent = head_run(ref), ref.offset
        if (run.kind == CONTROL) != (parents.kind == CONTROL) or (run.kind == CONTROL and run.word != parents.word):
            node.fault = MISALIGNED
            return 0
        if run.kind == CONTROL:
            word = run.word
            t = close(node, seen, out.free)
            take(crd, 1, t)
            if not alone:
                take(ref, 1, t)
            push(out, CONTROL, word, 1, t)
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        if run.kind == EMPTY or parents.kind == EMPTY:
            kind, word = EMPTY, 0
        elif run.kind == AFFINE and (alone or parents.kind == REPEATED):
            kind, word = AFFINE, run.word + first
            if not alone:
                word += parents.word * s.size
        else:
            kind, word = SCRATCH, scratch(out)
            for i in range(k):
                above = 0 if alone else word_in(parents, parent + i) * s.size
                set_int(word, i, above + word_in(run, first + i))
        t = fire(node, seen, out.free, k)
        take(crd, k, t)
        if not alone:
            take(ref, k, t)
        push(out, kind, word, k, t)


def run_locate_stored(address: int) -> int:
    """The same where coordinates are stored: one that is not there gives `N`."""
    node = node_at(address)
    s = stored_at(node.state)
    crd, ref, out = source(node, 0), source(node, node.arity - 1), target(node, 0)
    alone = node.arity == 1
    while True:
        if awaits(node, 0) == 0 or (not alone and awaits(node, 1) == 0) or rooms(node, 0) == 0:
            return 0
        seen = max(visible(crd), visible(ref))
        kind, word = look_up(node, s, crd, ref)
        if node.fault != 0:
            return 0
        t = close(node, seen, out.free) if kind == CONTROL else fire(node, seen, out.free, 1)
        take(crd, 1, t)
        if not alone:
            take(ref, 1, t)
        if kind == SCRATCH:
            set_int(scratch(out), 0, word)
            word = scratch(out)
        push(out, kind, word, 1, t)
        if kind == CONTROL and word == DONE:
            node.waits = ENDED
            return 0


@inline
def look_up(node: Any, s: Any, crd: Any, ref: Any) -> tuple[int, int]:
    """What a locate gives for the next tokens: the kind of a run, and its word; of a reference (`SCRATCH`) the number itself."""
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
    wanted = next_word(crd)
    low, high = get_int(s.lows, parent), get_int(s.highs, parent)
    while low < high:
        middle = (low + high) >> 1
        if get_int(s.crds, middle) < wanted:
            low = middle + 1
        else:
            high = middle
    if low == get_int(s.highs, parent) or get_int(s.crds, low) != wanted:
        return EMPTY, 0
    return SCRATCH, low if s.refs == 0 else get_int(s.refs, low)


RULES: dict[type[n.Node], Rule] = {n.Locate: locate}
