"""Processes of the nodes whose primitives are defined by firing rules (`fuseflow.primitives`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from fuseflow.float32.arithmetic import folded_function
from fuseflow.ops import reducer
from fuseflow.primitives import RULES as FIRING_RULES
from fuseflow.primitives.pointwise import alu
from fuseflow.primitives.scan import scan
from fuseflow.rules.context import Builder
from fuseflow.samml import nodes as n
from fuseflow.samml.node_content import with_names
from fuseflow.sim.reference.fibers import FiberReader, RangeReader
from fuseflow.sim.reference.functions import Operators, fold_function
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps
from fuseflow.sim.reference.step_code import step_function
from fuseflow.sim.reference.token_rules import TokenContext, TokenModule
from fuseflow.sim.reference.write import written_by
from fuseflow.tile_ops import constant_tile


def interpret(node: n.Node, context: NodeContext, build: Builder | None = None) -> Sequence[Process]:
    """Return a list with the process of a node that fires by the rules of its primitive, or by the rules that `build` makes."""
    functions = {"operators": Operators(context.arithmetic), **_functions(node, context)}
    outputs, room = context.outputs, 0
    if isinstance(node, n.WriteLevel | n.WriteValues):
        outputs, room = (written_by(node, context),), context.room(node)
    shape = TokenContext(context.types, len(context.outputs), room)
    steps = _steps(build or FIRING_RULES[type(node)], with_names(node, "", ()), shape, tuple(functions))
    process = Process(node, context.inputs, outputs, context.interval)
    process.steps = steps(process, **functions)
    if isinstance(node, n.Scan):
        process.elements = functions["fiber"].requested
    return [process]


def _functions(node: n.Node, context: NodeContext) -> Mapping[str, Any]:
    """Return the functions that the rules of a node call, by name."""
    match node:
        case n.Scan():
            return {"fiber": FiberReader(context.tensors[node.tensor], node.level)}
        case n.Range():
            return {"fiber": RangeReader(node.size)}
        case n.Reduce():
            op, (value,) = reducer(node.function), context.types
            fold, identity = fold_function(op, context), constant_tile(value.tile, op.identity)
            return {"fold": fold, "identity": identity, "folded": folded_function(context.arithmetic)}
        case n.Root() | n.Repeat() | n.Join() | n.Align() | n.Drop() | n.Fork() | n.Merge() | n.Flatten() | n.SplitLevel():
            return {}
        case n.Pointwise() | n.TensorWriter():
            return {}
        case unknown:
            raise AssertionError(f"{unknown.op} `{unknown.name}` fires by rules, but what these call is not stated")


def walk_steps(p: Process, fiber: FiberReader) -> Steps:
    """Return the steps of a process that reads references and emits their fibers, as a `scan` does."""
    return _steps(scan, n.Scan("", (), "", 0), TokenContext((n.StreamType("ref", 0),), 2), ("fiber",))(p, fiber=fiber)


def elementwise(p: Process, function: Callable[..., Any] | None, build: Builder = alu) -> Steps:
    """Return the steps of a process that fires once for each token; `function` maps the tokens of its inputs to the emitted
    token."""
    shape = TokenContext((n.StreamType("val", 0),) * len(p.inputs), 1)
    return _steps(build, None, shape, ("compute",))(p, compute=function)


@cache
def _steps(build: Builder, node: n.Node | None, context: TokenContext, functions: tuple[str, ...]) -> Callable[..., Steps]:
    module = TokenModule("alu" if node is None else node.op)
    build(node, context, module)
    return step_function(module, functions)


RULES: dict[type[n.Node], Rule] = dict.fromkeys(FIRING_RULES, interpret)
