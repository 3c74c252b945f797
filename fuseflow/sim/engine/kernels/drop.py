"""Drop: entries that leave, and the coordinates below which nothing is left."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.nested_streams import NEST, childless, enter, leave, look, look_ends, nest_at
from fuseflow.sim.engine.node_layout import NodeLayout, Part, Rule
from fuseflow.sim.engine.node_records import (  # fmt: skip
    ENDED,
    MISALIGNED,
    WAIT,
    awaits,
    close,
    fire,
    look_everywhere,
    node_at,
    rooms,
    source,
    take_everywhere,
    target,
)
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    SLICE,
    WORD_OFFSET,
    head_address,
    head_run,
    high_of,
    is_control,
    low_of,
    pass_on,
    push,
    seen_above,
    stop,
    take,
    visible,
)
from fuseflow.sim.native.records import Record, get_float, get_int, inline

DROP = Record("nest emitted held kept", floats="value")
"""How many of the open coordinates were emitted; up to which level the held stop reaches (-1: none is held); whether the list of the
outermost coordinates has a kept value; the value that leaves (NaN, which nothing equals: only `N` does)."""
state_at = DROP.at


def drop(node: n.Drop, place: NodeLayout) -> list[Part]:
    depth = len(node.inputs) - 2
    nest = place.array(place.state(NEST, depth=depth, crds=place.array(np.zeros(max(depth, 1), dtype=np.int64))))
    value = float("nan") if node.value is None else node.value
    return place.part(run_drop, place.state(DROP, nest=nest, held=-1, value=value))


def run_drop(address: int) -> int:
    """One firing an inner token, and one for each coordinate with nothing below it. A coordinate goes with its first kept value.

    A stop below the outermost coordinates divides a list only if a kept value follows in that list. It is held until then and
    goes in a firing of its own before the value.
    """
    node = node_at(address)
    s = state_at(node.state)
    nest = nest_at(s.nest)
    depth = nest.depth
    crd, val = source(node, depth), source(node, depth + 1)
    while True:
        k = min(awaits(node, depth + 1), node.burst)
        if k == 0:
            return 0
        seen = visible(val)
        control, word = is_control(val), head_run(val).word
        if control and (word == DONE or not childless(nest, word)):
            if not _end(node, s, nest, word, seen):
                return 0
            continue
        # A value with the coordinates around it; or only coordinates, around an empty list
        leaves = control or _alike(s, val, 1, True) > 0
        if not leaves and s.held >= 0:
            if _push_end(node, depth, stop(0, s.held), seen) == WAIT:
                return 0
            s.held = -1
        levels = depth
        if control:
            levels -= low_of(word)
        else:
            k = min(k, awaits(node, depth))
            if k == 0:
                return 0
            seen = max(seen, visible(crd))
        outer = look(node, nest, levels)
        if outer == WAIT:
            return 0
        first, free = node.ports if leaves else s.emitted, 0  # the outputs from `first` on get tokens
        for q in range(first, node.ports):
            places = rooms(node, q)
            if places == 0:
                return 0
            free = max(free, target(node, q).free)
            if q >= depth:
                k = min(k, places)
        if not control:
            k = _alike(s, val, k, leaves)
        t = fire(node, max(seen, outer), free, k)
        enter(node, nest, levels, t)
        if control:
            if node.fault != 0:
                return 0
            continue
        if node.fault != 0 or is_control(crd):
            node.fault = MISALIGNED
            return 0
        for q in range(first, node.ports):
            out = target(node, q)
            kind, given, count = AFFINE, 0, 1
            if q < depth:
                given = get_int(nest.crds, q)
            else:
                reader = source(node, q)
                kind, given = pass_on(head_run(reader), reader.offset, out, k)
                count = k
            push(out, kind, given, count, t)
        if not leaves:
            s.emitted, s.kept = depth, 1
        take(crd, k, t)
        take(val, k, t)


@inline
def _alike(s: Any, val: Any, k: int, leave: bool) -> int:
    """How many of the next k values of a run all leave, or all stay."""
    run = head_run(val)
    if run.kind == EMPTY or s.value != s.value:
        return k if leave == (run.kind == EMPTY) else 0
    if run.kind < SLICE:
        return k if leave == (get_float(head_address(val) + WORD_OFFSET, 0) == s.value) else 0
    at = run.word + 8 * val.offset
    for i in range(k):
        if leave != (get_float(at, i) == s.value):
            return i
    return k


@inline
def _end(node: Any, s: Any, nest: Any, word: int, seen: int) -> bool:
    """Take an inner stop with all that it ends, or `D`. False if something is missing, or after `D`."""
    depth = nest.depth
    crd, end = source(node, depth), word
    if word == DONE:
        seen = look_everywhere(node)
        if seen == WAIT:
            return False
    else:
        if awaits(node, depth) == 0:
            return False
        ends = look_ends(node, nest, word)
        if ends == WAIT:
            return False
        seen = max(seen, ends, visible(crd))
        if not is_control(crd) or head_run(crd).word != word:
            node.fault = MISALIGNED
            return False
        end = stop(0 if s.kept != 0 else max(low_of(word), depth), high_of(word))
    if high_of(word) >= depth:
        t = _push_end(node, depth, end, seen)
        if t == WAIT:
            return False
        s.held, s.kept = -1, 0
    else:
        t = close(node, seen, 0)
        if s.kept != 0:
            s.held = max(s.held, high_of(word))
    if word == DONE:
        take_everywhere(node, DONE, t)
        node.waits = ENDED
        return False
    leave(node, nest, word, t)
    take(crd, 1, t)
    take(source(node, depth + 1), 1, t)
    s.emitted = min(s.emitted, nest.open)
    return node.fault == 0


@inline
def _push_end(node: Any, depth: int, word: int, seen: int) -> int:
    """A firing that gives a stop of the innermost streams, and of the outer streams in which it ends a list; or `D`, of all. Its cycle,
    or WAIT."""
    first, free = max(depth - high_of(word), 0), 0
    for q in range(first, node.ports):
        if rooms(node, q) == 0:
            return WAIT
        free = max(free, target(node, q).free)
    t = close(node, seen, free)
    for q in range(first, node.ports):
        push(target(node, q), CONTROL, word if word == DONE else seen_above(word, max(depth - q, 0)), 1, t)
    return t


RULES: dict[type[n.Node], Rule] = {n.Drop: drop}
