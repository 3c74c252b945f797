"""The rules of locate and load, which have aligned inputs and fire once for each token."""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.firing_rules.context import Builder
from fuseflow.firing_rules.expressions import YES, Expr, any_of, const, mux
from fuseflow.firing_rules.rules import EMPTY, Head, Module, Store
from fuseflow.hardware.arithmetic import count_ones
from fuseflow.hardware.node_context import NodeContext
from fuseflow.samml import nodes as n
from fuseflow.tensors.levels.bitmap import WORD, words


def locate(node: n.Locate, context: NodeContext, m: Module) -> None:
    level, size, heads = context.level(node), context.size(node), context.inputs(m)
    (out,) = context.outputs(m)
    crd = heads[0]
    if level.kept:
        kept = KeptLevel(context, m, size)
        m.rule("keeps", kept.loading, sets=kept.sets, stores=kept.stores)  # one coordinate in each firing
        located(m, [crd], out, kept.absent(crd), kept.reference(crd), ~kept.loading)
        return
    parent = heads[1].payload if len(heads) == 2 else const(0, context.index)
    if level.stored:
        stored, reference = bitmap_reference(m, *bitmap_word(parent, crd, size))
    else:
        stored, reference = YES, parent * size + crd.payload
    located(m, heads, out, any_of([~stored, *(head.is_empty for head in heads)]), reference, YES)


def located(m: Module, heads: Sequence[Head], out: str, absent: Expr, reference: Expr, ready: Expr) -> None:
    """Add the rules of a locate: if `ready`, each token emits `reference`, or `N` if `absent`. Control tokens pass."""
    control = heads[0].control
    m.rule("control", ready & control, heads, gives={out: m.passed(out, heads[0])}, closes=True)
    m.rule("absent", ready & ~control & absent, heads, gives={out: m.mark(out, EMPTY)})
    m.rule("value", ready & ~control & ~absent, heads, gives={out: m.value(out, reference)})


PLACE_BITS = WORD.bit_length() - 1
"""The width of the index of a bit in a word of a bitmap."""


def bitmap_word(parent: Expr, crd: Head, size: int) -> tuple[Expr, Expr]:
    """Return the number of the word of a bitmap with the bit of a coordinate below `parent`, and the bit's index in the word."""
    return parent * words(size) + (crd.payload >> PLACE_BITS), crd.payload.bits(0, PLACE_BITS)


def bitmap_reference(m: Module, word: Expr, place: Expr) -> tuple[Expr, Expr]:
    """Return two expressions: whether bit `place` of a word is set, so its coordinate is stored, and the coordinate's reference,
    the rank of the word plus the number of lower bits that are set."""
    bits, rank = m.array("bits", word, WORD), m.array("rank", word, word.width)
    mask = const(1, WORD) << place.fit(WORD)
    return (bits & mask).is_not(0), rank + count_ones(bits & (mask - 1)).fit(word.width)


class KeptLevel:
    """The coordinates of a kept level, with a bit and a word for each. `loading` holds while some are missing. `sets` and `stores` keep
    the next one."""

    def __init__(self, context: NodeContext, m: Module, size: int) -> None:
        context.require_keys(size, (size,))
        self.m, at, self.some = m, m.register("at", context.index), m.register("kept", max(size, 1))
        self.table = m.memory("table", context.index, max(size, 1))
        self.loading = at < m.array("count", const(0, 1), context.index)
        entry = m.array("crds", at, context.index)
        self.sets: dict[str, Expr | int] = {"at": at + 1, "kept": self.some | self._bit(entry)}
        self.stores = [Store(self.table, entry, at)]

    def _bit(self, crd: Expr) -> Expr:
        width = self.some.width
        return const(1, width) << crd.fit(width) if width > 1 else const(1, 1)

    def absent(self, crd: Head) -> Expr:
        return crd.is_empty | (self.some & self._bit(crd.payload)).is_(0)

    def reference(self, crd: Head) -> Expr:
        return self.m.read(self.table, crd.payload)


def load(node: n.Load, context: NodeContext, m: Module) -> None:
    ref, decl = context.input(m, 0), context.declared[node.tensor]
    (out,) = context.outputs(m)
    fill = context.constant(decl.fill, decl.tile)
    value = m.array("values", ref.payload, fill.width)
    m.rule("control", ref.control, [ref], gives={out: m.passed(out, ref)}, closes=True)
    m.rule("value", ~ref.control, [ref], gives={out: m.value(out, mux(ref.is_empty, fill, value))})


RULES: dict[type[n.Node], Builder] = {n.Locate: locate, n.Load: load}
