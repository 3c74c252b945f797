"""Operators and reductions in each arithmetic: their single steps as functions, from which kernels are built, and operators as compiled
functions on arrays, called by address; and the steps that all kernels of `alu` nodes share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, assert_never

import numpy as np

from fuseflow.float32.functions import FUNCTIONS
from fuseflow.float32.operator_precision import Arithmetic
from fuseflow.float32.words import rounded as rounded_in_python
from fuseflow.native.kernel_library import specialize
from fuseflow.native.records import COMPILED, get_float, get_float32, get_int32, inline, set_float, set_float32, set_int32
from fuseflow.native.signatures import Function
from fuseflow.ops import operator, reducer
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_firing import fire, room_at, source, target, tokens_at
from fuseflow.sim.engine.stream_rings import is_control, push, take, visible


def kernel_name(name: str, arithmetic: Arithmetic) -> str:
    """Return the name of the kernel `name` for an arithmetic: `f64` adds nothing."""
    return name if arithmetic == "f64" else f"{name}_{arithmetic}"


def operator_function(name: str, arithmetic: Arithmetic) -> Function:
    """Return an operator on numbers. In `f32`, and in `rounded` if the operator rounds, the result is rounded to 32 bits."""
    row = operator(name)
    if arithmetic == "rounded" and not row.rounds:
        arithmetic = "f64"
    template = (_rounded_unary, _rounded_binary, _rounded_ternary)[row.arity - 1]
    return _rounding(row.compiled if COMPILED else row.scalar, template, name, arithmetic)


def step_function(name: str, arithmetic: Arithmetic) -> Function:
    """Return the step of a reduction on numbers. In `f32` its result is rounded to 32 bits. In `rounded` no step is rounded."""
    return _rounding(reducer(name).scalar, _rounded_binary, f"step_{name}", of_steps(arithmetic))


def of_steps(arithmetic: Arithmetic) -> Arithmetic:
    """Return the arithmetic of the steps of a reduction: a result that is `rounded` in the end is folded in 64 bits."""
    return "f64" if arithmetic == "rounded" else arithmetic


def _rounding(function: Function, template: Function, name: str, arithmetic: Arithmetic) -> Function:
    match arithmetic:
        case "f64":
            return function
        case "f32" | "rounded":
            return specialize(template, kernel_name(name, arithmetic), function=function, rounded=nearest)
        case _:
            assert_never(arithmetic)


def rounded(x: float) -> float:
    """Return the 32-bit float that is nearest to a number, in compiled code."""
    return float(np.float32(x))


nearest = rounded if COMPILED else rounded_in_python


@inline
def round_values(at: int, count: int) -> None:
    """Round `count` numbers at an address to 32-bit floats."""
    for i in range(count):
        set_float(at, i, nearest(get_float(at, i)))


def _rounded_unary(a: float) -> float:
    return rounded(function(a))


def _rounded_binary(a: float, b: float) -> float:
    return rounded(function(a, b))


def _rounded_ternary(a: float, b: float, c: float) -> float:
    return rounded(function(a, b, c))


NO_INPUT = -1


def operand_inputs(node: n.Alu) -> Iterator[tuple[int, float]]:
    """Yield for each of three operand slots the input that feeds it (NO_INPUT: none), and its constant or the value of an `N`."""
    streams = iter(range(len(node.inputs)))
    for slot in range(3):
        operand = node.operands[slot] if slot < len(node.operands) else n.Operand(0.0, constant=True)
        yield NO_INPUT if operand.constant else next(streams), operand.value


@inline
def look_at_operands(node: Any) -> tuple[int, int, int]:
    """Return three numbers: how many tokens all inputs have in one run and the output has room for (0: the node waits); the cycle
    by which the first tokens are visible; and how many of the first tokens are control tokens."""
    k, visible_at, controls = node.burst, 0, 0
    for q in range(node.arity):
        k = min(k, tokens_at(node, q))
        if k == 0:
            return 0, 0, 0
        visible_at = max(visible_at, visible(source(node, q)))
        controls += is_control(source(node, q))
    return min(k, room_at(node, 0)), visible_at, controls


@inline
def push_results(node: Any, visible_at: int, kind: int, word: int, k: int) -> None:
    """Fire k times: take k tokens of each operand and emit the run of results with this kind and word."""
    out = target(node, 0)
    t = fire(node, visible_at, out.free, k)
    for q in range(node.arity):
        take(source(node, q), k, t)
    push(out, kind, word, k, t)


@cache
def elementwise(name: str, arithmetic: Arithmetic) -> Function:
    """Return the operator `name` as a kernel on arrays at addresses. An operand of stride 0 is the same for all results."""
    if arithmetic == "rounded" and not operator(name).rounds:
        return elementwise(name, "f64")
    arity, own = operator(name).arity, kernel_name(f"elementwise_{name}", arithmetic)
    if arithmetic == "f32" and name in FUNCTIONS:
        return specialize((_unary_on_words, _binary_on_words, _ternary_on_words)[arity - 1], own, on_words=FUNCTIONS[name])
    template = (_unary, _binary, _ternary)[arity - 1]
    return specialize(template, own, function=operator_function(name, arithmetic))


def function(*operands: float) -> float:
    """Placeholder of the operator in the templates below; `specialize` replaces it."""
    raise NotImplementedError


def _unary(out: int, k: int, a: int, sa: int, b: int, sb: int, c: int, sc: int) -> int:
    for i in range(k):
        set_float(out, i, function(get_float(a, sa * i)))
    return 0


def _binary(out: int, k: int, a: int, sa: int, b: int, sb: int, c: int, sc: int) -> int:
    if sa == 0:
        x = get_float(a, 0)
        for i in range(k):
            set_float(out, i, function(x, get_float(b, sb * i)))
    elif sb == 0:
        y = get_float(b, 0)
        for i in range(k):
            set_float(out, i, function(get_float(a, i), y))
    else:
        for i in range(k):
            set_float(out, i, function(get_float(a, i), get_float(b, i)))
    return 0


def _ternary(out: int, k: int, a: int, sa: int, b: int, sb: int, c: int, sc: int) -> int:
    for i in range(k):
        set_float(out, i, function(get_float(a, sa * i), get_float(b, sb * i), get_float(c, sc * i)))
    return 0


def on_words(*operands: int) -> int:
    """Placeholder of the function on 32-bit words in the templates below."""
    raise NotImplementedError


WORD = (1 << 32) - 1


def _unary_on_words(out: int, k: int, a: int, sa: int, b: int, sb: int, c: int, sc: int) -> int:
    for i in range(k):
        set_float32(out, 2 * i, get_float(a, sa * i))
        _set_word(out, i, on_words(get_int32(out, 2 * i) & WORD))
    return 0


def _binary_on_words(out: int, k: int, a: int, sa: int, b: int, sb: int, c: int, sc: int) -> int:
    for i in range(k):
        set_float32(out, 2 * i, get_float(a, sa * i))
        set_float32(out, 2 * i + 1, get_float(b, sb * i))
        _set_word(out, i, on_words(get_int32(out, 2 * i) & WORD, get_int32(out, 2 * i + 1) & WORD))
    return 0


def _ternary_on_words(out: int, k: int, a: int, sa: int, b: int, sb: int, c: int, sc: int) -> int:
    for i in range(k):
        set_float32(out, 2 * i, get_float(a, sa * i))
        set_float32(out, 2 * i + 1, get_float(b, sb * i))
        first, second = get_int32(out, 2 * i) & WORD, get_int32(out, 2 * i + 1) & WORD
        set_float32(out, 2 * i, get_float(c, sc * i))
        _set_word(out, i, on_words(first, second, get_int32(out, 2 * i) & WORD))
    return 0


@inline
def _set_word(out: int, i: int, word: int) -> None:
    """Set result i of the array at `out` to the float whose 32 bits are `word`. The same slot serves as scratch for the word."""
    set_int32(out, 2 * i, word)
    set_float(out, i, get_float32(out, 2 * i))
