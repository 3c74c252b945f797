"""The steps of a process as a Python function, which is printed from its firing rules and then compiled.

Rules become a tree of decisions. A decision waits for the heads (next tokens of inputs) that every rule below it takes or
inspects, and then tests one condition of a rule. So no process waits for a token that its firing does not need, and each
condition is tested once. Of a user's program only numbers are part of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, nan
from typing import Any

from fuseflow.firing_rules.expressions import Expr
from fuseflow.firing_rules.rules import DONE, Rule
from fuseflow.samml.tokens import D, N, Stop, is_control, stop
from fuseflow.sim.reference.timed_process import Backlog, Steps, await_slots, look_behind
from fuseflow.sim.reference.token_rules import BEHIND, KINDS, TokenModule

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
    """Return an expression as Python text. Numbers are unbounded, and `and`, `or` and choices compute only what decides."""
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


BACKLOG_LIMIT = 1024
"""The tokens that a process without an input may be ahead of its readers: few enough for the caches, and seldom scheduled."""

SCOPE: Mapping[str, Any] = {
    "D": D,
    "N": N,
    "Stop": Stop,
    "is_control": is_control,
    "stop": stop,
    "inf": inf,
    "nan": nan,
    "await_slots": await_slots,
    "look_behind": look_behind,
    "backlog_of": lambda p: Backlog(p.outputs, BACKLOG_LIMIT),
}
"""The names that the generated functions may use."""


class StepCode:
    """The lines of the Python function, of the process and the functions that rules call, that runs a module's rules."""

    def __init__(self, module: TokenModule, functions: Iterable[str]) -> None:
        self.module = module
        self.lines = [f"def steps({', '.join(('p', *functions))}):"]
        for side, names in (("inputs", module.inputs), ("outputs", module.outputs)):
            self.add(1, *([f"{', '.join(names)}, = p.{side}"] if names else []))
        self.add(1, *(f"take_{name} = {name}.take" for name in module.inputs))
        self.add(1, *(f"push_{name} = {name}.push" for name in module.outputs))
        for name, register in (module.registers | module.noted).items():
            self.add(1, f"register_{name} = {module.starts.get(name, register.initial)}")
        self.add(1, "fire, close, bounded = p.fire, p.close, p.bounded")
        self.runs_ahead = any(map(is_alone, module.rules))
        if self.runs_ahead:
            self.add(1, "backlog, ahead = backlog_of(p), 0")
        self.add(1, "while True:")
        self.decisions(2, module.rules, Facts({}, {f"register_{module.turn}": 0}, {}))

    def add(self, depth: int, *lines: str) -> None:
        self.lines += [f"{'    ' * depth}{line}" for line in lines]

    def decisions(self, depth: int, rules: Sequence[Rule], facts: Facts, otherwise: bool = False) -> None:
        """Add the code, indented by `depth`, that finds the rule that fires; `otherwise`: in an `else`."""
        holds = {rule: facts.decide(rule.when) for rule in rules}
        decided = [rule for rule in rules if holds[rule]][:1]
        rules = decided or [rule for rule in rules if holds[rule] is None]
        awaited = facts.missing(rules)
        chained = otherwise and rules and not decided and not awaited
        if otherwise and not chained:
            self.add(depth - 1, "else:")
        if len(awaited) > 1 and {*self.module.lanes} == {*facts.seen, *awaited}:
            self.add(depth, "for fifo in p.inputs:", "    while not fifo:", "        yield fifo")  # as the graph orders them
        for head in awaited:
            self.wait(depth, head)
        facts = replace(facts, seen=facts.seen + awaited)
        if not rules:
            self.misaligned(depth, facts.seen)
        elif decided:
            self.firing(depth, rules[0], facts)
        else:
            asked, inner = self.question(rules, facts), depth if chained else depth + 1
            self.add(inner - 1, f"{'elif' if chained else 'if'} {facts.text(asked)}:")
            self.decisions(inner, rules, facts.learn(asked, True))
            self.decisions(inner, rules, facts.learn(asked, False), otherwise=True)

    def wait(self, depth: int, head: str) -> None:
        """Add the code that waits for the next token of an input (`head`), or for the token after it."""
        if head.startswith(BEHIND):
            name = head.removeprefix(BEHIND)
            self.add(depth, f"visible_{head} = yield from look_behind(0, {name})", f"token_{head} = {name}[1][0]")
        else:
            self.add(depth, f"while not {head}:", f"    yield {head}", f"token_{head}, visible_{head} = {head}[0]")

    def question(self, rules: Sequence[Rule], facts: Facts) -> Expr:
        """Return the first condition of a rule that the facts do not decide and whose tokens have come."""
        for rule in rules:
            for condition in conditions(rule.when):
                if facts.decide(condition) is None and heads_of(condition) <= {*facts.seen}:
                    return condition
        raise ValueError(f"`{self.module.op}` waits for tokens that its rules do not all need")

    def misaligned(self, depth: int, heads: Sequence[str]) -> None:
        """Add the code that raises the error for tokens on which no rule fires. Without inputs the process ends there."""
        if not self.module.inputs:
            self.add(depth, "return")
            return
        self.add(depth, f"raise p.misaligned({', '.join(f'token_{head}' for head in heads)})")

    def move_on(self) -> Iterator[str]:
        """Yield the lines that rotate the local names of the lanes, so that the lane whose turn is next has the names of lane 0."""
        lanes = self.module.lanes
        moves = "take" if lanes[0] in self.module.inputs else "push"
        for names in (lanes, [f"{moves}_{lane}" for lane in lanes]):
            yield f"{', '.join(names)} = {', '.join((*names[1:], names[0]))}"

    def firing(self, depth: int, rule: Rule, facts: Facts) -> None:
        """Add the code of a firing of a rule: its checks, the cycle, and the tokens that it takes and pushes."""
        if facts.decide(rule.expects) is not True:
            self.add(depth, f"if not {facts.text(rule.expects)}:")
            self.misaligned(depth + 1, rule.heads)
            facts = facts.learn(rule.expects, True)
        if rule.refuses is not None and facts.decide(rule.refuses.is_empty) is not False:
            self.add(depth, f"if {facts.text(rule.refuses.is_empty)}:", "    raise p.refused()")
        seen = [f"visible_{head}" for head in rule.heads]
        visible = seen[0] if len(seen) == 1 else f"max({', '.join(seen)})" if seen else "0"
        rooms = "*p.outputs" if {*rule.rooms} == {*self.module.outputs} else ", ".join(rule.rooms)  # as the graph orders them
        free = f", (yield from await_slots({rooms})) if bounded else 0" if rule.rooms else ""
        gives = [(out, facts.text(token)) for out, token in rule.gives]
        computed = [(out, text) for out, text in gives if text.startswith("compute(")]  # which may find an error
        self.add(depth, *(f"given_{out} = {text}" for out, text in computed))
        gives = [(out, f"given_{out}") if (out, text) in computed else (out, text) for out, text in gives]
        self.add(depth, f"t = {'close' if rule.closes else 'fire'}({visible}{free})")
        self.add(depth, *(f"take_{head.removeprefix(BEHIND)}(t)" for head in rule.takes))
        self.add(depth, *(f"push_{out}({text}, t)" for out, text in gives))
        if self.module.turn in dict(rule.sets):
            self.add(depth, *self.move_on())
        if states := [state for state in (*rule.sets, *rule.notes) if state[0] != self.module.turn]:
            names, values = zip(*((f"register_{name}", facts.text(state)) for name, state in states), strict=True)
            self.add(depth, f"{', '.join(names)} = {', '.join(values)}")
        if self.runs_ahead and rule.gives and not rule.closes:
            self.add(
                depth, "ahead += 1", "if ahead == backlog.limit:", "    ahead = 0", "    if not backlog:", "        yield backlog"
            )
        kinds = facts.kinds.get(rule.takes[0], ALL_KINDS) if rule.takes else frozenset[int]()
        if DONE in kinds:
            self.add(depth, f"if {facts.text(self.module.inputs[rule.takes[0]].is_done)}:", "    return")


def is_alone(rule: Rule) -> bool:
    """Return whether a rule emits values without an input, and so may fire any number of times ahead of its readers."""
    return not rule.heads and not rule.closes


def step_function(module: TokenModule, functions: Iterable[str] = ()) -> Callable[..., Steps]:
    """Return the compiled function of a process and the named `functions` that makes the steps of a process of a module."""
    scope = dict(SCOPE)
    exec(compile("\n".join(StepCode(module, functions).lines), f"<rules of {module.op}>", "exec"), scope)
    text_of.cache_clear()
    steps: Callable[..., Steps] = scope["steps"]
    return steps
