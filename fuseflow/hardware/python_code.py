"""The rules of a module as a Python function, which returns the rules that fire in a cycle.

The function is printed from the expressions of the rules, as `emit` prints them for CIRCT, and then compiled. Nothing that a user
wrote is part of its text: all names in it are names of the module's inputs, registers and arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from fuseflow.hardware.arithmetic import unit_function
from fuseflow.hardware.netlist import expressions
from fuseflow.rules.expressions import Expr
from fuseflow.rules.rules import Module

Firing: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...], tuple[int, ...]]
"""A firing of a rule: the number of the rule, the tokens that it emits, the states that it sets, the addresses and words that it
stores, and the late tokens, which replace tokens emitted before."""

Step: TypeAlias = Callable[[Any, Any, Any, Any, Any, Any, Any], list[Firing]]
"""A function from the next tokens of the inputs (None: none is visible), the room of each output, whether the interval of each
process is over, the registers, the memories, the arrays, and the answers of each port to the firings of a cycle."""

INFIX = {
    "and": "&",
    "or": "|",
    "xor": "^",
    "divu": "//",
    "modu": "%",
    "shru": ">>",
    "eq": "==",
    "ne": "!=",
    "ult": "<",
    "ule": "<=",
}
WRAPPING = {"add": "+", "sub": "-", "mul": "*", "shl": "<<"}
"""Operations whose result may have more bits, or a sign."""


def step_function(module: Module) -> Step:
    """Return the compiled step function of a module."""
    text, units = step_code(module)
    scope: dict[str, Any] = {name: unit_function(name) for name in units}
    exec(compile(text, f"<rules of {module.op}>", "exec"), scope)
    step: Step = scope["step"]
    return step


def step_code(module: Module) -> tuple[str, tuple[str, ...]]:
    """Return the text of the step function of a module, and the names of the units that it calls."""
    heads, rooms = list(module.inputs), list(module.outputs)
    places = Places(
        {name: k for k, name in enumerate(heads)},
        {name: k for k, name in enumerate(module.registers)},
        {name: k for k, name in enumerate(module.memories)},
        {name: k for k, name in enumerate(module.arrays)},
        {name: k for k, name in enumerate(module.ports)},
    )
    block = Block(places, {}, [], "    ")
    guards = [block.name(rule.when) for rule in module.rules]
    lines = ["def step(heads, rooms, due, registers, memories, arrays, answers):", "    fired = []"]
    lines += [f"    token{k} = heads[{k}] or 0" for k in range(len(heads))]
    lines += block.lines
    for number, (rule, guard) in enumerate(zip(module.rules, guards, strict=True)):
        waits = [guard, *(f"heads[{places.inputs[head]}] is not None" for head in rule.heads)]
        waits += [f"rooms[{rooms.index(out)}]" for out in rule.rooms]
        waits.append(f"due[{module.processes.index(rule.on)}]")
        inside = Block(places, dict(block.names), [], "        ")
        given, states, late = ([inside.name(value) for _, value in pairs] for pairs in (rule.gives, rule.sets, rule.late))
        stored = [_tuple((inside.name(store.address), inside.name(store.data))) for store in rule.stores]
        firing = f"({number}, {_tuple(given)}, {_tuple(states)}, {_tuple(stored)}, {_tuple(late)})"
        lines += [f"    if {' and '.join(waits)}:", *inside.lines, f"        fired.append({firing})"]
    units = {e.name for e in expressions(_roots(module)) if e.op == "call"}
    return "\n".join([*lines, "    return fired", ""]), tuple(sorted(units))


def _tuple(parts: Iterable[str]) -> str:
    return "(" + "".join(f"{part}, " for part in parts) + ")"


def _roots(module: Module) -> Iterable[Expr]:
    """Yield the guards, tokens, states and stores of all rules as expressions."""
    for rule in module.rules:
        yield rule.when
        yield from (value for _, value in (*rule.gives, *rule.sets, *rule.late))
        yield from (part for store in rule.stores for part in (store.address, store.data))


@dataclass(frozen=True, slots=True)
class Places:
    """The indices of inputs, registers, memories, arrays and ports in the lists that a step function gets."""

    inputs: Mapping[str, int]
    registers: Mapping[str, int]
    memories: Mapping[str, int]
    arrays: Mapping[str, int]
    ports: Mapping[str, int]


class Block:
    """Lines of Python that compute expressions, each expression once. `names` has the variable of each expression, by its
    text."""

    def __init__(self, places: Places, names: dict[str, str], lines: list[str], indent: str) -> None:
        self.places, self.names, self.lines, self.indent = places, names, lines, indent
        self.known: dict[int, str] = {}

    def name(self, expr: Expr) -> str:
        """Return the variable, or the literal, with the value of an expression, after the lines that compute it are added."""
        if id(expr) in self.known:
            return self.known[id(expr)]
        text = self._text(expr, [self.name(arg) for arg in expr.args])
        if expr.op != "const" and expr.op != "token":
            if text not in self.names:
                self.names[text] = f"v{len(self.names)}"
                self.lines.append(f"{self.indent}{self.names[text]} = {text}")
            text = self.names[text]
        self.known[id(expr)] = text
        return text

    def _text(self, expr: Expr, args: list[str]) -> str:
        places, mask = self.places, (1 << expr.width) - 1
        match expr.op:
            case "const":
                return str(expr.number)
            case "token":
                return f"token{places.inputs[expr.name]}"
            case "register":
                return f"registers[{places.registers[expr.name]}]"
            case "answers":
                return f"answers[{places.ports[expr.name]}] & {mask}"
            case "memory":
                return f"memories[{places.memories[expr.name]}].get({args[0]}, 0)"
            case "array":
                array = f"arrays[{places.arrays[expr.name]}]"
                return f"{array}[{args[0]}] if {args[0]} < len({array}) else 0"
            case "call":
                return f"{expr.name}({', '.join(args)})"
            case "mux":
                return f"{args[1]} if {args[0]} else {args[2]}"
            case "extract":
                return f"{args[0]} >> {expr.number} & {mask}" if expr.number else f"{args[0]} & {mask}"
            case "concat":
                below = [sum(part.width for part in expr.args[k + 1 :]) for k in range(len(args))]
                return " | ".join(f"{arg} << {low}" if low else arg for arg, low in zip(args, below, strict=True))
            case "shl":
                shift, width = expr.args[1], expr.width
                return (
                    f"({args[0]} << {args[1]}) & {mask} if {args[1]} < {width} else 0"
                    if shift.op != "const"
                    else f"({args[0]} << {args[1]}) & {mask}"
                )
            case "add" | "sub" | "mul":
                return f"({args[0]} {WRAPPING[expr.op]} {args[1]}) & {mask}"
            case _:
                return f"{args[0]} {INFIX[expr.op]} {args[1]}"
