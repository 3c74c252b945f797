"""Operators have one firing for each token, and aligned inputs."""

from __future__ import annotations

from fuseflow.firing_rules.context import Builder, RuleContext
from fuseflow.firing_rules.expressions import all_of
from fuseflow.firing_rules.rules import Module
from fuseflow.samml import nodes as n


def alu(node: n.Alu, context: RuleContext, m: Module) -> None:
    heads = context.inputs(m)
    (out,) = context.outputs(m)
    work = context.compute(m, heads)
    control, token = heads[0].control, m.value(out, work.result)
    same = all_of(head.same_control(heads[0]) for head in heads[1:])
    values = all_of(~head.control for head in heads[1:])
    m.rule("control", control, heads, gives={out: m.passed(out, heads[0])}, closes=True, expects=same)
    m.rule("value", ~control, heads, gives={out: token}, sets=work.begun, expects=values)
    work.rules(late={out: token})


RULES: dict[type[n.Node], Builder] = {n.Alu: alu}
