"""The primitive `reduce` emits the fold of every innermost fiber."""

from __future__ import annotations

from functools import cache
from typing import Any

from fuseflow.float32.operator_precision import Arithmetic
from fuseflow.native.kernel_library import specialize
from fuseflow.native.records import Record, get_float, get_int, inline, set_float
from fuseflow.native.signatures import FOLD, FOLD_INTO, Function, call_fold, call_fold_into
from fuseflow.ops import reducer
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.elementwise_functions import kernel_name, of_steps, round_values, step_function
from fuseflow.sim.engine.node_firing import ENDED, REFUSED, close, fire, node_at, room_at, source, target, tokens_at
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part, word_count
from fuseflow.sim.engine.stream_rings import (
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SCRATCH,
    WORD_OFFSET,
    copy,
    element_address,
    head_address,
    head_run,
    high_of,
    low_of,
    lower_stop,
    push,
    scratch_address,
    take,
    visible,
)

REDUCE = Record("fold pending words tile rounds at sums behind", floats="value identity")
"""`pending` is the stop that is still to be sent, plus 1. `tile` is the address of the partial result, if it is a tile (`words`
above 1). `rounds` says whether the result is rounded to a 32-bit float. On `comal` only, `at` is the cycle of the firing that emits
the pending stop, `sums` says whether the values are sums, and `behind` whether the last token was a value."""
reduce_at = REDUCE.at
VALUE = REDUCE.offset("value")


def reduce(node: n.Reduce, layout: NodeLayout) -> list[Part]:
    identity = reducer(node.function).identity
    (value,) = layout.types
    state = layout.state(
        REDUCE,
        value=identity,
        identity=identity,
        words=word_count(value.tile),
        tile=layout.constant_tile(value.tile, identity),
        rounds=layout.arithmetic == "rounded",
    )
    tiles, arithmetic = word_count(value.tile) > 1, layout.arithmetic
    state["fold"] = (
        layout.library.address(fold_into(node.function, arithmetic), FOLD_INTO)
        if tiles
        else layout.library.address(fold(node.function, arithmetic), FOLD)
    )
    return layout.part(run_reduce, state, computes=tiles)


@cache
def fold(name: str, arithmetic: Arithmetic) -> Function:
    """Return the kernel that folds values, in their order, into one value by the reduction `name`."""
    arithmetic = of_steps(arithmetic)
    return specialize(_fold, kernel_name(f"fold_{name}", arithmetic), function=step_function(name, arithmetic))


@cache
def fold_into(name: str, arithmetic: Arithmetic) -> Function:
    """Return the kernel that folds k values, each into the element of its index at another address, by the reduction `name`."""
    arithmetic = of_steps(arithmetic)
    return specialize(_fold_into, kernel_name(f"fold_into_{name}", arithmetic), function=step_function(name, arithmetic))


def function(a: float, b: float) -> float:
    """Placeholder of the reduction's step in the templates below; `specialize` replaces it."""
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
    """Run the part: fire once for each token. The stop that ends a fiber emits the fold; if it ends more, a second firing,
    without input, emits the outgoing stop."""
    node = node_at(address)
    s = reduce_at(node.state)
    val, out = source(node, 0), target(node, 0)
    while True:
        if s.pending != 0:
            if room_at(node, 0) == 0:
                return 0
            push(out, CONTROL, s.pending - 1, 1, close(node, 0, out.free))
            s.pending = 0
        k = min(tokens_at(node, 0), node.burst)
        if k == 0:
            return 0
        run = head_run(val)
        visible_at, word = visible(val), run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if run.kind != CONTROL:
            fold_values(s, val, k)
            take(val, k, fire(node, visible_at, 0, k))
            continue
        if room_at(node, 0) == 0:
            return 0
        t = close(node, visible_at, out.free)
        take(val, 1, t)
        if word == DONE:
            push(out, CONTROL, DONE, 1, t)
            node.waits = ENDED
            return 0
        if low_of(word) > 0:
            push(out, CONTROL, lower_stop(word, 1), 1, t)
            continue
        emit_fold(node, s, t)
        if high_of(word) > 0:
            s.pending = lower_stop(word, 1) + 1


@inline
def fold_values(s: Any, val: Any, k: int) -> None:
    """Fold the next k values of the reader `val` into the partial result."""
    if s.words > 1:
        for i in range(k):
            call_fold_into(s.fold, s.tile, element_address(val) + 8 * s.words * i, 1, s.words)
    elif head_run(val).kind == REPEATED:
        s.value = call_fold(s.fold, s.value, head_address(val) + WORD_OFFSET, 0, k)
    else:
        s.value = call_fold(s.fold, s.value, head_run(val).word + 8 * val.offset, 1, k)


@inline
def emit_fold(node: Any, s: Any, t: int) -> None:
    """Emit the result of a fiber in cycle t, and begin the next."""
    out = target(node, 0)
    if s.words > 1:
        into = scratch_address(out)
        copy(into, s.tile, s.words)
        if s.rounds != 0:
            round_values(into, s.words)
        push(out, SCRATCH, into, 1, t)
        for i in range(s.words):
            set_float(s.tile, i, s.identity)
    else:
        if s.rounds != 0:
            round_values(node.state + VALUE, 1)
        push(out, REPEATED, get_int(node.state + VALUE, 0), 1, t)
        s.value = s.identity


RULES: dict[type[n.Node], LayoutRule] = {n.Reduce: reduce}
