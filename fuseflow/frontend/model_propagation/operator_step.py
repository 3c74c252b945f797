"""Calls of operators as steps of the sweeps of propagation: which entries of results are known, and which of operands are needed.

An operator is a black box, and its rule has a stand-in for it, which runs on ones and zeros forward, and is derived backward.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import torch
from torch import Tensor
from torch.fx import Graph, Node

from fuseflow.frontend.model_propagation.dependence_rules import (
    EVERYTHING,
    Known,
    OperatorCall,
    Rule,
    derivatives,
    operator_call,
    rule_errors,
)
from fuseflow.frontend.model_propagation.scrambling import Scrambler

Result: TypeAlias = tuple[Node, int]
"""A tensor of a graph: the node that computes it, and its place among the tensors that the node computes."""
Resolve = Callable[[OperatorCall], Rule | None]
"""Returns the rule of a call, or None where an operator has none."""


def result_of(node: Node) -> Result:
    """Return the tensor that a node computes. A node that takes one of several results of another node is that result."""
    if node.target is operator.getitem:
        source, place = node.args
        return source, place  # type: ignore[return-value]
    return node, 0


def operator_steps(graph: Graph, rule_of: Resolve, scrambler: Scrambler) -> list[OperatorStep]:
    """Return the calls of operators in a graph, in order."""
    nodes = (node for node in graph.nodes if node.op == "call_function" and node.target is not operator.getitem)
    return [OperatorStep(call, rule_of(call), scrambler) for call in map(operator_call, nodes)]


@dataclass(frozen=True, slots=True, eq=False)
class OperatorStep:
    """A call of an operator with its rule. For a call without a rule, `scrambler` guesses which entries depend on which."""

    call: OperatorCall
    rule: Rule | None
    scrambler: Scrambler

    def known(self, known: Mapping[Result, Known]) -> dict[Result, Known]:
        operands = self._operands(known)
        results: Sequence[Known] = results_of_call(self.call, operands, self.rule or EVERYTHING)
        if self.rule is None:
            results = self.scrambler.results(self.call, operands, results)
        return {(self.call.node, place): result for place, result in enumerate(results)}

    def needed(self, known: Mapping[Result, Known], needed: Mapping[Result, Tensor]) -> Iterator[tuple[Result, Tensor]]:
        results = [(self.call.node, place) for place in range(len(self.call.results))]
        seeds = [needed[result] & known[result].unknown for result in results]
        if not any(bool(seed.any()) for seed in seeds):
            return
        operands = self._operands(known)
        masks: Sequence[Tensor] = needed_operands(self.call, operands, seeds, self.rule or EVERYTHING)
        if self.rule is None:
            masks = self.scrambler.needed(self.call, operands, seeds, masks)
        yield from zip((result_of(operand.node) for operand in self.call.operands), masks, strict=True)

    def _operands(self, known: Mapping[Result, Known]) -> list[Known]:
        return [known[result_of(operand.node)] for operand in self.call.operands]


def results_of_call(call: OperatorCall, operands: Sequence[Known], rule: Rule) -> tuple[Known, ...]:
    """Return the known entries of the results of a call, given the known entries of its operands."""
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

    A product is unknown if one of its factors is, and none is known to be 0. So the stand-in runs once for each factor, on the
    unknown entries of that one and the entries of the others that may not be 0; once is enough if no factor has a constant.
    """
    arguments = [operand.argument for operand in call.operands]
    factors = [n for n, argument in enumerate(arguments) if argument in rule.factors]
    turns: list[int | None] = [*factors] if any(bool(operands[n].constant.any()) for n in factors) else [*factors[:1]]

    def marks(turn: int | None) -> list[Tensor]:
        others = [known.nonzero if n in factors and n != turn else known.unknown for n, known in enumerate(operands)]
        marked = zip(arguments, operands, others, strict=True)
        return [known.value if argument in rule.selectors else mark.float() for argument, known, mark in marked]

    with torch.no_grad(), rule_errors(call):
        results = [rule.run(call, call.laid_out(marks(turn))) for turn in turns or [None]]
    return [reduce(torch.logical_or, (tensor > 0 for tensor in turn)) for turn in zip(*results, strict=True)]


def needed_operands(call: OperatorCall, operands: Sequence[Known], seeds: Sequence[Tensor], rule: Rule) -> list[Tensor]:
    """Return which entries of its operands a call needs for the entries of its results that `seeds` marks.

    The derivative of the stand-in is more than 0 there. A factor that is known to be 0 is not needed, since all of its products
    are known.
    """
    rule = rule.given(call, operands)
    chosen = [operand.argument in rule.selectors for operand in call.operands]
    marks = [k.value if choice else k.nonzero.float() for choice, k in zip(chosen, operands, strict=True)]
    gradients = _gradients(call, rule, marks, seeds)
    masks = [torch.ones_like(k.mask) if choice else g > 0 for choice, k, g in zip(chosen, operands, gradients, strict=True)]
    return [
        mask & known.nonzero if operand.argument in rule.factors else mask
        for operand, known, mask in zip(call.operands, operands, masks, strict=True)
    ]


def _gradients(call: OperatorCall, rule: Rule, marks: Sequence[Tensor], seeds: Sequence[Tensor]) -> list[Tensor]:
    """Return the derivatives of the sum of the entries that `seeds` marks, by each tensor that the stand-in gets."""
    leaves = [mark.detach().requires_grad_(mark.is_floating_point()) for mark in call.laid_out(marks)]
    with torch.enable_grad(), rule_errors(call):
        total = sum((result * seed).sum() for result, seed in zip(rule.run(call, leaves), seeds, strict=True))
        if not isinstance(total, Tensor) or not total.requires_grad:
            return [torch.zeros_like(mark) for mark in marks]
        return derivatives(total, leaves)
