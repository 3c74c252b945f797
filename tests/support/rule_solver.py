"""Expressions of rules in a solver. What a unit, an array or a memory gives may be anything."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import z3

from fuseflow.firing_rules.expressions import Expr
from fuseflow.firing_rules.rules import Module, Rule


class Solver:
    """The expressions of one module. Arrays are functions of their address, and equal reads of memories and calls are one unknown. The
    tokens of the inputs `others` are not those that other solvers have there."""

    def __init__(self, module: Module, others: Collection[str] = ()) -> None:
        self.module, self.others = module, others
        self.known: dict[int, Any] = {}

    def together(self, process: str) -> tuple[Rule, Rule] | None:
        """Two rules of a process that may hold at once, in whatever state and with whatever heads; None if there are none."""
        rules = [rule for rule in self.module.rules if rule.on == process]
        guards = [self.value(rule.when) == 1 for rule in rules]
        solver = z3.Solver()
        solver.add(z3.AtLeast(*guards, 2) if len(guards) > 1 else False)
        if solver.check() == z3.unsat:
            return None
        model = solver.model()
        first, second, *_ = [rule for rule, guard in zip(rules, guards, strict=True) if z3.is_true(model.eval(guard, True))]
        return first, second

    def decides_by(self, rule: Rule, inputs: Collection[str]) -> bool:
        """Whether the guard of a rule may differ where the tokens of some inputs differ and nothing else does."""
        solver = z3.Solver()
        solver.add(self.value(rule.when) != Solver(self.module, inputs).value(rule.when))
        return bool(solver.check() != z3.unsat)

    def value(self, expr: Expr) -> Any:
        if id(expr) not in self.known:
            self.known[id(expr)] = self._value(expr, [self.value(arg) for arg in expr.args])
        return self.known[id(expr)]

    def _value(self, expr: Expr, args: list[Any]) -> Any:
        match expr.op:
            case "const":
                return z3.BitVecVal(expr.number, expr.width)
            case "token" | "register" | "answers":
                other = "other " if expr.op == "token" and expr.name in self.others else ""
                return z3.BitVec(f"{other}{expr.op} {expr.name}", expr.width)
            case "array":
                sorts = z3.BitVecSort(expr.args[0].width), z3.BitVecSort(expr.width)
                return z3.Function(f"array {expr.name}", *sorts)(args[0])
            case "memory" | "call":
                operands = " ".join(z3.simplify(arg).sexpr() for arg in args)
                return z3.BitVec(f"{expr.op} {expr.name} {operands}", expr.width)
            case "mux":
                return z3.If(args[0] == 1, args[1], args[2])
            case "extract":
                return z3.Extract(expr.number + expr.width - 1, expr.number, args[0])
            case "concat":
                return z3.Concat(*args)
            case "eq" | "ne" | "ult" | "ule":
                compare = {"eq": args[0] == args[1], "ne": args[0] != args[1]}
                compare |= {"ult": z3.ULT(args[0], args[1]), "ule": z3.ULE(args[0], args[1])}
                return z3.If(compare[expr.op], z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
        a, b = args
        match expr.op:
            case "and":
                return a & b
            case "or":
                return a | b
            case "xor":
                return a ^ b
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul":
                return a * b
            case "divu":
                return z3.UDiv(a, b)
            case "modu":
                return z3.URem(a, b)
            case "shl":
                return a << b
            case "shru":
                return z3.LShR(a, b)
        raise AssertionError(f"no `{expr.op}` in the solver")
