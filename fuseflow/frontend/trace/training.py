"""What a training step needs beside the model: the loss, the optimizer with its states, and the target."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Node

from fuseflow.errors import FrontendError, UsageError
from fuseflow.frontend.draws import Draw
from fuseflow.frontend.model_spec import TrainingRequest
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.model_call import Criterion, ModelCall, with_tensors
from fuseflow.frontend.trace.tracing import STRIDES, Trace
from fuseflow.training.losses import LossFunction, require_scalar
from fuseflow.training.optimizers.optimizer import Optimizer
from fuseflow.training.spec import DEFAULT_OPTIMIZER, TrainingSpec
from fuseflow.training.torch_optimizer import OptimizerState, read_optimizer, require_no_gradient_hooks


@dataclass(frozen=True, slots=True, eq=False)
class TrainingDefaults:
    """What a model file says about the training of its model, where the user says nothing."""

    loss: str | LossFunction | None = None
    optimizer: str | None = None
    target: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """A training step of a model: its spec, the target, and the optimizer of PyTorch that it begins with, if there is one."""

    spec: TrainingSpec
    target: Any
    start: OptimizerState = field(default_factory=lambda: OptimizerState((), {}, {}))

    def call_of(self, call: ModelCall) -> ModelCall:
        """Return the call of the model whose result is the loss."""

        def loss(output: Any, target: Any) -> Tensor:
            return require_scalar(self.spec.loss(output, target))

        return replace(call, criterion=Criterion(loss, self.target))


def as_training(request: TrainingRequest, model: object, defaults: TrainingDefaults) -> Training:
    """Return what a request asks for, and the defaults of the model file where it asks for nothing.

    Raise `UsageError` if no loss is named, and a subclass of `FuseFlowError` for a loss or an optimizer that cannot be compiled.
    """
    if not isinstance(model, nn.Module):
        raise FrontendError(f"a {type(model).__name__} cannot be trained", hint="a `torch.nn.Module` has parameters")
    require_no_gradient_hooks(model)
    loss = defaults.loss if request.loss is None else request.loss
    if loss is None:
        raise UsageError("the training step has no loss", hint='say it: `loss="cross_entropy"`, or `--loss cross_entropy`')
    target = with_tensors(defaults.target if request.target is None else request.target)
    optimizer = (defaults.optimizer or DEFAULT_OPTIMIZER) if request.optimizer is None else request.optimizer
    if isinstance(optimizer, str | Optimizer):
        return Training(TrainingSpec.of(loss, optimizer, request.gradients), target)
    state = read_optimizer(optimizer, model)
    return Training(TrainingSpec.of(loss, state.groups, request.gradients), target, state)


aten = torch.ops.aten
_DROPOUTS = (aten.dropout.default, aten.feature_dropout.default)


def drawn_inputs(traced: Trace) -> tuple[Draw, ...]:
    """Replace, in place, each dropout of a traced model by a product with an input that has what it draws. Return these inputs in the order
    in which PyTorch draws them. They are drawn once, from the generator as it stands."""
    draws = []
    names = traced.names()
    for node in list(traced.graph_module.graph.nodes):
        if node.target in _DROPOUTS and node.args[2]:
            draws.append(_multiplied(traced, node, names.unique(fx_origin.named(node, "draw"))))
    return tuple(draws)


def _multiplied(traced: Trace, node: Node, name: str) -> Draw:
    x, probability, _ = node.args
    assert isinstance(x, Node) and isinstance(probability, float | int)
    value: Tensor = node.meta["val"]
    operator = fx_origin.short_name(node.target)
    each = operator == "dropout"
    shape = tuple(value.shape) if each else (*value.shape[:2], *[1] * (value.dim() - 2))
    laid_out = torch.empty(shape, device="meta")
    if each and x.meta.get(STRIDES) is not None:
        laid_out = torch.empty_like(laid_out.as_strided(shape, x.meta[STRIDES]))
    dtype = str(value.dtype).removeprefix("torch.")
    draw = Draw(name, shape, laid_out.stride(), dtype, operator, float(probability))
    factor = traced.add(name, draw.drawn(), kind="draw")
    with node.graph.inserting_before(node):
        product = fx_origin.added_call(node, aten.mul.Tensor, x, factor)
    node.replace_all_uses_with(product)
    node.graph.erase_node(node)
    return draw
