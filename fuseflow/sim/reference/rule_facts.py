"""Conditions of firing rules as Python text, and the facts about tokens and conditions that hold at a point of the generated
program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from fuseflow.rules.expressions import Expr
from fuseflow.rules.rules import Rule
from fuseflow.sim.reference.token_rules import KINDS

ALL_KINDS = frozenset(range(4))
PARTS = {
    "payload": "{0}",
    "low": "{0}.low",
    "high": "{0}.high",
    "place": "({0} if {0}.__class__ is int else inf)",
    "control": "({0} is D or {0}.__class__ is Stop)",
    "is_value": "not ({0} is N or is_control({0}))",
    "is_stop": "{0}.__class__ is Stop",
    "is_empty": "{0} is N",
    "is_done": "{0} is D",
    "same": "{0} is {1}",
}
INFIX = {"and": "and", "or": "or", "add": "+", "sub": "-", "mul": "*", "divu": "//", "modu": "%"}
INFIX |= {"eq": "==", "ne": "!=", "ult": "<", "ule": "<="}


@cache
def text_of(expr: Expr) -> str:
    """Return an expression as Python text. Numbers have no bounds, and `and`, `or` and choices compute only the operands that
    decide."""
    return _text(expr, [text_of(arg) for arg in expr.args])


def _text(expr: Expr, args: Sequence[str]) -> str:
    match expr.op:
        case "const":
            return str(expr.number)
        case "token" | "register":
            return f"{expr.op}_{expr.name}"
        case "call" if expr.name in PARTS:
            return PARTS[expr.name].format(*args)
        case "call":
            return f"{expr.name}({', '.join(args)})" if args else expr.name
        case "array":
            return f"fiber.{expr.name}[{args[0]}]"
        case "xor":
            return f"(not {args[0]})"
        case "mux":
            return f"({args[1]} if {args[0]} else {args[2]})"
        case "extract":
            return args[0]
        case "concat":
            return args[-1]  # behind zeros
        case op:
            return f"({args[0]} {INFIX[op]} {args[1]})"


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts at a point of the decision tree: the kinds that each token may have, the known numbers of expressions and the
    truth of conditions, by their text. `seen` are the heads (next tokens of inputs) that have come."""

    kinds: Mapping[str, frozenset[int]]
    numbers: Mapping[str, int]
    texts: Mapping[str, bool]
    seen: tuple[str, ...] = ()

    def decide(self, expr: Expr) -> bool | None:
        """Return whether a condition holds, or None if that is not known."""
        if expr.op in ("and", "or"):
            strong, open_ = expr.op == "or", False
            for arg in expr.args:
                part = self.decide(arg)
                if part is strong:
                    return strong
                open_ = open_ or part is None
            return self.texts.get(text_of(expr)) if open_ else not strong
        if (inner := opposite(expr)) is not None:
            part = self.decide(inner)
            return None if part is None else not part
        if expr.op == "const":
            return bool(expr.number)
        if expr.name in KINDS and expr.args[0].op == "token":
            kinds, true = self.kinds.get(expr.args[0].name, ALL_KINDS), KINDS[expr.name]
            return True if kinds <= true else False if not kinds & true else None
        if expr.op == "eq" and expr.args[1].op == "const" and text_of(expr.args[0]) in self.numbers:
            return self.numbers[text_of(expr.args[0])] == expr.args[1].number
        return self.texts.get(text_of(expr))

    def text(self, expr: Expr) -> str:
        """Return an expression as Python text, simplified by these facts."""
        known = self.decide(expr) if expr.width == 1 else None
        match expr:
            case _ if known is not None:
                return str(known)
            case Expr(op="mux", args=(condition, yes, no)) if (chosen := self.decide(condition)) is not None:
                return self.text(yes if chosen else no)
            case Expr(op="call", name="place", args=(Expr(op="token", name=head) as token,)) if head in self.kinds:
                control = self.kinds[head] & KINDS["control"]
                return text_of(token) if not control else "inf" if control == self.kinds[head] else text_of(expr)
        return _text(expr, [self.text(arg) for arg in expr.args])

    def missing(self, rules: Sequence[Rule]) -> tuple[str, ...]:
        """Return the heads that all rules take or inspect and that are not in `seen`, in the order of the first rule."""
        if not rules:
            return ()
        return tuple(head for head in rules[0].heads if head not in self.seen and all(head in rule.heads for rule in rules))

    def learn(self, expr: Expr, holds: bool) -> Facts:
        """Return these facts with the further fact that a condition holds, or that it does not."""
        if (inner := opposite(expr)) is not None:
            return self.learn(inner, not holds)
        kinds, numbers = dict(self.kinds), dict(self.numbers)
        match expr:
            case Expr(op="and" | "or", args=(left, right)) if holds == (expr.op == "and"):
                return self.learn(left, holds).learn(right, holds)
            case Expr(op="call", name=name, args=(Expr(op="token", name=head),)) if name in KINDS:
                kinds[head] = kinds.get(head, ALL_KINDS) & (KINDS[name] if holds else ALL_KINDS - KINDS[name])
            case Expr(op="eq", args=(left, Expr(op="const", number=number))) if holds:
                numbers[text_of(left)] = number
        return Facts(kinds, numbers, {**self.texts, text_of(expr): holds}, self.seen)


def opposite(expr: Expr) -> Expr | None:
    """Return the condition that an expression negates, or None if the expression is no negation."""
    if expr.op == "xor":
        return expr.args[0]
    return Expr("eq", expr.args, 1) if expr.op == "ne" else None


def conditions(expr: Expr) -> Iterable[Expr]:
    """Yield the conditions that an expression joins by `and`, or the expression alone."""
    if expr.op == "and":
        for arg in expr.args:
            yield from conditions(arg)
    else:
        yield expr


def heads_of(expr: Expr) -> set[str]:
    """Return the inputs whose tokens an expression reads."""
    return {expr.name} if expr.op == "token" else set[str]().union(*map(heads_of, expr.args))
