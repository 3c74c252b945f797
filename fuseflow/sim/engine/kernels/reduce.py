"""Reduce: the fold of every innermost fiber."""

from __future__ import annotations

from functools import cache

from fuseflow.ops import reducer
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_layout import NodeLayout, Part, Rule, words
from fuseflow.sim.engine.node_records import ENDED, REFUSED, awaits, close, fire, node_at, rooms, source, target
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SCRATCH,
    WORD_OFFSET,
    copy,
    element,
    head_address,
    head_run,
    high_of,
    low_of,
    push,
    scratch,
    seen_above,
    take,
    visible,
)
from fuseflow.sim.native.jit import FOLD, FOLD_INTO, Function, call_fold, call_fold_into, specialize
from fuseflow.sim.native.records import Record, get_float, get_int, set_float

REDUCE = Record("fold pending words tile", floats="value identity")
"""`pending`: the stop still to be sent, plus 1; `tile`: address of the value so far, if it is a tile (`words` above 1)."""
state_at = REDUCE.at
VALUE = REDUCE.offset("value")


def reduce(node: n.Reduce, place: NodeLayout) -> list[Part]:
    identity = reducer(node.function).identity
    (value,) = place.types
    state = place.state(
        REDUCE, value=identity, identity=identity, words=words(value.tile), tile=place.filled(value.tile, identity)
    )
    tiles = words(value.tile) > 1
    state["fold"] = (
        place.library.address(fold_into(node.function), FOLD_INTO) if tiles else place.library.address(fold(node.function), FOLD)
    )
    return place.part(run_reduce, state, computes=tiles)


@cache
def fold(name: str) -> Function:
    """The reduction of values, in their order, into one."""
    return specialize(_fold, f"fold_{name}", function=reducer(name).scalar)


@cache
def fold_into(name: str) -> Function:
    """The reduction of values, one by one, into as many at another address."""
    return specialize(_fold_into, f"fold_into_{name}", function=reducer(name).scalar)


def function(a: float, b: float) -> float:
    """Stands for the reduction in the templates below."""
    raise NotImplementedError


def _fold(value: float, values: int, stride: int, k: int) -> float:
    for i in range(k):
        value = function(value, get_float(values, stride * i))
    return value


def _fold_into(into: int, values: int, stride: int, k: int) -> int:
    if stride == 0:
        value = get_float(values, 0)
        for i in range(k):
            set_float(into, i, function(get_float(into, i), value))
    else:
        for i in range(k):
            set_float(into, i, function(get_float(into, i), get_float(values, i)))
    return 0


def run_reduce(address: int) -> int:
    """One firing a token. The stop that ends a fiber makes the fold; its second firing, without input, the outgoing stop."""
    node = node_at(address)
    s = state_at(node.state)
    val, out = source(node, 0), target(node, 0)
    while True:
        if s.pending != 0:
            if rooms(node, 0) == 0:
                return 0
            push(out, CONTROL, s.pending - 1, 1, close(node, 0, out.free))
            s.pending = 0
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        run = head_run(val)
        seen, word = visible(val), run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if run.kind != CONTROL:
            if s.words > 1:
                for i in range(k):
                    call_fold_into(s.fold, s.tile, element(val) + 8 * s.words * i, 1, s.words)
            elif run.kind == REPEATED:
                s.value = call_fold(s.fold, s.value, head_address(val) + WORD_OFFSET, 0, k)
            else:
                s.value = call_fold(s.fold, s.value, run.word + 8 * val.offset, 1, k)
            take(val, k, fire(node, seen, 0, k))
            continue
        if rooms(node, 0) == 0:
            return 0
        t = close(node, seen, out.free)
        take(val, 1, t)
        if word == DONE:
            push(out, CONTROL, DONE, 1, t)
            node.waits = ENDED
            return 0
        if low_of(word) > 0:
            push(out, CONTROL, seen_above(word, 1), 1, t)
            continue
        if s.words > 1:
            into = scratch(out)
            copy(into, s.tile, s.words)
            push(out, SCRATCH, into, 1, t)
            for i in range(s.words):
                set_float(s.tile, i, s.identity)
        else:
            push(out, REPEATED, get_int(node.state + VALUE, 0), 1, t)
            s.value = s.identity
        if high_of(word) > 0:
            s.pending = seen_above(word, 1) + 1


RULES: dict[type[n.Node], Rule] = {n.Reduce: reduce}
