"""Locate, load and operators have one firing for each token, and aligned inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from fuseflow.float32.arithmetic import Arithmetic, array_rounding, rounded_value, scalar_function
from fuseflow.ops import operator
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop, is_control
from fuseflow.sim.memory.layout import ArrayKind
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps, await_slots, await_tokens
from fuseflow.tensors.levels import Fibers
from fuseflow.tile_ops import TILE_OPERATORS, TileOperator, TileShape, constant_tile, map_elements


def locate(node: n.Locate, context: NodeContext) -> Sequence[Process]:
    size, level = context.size(node.tensor, node.level), context.level(node)
    if level.kept:
        return context.process(_locate_kept, context.fibers(node))
    if level.stored:
        return context.process(_locate, context.fibers(node), [array.kind for array in level.points(size)])
    if len(node.inputs) == 1:  # the outermost level: its only parent is reference 0
        return context.process(_unary, lambda crd: crd)
    return context.process(_binary, lambda crd, ref: N if crd is N or ref is N else ref * size + crd)


def load(node: n.Load, context: NodeContext) -> Sequence[Process]:
    decl = context.declared[node.tensor]
    values = context.tensors[node.tensor].values.astype(float)
    values.flags.writeable = False
    return context.process(
        _load, list(values) if decl.tile else values.tolist(), constant_tile(decl.tile, decl.fill), prod(decl.tile)
    )


def alu(node: n.Alu, context: NodeContext) -> Sequence[Process]:
    by_arity: dict[int, Callable[..., Steps]] = {1: _unary, 2: _binary}
    tiles = [type_.tile for type_ in context.types]
    function = _stream_function(_function(node.function, tiles, context.arithmetic), _operand_slots(node, tiles))
    if context.sums:
        return context.process(_variadic, function, True)
    return context.process(by_arity.get(len(context.inputs), _variadic), function)


def _function(name: str, tiles: Sequence[TileShape], arithmetic: Arithmetic) -> Callable[..., Any]:
    """Return the operator on elements of these shapes."""
    if name in TILE_OPERATORS:
        return _tile_operator(TILE_OPERATORS[name], arithmetic)
    scalar = scalar_function(operator(name), arithmetic)
    return partial(map_elements, scalar) if any(tiles) else scalar


def _tile_operator(row: TileOperator, arithmetic: Arithmetic) -> Callable[..., Any]:
    """Return an operator on tiles. Results that are `rounded` are so once, in the end."""
    if arithmetic == "rounded":
        return lambda *tiles: rounded_value(row.array(array_rounding("f64"), *tiles))
    return partial(row.array, array_rounding(arithmetic))


def _operand_slots(node: n.Alu, tiles: Sequence[TileShape]) -> list[tuple[Any, bool]]:
    """Return for each operand its constant, or the value that `N` stands for, and whether it is a constant."""
    shapes = iter(tiles)
    return [(o.value if o.constant else constant_tile(next(shapes), o.value), o.constant) for o in node.operands]


def reference_lookup(p: Process, fibers: Fibers) -> Callable[[int, int], Any]:
    """Return a function from a coordinate and the reference above it to the reference of the coordinate, which is `N` if nothing is
    stored there."""
    parents = fibers.walk().parents

    def reference(crd: int, ref: int) -> Any:
        if ref < 0 or (parents is not None and ref >= parents):
            raise p.outside()
        below = fibers.locate(ref, crd)
        return N if below is None else below

    return reference


def _locate(p: Process, fibers: Fibers, kinds: Sequence[ArrayKind]) -> Steps:
    """Locate coordinates in a level that is stored, which reads one element of each of the arrays `kinds`."""
    lookups, reference = 0, reference_lookup(p, fibers)

    def at(crd: Any, ref: Any = 0) -> Any:
        nonlocal lookups
        if crd is N or ref is N:
            return N
        lookups += 1
        return reference(crd, ref)

    yield from (_unary if len(p.inputs) == 1 else _binary)(p, at)
    p.elements = dict.fromkeys(kinds, lookups)


def kept_references(fibers: Fibers) -> Callable[[Any], Any]:
    """Return a function from a coordinate of an outermost level to its reference, which is `N` if nothing is stored there."""
    kept = dict(zip(*fibers.fiber(0), strict=True))
    return lambda crd: kept.get(crd, N)


def _locate_kept(p: Process, fibers: Fibers) -> Steps:
    """Keep the coordinates of an outermost level, one in each firing, and then look up one for each token."""
    for _ in range(fibers.entries):
        p.fire(0)
    yield from _unary(p, kept_references(fibers))
    p.elements = {"crd": fibers.entries}


def _load(p: Process, values: list[Any], fill: Any, words: int) -> Steps:
    absent = 0

    def lookup(ref: Any) -> Any:
        nonlocal absent
        if ref is N:
            absent += 1
            return fill
        if not 0 <= ref < len(values):
            raise p.outside()
        return values[ref]

    yield from _unary(p, lookup)
    p.elements = {"val": (p.values - absent) * words}


def _stream_function(function: Callable[..., Any], slots: Sequence[tuple[Any, bool]]) -> Callable[..., Any]:
    """Return the operator as a function of the streams only: constants are filled in, and `N` is replaced by its operand's implicit
    value."""
    match slots:
        case [(x, False)]:
            return lambda a: function(x if a is N else a)
        case [(x, False), (y, False)]:
            return lambda a, b: function(x if a is N else a, y if b is N else b)
        case [(x, False), (y, True)]:
            return lambda a: function(x if a is N else a, y)
        case [(x, True), (y, False)]:
            return lambda b: function(x, y if b is N else b)

    def call(*tokens: Any) -> Any:
        rest = iter(tokens)
        values = [value if constant or (t := next(rest)) is N else t for value, constant in slots]
        return function(*values)

    return call


def _unary(p: Process, function: Callable[[Any], Any]) -> Steps:
    (source,), (out,) = p.inputs, p.outputs
    fire, take, push, bounded = p.fire, source.take, out.push, p.bounded
    while True:
        while not source:
            yield source
        token, visible = source[0]
        free = (yield from await_slots(out)) if bounded else 0
        if token is D or token.__class__ is Stop:
            t = p.close(visible, free)
            take(t)
            push(token, t)
            if token is D:
                return
        else:
            result = function(token)
            t = fire(visible, free)
            take(t)
            push(result, t)


def _binary(p: Process, function: Callable[[Any, Any], Any]) -> Steps:
    (left, right), (out,) = p.inputs, p.outputs
    fire, take_left, take_right, push, bounded = p.fire, left.take, right.take, out.push, p.bounded
    while True:
        while not left:
            yield left
        while not right:
            yield right
        a, visible = left[0]
        b, other = right[0]
        if other > visible:
            visible = other
        free = (yield from await_slots(out)) if bounded else 0
        if a is D or a.__class__ is Stop:
            if a is not b:
                raise p.misaligned(a, b)
            t = p.close(visible, free)
            take_left(t)
            take_right(t)
            push(a, t)
            if a is D:
                return
        elif b is D or b.__class__ is Stop:
            raise p.misaligned(a, b)
        else:
            t = fire(visible, free)
            take_left(t)
            take_right(t)
            push(function(a, b), t)


def _variadic(p: Process, function: Callable[..., Any], sums: bool = False) -> Steps:
    """One firing takes a token of each operand. If these are `sums`, a firing follows on a stop that is not behind a value."""
    (out,) = p.outputs
    behind = False  # a value
    while True:
        visible = yield from await_tokens(0, p.inputs)
        tokens = [source[0][0] for source in p.inputs]
        free = yield from await_slots(out)
        first = tokens[0]
        control = is_control(first)
        if any(token is not first if control else is_control(token) for token in tokens):
            raise p.misaligned(*tokens)
        t = p.close(visible, free) if control else p.fire(visible, free)
        for source in p.inputs:
            source.take(t)
        out.push(first if control else function(*tokens), t)
        if first is D:
            return
        if sums and control and not behind:
            p.close(0)
        behind = not control


RULES: dict[type[n.Node], Rule] = {
    n.Locate: locate,
    n.Load: load,
    n.Alu: alu,
}
