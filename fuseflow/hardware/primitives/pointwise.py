"""Locate, load and operators have one firing for each token, and aligned inputs."""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.hardware.arithmetic import count_ones
from fuseflow.hardware.expressions import YES, Expr, any_of, const, mux
from fuseflow.hardware.node_context import Builder, NodeContext
from fuseflow.hardware.rules import EMPTY, Head, Module, Store
from fuseflow.ops import COMBINERS, OPERATORS
from fuseflow.samml import nodes as n
from fuseflow.tensors.levels.bitmap import WORD, words


def locate(node: n.Locate, context: NodeContext, m: Module) -> None:
    level, size, heads = context.level(node), context.size(node), context.inputs(m)
    (out,) = context.outputs(m)
    crd = heads[0]
    if level.kept:
        _locate_kept(context, m, crd, out, size)
        return
    parent = heads[1].payload if len(heads) == 2 else const(0, context.index)
    if level.stored:
        stored, reference = _bitmap(m, parent, crd, size)
    else:
        stored, reference = YES, parent * size + crd.payload
    _located(m, heads, out, any_of([~stored, *(head.is_empty for head in heads)]), reference, YES)


def _located(m: Module, heads: Sequence[Head], out: str, absent: Expr, reference: Expr, ready: Expr) -> None:
    """The rules of a locate that is `ready`: a token gives its reference, or `N` where it is absent."""
    control = heads[0].control
    m.rule("control", ready & control, heads, gives={out: m.passed(out, heads[0])}, closes=True)
    m.rule("absent", ready & ~control & absent, heads, gives={out: m.mark(out, EMPTY)})
    m.rule("value", ready & ~control & ~absent, heads, gives={out: m.value(out, reference)})


def _bitmap(m: Module, parent: Expr, crd: Head, size: int) -> tuple[Expr, Expr]:
    """Return whether a coordinate is stored, and its reference: the rank of its word, and the bits set below its own in that word."""
    place = WORD.bit_length() - 1
    word = parent * words(size) + (crd.payload >> place)
    bits, rank = m.array("bits", word, WORD), m.array("rank", word, crd.width)
    mask = const(1, WORD) << crd.payload.bits(0, place).fit(WORD)
    return (bits & mask).is_not(0), rank + count_ones(bits & (mask - 1)).fit(crd.width)


def _locate_kept(context: NodeContext, m: Module, crd: Head, out: str, size: int) -> None:
    """First the coordinates of the level are kept, one in each firing, with a bit and a word of memory for each coordinate."""
    context.require_keys(size, (size,))
    at, some = m.register("at", context.index), m.register("kept", max(size, 1))
    table = m.memory("table", context.index, max(size, 1))
    loading = at < m.array("count", const(0, 1), context.index)
    entry = m.array("crds", at, context.index)
    hot = const(1, some.width) << entry.fit(some.width) if size > 1 else const(1, 1)
    m.rule("keeps", loading, sets={"at": at + 1, "kept": some | hot}, stores=[Store(table, entry, at)])
    asked = const(1, some.width) << crd.payload.fit(some.width) if size > 1 else const(1, 1)
    absent = crd.is_empty | (some & asked).is_(0)
    _located(m, [crd], out, absent, m.read(table, crd.payload), ~loading)


def load(node: n.Load, context: NodeContext, m: Module) -> None:
    ref, decl = context.input(m, 0), context.declared[node.tensor]
    (out,) = context.outputs(m)
    fill = const(context.arithmetic.word(decl.fill), context.arithmetic.width)
    value = m.array("values", ref.payload, fill.width)
    m.rule("control", ref.control, [ref], gives={out: m.passed(out, ref)}, closes=True)
    m.rule("value", ~ref.control, [ref], gives={out: m.value(out, mux(ref.is_empty, fill, value))})


def alu(node: n.Alu, context: NodeContext, m: Module) -> None:
    arithmetic = context.arithmetic
    if node.function not in OPERATORS and node.function not in COMBINERS:
        raise context.refused(f"computes `{node.function}` on tiles", "circuits have no tiles: compile without blocks")
    heads = context.inputs(m)
    (out,) = context.outputs(m)
    streams, slots = iter(heads), []
    for operand in node.operands:
        constant = const(arithmetic.word(operand.value), arithmetic.width)
        if operand.constant:
            slots.append(constant)
        else:
            head = next(streams)
            slots.append(mux(head.is_empty, constant, head.payload))
    result = slots[0] if node.function == "copy" else arithmetic.apply(node.function, *slots)
    control = heads[0].control
    m.rule("control", control, heads, gives={out: heads[0].token}, closes=True)
    m.rule("value", ~control, heads, gives={out: m.value(out, result)})


RULES: dict[type[n.Node], Builder] = {n.Locate: locate, n.Load: load, n.Alu: alu}
