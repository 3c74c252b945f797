"""The backward pass of a dense graph, part by part from the last to the first.

A part is a call of an operator, as the traced graph has it. Its derivative is an own rule, or PyTorch differentiates its dense
form: the form is computed again, and the copy falls together with the first one, since equal calls of the graph become one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions
from torch.fx import Node, map_arg
from torch.fx.traceback import annotate
from torch.utils import _pytree as pytree

from fuseflow.frontend.decompositions.densify import named_operator
from fuseflow.frontend.decompositions.graph_writer import OF_CALL, GraphWriter, Part, Record, description
from fuseflow.frontend.trace.fx_origin import PHASE
from fuseflow.training.phases import GRADIENT

aten = torch.ops.aten
BACKWARD_DECOMPOSITIONS: Mapping[Any, Any] = get_decompositions(
    [
        aten.threshold_backward,
        aten.gelu_backward,
        aten.silu_backward,
        aten.elu_backward,
        aten.softplus_backward,
        aten.hardtanh_backward,
        aten.tanh_backward,
        aten.sigmoid_backward,
        aten.leaky_relu_backward,
        aten.hardswish_backward,
        aten.hardsigmoid_backward,
        aten.mish_backward,
        aten.log_sigmoid_backward,
        aten.mse_loss_backward,
        aten.smooth_l1_loss_backward,
        aten.huber_loss_backward,
        aten.binary_cross_entropy_backward,
        aten.slice_backward,
        aten.select_backward,
        aten.unfold_backward,
        aten.glu_backward,
        aten._softmax_backward_data,
        aten._log_softmax_backward_data,
        aten.reflection_pad1d_backward,
        aten.upsample_bilinear2d,
    ]
)


class Backward:
    """The gradients of a scalar with respect to all that it depends on through `trainable` arguments."""

    def __init__(self, writer: GraphWriter, trainable: Collection[Node]) -> None:
        self._writer = writer
        self._active = set(trainable)
        self._gradients: dict[Node, list[Node]] = {}
        self._parts: list[Part] = [part for part in writer.parts if self._activates(part)]

    def gradients(self, loss: Node) -> Mapping[Node, Node]:
        """Return the gradients of a scalar by argument. An argument that the scalar does not depend on has none."""
        one = self._writer.record(None, lambda x: torch.ones((), dtype=x.dtype), [loss], {})
        self._gradients[loss] = [one.values]
        for part in reversed(self._parts):
            self._pull_back(part)
        return {node: self._total(node, {}) for node in self._writer.arguments if node in self._gradients}

    def _activates(self, part: Part) -> bool:
        """Return whether a part has a derivative, and note which values depend on arguments through it."""
        if self._active.isdisjoint(part.record.inputs):
            return False
        self._active.update(filter(_is_float, _results(part.record)))
        return True

    def _total(self, node: Node, own: Mapping[str, Any]) -> Node:
        """Return the sum of the gradients of a value."""
        first, *others = self._gradients[node]
        for other in others:
            first = self._marked(self._writer.record(None, torch.add, [first, other], own), own).values
        return first

    def _pull_back(self, part: Part) -> None:
        """Add the gradients of what a part reads to those known."""
        record = part.record
        results = _results(record)
        # A part that returns what it reads passes its gradient on by doing nothing.
        given = [n for n, node in enumerate(results) if node in self._gradients and node not in record.inputs]
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

    def _differentiated(
        self, part: Part, given: list[int], wanted: list[int], gradients: list[Node], own: Mapping[str, Any]
    ) -> Record:
        inputs = list(part.record.inputs)
        read_nodes = [*inputs, *gradients]
        positions = tuple(map(read_nodes.index, read_nodes))  # one node may be several of them
        described = tuple(description(gradient.meta["val"]) for gradient in gradients)
        key = None if part.key is None else (GRADIENT, part.key, positions, described, tuple(given), tuple(wanted))

        def forward(*tensors: Tensor) -> list[Any]:
            # What is written to must be no leaf.
            read = [t.clone() if node in part.record.written else t for node, t in zip(inputs, tensors, strict=True)]
            tensor_of = dict(zip(inputs, read, strict=True))
            operands = {node: map_arg(value, tensor_of.__getitem__) for node, value in part.operands.items()}
            values = self._writer.interpreter.run_calls(part.calls, operands)
            written = [tensor_of[node] for node in part.record.written]
            return [leaf for leaf in (*pytree.tree_leaves(values), *written) if isinstance(leaf, Tensor)]

        def compute(*tensors: Tensor) -> list[Tensor | None]:
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

        return self._marked(self._writer.record(key, compute, read_nodes, own), own)

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
