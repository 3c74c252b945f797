"""The forward sweep: which entries of everything that a model computes are known before it runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import torch
from torch import Tensor
from torch.fx import Graph, Node

from fuseflow.counted_loops import counted
from fuseflow.frontend.lifting.calls import OperatorCall, operator_call
from fuseflow.frontend.lifting.known import Known
from fuseflow.frontend.lifting.rules import EVERYTHING, Rule, rule_errors

Results = dict[Node, tuple[Known, ...]]
"""What is known of the tensors that each node computes."""
Resolve = Callable[[OperatorCall], Rule | None]
"""Returns the rule of a call, or None where an operator has none."""
Guess = Callable[[OperatorCall, Sequence[Known], Sequence[Known]], Sequence[Known]]
"""Returns what is known behind an operator without a rule, from its operands, and from what is known without a guess."""


def sweep_forward(graph: Graph, arguments: Mapping[Node, Known], rule_of: Resolve, guess: Guess) -> Results:
    """Return what is known of the tensors of each node, from what is known of the arguments of the graph."""
    results: Results = {node: (known,) for node, known in arguments.items()}
    for node in counted(tuple(graph.nodes), "finding what is known"):
        if node.target is operator.getitem:
            source, place = node.args
            results[node] = (results[source][place],)
        elif node.op == "call_function":
            call = operator_call(node)
            operands = operands_of(call, results)
            rule = rule_of(call)
            known = results_of_call(call, operands, rule or EVERYTHING)
            results[node] = known if rule else tuple(guess(call, operands, known))
    return results


def operands_of(call: OperatorCall, results: Mapping[Node, tuple[Known, ...]]) -> list[Known]:
    """Return what is known of the operands of a call."""
    return [results[operand.node][0] for operand in call.operands]


def results_of_call(call: OperatorCall, operands: Sequence[Known], rule: Rule) -> tuple[Known, ...]:
    """Return what is known behind one operator."""
    if all(k.everywhere for k in operands):
        return tuple(Known.exactly(tensor) for tensor in call.run([k.value for k in operands]))
    unknown = unknown_results(call, operands, rule.given(call, operands))
    if all(bool(each.all()) for each in unknown):
        known = [Known.nothing(result.shape, result.dtype) for result in call.results]
    else:
        values = call.run([k.value for k in operands])
        known = [Known.where(~mask, value) for mask, value in zip(unknown, values, strict=True)]
    if rule.also_known is not None:
        args, kwargs = call.arguments(operands)
        known = [each.or_else(rule.also_known(*args, **kwargs)) for each in known]
    return tuple(known)


def unknown_results(call: OperatorCall, operands: Sequence[Known], rule: Rule) -> list[Tensor]:
    """Return where the results of a call depend on an unknown entry.

    A product is unknown if one of its factors is, and none is known to be 0. So the stand-in runs once for each factor, on what is unknown
    in that one and what may not be 0 in the others; once is enough if no factor has a constant.
    """
    factors = [n for n, operand in enumerate(call.operands) if operand.argument in rule.factors]
    turns: list[int | None] = [*factors] if any(bool(operands[n].constant.any()) for n in factors) else [*factors[:1]]
    with torch.no_grad(), rule_errors(call):
        marks = [rule.run(call, call.laid_out(_marks(call, operands, rule, turn))) for turn in turns or [None]]
    return [reduce(torch.logical_or, (tensor > 0 for tensor in turn)) for turn in zip(*marks, strict=True)]


def _marks(call: OperatorCall, operands: Sequence[Known], rule: Rule, turn: int | None) -> list[Tensor]:
    """Return the tensors for the stand-in where the factor at the place `turn` is the one that is unknown."""

    def mark(place: int, argument: str, known: Known) -> Tensor:
        if argument in rule.selectors:
            return known.value
        return (known.nonzero if argument in rule.factors and place != turn else known.unknown).float()

    return [mark(n, o.argument, k) for n, (o, k) in enumerate(zip(call.operands, operands, strict=True))]
