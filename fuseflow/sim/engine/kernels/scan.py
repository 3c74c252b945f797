"""Scan and range: the fiber below every reference."""

from __future__ import annotations

from typing import Any, assert_never

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_layout import Link, NodeLayout, Part, Rule
from fuseflow.sim.engine.node_records import ENDED, MISALIGNED, OUTSIDE, awaits, close, fire, node_at, rooms, source, target
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    SLICE,
    coming,
    head_run,
    low_of,
    next_word,
    push,
    raised,
    stop,
    take,
    visible,
)
from fuseflow.sim.native.records import Record, get_int, inline, prefetch
from fuseflow.tensors.levels.base import Computed, Listed

FIELDS = (
    "size lows highs crds refs spans parents every "  # a dense level has a size; others the bounds of each fiber, and its elements
    "phase next end base references entries"  # `every`: an `N` has a full fiber too
)
SCAN = Record(FIELDS)
BETWEEN, OPENED, INSIDE, CLOSING = 0, 1, 2, 3
"""Before a reference; its fiber looked up, nothing emitted; some elements emitted; all emitted, the end not yet."""
ANY = 1 << 60  # parents of a level without elements, or without a tensor: no reference is outside
state_at = SCAN.at


def scan(node: n.Scan, place: NodeLayout) -> list[Part]:
    return place.part(run_scan, place.state(SCAN, **fibers_of(node, place)), computes=False)


def fibers_of(node: n.Scan, place: NodeLayout) -> dict[str, int]:
    """The fields of `SCAN` that say where the fibers of the level are."""
    match walk := place.tensors[node.tensor].levels[node.level].walk():
        case Computed():
            return {"size": walk.size, "parents": ANY if walk.parents is None else walk.parents}
        case Listed():
            fields = {"lows": walk.lows, "highs": walk.highs, "crds": walk.crds, "refs": walk.refs, "spans": walk.spans}
            arrays = {name: place.array(values) for name, values in fields.items() if values is not None}
            return {**arrays, "parents": walk.parents}
        case _:
            assert_never(walk)


def range_(node: n.Range, place: NodeLayout) -> list[Part]:
    state = place.state(SCAN, size=node.size, parents=ANY, every=1)
    return [Part(run_scan, state, node.inputs, (*place.outputs, Link()), computes=False)]


def run_scan(address: int) -> int:
    """One firing an element, the first takes the reference too; a reference without elements (or `N`, except of a bare range) costs
    one. Then the closing firing, which looks at the next reference token: a stop is merged, else the fiber ends alone."""
    node = node_at(address)
    s = state_at(node.state)
    ref, crds, refs = source(node, 0), target(node, 0), target(node, 1)
    while True:
        seen = 0
        if s.phase != INSIDE:
            if awaits(node, 0) == 0:
                return 0
            seen = visible(ref)
            control = head_run(ref).kind == CONTROL
            if control or s.phase == CLOSING:
                if rooms(node, 0) == 0 or rooms(node, 1) == 0:
                    return 0
                word = next_word(ref)
                end = stop(0, 0)
                taken = control and (s.phase == BETWEEN or word != DONE)
                if taken:
                    end = word if word == DONE else raised(word, 1)
                    if s.phase == CLOSING:
                        if low_of(word) != 0:
                            node.fault = MISALIGNED
                            return 0
                        end -= stop(1, 0)  # the fiber's own end is part of it
                t = close(node, seen, max(crds.free, refs.free))
                if taken:
                    take(ref, 1, t)
                push(crds, CONTROL, end, 1, t)
                push(refs, CONTROL, end, 1, t)
                s.phase = BETWEEN
                if end == DONE:
                    node.waits = ENDED
                    return 0
                continue
            if s.phase == BETWEEN:
                if s.lows != 0:
                    prefetch(s.lows + 8 * coming(ref))
                if not look_up(s, ref):
                    node.fault = OUTSIDE
                    return 0
                s.phase = OPENED
            if s.next == s.end:
                take(ref, 1, fire(node, seen, 0, 1))
                s.phase = CLOSING
                continue
        k = min(rooms(node, 0), node.burst, s.end - s.next)
        if k == 0:
            return 0
        k = min(k, rooms(node, 1))
        if k == 0:
            return 0
        t = fire(node, seen, max(crds.free, refs.free), k)
        if s.phase == OPENED:
            take(ref, 1, t)
            s.phase = INSIDE
        if s.lows == 0:
            push(crds, AFFINE, s.next, k, t)
            push(refs, AFFINE, s.base + s.next, k, t)
        else:
            push(crds, SLICE, s.crds + 8 * s.next, k, t)
            if s.refs == 0:
                push(refs, AFFINE, s.next, k, t)
            else:
                push(refs, SLICE, s.refs + 8 * s.next, k, t)
        s.next += k
        if s.next == s.end:
            s.phase = CLOSING


@inline
def look_up(s: Any, ref: Any) -> bool:
    """Find the fiber below the next reference; False if there is no such reference."""
    s.next, s.end = 0, s.size
    if head_run(ref).kind == EMPTY:
        s.end *= s.every
        return True
    r = next_word(ref)
    if r < 0 or r >= s.parents:
        return False
    s.base = r * s.size
    if s.lows != 0:
        s.next, s.end = get_int(s.lows, r), get_int(s.highs, r)
        s.references += 1
        prefetch(s.crds + 8 * s.next)
        s.entries += s.end - s.next if s.spans == 0 else get_int(s.spans, r)
    return True


RULES: dict[type[n.Node], Rule] = {n.Scan: scan, n.Range: range_}
