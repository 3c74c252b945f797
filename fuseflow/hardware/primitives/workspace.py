"""Accumulate and permute hold back whole fibers, and emit them in the order of their coordinates.

They have two processes and two buffers. The first process fills a buffer, one for each fiber of the outermost coordinates, and
the second empties it while the first fills the other one. The key of an entry is the concatenation of its coordinates, so keys
and coordinates have the same order (`workspace_entries` finds the next key). A stream inside the node, `link`, carries the stops
from the first process to the second. Its token is a value if a buffer belongs to the stop, else a stop.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.hardware.node_context import NodeContext
from fuseflow.hardware.primitives.workspace_entries import BUFFERS, Entries
from fuseflow.hardware.tile_array import TileArray, TileOperand
from fuseflow.hardware.tile_work import TileWork, copy_work, fold_work
from fuseflow.rules.context import Builder
from fuseflow.rules.expressions import Expr, all_of, concat, const, count_bits, mux
from fuseflow.rules.nested_streams import EnclosingStreams
from fuseflow.rules.rules import DONE, KIND_BITS, LEAST_WIDTH, LEVEL_BITS, STOP, VALUE, Head, Module, Store, seen_above
from fuseflow.samml import nodes as n

LINK_IN, LINK_OUT = "link", "linked"
"""The input of the second process, and the output of the first process that feeds it."""
FILL, EMIT = "fill", "emit"
WORK = "work"


@dataclass(frozen=True, slots=True)
class Keys:
    """The coordinates that make up a key: the numbers of their inputs, outermost first, and an exclusive bound of each."""

    levels: tuple[int, ...]
    bounds: tuple[int, ...]

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(count_bits(bound) for bound in self.bounds)

    @property
    def width(self) -> int:
        return sum(self.widths)

    @property
    def count(self) -> int:
        """The number of possible keys. Some may belong to no coordinates within the bounds."""
        return max(self.bounds[0], 1) << sum(self.widths[1:])

    def key(self, coordinates: list[Expr]) -> Expr:
        """Return the key of an entry from the coordinates of all inputs."""
        return concat(*(coordinates[k].fit(width) for k, width in zip(self.levels, self.widths, strict=True)))

    def coordinates(self, key: Expr) -> list[Expr]:
        below = [sum(self.widths[k + 1 :]) for k in range(len(self.widths))]
        return [key.bits(low, width) for low, width in zip(below, self.widths, strict=True)]


def accumulate(node: n.Accumulate, context: NodeContext, m: Module) -> None:
    levels = tuple(range(1, node.order + 1))

    work = fold_work(node.function, context.arithmetic, context.types[-1].tile)
    _fill_and_emit(context, m, Keys(levels, tuple(context.bounds[k] for k in levels)), work, lowered=1)


def permute(node: n.Permute, context: NodeContext, m: Module) -> None:
    work = copy_work(context.types[-1].tile)
    _fill_and_emit(context, m, Keys(node.order, tuple(context.bounds[k] for k in node.order)), work, lowered=0)


def _fill_and_emit(context: NodeContext, m: Module, keys: Keys, work: TileWork, lowered: int) -> None:
    context.require_keys(keys.count, keys.bounds)
    m.intervals[EMIT] = context.timing.emission
    *outer, crd, val = context.inputs(m)
    outs = context.outputs(m)
    link = m.link(LINK_OUT, LINK_IN, LEAST_WIDTH, context.handover, context.timing.latency)
    m.memory(WORK, val.width, BUFFERS << keys.width)
    for name in ("claimed", "released"):
        m.register(name, count_bits(BUFFERS + 1))
    entries = Entries(m, keys.count, keys.width)
    _FillProcess(context, m, EnclosingStreams(m, outer), crd, val, keys, entries, work).rules()
    _EmitProcess(m, link, outs, keys, entries, lowered).rules()


class _FillProcess:
    """The first process: it fires once for each token of the values, and once for each coordinate with an empty fiber. The
    register `work` says that a buffer is open, and `fill` which buffer is open or next."""

    def __init__(
        self,
        context: NodeContext,
        m: Module,
        nest: EnclosingStreams,
        crd: Head,
        val: Head,
        keys: Keys,
        entries: Entries,
        work: TileWork,
    ) -> None:
        self.m, self.nest, self.crd, self.val = m, nest, crd, val
        self.work, self.fill = m.register("work", 1), m.register("fill", 1)
        self.claimed = m.register("claimed", count_bits(BUFFERS + 1))
        released = m.register("released", count_bits(BUFFERS + 1))
        self.key = keys.key([*nest.current(), crd.payload])
        self.place = concat(self.fill, self.key)
        needs = ~val.is_done & (~val.is_stop | (val.low <= nest.depth))
        self.claims = needs & ~self.work
        self.room = ~self.claims | (self.claimed - released).is_not(BUFFERS)
        self.put = entries.put(self.fill, self.work, self.key)
        old = () if work.moves else context.elements(m.read(WORK, self.place))
        cycles, fresh = context.timing.emission, ~self.put.was
        self.array = TileArray(m, context.arithmetic, work, [TileOperand(val.payload)], cycles, old, fresh=fresh)
        self.stored = Store(WORK, self.array.kept("place", self.place), self.array.result)

    def rules(self) -> None:
        m, nest, val, crd = self.m, self.nest, self.val, self.crd
        for opening in nest.openings():
            self.value(opening.when, [val, crd, *opening.heads], opening.sets, opening.label)
        for opening in nest.childless(val):
            sets = {**opening.sets, **self.claim(self.put.touched), "work": 1}
            when = opening.when & self.room
            m.rule(f"childless {opening.label}", when, opening.heads, [val], sets=sets, closes=True, on=FILL)
        due = ~nest.is_childless(val) & self.room
        for end in nest.endings(val):
            self.stop(due & end.when, [val, crd, *end.heads], end.still_open, end.ended)
        done = {LINK_OUT: m.mark(LINK_OUT, DONE)}
        m.rule("fills done", val.is_done, [val, crd, *nest.heads], gives=done, closes=True, on=FILL)
        self.array.rules(stores=[self.stored])

    def claim(self, filled: dict[str, Expr | int]) -> dict[str, Expr | int]:
        """Return the registers after a firing: `filled`, those of the buffers, and the count of buffers in use."""
        return {**filled, "claimed": self.claimed + self.claims.fit(self.claimed.width)}

    def value(self, when: Expr, heads: list[Head], sets: dict[str, Expr | int], label: str) -> None:
        m, val, put = self.m, self.val, self.put
        stores = [*([self.stored] if self.array.steps == 1 else []), *put.stores]
        after = {**sets, **self.claim(put.sets), "work": 1, **self.array.begun}
        m.rule(f"puts {label}", when & ~val.control & self.room, heads, sets=after, stores=stores, on=FILL)

    def stop(self, when: Expr, heads: list[Head], still_open: Expr, ended: int) -> None:
        """Add the rule of a stop that ends lists of `ended` levels. One that ends a fiber of the outermost coordinates hands the
        buffer over, if there is one."""
        m, val, depth = self.m, self.val, self.nest.depth
        has = self.work | self.claims
        sets = {**self.claim(self.put.touched), "open": still_open}
        if ended < depth:
            m.rule(f"fills stop {ended}", when, heads, sets={**sets, "work": has}, closes=True, on=FILL)
            return
        kind = mux(has, const(VALUE, KIND_BITS), const(STOP, KIND_BITS))
        gives = {LINK_OUT: concat(kind, val.high, val.low)}
        after = {**sets, "work": const(0, 1), "fill": self.fill ^ has}
        m.rule(f"fills stop {ended}", when, heads, gives=gives, sets=after, closes=True, on=FILL)


class _EmitProcess:
    """The second process: it fires once for each entry and once for each stop. In the buffer that is emptied, `last` is the key
    of the last entry if there was one (`begun`), and `parted` says that the stop before the next entry was emitted."""

    def __init__(self, m: Module, link: Head, outs: list[str], keys: Keys, entries: Entries, lowered: int) -> None:
        self.m, self.link, self.outs, self.keys, self.entries, self.lowered = m, link, outs, keys, entries, lowered
        self.emit, self.begun, self.parted = m.register("emit", 1), m.register("begun", 1), m.register("parted", 1)
        self.last, self.next = m.register("last", keys.width), entries.next(self.emit)
        self.key = self.next.key
        self.held = m.read(WORK, concat(self.emit, self.key))
        self.depth = len(keys.levels) - 1  # coordinates around the innermost ones

    def rules(self) -> None:
        m, link = self.m, self.link
        some = link.is_value & self.next.some
        for same in range(self.depth + 1):
            self.entry(some, same)
        low = mux(self.begun, const(0, LEVEL_BITS), const(self.depth, LEVEL_BITS))
        high = link.high - self.lowered
        released = m.register("released", count_bits(BUFFERS + 1))
        after = {"emit": ~self.emit, "begun": const(0, 1), "released": released + 1, **self.entries.emptied}
        gives = self.stop(low, high, self.depth)
        m.rule("ends", link.is_value & ~self.next.some, [link], gives=gives, sets=after, closes=True, on=EMIT)
        gives = self.stop(*seen_above(link.low, link.high, self.lowered), self.depth)
        m.rule("ends nothing", link.is_stop, [link], gives=gives, closes=True, on=EMIT)
        done = {out: m.mark(out, DONE) for out in self.outs}
        m.rule("emits done", link.is_done, [link], gives=done, closes=True, on=EMIT)

    def entry(self, some: Expr, same: int) -> None:
        """Add the rules of an entry whose outermost `same` coordinates equal those of the last entry: for the entry, and for the
        stop before it. `some` is the condition that there is an entry."""
        m, outs, coordinates = self.m, self.outs, self.keys.coordinates(self.key)
        equal = [a.is_(b) for a, b in zip(coordinates, self.keys.coordinates(self.last), strict=True)]
        here = self.begun & all_of(equal[:same])
        if same < self.depth:
            differs = here & ~equal[same]
            gives = self.stop(const(0, LEVEL_BITS), const(self.depth - 1 - same, LEVEL_BITS), self.depth - 1 - same)
            m.rule(
                f"parts {same}",
                some & differs & ~self.parted,
                looks=[self.link],
                gives=gives,
                sets={"parted": 1},
                closes=True,
                on=EMIT,
            )
            here = differs & self.parted
        when = here | ~self.begun if same == 0 else here
        tokens = [m.value(out, part) for out, part in zip(outs, (*coordinates, self.held), strict=True)]
        after = {"begun": const(1, 1), "parted": const(0, 1), "last": self.key, **self.next.sets}
        gives = dict(list(zip(outs, tokens, strict=True))[same:])
        m.rule(f"gives {same}", some & when, looks=[self.link], gives=gives, sets=after, on=EMIT)

    def stop(self, low: Expr, high: Expr, level: int) -> dict[str, Expr]:
        """Return the tokens of a stop for the innermost streams, and for the outer streams whose lists a stop up to `level`
        ends."""
        above = {out: max(self.depth - k, 0) for k, out in enumerate(self.outs)}
        return {out: self.m.stop(out, *seen_above(low, high, levels)) for out, levels in above.items() if level >= levels}


RULES: dict[type[n.Node], Builder] = {n.Accumulate: accumulate, n.Permute: permute}
