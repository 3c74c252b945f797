"""The backward sweep: which entries of everything that a model computes, its outputs need."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor
from torch.fx import Graph, Node

from fuseflow.frontend.lifting.calls import OperatorCall, operator_call
from fuseflow.frontend.lifting.forward import Resolve, Results, operands_of
from fuseflow.frontend.lifting.known import Known
from fuseflow.frontend.lifting.rules import EVERYTHING, Rule, rule_errors

Needed = dict[Node, tuple[Tensor, ...]]
"""Which entries of the tensors that each node computes are needed."""
Guess = Callable[[OperatorCall, Sequence[Known], Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]
"""Returns what an operator without a rule needs, from its operands, from what is needed of it, and from what it needs without a guess."""


def sweep_backward(graph: Graph, outputs: Iterable[Node], results: Results, rule_of: Resolve, guess: Guess) -> Needed:
    """Return which entries are needed of the tensors of each node. An entry that is known needs nothing."""
    needed = {node: tuple(torch.zeros(k.mask.shape, dtype=torch.bool) for k in known) for node, known in results.items()}
    for node in outputs:
        for mask in needed[node]:
            mask.fill_(True)
    for node in reversed(graph.nodes):
        if node.target is operator.getitem:
            source, place = node.args
            needed[source][place].logical_or_(needed[node][0])
        elif node.op == "call_function":
            call = operator_call(node)
            seeds = [mask & k.unknown for mask, k in zip(needed[node], results[node], strict=True)]
            if any(bool(seed.any()) for seed in seeds):
                operands = operands_of(call, results)
                rule = rule_of(call)
                masks: Sequence[Tensor] = needed_operands(call, operands, seeds, rule or EVERYTHING)
                masks = masks if rule else guess(call, operands, seeds, masks)
                for operand, mask in zip(call.operands, masks, strict=True):
                    needed[operand.node][0].logical_or_(mask)
    return needed


def needed_operands(call: OperatorCall, operands: Sequence[Known], seeds: Sequence[Tensor], rule: Rule) -> list[Tensor]:
    """Return which entries of its operands a call needs for the entries of its results that `seeds` says.

    These are those where the derivative of the stand-in is more than 0. A factor that is known to be 0 is not needed, since all of its
    products are known.
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
    """Return the derivatives of the entries that `seeds` says, added up, by each tensor that the stand-in of a call gets."""
    leaves = [mark.detach().requires_grad_(mark.is_floating_point()) for mark in call.laid_out(marks)]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    with torch.enable_grad(), rule_errors(call):
        total = sum((result * seed).sum() for result, seed in zip(rule.run(call, leaves), seeds, strict=True))
        if not isinstance(total, Tensor) or not total.requires_grad:
            return [torch.zeros_like(mark) for mark in marks]
        gradients = iter(torch.autograd.grad(total, wanted, allow_unused=True, materialize_grads=True))
    return [next(gradients) if leaf.requires_grad else torch.zeros_like(leaf) for leaf in leaves]
