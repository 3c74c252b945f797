"""Alu: a pointwise operator on aligned values. The operator is a compiled function of its own, found by address."""

from __future__ import annotations

from functools import cache
from typing import Any

from fuseflow.ops import operator
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.jit import ELEMENTWISE, Function, call_elementwise, specialize
from fuseflow.sim.engine.memory import COMPILED, Record, get_float, get_int, inline, set_float
from fuseflow.sim.engine.nodes import ENDED, MISALIGNED, awaits, close, fire, node_at, rooms, source, target
from fuseflow.sim.engine.place import Part, Place, Rule
from fuseflow.sim.engine.streams import (
    CONTROL,
    DONE,
    REPEATED,
    SCRATCH,
    SLICE,
    WORD_OFFSET,
    head_address,
    head_run,
    is_control,
    push,
    scratch,
    take,
    visible,
)  # fmt: skip

ALU = Record("function input0 input1 input2", floats="value0 value1 value2")
"""Of each operand slot: which input feeds it (-1: none), and its constant or the value of an `N`."""
state_at = ALU.at
VALUE0, VALUE1, VALUE2 = (ALU.offset(f"value{slot}") for slot in range(3))
NO_INPUT = -1


def alu(node: n.Alu, place: Place) -> list[Part]:
    state: dict[str, float] = {"function": place.library.address(elementwise(node.function), ELEMENTWISE)}
    streams = iter(range(len(node.inputs)))
    for slot in range(3):
        operand = node.operands[slot] if slot < len(node.operands) else n.Operand(0.0, constant=True)
        state[f"input{slot}"] = NO_INPUT if operand.constant else next(streams)
        state[f"value{slot}"] = operand.value
    return place.part(run_alu, place.state(ALU, **state))


@cache
def elementwise(name: str) -> Function:
    """The operator on arrays, results and operands at addresses; an operand of stride 0 is the same for all."""
    row = operator(name)
    template = {1: _unary, 2: _binary, 3: _ternary}[row.arity]
    return specialize(template, f"elementwise_{name}", function=row.compiled if COMPILED else row.scalar)


def run_alu(address: int) -> int:
    """One firing a token: all operands are looked at and taken together."""
    node = node_at(address)
    s = state_at(node.state)
    out = target(node, 0)
    while True:
        k, seen, controls = node.burst, 0, 0
        for q in range(node.arity):
            k = min(k, awaits(node, q))
            if k == 0:
                return 0
            seen = max(seen, visible(source(node, q)))
            controls += is_control(source(node, q))
        k = min(k, rooms(node, 0))
        if k == 0:
            return 0
        if controls == 0:
            a, sa = _operand(node, s.input0, node.state + VALUE0)
            b, sb = _operand(node, s.input1, node.state + VALUE1)
            c, sc = _operand(node, s.input2, node.state + VALUE2)
            kind, word = SCRATCH, scratch(out)
            varies = sa + sb + sc > 0
            call_elementwise(s.function, word, k if varies else 1, a, sa, b, sb, c, sc)
            if not varies:
                kind, word = REPEATED, get_int(word, 0)
            t = fire(node, seen, out.free, k)
            for q in range(node.arity):
                take(source(node, q), k, t)
            push(out, kind, word, k, t)
            continue
        word = head_run(source(node, 0)).word
        t = close(node, seen, out.free)
        for q in range(node.arity):
            if not is_control(source(node, q)) or head_run(source(node, q)).word != word:
                node.fault = MISALIGNED
                return 0
            take(source(node, q), 1, t)
        push(out, CONTROL, word, 1, t)
        if word == DONE:
            node.waits = ENDED
            return 0


@inline
def _operand(node: Any, q: int, constant: int) -> tuple[int, int]:
    """Address and stride of an operand's next values."""
    if q < 0:
        return constant, 0
    reader = source(node, q)
    run = head_run(reader)
    if run.kind >= SLICE:
        return run.word + 8 * reader.offset, 1
    if run.kind == REPEATED:
        return head_address(reader) + WORD_OFFSET, 0
    return constant, 0


def function(*operands: float) -> float:
    """Stands for the operator in the templates below."""
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


RULES: dict[type[n.Node], Rule] = {n.Alu: alu}
