"""The backward pass of a dense graph, part by part from the last to the first.

A part is a call of an operator, as the traced graph has it. Its derivative is an own rule, or PyTorch differentiates its dense
form: the form is computed again, and the copy falls together with the first one, since equal calls of the graph become one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node, map_arg
from torch.fx.traceback import annotate
from torch.utils import _pytree as pytree

from fuseflow.einsum.phases import GRADIENT
from fuseflow.frontend.decompositions.densify import named_operator
from fuseflow.frontend.decompositions.graph_writer import OF_CALL, GraphWriter, Part, Record, description
from fuseflow.frontend.derivatives.rules import RULES
from fuseflow.frontend.trace.fx_origin import PHASE

aten = torch.ops.aten


class Backward:
    """The gradients of a scalar with respect to all that it depends on through `trainable` arguments."""

    def __init__(self, writer: GraphWriter, trainable: Collection[Node]) -> None:
        self._writer = writer
        self._active = set(trainable)
        self._gradients: dict[Node, list[Node]] = {}
        self._zero = set[Node]()  # gradients that are 0 for all inputs, as behind `round`
        self._parts: list[Part] = [part for part in writer.parts if self._activates(part)]

    def gradients(self, loss: Node) -> Mapping[Node, Node]:
        """Return the gradients of a scalar by argument. An argument that the scalar does not depend on has none."""
        one = self._writer.record(None, lambda x: torch.ones((), dtype=x.dtype), [loss], {})
        self._gradients[loss] = [one.values]
        for part in reversed(self._parts):
            self._pull_back(part)
        return {node: self._total(node, {}) for node in self._writer.arguments if node in self._gradients}

    def is_zero(self, gradient: Node) -> bool:
        """Return whether a gradient is 0 whatever the inputs are."""
        return gradient in self._zero

    def _activates(self, part: Part) -> bool:
        """Return whether a part has a derivative, and note which values depend on arguments through it."""
        if self._active.isdisjoint(part.record.inputs):
            return False
        self._active.update(filter(_is_float, _results(part.record)))
        return True

    def _total(self, node: Node, own: Mapping[str, Any]) -> Node:
        """Return the sum of the gradients of a value."""
        known = self._gradients[node]
        first, *others = [gradient for gradient in known if gradient not in self._zero] or known[:1]
        for other in others:
            first = self._marked(self._writer.record(None, torch.add, [first, other], own), own).values
        return first

    def _pull_back(self, part: Part) -> None:
        """Add the gradients of what a part reads to those known."""
        record = part.record
        results = _results(record)
        # A part that returns what it reads passes its gradient on by doing nothing.
        # One that writes to what it reads may return the new content, too.
        given = [
            n
            for n, node in enumerate(results)
            if node in self._gradients and node not in record.inputs and node not in results[:n]
        ]
        wanted = [n for n, node in enumerate(record.inputs) if node in self._active]
        if not given or not wanted:
            return
        own = {PHASE: GRADIENT, **{name: part.calls[-1].meta[name] for name in OF_CALL if name in part.calls[-1].meta}}
        with torch.fx.traceback.set_current_meta(part.calls[-1]):
            gradients = [self._total(results[n], own) for n in given]
            pulled = self._differentiated(part, given, wanted, gradients, own)
        for n, gradient in zip(wanted, pulled.values, strict=True):
            if gradient is not None:
                self._gradients.setdefault(record.inputs[n], []).append(gradient)
                if _is_zero(gradient) or self._zero.issuperset(gradients):
                    self._zero.add(gradient)

    def _differentiated(
        self, part: Part, given: list[int], wanted: list[int], gradients: list[Node], own: Mapping[str, Any]
    ) -> Record:
        """Record the gradients of the `wanted` inputs of a part, by those of its `given` results. None stands for no dependence."""
        inputs, results = list(part.record.inputs), _results(part.record)
        rule = RULES.get(part.calls[-1].target) if len(part.calls) == 1 else None
        read = [*inputs, *(results if rule is not None else ()), *gradients]
        positions = tuple(map(read.index, read))  # one node may be several of them
        described = tuple(description(gradient.meta["val"]) for gradient in gradients)
        key = None if part.key is None else (GRADIENT, part.key, positions, described, tuple(given), tuple(wanted))

        def by_rule(*tensors: Tensor) -> list[Tensor | None]:
            assert rule is not None
            tensor_of = dict(zip(inputs, tensors, strict=False))
            computed, known = tensors[len(inputs) :][: len(results)], dict(zip(given, tensors[-len(given) :], strict=True))
            (call,) = part.calls
            nodes = pytree.tree_leaves(map_arg((call.args, call.kwargs), part.operands.__getitem__))
            operands = {node: map_arg(value, tensor_of.__getitem__) for node, value in part.operands.items()}
            args, kwargs = map_arg((call.args, call.kwargs), operands.__getitem__)
            with annotate({"operator": named_operator(call.target)}):
                by_operand = rule(tuple(map(known.get, range(len(results)))), computed, *args, **kwargs)
                total: dict[Node, Tensor] = {}
                for node, gradient in zip([node for node in nodes if isinstance(node, Node)], by_operand, strict=True):
                    if gradient is not None:
                        total[node] = total[node] + gradient if node in total else gradient
            return [total.get(inputs[n]) for n in wanted]

        def forward(*tensors: Tensor) -> list[Any]:
            # What is written to must be no leaf.
            copies = [t.clone() if node in part.record.written else t for node, t in zip(inputs, tensors, strict=True)]
            tensor_of = dict(zip(inputs, copies, strict=True))
            operands = {node: map_arg(value, tensor_of.__getitem__) for node, value in part.operands.items()}
            values = self._writer.interpreter.run_calls(part.calls, operands)
            written = [tensor_of[node] for node in part.record.written]
            return [leaf for leaf in (*pytree.tree_leaves(values), *written) if isinstance(leaf, Tensor)]

        def by_autograd(*tensors: Tensor) -> list[Tensor | None]:
            with torch.enable_grad():
                leaves = [t.detach().requires_grad_(n in wanted) for n, t in enumerate(tensors[: len(inputs)])]
                outputs = torch.func.functionalize(forward, remove="mutations")(*leaves)
                known = {n: g for n, g in zip(given, tensors[len(inputs) :], strict=True) if outputs[n].requires_grad}
                if not known:
                    return [None for _ in wanted]
                with annotate({"operator": named_operator(part.calls[-1].target)}):
                    return list(
                        torch.autograd.grad(
                            [outputs[n] for n in known], [leaves[n] for n in wanted], list(known.values()), allow_unused=True
                        )
                    )

        return self._marked(self._writer.record(key, by_autograd if rule is None else by_rule, read, own), own)

    def _marked(self, record: Record, own: Mapping[str, Any]) -> Record:
        for node in record.nodes:
            node.meta.update(own)
        return record


def _results(record: Record) -> list[Node]:
    """Return the nodes of the tensors that a record returns, and the contents of those that it writes to."""
    return [leaf for leaf in (*pytree.tree_leaves(record.values), *record.written.values()) if isinstance(leaf, Node)]


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, Tensor) and value.is_floating_point()


def _is_zero(node: Node) -> bool:
    """Return whether a node fills a tensor with 0."""
    if node.target in (aten.full.default, aten.full_like.default):
        return bool(node.args[1] == 0)
    return node.target in (aten.zeros_like.default, aten.zeros.default)
