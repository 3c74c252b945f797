"""What must hold of the rules of every primitive, in whatever state: they exclude each other, and look at what they decide by."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import pytest
from hardware_tools import require

from fuseflow.firing_rules.expressions import YES
from fuseflow.firing_rules.rules import Module
from fuseflow.hardware.arithmetic import ARITHMETICS
from fuseflow.hardware.emit import module_body
from fuseflow.hardware.node_context import NodeContext
from fuseflow.hardware.primitives import RULES
from fuseflow.hardware.primitives.remote_lookup import REMOTE_RULES, asks
from fuseflow.hardware.rule_netlist import expressions, netlist
from fuseflow.machine.timing import NodeTiming
from fuseflow.memory.settings import FixedMemory, TimedMemory
from fuseflow.samml import nodes as n
from fuseflow.samml.primitives import Primitive
from fuseflow.tensors import Format
from fuseflow.tile_ops import TileShape

BOUND = 4
LEVELS = ("dense", "compressed", "compressed(nonunique)", "bitmap", "nm(1:2)")


def module_of(
    node: n.Node,
    types: list[n.StreamType],
    levels: str = "dense",
    memory: TimedMemory | None = None,
    in_order: bool = False,
    size: int = BOUND,
    interval: int = 2,
    tile: TileShape = (),
) -> Module:
    """The rules of a node whose tensor A has one level of some size, with payloads of 8 bits."""
    order = f"({levels}, singleton)" if "nonunique" in levels else f"({levels})"
    format_ = Format.parse(order, 2 if "nonunique" in levels else 1)
    declared = {"A": n.TensorDecl("A", (size,) * format_.rank, format_, tile=tile)}
    context = NodeContext(
        node,
        tuple(types),
        (BOUND,) * len(types),
        declared,
        8,
        ARITHMETICS["f32"],
        NodeTiming(interval, interval, interval),
        None,
        memory,
        in_order,
    )
    module = Module(node.op, interval)
    (REMOTE_RULES if asks(node, context) else RULES)[type(node)](node, context, module)
    return module


def modules() -> Iterator[tuple[str, Module]]:
    """All of them, by name."""
    yield "root", module_of(n.Root("r", ()), [])
    yield "range", module_of(n.Range("r", _ports(1), 3), [_ref(1)])
    for level in LEVELS:
        yield f"scan {level}", module_of(n.Scan("s", _ports(1), "A", 0), [_ref(1)], level)
    yield "scan singleton", module_of(n.Scan("s", _ports(1), "A", 1), [_ref(1)], "compressed(nonunique)")
    yield "locate kept", module_of(n.Locate("l", _ports(1), "A", 0), [_crd(1)], "compressed")
    for level in ("dense", "bitmap"):
        for inputs in (1, 2):
            yield f"locate {level} {inputs}", module_of(n.Locate("l", _ports(inputs), "A", 0), [_crd(1), _ref(1)][:inputs], level)
    yield "repeat", module_of(n.Repeat("r", _ports(2)), [_ref(1), _crd(2)])
    yield "load", module_of(n.Load("l", _ports(1), "A"), [_ref(1)])
    yield "alu", module_of(n.Alu("a", _ports(2), "add", (n.Operand(0.0), n.Operand(0.0))), [_val(1), _val(1)])
    yield "reduce", module_of(n.Reduce("r", _ports(1), "sum"), [_val(2)])
    yield from tile_modules()
    yield "flatten", module_of(n.Flatten("f", _ports(2), 4), [_crd(1), _crd(2)])
    yield "split", module_of(n.SplitLevel("s", _ports(1), 4), [_crd(1)])
    for levels in (1, 2, 3):
        yield f"align {levels}", module_of(n.Align("a", _ports(3)), [_crd(1), _crd(1), _val(1 + levels)])
        crds = [_crd(1 + k) for k in range(levels + 1)]
        accumulate = n.Accumulate("a", _ports(levels + 2), "sum", levels)
        yield f"accumulate {levels}", module_of(accumulate, [*crds, _val(1 + levels)])
        permute = n.Permute("p", _ports(levels + 2), tuple(range(levels, -1, -1)))
        yield f"permute {levels + 1}", module_of(permute, [*crds, _val(1 + levels)])
        for value in (None, 0.0):
            drop = n.Drop("d", _ports(levels + 1), value)
            yield f"drop {levels} {value}", module_of(drop, [*crds[:levels], _val(levels)])
    for sides in (2, 3):
        for kind in ("intersect", "union", "left"):
            join = n.Join("j", _ports(2 * sides), kind, (1,) * sides)
            yield f"join {kind} {sides}", module_of(join, [_crd(1), _val(1)] * sides)
    yield "link", module_of(n.Link("l", _ports(1)), [_crd(2)])
    for lanes in (1, 2, 3, 4):
        yield f"fork {lanes}", module_of(n.Fork("f", _ports(1), lanes), [_crd(2)])
        for levels in (0, 1, 2):
            yield f"merge {lanes} of {levels}", module_of(n.Merge("m", _ports(lanes), levels), [_val(3)] * lanes)
    for level in ("dense", "compressed", "nm(1:2)"):
        yield f"write {level}", module_of(n.WriteLevel("w", _ports(1), "A", 0), [_crd(1)], level)
        yield f"write_values {level}", module_of(n.WriteValues("w", _ports(1), "A"), [_val(1)], level)
    yield "write_lane", module_of(n.WriteLaneLevel("w", _ports(1), "A", 0, 0, 1, 2), [_crd(1)])
    yield "write_lane_values", module_of(n.WriteLaneValues("w", _ports(1), "A", 0, 1, 2), [_val(1)])


def tile_modules() -> Iterator[tuple[str, Module]]:
    """Those of nodes that compute on tiles, in one cycle to more than they need."""
    two, three = n.StreamType("val", 1, (2, 3)), n.StreamType("val", 1, (3, 2))
    alus = {
        "add": [two, two],
        "matmul": [two, three],
        "matmul_t": [two, two],
        "transpose": [two],
        "row_sum": [two],
        "copy": [two],
    }
    for interval in (1, 2, 5, 30):
        for function, types in alus.items():
            alu = n.Alu("a", _ports(len(types)), function, (n.Operand(1.0),) * len(types))
            yield f"alu {function} of tiles in {interval}", module_of(alu, types, interval=interval)
        value = n.StreamType("val", 2, (2, 3))
        yield f"reduce of tiles in {interval}", module_of(n.Reduce("r", _ports(1), "max"), [value], interval=interval)
        accumulate, permute = n.Accumulate("a", _ports(3), "sum", 1), n.Permute("p", _ports(3), (1, 0))
        for node in (accumulate, permute):
            yield f"{node.op} of tiles in {interval}", module_of(node, [_crd(1), _crd(2), value], interval=interval)
    yield "repeat of tiles", module_of(n.Repeat("r", _ports(2)), [two, _crd(2)])
    yield "drop of tiles", module_of(n.Drop("d", _ports(2), None), [_crd(1), two])


def remote_modules() -> Iterator[tuple[str, Module]]:
    """Those of nodes at a memory that takes time, by name. Lines are short, so that what is asked for lies in several."""
    memory = FixedMemory(line=32, outstanding=3)
    for in_order in (False, True):
        name = "remote in order" if in_order else "remote"
        for level in LEVELS[1:]:
            yield f"{name} scan {level}", module_of(n.Scan("s", _ports(1), "A", 0), [_ref(1)], level, memory, in_order)
        singleton = n.Scan("s", _ports(1), "A", 1)
        yield f"{name} scan singleton", module_of(singleton, [_ref(1)], "compressed(nonunique)", memory, in_order)
        yield f"{name} load", module_of(n.Load("l", _ports(1), "A"), [_ref(1)], "dense", memory, in_order)
    yield "remote scan nm of 3 bits", module_of(n.Scan("s", _ports(1), "A", 0), [_ref(1)], "nm(2:8)", memory, size=600)
    yield "remote scan long bitmap", module_of(n.Scan("s", _ports(1), "A", 0), [_ref(1)], "bitmap", memory, size=600)
    yield "remote locate kept", module_of(n.Locate("l", _ports(1), "A", 0), [_crd(1)], "compressed", memory)
    for inputs in (1, 2):
        locate = n.Locate("l", _ports(inputs), "A", 0)
        yield f"remote locate bitmap {inputs}", module_of(locate, [_crd(1), _ref(1)][:inputs], "bitmap", memory)
    for level in ("dense", "compressed", "nm(1:2)", "bitmap"):
        for size in (BOUND, 600):
            write = n.WriteLevel("w", _ports(1), "A", 0)
            yield f"remote write {level} {size}", module_of(write, [_crd(1)], level, memory, size=size)
            yield (
                f"remote write_values {level} {size}",
                module_of(n.WriteValues("w", _ports(1), "A"), [_val(1)], level, memory, size=size),
            )
    yield from lane_modules(memory)


def lane_modules(memory: TimedMemory) -> Iterator[tuple[str, Module]]:
    """Those of nodes that write in lanes at a memory: single elements, and runs of four, of which one element is less than a line, lies in
    one or two of them, or in four and more. Of very many lanes the gap goes beyond the numbers of lines."""
    for tile, levels, (lane, lanes) in product(((), (1, 3), (5, 5)), (0, 1), ((0, 2), (2, 3), (1, 1 << 20))):
        node = n.WriteLaneValues("w", _ports(1), "A", levels, lane, lanes)
        name = f"remote write_lane_values of {prod(tile)} words, {levels} levels below lane {lane} of {lanes}"
        yield name, module_of(node, [n.StreamType("val", 1, tile)], memory=memory, tile=tile)


def _ports(count: int) -> tuple[n.Port, ...]:
    return tuple(n.Port("x", k) for k in range(count))


def _ref(depth: int) -> n.StreamType:
    return n.StreamType("ref", depth)


def _crd(depth: int) -> n.StreamType:
    return n.StreamType("crd", depth)


def _val(depth: int) -> n.StreamType:
    return n.StreamType("val", depth)


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
