"""A primitive as firing rules, which are guarded actions.

A rule has a guard, the tokens that it takes or inspects, the tokens that it emits, and new values of registers. It fires in the
first cycle in which its guard holds, every head (next token of an input) that it takes or inspects is visible, every output on
which it emits has room at all readers, and the interval of its process is over. That is `T(n)` of docs/reference/streams.md. For example, a
`load` has the rule

    m.rule("value", ~ref.control, takes=[ref], gives={out: m.value(out, m.array("val", ref.payload, 32))})

The guards of one process exclude each other. A node has one process, or two that share registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

from fuseflow.firing_rules.expressions import YES, Expr, concat, const, mux
from fuseflow.samml.graph import LEAST_INDEX_BITS
from fuseflow.samml.hops import Turn

KIND_BITS = 2
VALUE, STOP, EMPTY, DONE = range(4)
"""The kinds of tokens. A token is its kind and its payload, and the payload of a stop is its highest and its lowest level."""

LOADED = "loaded"
"""The output, and the input of other modules, that says that everything is there that is loaded into the scratchpad."""

LEVEL_BITS = LEAST_INDEX_BITS // 2
MOST_LEVELS = 1 << LEVEL_BITS
"""The greatest depth of streams in hardware."""
LEAST_WIDTH = LEAST_INDEX_BITS
"""The least width of a payload: that of both levels of a stop."""


@dataclass(frozen=True, eq=False)
class Head:
    """The token at the head of an input, whose payload has `width` bits."""

    name: str
    width: int
    token: Expr = field(init=False)
    payload: Expr = field(init=False)
    low: Expr = field(init=False)
    high: Expr = field(init=False)
    control: Expr = field(init=False)
    """The condition that the token is a stop or `D`."""
    is_value: Expr = field(init=False)
    is_stop: Expr = field(init=False)
    is_empty: Expr = field(init=False)
    is_done: Expr = field(init=False)
    place: Expr = field(init=False)
    """The coordinate as a number, which is larger than all coordinates if the token is a stop or `D`."""

    def __post_init__(self) -> None:
        for name, part in self.parts(Expr("token", (), self.width + KIND_BITS, self.name)).items():
            object.__setattr__(self, name, part)

    def parts(self, token: Expr) -> dict[str, Expr]:
        """Return the fields of the head that are computed from a token, by name."""
        kind, payload = token.bits(self.width, KIND_BITS), token.bits(0, self.width)
        return {
            "token": token,
            "payload": payload,
            "low": token.bits(0, LEVEL_BITS),
            "high": token.bits(LEVEL_BITS, LEVEL_BITS),
            "control": (control := kind.bits(0, 1)),
            "is_value": kind.is_(VALUE),
            "is_stop": kind.is_(STOP),
            "is_empty": kind.is_(EMPTY),
            "is_done": kind.is_(DONE),
            "place": concat(control, payload),
        }

    def holds_stop(self, low: Expr | int, high: Expr | int) -> Expr:
        """Return the condition that the token is the stop with these levels."""
        return self.is_stop & self.low.is_(low) & self.high.is_(high)

    def same_control(self, other: Head) -> Expr:
        """Return the condition that both tokens are the same stop, or both `D`."""
        return (self.is_done & other.is_done) | (self.holds_stop(other.low, other.high) & other.is_stop)


@dataclass(frozen=True, slots=True)
class Register:
    """A register of `width` bits that holds `initial` at the start."""

    width: int
    initial: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory of `depth` words of `width` bits, which rules write and read. A word is written before it is read."""

    width: int
    depth: int


@dataclass(frozen=True, slots=True)
class Link:
    """A FIFO between two processes of a node, from an output to an input. `depth` is None where it has no bound."""

    output: str
    input: str
    depth: int | None
    latency: int


@dataclass(frozen=True, slots=True)
class Port:
    """A port at a memory that takes time, for one array of a node. `request` is the output on which rules request lines, by their
    number in the array, and `answers` the width of the count of answers."""

    request: str
    answers: int
    write: bool


@dataclass(frozen=True, slots=True)
class Store:
    """A word that a rule writes to a memory."""

    memory: str
    address: Expr
    data: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One kind of firing: when it happens, what it takes from inputs and gives to outputs, and what it stores.

    `on` is the process that fires. `closes` is set for rules that fire on a stop or on `D`, or take nothing and emit a stop: the next
    firing may follow in the next cycle, even where firings of the process are otherwise more cycles apart. `awaits` are outputs that
    get nothing from this firing, but must have room for it to happen. `late` has tokens for outputs that were given a slot before
    their value was computed: such a token takes the place of the last one before a reader sees it.

    The simulator reports input streams whose stops do not match as an error; circuits do not check that. `expects` is a condition
    that holds if they match, and `notes` are registers that only such conditions read. `refuses` is an input whose next token must
    not be `N`."""

    label: str
    on: str
    when: Expr
    takes: tuple[str, ...]
    looks: tuple[str, ...]
    gives: tuple[tuple[str, Expr], ...]
    sets: tuple[tuple[str, Expr], ...]
    stores: tuple[Store, ...]
    closes: bool
    awaits: tuple[str, ...] = ()
    late: tuple[tuple[str, Expr], ...] = ()
    expects: Expr = YES
    refuses: Head | None = None
    notes: tuple[tuple[str, Expr], ...] = ()

    @property
    def heads(self) -> tuple[str, ...]:
        """The inputs whose heads must be visible."""
        return (*self.takes, *self.looks)

    @property
    def rooms(self) -> tuple[str, ...]:
        """The outputs that must have room."""
        return (*(out for out, _ in self.gives), *self.awaits)


class Module:
    """The rules of a node with its inputs, outputs, registers, memories and arrays. Arrays are read only, and are outside the
    circuit. `interval` is the cycles from one firing on a value to the next, `pause` those from one on a stop, and `intervals` has the
    intervals of processes that differ, which have no pause. `links` join processes of the node. `ports` at a memory that takes time are
    named by the kind of array. `helpers` are processes that make requests for another process; their firings do not count. With a
    `port_turn` its processes fire on values in that turn only. `busy` is None, or says that the node fires again after `D`, and is an
    output of the circuit then. So is `loaded`, which says that everything is there that is loaded into the scratchpad; modules that
    `await_load` have it as an input. A level of a stop has `level_bits` bits."""

    head: ClassVar[type[Head]] = Head
    level_bits: ClassVar[int] = LEVEL_BITS

    def __init__(self, op: str, interval: int = 1, pause: int = 1) -> None:
        self.op, self.interval, self.pause = op, interval, pause
        self.intervals: dict[str, int] = {}
        self.inputs: dict[str, Head] = {}
        self.outputs: dict[str, int] = {}
        self.registers: dict[str, Register] = {}
        self.noted: dict[str, Register] = {}
        self.memories: dict[str, Memory] = {}
        self.arrays: dict[str, int] = {}
        self.links: list[Link] = []
        self.ports: dict[str, Port] = {}
        self.helpers: set[str] = set()
        self.port_turn: Turn | None = None
        self.busy: Expr | None = None
        self.loaded: Expr | None = None
        self.awaits_load = False
        self.rules: list[Rule] = []

    def input(self, name: str, width: int) -> Head:
        return self.inputs.setdefault(name, self.head(name, width))

    def output(self, name: str, width: int) -> str:
        self.outputs[name] = width
        return name

    def register(self, name: str, width: int, initial: int = 0) -> Expr:
        self.registers[name] = Register(width, initial)
        return Expr("register", (), width, name)

    def note(self, name: str, width: int) -> Expr:
        """Declare a register that only `expects` reads."""
        self.noted[name] = Register(width)
        return Expr("register", (), width, name)

    def turns(self, register: str, lanes: Sequence[str]) -> range:
        """Return the values of a register for which rules are stated: the lane, of these inputs or outputs, whose turn it is. The rules of
        each are those of lane 0, with the lanes in turn from it on."""
        return range(len(lanes))

    def memory(self, name: str, width: int, depth: int) -> str:
        self.memories[name] = Memory(width, depth)
        return name

    def read(self, memory: str, address: Expr) -> Expr:
        """Return the word of a memory at an address."""
        return Expr("memory", (address,), self.memories[memory].width, memory)

    def array(self, name: str, address: Expr, width: int) -> Expr:
        """Return the element of `width` bits of an array at an address. A name is a port of the circuit, with one address."""
        self.arrays[name] = width
        return Expr("array", (address,), width, name)

    def link(self, output: str, input: str, width: int, depth: int | None, latency: int = 1) -> Head:
        """Declare a link with tokens of `width` bits from a process's `output` to another's `input`, and return the token there."""
        self.links.append(Link(self.output(output, width), input, depth, latency))
        return self.input(input, width)

    def helper(self, process: str) -> None:
        """Declare a process that works for another one: its firings do not count, and it may fire in every cycle."""
        self.helpers.add(process)
        self.intervals[process] = 1

    def port(self, kind: str, lines: int, answers: int, write: bool = False) -> Expr:
        """Declare a port at the memory for the array `kind`, with line numbers of `lines` bits. Returns its number of answers so
        far, an expression of `answers` bits."""
        self.ports[kind] = Port(self.output(f"{kind}_request", lines), answers, write)
        return Expr("answers", (), answers, kind)

    def await_load(self) -> Expr:
        """Return the condition that everything is there that is loaded into the scratchpad, which another module knows."""
        self.awaits_load = True
        return Expr("port", (), 1, LOADED)

    @property
    def streams(self) -> tuple[str, ...]:
        """The outputs that leave the node as streams: all outputs that are neither links nor requests."""
        inner = {link.output for link in self.links} | {port.request for port in self.ports.values()}
        return tuple(out for out in self.outputs if out not in inner)

    def value(self, out: str, payload: Expr) -> Expr:
        """Return the token of a value with a payload, for an output."""
        return concat(const(VALUE, KIND_BITS), payload.fit(self.outputs[out]))

    def mark(self, out: str, kind: int) -> Expr:
        """Return the token `N` or `D`, given by its kind, for an output."""
        return concat(const(kind, KIND_BITS), const(0, self.outputs[out]))

    def stop(self, out: str, low: Expr | int, high: Expr | int) -> Expr:
        """Return the token of the stop with these levels, for an output."""
        levels = [x if isinstance(x, Expr) else const(x, LEVEL_BITS) for x in (high, low)]
        return concat(const(STOP, KIND_BITS), concat(*levels).fit(self.outputs[out]))

    def least(self, numbers: Sequence[Expr]) -> Expr:
        """Return the smallest of some numbers."""
        return reduce(lambda least, number: mux(number < least, number, least), numbers)

    def passed(self, out: str, head: Head) -> Expr:
        """Return the next token of an input for an output of perhaps another width: a stop, `N`, `D`, or a value that fits."""
        return concat(head.token.bits(head.width, KIND_BITS), head.payload.fit(self.outputs[out]))

    def rule(
        self,
        label: str,
        when: Expr,
        takes: Sequence[Head] = (),
        looks: Sequence[Head] = (),
        gives: Mapping[str, Expr] | None = None,
        sets: Mapping[str, Expr | int] | None = None,
        stores: Sequence[Store] = (),
        closes: bool = False,
        on: str = "",
        awaits: Sequence[str] = (),
        late: Mapping[str, Expr] | None = None,
        expects: Expr = YES,
        refuses: Head | None = None,
        notes: Mapping[str, Expr] | None = None,
    ) -> None:
        """Add a rule. `looks` are heads that it inspects besides those that it takes. The other arguments are as in `Rule`.
        Raises `ValueError` if a token or a state does not fit."""
        given, computed, noted = (tuple((pairs or {}).items()) for pairs in (gives, late, notes))
        states = {
            name: value if isinstance(value, Expr) else const(value, self.registers[name].width)
            for name, value in (sets or {}).items()
        }
        widths = [(self.registers[name].width, value.width) for name, value in states.items()]
        widths += [(self.outputs[name] + KIND_BITS, token.width) for name, token in (*given, *computed)]
        if any(a != b for a, b in widths):
            raise ValueError(f"rule `{label}` of `{self.op}`: widths {widths}")
        taken, looked = (tuple(head.name for head in heads) for heads in (takes, looks))
        effects = taken, looked, given, tuple(states.items()), tuple(stores)
        self.rules.append(Rule(label, on, when, *effects, closes, tuple(awaits), computed, expects, refuses, noted))

    @property
    def late(self) -> frozenset[str]:
        """The outputs whose values take a slot in FIFOs before they are computed."""
        return frozenset(out for rule in self.rules for out, _ in rule.late)

    def interval_of(self, process: str) -> int:
        return self.intervals.get(process, self.interval)

    def pause_of(self, process: str) -> int:
        """Return the cycles from a firing on a stop to the next firing."""
        return 1 if process in self.intervals else self.pause

    @property
    def processes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(rule.on for rule in self.rules))


def seen_above(low: Expr, high: Expr, levels: int) -> tuple[Expr, Expr]:
    """Return the lowest and the highest level of a stop as it appears in a stream that is `levels` shallower."""
    if levels == 0:
        return low, high
    return mux(low < levels, const(0, low.width), low - levels), high - levels
