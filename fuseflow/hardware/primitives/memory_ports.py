"""The ports of a node at a memory that takes time: rules that request lines, and conditions that a line has come. They make the
same requests in the same cycles as `fuseflow.sim.reference.memory_ports`.

A request is the number of a line in the array of the port. It is a token of an output that has room for the requests that may be
unanswered. A process that waits for an answer compares the number of answers so far with the number that it needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

from fuseflow.firing_rules.expressions import NO, YES, Expr, const, count_bits, mux
from fuseflow.firing_rules.rules import Head, Module
from fuseflow.hardware.node_context import NodeContext
from fuseflow.memory.settings import TimedMemory
from fuseflow.samml.writers import LanePart

Gives = Callable[[Expr], Mapping[str, Expr]]
"""A function from the number of answers after which the last line has come to the tokens of the last requesting firing."""

LINES = "_lines"
"""The suffix, after the kind, of the name of an array with one element: the number of lines that a port fetches ahead."""


def elements_in_flight(memory: TimedMemory, bits: int) -> int:
    """Return how many elements of `bits` bits a port may have requested ahead: all those in the lines that may be unanswered."""
    return memory.outstanding * max(8 * memory.line // bits, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Bits:
    """A range of bits of an array, from number `low` to number `last`. `spans` says that they may lie in several lines."""

    low: Expr
    last: Expr
    spans: bool


@dataclass(frozen=True, slots=True)
class Extent:
    """The range of bits that one request of a node covers, in an array of elements of `bits` bits: `size` bits (None: any number)
    from a multiple of `stride` on. The factor of `stride` has `index` bits."""

    bits: int
    stride: int
    size: int | None
    index: int

    @property
    def width(self) -> int:
        """The width of the number of a bit of the array."""
        return self.index + max(self.stride, self.size or 0).bit_length() + 1

    def at(self, number: Expr, memory: TimedMemory) -> Bits:
        """Return the `size` bits from `number` times the stride on."""
        assert self.size is not None
        low = number.fit(self.width) * self.stride
        inside = 8 * memory.line % self.stride == 0 and self.size <= self.stride
        return Bits(low, low + (self.size - 1), not inside)

    def between(self, number: Expr, behind: Expr) -> Bits:
        """Return the bits from `number` times the stride up to `behind` times the stride."""
        return Bits(number.fit(self.width) * self.stride, behind.fit(self.width) * self.stride - 1, True)

    def most_lines(self, memory: TimedMemory) -> int:
        """The most lines over which the bits of one request of a node spread."""
        return 1 << self.width if self.size is None else (self.size - 1) // (8 * memory.line) + 2


@dataclass(eq=False)
class ReadPort(ABC):
    """A port of module `m` that reads the array `kind` of a node. `answers` is the number of answers that it had."""

    m: Module
    kind: str
    memory: TimedMemory
    extent: Extent
    answers: Expr = field(init=False)
    shift: int = field(init=False)
    lines: int = field(init=False)
    """The width of the number of a line, and of the number after the last line."""

    def __post_init__(self) -> None:
        self.shift = (8 * self.memory.line).bit_length() - 1
        self.lines = max(self.extent.width - self.shift, 1) + 1

    @property
    def request(self) -> str:
        return self.m.ports[self.kind].request

    def line(self, bit: Expr) -> Expr:
        """Return the number of the line in which a bit, given by its number, lies."""
        return (bit >> min(self.shift, (1 << bit.width) - 1)).fit(self.lines) if self.shift < bit.width else const(0, self.lines)

    def sent(self, line: Expr) -> dict[str, Expr]:
        """Return the token that requests a line, by the name of the port's output."""
        return {self.request: self.m.value(self.request, line)}

    @abstractmethod
    def ask(
        self, label: str, when: Expr, bits: Bits, takes: Sequence[Head], gives: Gives, sets: Mapping[str, Expr | int], on: str
    ) -> None:
        """Add the rules of process `on` that, if `when`, request bits. The last firing takes `takes`, emits `gives` and sets `sets`."""

    @abstractmethod
    def is_answered(self, needed: Expr) -> Expr:
        """Return the condition that the port had at least `needed` answers."""


class DemandPort(ReadPort):
    """A port that reads lines on demand of a process, the asker. A register holds the number after the last requested line, and
    bits in that line need no request. `issued` counts the requests."""

    def __post_init__(self) -> None:
        super().__post_init__()
        m, kind = self.m, self.kind
        held = elements_in_flight(self.memory, self.extent.bits) + 2
        width = count_bits(2 * (held * self.extent.most_lines(self.memory) + self.memory.outstanding)) + 1
        self.answers = m.port(kind, self.lines, width)
        self.issued, self.behind = m.register(f"{kind}_issued", width), m.register(f"{kind}_behind", self.lines)

    def ask(
        self, label: str, when: Expr, bits: Bits, takes: Sequence[Head], gives: Gives, sets: Mapping[str, Expr | int], on: str
    ) -> None:
        """Add the rules of a process that requests bits: one firing for each new line, and one firing if no line is new. The last
        firing takes and emits tokens."""
        m, kind = self.m, self.kind
        first, last = self.line(bits.low), self.line(bits.last)
        known = (first + 1).is_(self.behind)
        after, issued = {f"{kind}_behind": last + 1}, {f"{kind}_issued": self.issued + 1}
        at = mux(known, first + 1, first)
        if bits.spans:
            within, line = m.register(f"{kind}_within", 1), m.register(f"{kind}_line", self.lines)
            at = mux(within, line, at)
            more = {f"{kind}_within": const(1, 1), f"{kind}_line": at + 1, **issued}
            outs = tuple(gives(self.issued))
            m.rule(f"{label} line", when & (at < last), looks=takes, gives=self.sent(at), sets=more, on=on, awaits=outs)
            after[f"{kind}_within"] = const(0, 1)
        m.rule(f"{label} held", when & (last < at), takes, gives=gives(self.issued), sets=sets, on=on)
        given = {**gives(self.issued + 1), **self.sent(at)}
        m.rule(label, when & at.is_(last), takes, gives=given, sets={**sets, **after, **issued}, on=on)

    def is_answered(self, needed: Expr) -> Expr:
        """Return the condition that `needed` answers came. Both counts wrap, and differ by less than half of their range."""
        return (self.answers - needed).bits(needed.width - 1, 1).is_(0)


@dataclass(eq=False)
class PrefetchPort(ReadPort):
    """A port that reads a whole array in order, ahead of its use. A separate process requests line n in the cycle after line n -
    `prefetch` was first needed, and none before `loaded` holds. `touched` counts the lines that were needed, and `fetched` the lines that
    were requested."""

    loaded: Expr

    def __post_init__(self) -> None:
        super().__post_init__()
        m, kind, ahead = self.m, self.kind, self.memory.prefetch
        width = self.lines = max(self.lines, ahead.bit_length()) + 1
        self.answers = m.port(kind, width, width)
        self.touched, fetched = m.register(f"{kind}_touched", width), m.register(f"{kind}_fetched", width)
        count, on = m.array(f"{kind}{LINES}", const(0, 1), width), f"fetch_{kind}"
        m.helper(on)
        due = (fetched < count) & (fetched < self.touched + ahead)
        m.rule(f"fetches {kind}", due & self.loaded, gives=self.sent(fetched), sets={f"{kind}_fetched": fetched + 1}, on=on)

    def ask(
        self, label: str, when: Expr, bits: Bits, takes: Sequence[Head], gives: Gives, sets: Mapping[str, Expr | int], on: str
    ) -> None:
        """Add the rule of a process that needs bits, which the fetching process requests."""
        behind = self.line(bits.last) + 1
        touched = mux(self.touched < behind, behind, self.touched)
        self.m.rule(label, when, takes, gives=gives(behind), sets={**sets, f"{self.kind}_touched": touched}, on=on)

    def is_answered(self, needed: Expr) -> Expr:
        return needed <= self.answers


def read_port(context: NodeContext, m: Module, kind: str, extent: Extent) -> ReadPort:
    """Return a port that reads an array of a node: ahead of use if the node reads in order and the memory prefetches."""
    assert context.memory is not None
    if context.in_order and context.memory.prefetch:
        return PrefetchPort(m, kind, context.memory, extent, loaded(context, m))
    return DemandPort(m, kind, context.memory, extent)


def loaded(context: NodeContext, m: Module) -> Expr:
    """Return the condition under which a node may ask for words before any token needs them."""
    return m.await_load() if context.is_early else YES


@dataclass(frozen=True, slots=True)
class Advance:
    """The effects of a writing firing on its port: `full` lines are then full, or left behind. `sets` are registers after the
    firing, and `line` is the number of the open line after it, if any line is sent."""

    full: Expr
    sets: Mapping[str, Expr | int]
    line: Expr


class WritePort:
    """A port that writes an array from its start. The open line has number `line` and `fill` bits. A line is sent once it is
    full. A firing writes `size` bits, which fill at most `most` lines."""

    def __init__(self, context: NodeContext, m: Module, kind: str, size: int, filled: int = 0, gap: int = 0) -> None:
        """Make a port that writes `size` bits at a time, after `filled` skipped bits, with `gap` bits of other lanes between."""
        assert context.memory is not None
        self.m, self.kind, self.size, self.gap = m, kind, size, gap
        self.line_bits = 8 * context.memory.line
        self.shift = self.line_bits.bit_length() - 1
        self.passed = min(gap, self.line_bits - 1)
        self.most = (self.line_bits - gcd(size, filled, self.line_bits) + size + self.passed) >> self.shift
        self.answers = m.port(kind, context.index + size.bit_length() + 1, count_bits(context.memory.outstanding + 1), write=True)
        self.request = m.ports[kind].request
        self.number_bits = m.outputs[self.request]
        self.fill = m.register(f"{kind}_fill", self.shift, filled % self.line_bits)
        self.line = m.register(f"{kind}_line", self.number_bits, (filled >> self.shift) % (1 << self.number_bits))

    @property
    def is_begun(self) -> Expr:
        """The condition that after `D` the last line has bits that were not sent."""
        return self.fill.is_not(0)

    def put(
        self,
        label: str,
        when: Expr,
        takes: Sequence[Head],
        looks: Sequence[Head],
        gives: Mapping[str, Expr],
        sets: Mapping[str, Expr | int],
    ) -> None:
        """Add the rules that write if `when` holds: one firing for each line that gets full, or one firing if none does. The last
        firing takes `takes`, inspects `looks`, and emits `gives`."""
        m, width = self.m, count_bits(self.most + 1)
        total = self.fill.fit(self.shift + width) + self.size
        sent = m.register(f"{self.kind}_sent", width) if self.most > 1 else const(0, width)
        made = self.advance(total, sent)
        fills, after = made.full.is_(sent + 1), {**sets, **made.sets}
        if self.size < self.line_bits:
            m.rule(label, when & made.full.is_(sent), takes, looks, gives, after)
        if self.most > 1:
            more: dict[str, Expr | int] = {f"{self.kind}_line": self.line + 1, f"{self.kind}_sent": sent + 1}
            m.rule(f"{label} line", when & (sent < made.full) & ~fills, looks=[*takes, *looks], gives=self.asked(), sets=more)
            after[f"{self.kind}_sent"] = 0
        m.rule(f"{label} fills", when & fills, takes, looks, {**gives, **self.asked()}, {**after, f"{self.kind}_line": made.line})

    def advance(self, total: Expr, sent: Expr) -> Advance:
        """Return the effects of a firing after which `total` bits are written from the start of the open line on, of which `sent`
        lines are sent."""
        return Advance(total.bits(self.shift, sent.width), {f"{self.kind}_fill": total.bits(0, self.shift)}, self.line + 1)

    def asked(self) -> dict[str, Expr]:
        """Return the token of the request that writes the open line, by the name of the port's output."""
        return {self.request: self.m.value(self.request, self.line)}


class LanePort(WritePort):
    """A port that writes a lane's share of an array. A line is also sent when it is left, where the gap after a run of entries
    begins. The lines to send are those that would be full with the gap (or with as much of the gap as fills any line)."""

    def __init__(self, context: NodeContext, m: Module, kind: str, size: int, part: LanePart) -> None:
        """Make a port that writes `size` bits at a time, in the runs of `part`. A register counts the remaining entries of a
        run."""
        super().__init__(context, m, kind, size, part.first * size, part.gap * size)
        self.ends, self.counted = YES, dict[str, Expr | int]()
        if part.run > 1:
            rest = m.register(f"{kind}_rest", count_bits(part.run), part.run - 1)
            self.ends = rest.is_(0)
            self.counted = {f"{kind}_rest": mux(self.ends, const(part.run - 1, rest.width), rest - 1)}

    @property
    def is_begun(self) -> Expr:
        """The condition that after `D`, which follows a run, the last line has bits before the gap that were not sent."""
        return const(self.gap, self.shift) < self.fill if self.gap < self.line_bits else NO

    def advance(self, total: Expr, sent: Expr) -> Advance:
        """Return the effects of a firing after which `total` bits are written from the start of the open line on, of which `sent`
        lines are sent."""
        lines, bits = (self.gap >> self.shift) % (1 << self.number_bits), self.gap % self.line_bits
        full = mux(self.ends, total + self.passed, total)
        behind = mux(self.ends, total + bits, total)
        skipped = mux(self.ends, const(lines, self.number_bits), const(0, self.number_bits))
        moved = behind.bits(self.shift, sent.width).fit(self.number_bits) - sent.fit(self.number_bits) + skipped
        sets = {f"{self.kind}_fill": behind.bits(0, self.shift), **self.counted}
        return Advance(full.bits(self.shift, sent.width), sets, self.line + moved)
