"""At a memory that takes time, this part of a `locate` in a stored level emits which elements to request (docs/memory.md)."""

from __future__ import annotations

from fuseflow.native.records import set_int
from fuseflow.sim.engine.kernels.locate import look_up_coordinate, stored_at
from fuseflow.sim.engine.node_records import ENDED, close, fire, node_at, room_at, source, target, tokens_at
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    SCRATCH,
    head_run,
    next_word,
    push,
    scratch_address,
    take,
    visible,
)


def run_point(address: int) -> int:
    """Run the part: fire once for each token. Emit the element of the level's arrays that holds the coordinate, and on another
    stream the result of the locate."""
    node = node_at(address)
    s = stored_at(node.state)
    crd, ref, elements, out = source(node, 0), source(node, node.arity - 1), target(node, 0), target(node, 1)
    alone = node.arity == 1
    while True:
        if tokens_at(node, 0) == 0 or (not alone and tokens_at(node, 1) == 0) or room_at(node, 0) == 0 or room_at(node, 1) == 0:
            return 0
        visible_at = max(visible(crd), visible(ref))
        kind, word = look_up_coordinate(node, s, crd, ref)
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
        if kind == SCRATCH:
            set_int(scratch_address(out), 0, word)
            word = scratch_address(out)
        push(elements, element_kind, element_word, 1, t)
        push(out, kind, word, 1, t)
        if kind == CONTROL and word == DONE:
            node.waits = ENDED
            return 0


def run_point_kept(address: int) -> int:
    """Run the part for a kept level: fire once for each element of the level, with `N` as the result. Then fire once for each
    token and emit its reference, with no element to request."""
    node = node_at(address)
    s = stored_at(node.state)
    crd, elements, out = source(node, 0), target(node, 0), target(node, 1)
    while s.kept < s.entries:
        k = min(s.entries - s.kept, node.burst, room_at(node, 0))
        if k == 0:
            return 0
        k = min(k, room_at(node, 1))
        if k == 0:
            return 0
        t = fire(node, 0, out.free, k)
        push(elements, AFFINE, s.kept, k, t)
        push(out, EMPTY, 0, k, t)
        s.kept += k
    while True:
        if tokens_at(node, 0) == 0 or room_at(node, 0) == 0 or room_at(node, 1) == 0:
            return 0
        kind, word = look_up_coordinate(node, s, crd, crd)
        t = close(node, visible(crd), out.free) if kind == CONTROL else fire(node, visible(crd), out.free, 1)
        take(crd, 1, t)
        push(elements, CONTROL if kind == CONTROL else EMPTY, word if kind == CONTROL else 0, 1, t)
        if kind == SCRATCH:
            set_int(scratch_address(out), 0, word)
            word = scratch_address(out)
        push(out, kind, word, 1, t)
        if kind == CONTROL and word == DONE:
            node.waits = ENDED
            return 0
