"""Processes of the nodes whose primitives are stated as firing rules (`fuseflow.primitives`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from fuseflow.float32.arithmetic import folded_function
from fuseflow.ops import reducer
from fuseflow.primitives import RULES as FIRING_RULES
from fuseflow.primitives.pointwise import alu
from fuseflow.rules.context import Builder
from fuseflow.samml import nodes as n
from fuseflow.samml.node_content import with_names
from fuseflow.sim.reference.functions import Operators, fold_function
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps
from fuseflow.sim.reference.step_code import step_function
from fuseflow.sim.reference.token_rules import TokenContext, TokenModule
from fuseflow.tile_ops import constant_tile


def interpret(node: n.Node, context: NodeContext, build: Builder | None = None) -> Sequence[Process]:
    """Return the process of a node that fires by the rules of its primitive, or by those that `build` makes."""
    functions = {"operators": Operators(context.arithmetic), **_fold(node, context)}
    shape = TokenContext(context.types, len(context.outputs))
    steps = _steps(build or FIRING_RULES[type(node)], with_names(node, "", ()), shape, tuple(functions))
    return context.process(steps, **functions)


def _fold(node: n.Node, context: NodeContext) -> Mapping[str, Any]:
    """Return what the rules of a reduction call, by name."""
    if not isinstance(node, n.Reduce):
        return {}
    op, (value,) = reducer(node.function), context.types
    fold, identity = fold_function(op, context), constant_tile(value.tile, op.identity)
    return {"fold": fold, "identity": identity, "folded": folded_function(context.arithmetic)}


def elementwise(p: Process, function: Callable[..., Any] | None, build: Builder = alu) -> Steps:
    """Return the steps of an operator, which is a function of the tokens of its inputs."""
    shape = TokenContext((n.StreamType("val", 0),) * len(p.inputs), 1)
    return _steps(build, None, shape, ("compute",))(p, compute=function)


@cache
def _steps(build: Builder, node: n.Node | None, context: TokenContext, functions: tuple[str, ...]) -> Callable[..., Steps]:
    module = TokenModule("alu" if node is None else node.op)
    build(node, context, module)
    return step_function(module, functions)


RULES: dict[type[n.Node], Rule] = dict.fromkeys(FIRING_RULES, interpret)
