"""Accumulate and permute hold back whole fibers, and emit them in the order of their coordinates.

They have two processes and two buffers. The first process fills a buffer, one for each fiber of the outermost coordinates, and
the second empties it while the first fills the other one. The key of an entry is the concatenation of its coordinates, so keys
and coordinates have the same order. A stream inside the node, `link`, carries the stops from the first process to the second. Its token
is a value if a buffer belongs to the stop, else a stop.

Up to 64 keys have a bit each in a register, and the next entry is the lowest bit. More keys have their bits in words of 64, in a
memory. A register has a bit for each word with a set bit, so clearing that register empties a buffer. The next entry is the
lowest bit of the lowest such word: two searches among at most 64 bits, in the same cycle, up to 4,096 keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.firing_rules.context import Builder
from fuseflow.firing_rules.expressions import YES, Expr, all_of, concat, const, count_bits, mux
from fuseflow.firing_rules.nested_streams import EnclosingStreams, nested_stop
from fuseflow.firing_rules.rules import DONE, KIND_BITS, LEAST_WIDTH, LEVEL_BITS, STOP, VALUE, Head, Module, Store, seen_above
from fuseflow.hardware.arithmetic import lowest
from fuseflow.hardware.node_context import NodeContext
from fuseflow.hardware.tile_array import TileArray, TileOperand, TileWork, copy_work, fold_work
from fuseflow.samml import nodes as n

LINK_IN, LINK_OUT = "link", "linked"
"""The input of the second process, and the output of the first process that feeds it."""
FILL, EMIT = "fill", "emit"
WORK = "work"
WORD_BITS = 6
"""The width of the index of an entry in a word."""
WORD = 1 << WORD_BITS
BUFFERS = 2
HELD, SENT, GIVEN = "held", "sent", "given"


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


@dataclass(frozen=True, slots=True)
class Insertion:
    """The effects of storing a value at a key of the open buffer: whether a value `was` there, and the registers and words after
    it. `touched` are the registers after a firing that stores nothing."""

    was: Expr
    sets: dict[str, Expr | int]
    stores: tuple[Store, ...]
    touched: dict[str, Expr | int]


@dataclass(frozen=True, slots=True)
class NextEntry:
    """The next entry of the emptied buffer: whether there is one, its key, and the registers after it was emitted."""

    some: Expr
    key: Expr
    sets: dict[str, Expr | int]


class Entries:
    """The entries of two buffers with `count` keys of `width` bits. Their registers are `full0` and `full1`. For the buffer that
    is emptied, `sent` has the bits of its register that are done, and `given` the entries of the current word that were
    emitted."""

    def __init__(self, m: Module, count: int, width: int) -> None:
        self.m, self.split, self.width = m, count > WORD, width
        self.places = -(-count // WORD) if self.split else count
        self.full = [m.register(f"full{k}", self.places) for k in range(BUFFERS)]
        self.sent = m.register(SENT, self.places)
        if self.split:
            m.memory(HELD, WORD, BUFFERS << (width - WORD_BITS))
            self.given = m.register(GIVEN, WORD)

    def put(self, fill: Expr, work: Expr, key: Expr) -> Insertion:
        """Return the effects of storing a value at `key` in buffer number `fill`. Without `work` the buffer is empty at first."""
        full = mux(work, mux(fill, self.full[1], self.full[0]), const(0, self.places))
        place = key.bits(WORD_BITS, self.width - WORD_BITS) if self.split else key
        was, stores = (full & _bit(place, self.places)).is_not(0), tuple[Store, ...]()
        if self.split:
            address, bit = concat(fill, place), _bit(key.bits(0, WORD_BITS), WORD)
            word = mux(was, self.m.read(HELD, address), const(0, WORD))
            was, stores = (word & bit).is_not(0), (Store(HELD, address, word | bit),)
        return Insertion(was, self._filled(fill, full | _bit(place, self.places)), stores, self._filled(fill, full))

    def next(self, emit: Expr) -> NextEntry:
        """Return the next entry of buffer number `emit`."""
        left = mux(emit, self.full[1], self.full[0]) & ~self.sent
        some, place = left.is_not(0), lowest(left)
        after = self.sent | _bit(place, self.places)
        if not self.split:
            return NextEntry(some, place.fit(self.width), {SENT: after})
        place = place.fit(self.width - WORD_BITS)
        word = self.m.read(HELD, concat(emit, place)) & ~self.given
        at = lowest(word)
        bit = _bit(at, WORD)
        last = (word & ~bit).is_(0)
        sets: dict[str, Expr | int] = {SENT: mux(last, after, self.sent), GIVEN: mux(last, const(0, WORD), self.given | bit)}
        return NextEntry(some, concat(place, at), sets)

    @property
    def emptied(self) -> dict[str, Expr | int]:
        """The registers after the last entry of a buffer."""
        return {SENT: const(0, self.places)}

    def _filled(self, fill: Expr, full: Expr) -> dict[str, Expr | int]:
        return {f"full{k}": mux(fill.is_(k), full, held) for k, held in enumerate(self.full)}


def _bit(place: Expr, width: int) -> Expr:
    """Return a number of `width` bits with the bit at `place` set."""
    return const(1, width) << place.fit(width) if width > 1 else YES


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
    val = context.inputs(m)[-1]
    outs = context.outputs(m)
    link = m.link(LINK_OUT, LINK_IN, LEAST_WIDTH, context.handover, context.timing.latency)
    m.memory(WORK, val.width, BUFFERS << keys.width)
    for name in ("claimed", "released"):
        m.register(name, count_bits(BUFFERS + 1))
    entries = Entries(m, keys.count, keys.width)
    _fill(context, m, keys, entries, work)
    _emit(m, link, outs, keys, entries, lowered)


def _fill(context: NodeContext, m: Module, keys: Keys, entries: Entries, work: TileWork) -> None:
    """Add the rules of the first process: it fires once for each token of the values, and once for each coordinate with an empty fiber.
    The register `work` says that a buffer is open, and `fill` which buffer is open or next. A stop that ends a fiber of the outermost
    coordinates hands the buffer over, if there is one."""
    *outer, crd, val = context.inputs(m)
    nest = EnclosingStreams(m, outer)
    is_open, fill = m.register("work", 1), m.register("fill", 1)
    claimed, released = (m.register(name, count_bits(BUFFERS + 1)) for name in ("claimed", "released"))
    key = keys.key([*nest.current(), crd.payload])
    place = concat(fill, key)
    claims = ~val.is_done & (~val.is_stop | (val.low <= nest.depth)) & ~is_open
    room = ~claims | (claimed - released).is_not(BUFFERS)
    put = entries.put(fill, is_open, key)
    old = () if work.moves else context.elements(m.read(WORK, place))
    array = TileArray(m, context.arithmetic, work, [TileOperand(val.payload)], context.timing.emission, old, fresh=~put.was)
    stored = Store(WORK, array.kept("place", place), array.result)

    def claim(filled: dict[str, Expr | int]) -> dict[str, Expr | int]:
        """Return the registers after a firing: `filled`, those of the buffers, and the count of buffers in use."""
        return {**filled, "claimed": claimed + claims.fit(claimed.width)}

    for opening in nest.openings():
        stores = [*([stored] if array.steps == 1 else []), *put.stores]
        after = {**opening.sets, **claim(put.sets), "work": 1, **array.begun}
        heads, when = [val, crd, *opening.heads], opening.when & ~val.control & room
        m.rule(f"puts {opening.label}", when, heads, sets=after, stores=stores, on=FILL)
    for opening in nest.childless(val):
        sets = {**opening.sets, **claim(put.touched), "work": 1}
        m.rule(f"childless {opening.label}", opening.when & room, opening.heads, [val], sets=sets, closes=True, on=FILL)
    due = ~nest.is_childless(val) & room
    for end in nest.endings(val):
        when, has, gives = due & end.when, is_open | claims, dict[str, Expr]()
        sets = {**claim(put.touched), "open": end.still_open, "work": has}
        if end.ended == nest.depth:
            kind = mux(has, const(VALUE, KIND_BITS), const(STOP, KIND_BITS))
            gives = {LINK_OUT: concat(kind, val.high, val.low)}
            sets |= {"work": const(0, 1), "fill": fill ^ has}
        m.rule(f"fills stop {end.ended}", when, [val, crd, *end.heads], gives=gives, sets=sets, closes=True, on=FILL)
    done = {LINK_OUT: m.mark(LINK_OUT, DONE)}
    m.rule("fills done", val.is_done, [val, crd, *nest.heads], gives=done, closes=True, on=FILL)
    array.rules(stores=[stored])


def _emit(m: Module, link: Head, outs: list[str], keys: Keys, entries: Entries, lowered: int) -> None:
    """Add the rules of the second process: it fires once for each entry and once for each stop. In the buffer that is emptied, `last` is
    the key of the last entry if there was one (`begun`), and `parted` says that the stop before the next entry was emitted."""
    emit, begun, parted = m.register("emit", 1), m.register("begun", 1), m.register("parted", 1)
    last, entry = m.register("last", keys.width), entries.next(emit)
    held = m.read(WORK, concat(emit, entry.key))
    depth = len(keys.levels) - 1  # coordinates around the innermost ones
    some = link.is_value & entry.some
    for same in range(depth + 1):  # the outermost coordinates that equal those of the last entry
        coordinates = keys.coordinates(entry.key)
        equal = [a.is_(b) for a, b in zip(coordinates, keys.coordinates(last), strict=True)]
        here = begun & all_of(equal[:same])
        if same < depth:
            differs = here & ~equal[same]
            gives = nested_stop(m, outs, const(0, LEVEL_BITS), const(depth - 1 - same, LEVEL_BITS), depth - 1 - same)
            when, after = some & differs & ~parted, {"parted": 1}
            m.rule(f"parts {same}", when, looks=[link], gives=gives, sets=after, closes=True, on=EMIT)
            here = differs & parted
        when = here | ~begun if same == 0 else here
        tokens = [m.value(out, part) for out, part in zip(outs, (*coordinates, held), strict=True)]
        sets = {"begun": const(1, 1), "parted": const(0, 1), "last": entry.key, **entry.sets}
        gives = dict(list(zip(outs, tokens, strict=True))[same:])
        m.rule(f"gives {same}", some & when, looks=[link], gives=gives, sets=sets, on=EMIT)
    low, high = mux(begun, const(0, LEVEL_BITS), const(depth, LEVEL_BITS)), link.high - lowered
    released = m.register("released", count_bits(BUFFERS + 1))
    sets = {"emit": ~emit, "begun": const(0, 1), "released": released + 1, **entries.emptied}
    gives = nested_stop(m, outs, low, high, depth)
    m.rule("ends", link.is_value & ~entry.some, [link], gives=gives, sets=sets, closes=True, on=EMIT)
    gives = nested_stop(m, outs, *seen_above(link.low, link.high, lowered), depth)
    m.rule("ends nothing", link.is_stop, [link], gives=gives, closes=True, on=EMIT)
    m.rule("emits done", link.is_done, [link], gives={out: m.mark(out, DONE) for out in outs}, closes=True, on=EMIT)


RULES: dict[type[n.Node], Builder] = {n.Accumulate: accumulate, n.Permute: permute}
