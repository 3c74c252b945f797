"""Firing rules on tokens: the same rules as in circuits, whose tokens are words. Here a value is any Python object that a stream
carries, and levels and coordinates are numbers without bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fuseflow.firing_rules.context import Fiber, RuleContext
from fuseflow.firing_rules.expressions import Expr, call, const
from fuseflow.firing_rules.rules import DONE, EMPTY, KIND_BITS, STOP, VALUE, Head, Module
from fuseflow.primitives.scan import place_of
from fuseflow.samml import nodes as n

WIDTH = 64
"""The nominal width of all payloads in bits, since rules ask for one."""
LEVEL_WIDTH = 32

KINDS = {
    "control": frozenset({STOP, DONE}),
    "is_value": frozenset({VALUE}),
    "is_stop": frozenset({STOP}),
    "is_empty": frozenset({EMPTY}),
    "is_done": frozenset({DONE}),
}
"""The kinds of tokens for which each test of a head is true."""


class TokenHead(Head):
    """The next token of an input, whose properties are expressions that call a function of the same name on the token."""

    def parts(self, token: Expr) -> dict[str, Expr]:
        numbers = {"payload": WIDTH, "low": LEVEL_WIDTH, "high": LEVEL_WIDTH, "place": WIDTH}
        return {"token": token} | {name: call(name, numbers.get(name, 1), token) for name in (*numbers, *KINDS)}

    def same_control(self, other: Head) -> Expr:
        return call("same", 1, self.token, other.token)


class TokenModule(Module):
    """A module whose rules emit tokens. `starts` has, as text, the first contents of registers that do not start with a
    number. If `lanes` take turns, only the rules of lane 0 are stated, and the lanes move on where these set the register
    `turn`: 64 lanes have 262,144 conditions."""

    head: ClassVar[type[Head]] = TokenHead
    level_bits: ClassVar[int] = LEVEL_WIDTH

    def __init__(self, op: str) -> None:
        super().__init__(op)
        self.starts: dict[str, str] = {}
        self.turn, self.lanes = "", tuple[str, ...]()

    def turns(self, register: str, lanes: Sequence[str]) -> range:
        self.turn, self.lanes = register, tuple(lanes)
        return range(1)

    def value(self, out: str, payload: Expr) -> Expr:
        return call("payload", WIDTH + KIND_BITS, payload)

    def mark(self, out: str, kind: int) -> Expr:
        return call({EMPTY: "N", DONE: "D"}[kind], WIDTH + KIND_BITS)

    def stop(self, out: str, low: Expr | int, high: Expr | int) -> Expr:
        levels = [x if isinstance(x, Expr) else Expr("const", (), LEVEL_WIDTH, number=x) for x in (low, high)]
        return call("stop", WIDTH + KIND_BITS, *levels)

    def least(self, numbers: Sequence[Expr]) -> Expr:
        return call("min", WIDTH, *numbers) if len(numbers) > 1 else numbers[0]

    def passed(self, out: str, head: Head) -> Expr:
        return head.token


BEHIND = "behind_"
"""The prefix of the name of the token after the next one of an input."""


def behind_head(m: Module, name: str) -> Head:
    """Return the token after the next one of the input `name`; a rule that uses it waits until it has come."""
    return m.head(BEHIND + name, WIDTH)


class TokenFold:
    """A reduction whose steps are functions of the process: `identity`, `fold`, and `folded` for the result. `x` is the next
    value."""

    def __init__(self, m: TokenModule, x: Expr) -> None:
        total = m.register("total", WIDTH)
        m.starts["total"] = "identity"
        self.begun: dict[str, Expr | int] = {"total": call("fold", WIDTH, total, x)}
        self.total = call("folded", WIDTH, total)
        self.emptied: dict[str, Expr | int] = {"total": call("identity", WIDTH)}

    def rules(self) -> None:
        """Add no further rules: a fold takes a single firing."""


class TokenWork:
    """An operator that calls `compute`, an argument of the process's function. Its operands may be `N`."""

    def __init__(self, heads: Sequence[Head]) -> None:
        self.begun: dict[str, Expr | int] = {}
        self.result = call("compute", WIDTH, *(head.token for head in heads))

    def rules(self, late: Mapping[str, Expr]) -> None:
        """Add no further rules: an operator takes a single firing."""


@dataclass(frozen=True, slots=True)
class TokenContext(RuleContext):
    """The context of a node whose rules are interpreted. `outs` is the number of its outputs, and `filled` the number of entries
    to which a writer pads a fiber."""

    types: tuple[n.StreamType, ...]
    outs: int
    filled: int = 0

    def width(self, type_: n.StreamType) -> int:
        return WIDTH

    def outputs(self, m: Module) -> list[str]:
        return [m.output(f"out{k}", WIDTH) for k in range(self.outs)]

    def number(self, value: float) -> Expr:
        return call(repr(float(value)), WIDTH)

    def apply(self, function: str, *operands: Expr) -> Expr:
        return call(f"operators[{function!r}]", WIDTH, *operands)

    def holds(self, truth: Expr) -> Expr:
        return call("bool", 1, truth)

    def fiber(self, m: Module, node: n.Scan | n.Range, ref: Head) -> Fiber:
        at = place_of(m, const(0, WIDTH))
        size = call("fiber", WIDTH, call("p", WIDTH), ref.token)
        return Fiber(
            size.is_not(0),
            const(0, WIDTH),
            call("fiber.size", WIDTH),
            at,
            *(m.array(name, at, WIDTH) for name in ("crds", "refs")),
        )

    def room(self, node: n.WriteLevel | n.WriteValues) -> int:
        return self.filled

    def compute(self, m: Module, heads: Sequence[Head]) -> TokenWork:
        return TokenWork(heads)

    def fold(self, m: Module, function: str, x: Expr) -> TokenFold:
        assert isinstance(m, TokenModule)
        return TokenFold(m, x)
