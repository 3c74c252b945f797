"""The rules of a module as a Python function, which returns the rules that fire in a cycle.

The function is printed from the expressions of the rules, as `emit` prints them for CIRCT, and then compiled. Nothing that a user
wrote is part of its text: all names in it are names of the module's inputs, registers and arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from fuseflow.firing_rules.expressions import Expr
from fuseflow.firing_rules.rules import Module
from fuseflow.hardware.arithmetic import unit_function

Firing: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...], tuple[int, ...]]
"""A firing of a rule: the number of the rule, the tokens that it emits, the states that it sets, the addresses and words that it
stores, and the late tokens, which replace tokens emitted before."""

Step: TypeAlias = Callable[[Any, Any, Any, Any, Any, Any, Any], list[Firing]]
"""A function from the next tokens of the inputs (None: none is visible), the room of each output, whether the interval of each
process is over and, last, the module has its turn, the registers, the memories, the arrays, and the answers of each port to the firings
of a cycle. Behind the answers it is whether everything is loaded into the scratchpad, for a module that awaits that."""

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
WRAPPING = {"add": "+", "sub": "-", "mul": "*"}
"""Operations whose result may have more bits, or a sign."""


def step_function(module: Module, known: dict[str, Step]) -> Step:
    """Return the compiled step function of a module. `known` has the functions that were compiled before, by their text."""
    text, units = _step_code(module)
    if text not in known:
        scope: dict[str, Any] = {name: unit_function(name) for name in units}
        exec(compile(text, f"<rules of {module.op}>", "exec"), scope)
        known[text] = scope["step"]
    return known[text]


def _step_code(module: Module) -> tuple[str, set[str]]:
    """Return the text of the step function of a module, and the names of the units that it calls."""
    heads, rooms = list(module.inputs), list(module.outputs)
    named = {"token": heads, "register": list(module.registers), "memory": list(module.memories), "array": list(module.arrays)}
    places = {op: {name: k for k, name in enumerate(names)} for op, names in {**named, "answers": list(module.ports)}.items()}
    block = _Block(places, {}, set(), "    ")
    guards = [block.name(rule.when) for rule in module.rules]
    lines = ["def step(heads, rooms, due, registers, memories, arrays, answers):", "    fired = []"]
    lines += [f"    token{k} = heads[{k}] or 0" for k in range(len(heads))]
    lines += block.lines
    for number, (rule, guard) in enumerate(zip(module.rules, guards, strict=True)):
        waits = [guard, *(f"heads[{heads.index(head)}] is not None" for head in rule.heads)]
        waits += [f"rooms[{rooms.index(out)}]" for out in rule.rooms]
        waits.append(f"due[{module.processes.index(rule.on)}]")
        waits += ["due[-1]"] if module.port_turn is not None and not rule.closes else []
        inside = _Block(places, dict(block.names), block.units, "        ")
        given, states, late = ([inside.name(value) for _, value in pairs] for pairs in (rule.gives, rule.sets, rule.late))
        stored = [_tuple((inside.name(store.address), inside.name(store.data))) for store in rule.stores]
        firing = f"({number}, {_tuple(given)}, {_tuple(states)}, {_tuple(stored)}, {_tuple(late)})"
        lines += [f"    if {' and '.join(waits)}:", *inside.lines, f"        fired.append({firing})"]
    return "\n".join([*lines, "    return fired", ""]), block.units


def _tuple(parts: Iterable[str]) -> str:
    return "(" + "".join(f"{part}, " for part in parts) + ")"


class _Block:
    """Lines of Python that compute expressions, each expression once. `places` has the index of each input, register, memory, array and
    port in the lists that a step function gets, `names` the variable of each expression by its text, and `units` the called units."""

    def __init__(self, places: Mapping[str, Mapping[str, int]], names: dict[str, str], units: set[str], indent: str) -> None:
        self.places, self.names, self.units, self.indent = places, names, units, indent
        self.lines: list[str] = []
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
        place, mask = self.places.get(expr.op, {}).get(expr.name), (1 << expr.width) - 1
        match expr.op:
            case "const":
                return str(expr.number)
            case "token":
                return f"token{place}"
            case "register":
                return f"registers[{place}]"
            case "port":
                return "answers[-1]"  # the load that the module awaits
            case "answers":
                return f"answers[{place}] & {mask}"
            case "memory":
                return f"memories[{place}].get({args[0]}, 0)"
            case "array":
                return f"arrays[{place}][{args[0]}] if {args[0]} < len(arrays[{place}]) else 0"
            case "call":
                self.units.add(expr.name)
                return f"{expr.name}({', '.join(args)})"
            case "mux":
                return f"{args[1]} if {args[0]} else {args[2]}"
            case "extract":
                return f"{args[0]} >> {expr.number} & {mask}" if expr.number else f"{args[0]} & {mask}"
            case "concat":
                below = [sum(part.width for part in expr.args[k + 1 :]) for k in range(len(args))]
                return " | ".join(f"{arg} << {low}" if low else arg for arg, low in zip(args, below, strict=True))
            case "shl":
                shifted = f"({args[0]} << {args[1]}) & {mask}"
                return shifted if expr.args[1].op == "const" else f"{shifted} if {args[1]} < {expr.width} else 0"
            case "add" | "sub" | "mul":
                return f"({args[0]} {WRAPPING[expr.op]} {args[1]}) & {mask}"
            case _:
                return f"{args[0]} {INFIX[expr.op]} {args[1]}"
