"""Load: the value at every reference."""

from __future__ import annotations

import numpy as np

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.memory import Record, get_float, get_float32, get_int, prefetch, set_float
from fuseflow.sim.engine.nodes import ENDED, OUTSIDE, awaits, close, fire, node_at, rooms, source, target
from fuseflow.sim.engine.place import Part, Place, Rule
from fuseflow.sim.engine.streams import (
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    RUN_SIZE,
    SCRATCH,
    SLICE,
    head_run,
    push,
    run_at,
    scratch,
    take,
    visible,
)  # fmt: skip

LOAD = Record("values count single absent", floats="fill value")  # `single`: the array holds float32
state_at = LOAD.at
AHEAD = 12  # runs whose values are fetched early
FILL, VALUE = LOAD.offset("fill"), LOAD.offset("value")


def load(node: n.Load, place: Place) -> list[Part]:
    values = place.tensors[node.tensor].values
    if values.dtype != np.float32:
        values = values.astype(np.float64, copy=False)
    single = int(values.dtype == np.float32)
    fill = place.declared[node.tensor].fill
    return place.part(run_load, place.state(LOAD, values=place.array(values), count=len(values), single=single, fill=fill))


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
        later = run_at(ref.ring + RUN_SIZE * ((ref.head + AHEAD) & ref.mask))  # if there is none yet, no harm is done
        prefetch(s.values + (4 if s.single != 0 else 8) * later.word)
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
        kind, word = REPEATED, get_int(node.state + FILL, 0)
        if run.kind == EMPTY:
            s.absent += k
        elif run.kind == REPEATED:
            if run.word < 0 or run.word >= s.count:
                node.fault = OUTSIDE
                return 0
            s.value = get_float32(s.values, run.word) if s.single != 0 else get_float(s.values, run.word)
            word = get_int(node.state + VALUE, 0)
        elif run.kind == AFFINE:
            r = run.word + first
            if r < 0 or r + k > s.count:
                node.firings += max(s.count - r, 0) if r >= 0 else 0  # those before the fault
                node.fault = OUTSIDE
                return 0
            kind, word = SLICE, s.values + 8 * r
            if s.single != 0:
                kind, word = SCRATCH, scratch(out)
                for i in range(k):
                    set_float(word, i, get_float32(s.values, r + i))
        else:
            kind, word = SCRATCH, scratch(out)
            for i in range(k):
                r = get_int(run.word, first + i)
                if r < 0 or r >= s.count:
                    node.firings += i
                    node.fault = OUTSIDE
                    return 0
                set_float(word, i, get_float32(s.values, r) if s.single != 0 else get_float(s.values, r))
        t = fire(node, seen, out.free, k)
        take(ref, k, t)
        push(out, kind, word, k, t)


RULES: dict[type[n.Node], Rule] = {n.Load: load}
