"""What must hold of the rules of every primitive, in whatever state: they exclude each other, and look at what they decide by."""

from __future__ import annotations

import pytest
from hardware_modules import module_of, modules, remote_modules
from hardware_tools import require

from fuseflow.firing_rules.expressions import YES
from fuseflow.firing_rules.rules import Module
from fuseflow.hardware.emit import module_body
from fuseflow.hardware.primitives import RULES
from fuseflow.hardware.rule_netlist import expressions, netlist
from fuseflow.samml import nodes as n
from fuseflow.samml.primitives import Primitive

MODULES = dict(modules()) | dict(remote_modules())


@pytest.mark.parametrize("name", MODULES)
def test_rules_of_a_process_exclude_each_other(name: str) -> None:
    """A solver finds no state and no tokens with which two rules of one process hold."""
    require("z3")
    from rule_solver import Solver

    solver = Solver(MODULES[name])
    for process in MODULES[name].processes:
        both = solver.together(process)
        assert both is None, f"`{both[0].label}` and `{both[1].label}` of {name} hold at once"


def test_the_solver_finds_rules_that_hold_at_once() -> None:
    require("z3")
    from rule_solver import Solver

    module = module_of(n.Reduce("r", (n.Port("x"),), "sum"), [n.StreamType("val", 2)])
    module.rule("any", YES, [module.inputs["in0"]])
    both = Solver(module).together("")
    assert both is not None and "any" in (both[0].label, both[1].label)


def test_the_solver_finds_tokens_that_matter() -> None:
    require("z3")
    from rule_solver import Solver

    module = MODULES["remote scan compressed"]
    rules = {rule.label: rule for rule in module.rules}
    assert Solver(module).decides_by(rules["walks first"], {"asked"})
    assert not Solver(module).decides_by(rules["walks first"], {"walked"})


@pytest.mark.parametrize("name", MODULES)
def test_guards_read_heads_that_they_look_at(name: str) -> None:
    """A guard that reads a token which need not be there would decide by what is left on a wire. A walker at the memory reads one, but in
    states in which it does not matter: the solver finds no two tokens with which the guard differs."""
    for rule in MODULES[name].rules:
        others = {expr.name for expr in expressions([rule.when]) if expr.op == "token"} - set(rule.heads)
        if others:
            assert rule.label.startswith("walks element"), f"`{rule.label}` of {name}"
            require("z3")
            from rule_solver import Solver

            assert not Solver(MODULES[name]).decides_by(rule, others), f"`{rule.label}` of {name}"


@pytest.mark.parametrize("name", MODULES)
def test_every_input_is_taken_and_every_output_given(name: str) -> None:
    module = MODULES[name]
    assert {head for rule in module.rules for head in rule.takes} == set(module.inputs)
    assert {out for rule in module.rules for out, _ in rule.gives} == set(module.outputs)
    assert len(netlist(module).fires) == len(module.processes)


def test_every_primitive_but_select_has_rules() -> None:
    primitives = set(Primitive.__args__)  # type: ignore[attr-defined]
    assert primitives - set(RULES) == {n.Select}


def test_widths_that_do_not_fit() -> None:
    module = Module("odd")
    module.register("state", 2)
    with pytest.raises(ValueError, match="rule `wide` of `odd`: widths"):
        module.rule("wide", YES, sets={"state": YES})


def test_many_rules_are_no_long_chain() -> None:
    """A merge of 24 lanes has 700 rules. What chooses between them is a tree, which a printer can walk."""
    module = module_of(n.Merge("m", tuple(n.Port("x", k) for k in range(24)), 1), [n.StreamType("val", 3)] * 24)
    assert len(module.rules) > 600
    assert "fire_23_last_end" in module_body(netlist(module))
