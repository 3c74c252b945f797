"""The arguments of a training step that the model does not have: the states of the optimizers, their numbers, and patterns of weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from fuseflow.errors import FrontendError
from fuseflow.frontend.decompositions.training_step import StepContinuation, TrainedParameter
from fuseflow.frontend.trace.sparsified_tensors import Pattern
from fuseflow.frontend.trace.tracing import Trace

if TYPE_CHECKING:
    from fuseflow.training.spec import TrainingSpec


def training_step(traced: Trace, training: TrainingSpec, patterns: dict[str, Pattern]) -> StepContinuation:
    """Add the arguments of a training step to a traced loss, and return what the step computes behind the loss. The pattern of a pruned
    weight becomes a tensor of ones in `patterns`, which its gradient is multiplied by.

    Raise `FrontendError` for a model without a parameter that requires a gradient, and for a loss that is no single float.
    """
    (loss,) = traced.graph_module.graph.output_node().args[0]
    value = loss.meta["val"]
    if value.dim():
        raise FrontendError(f"the loss has the shape {tuple(value.shape)}", hint='reduce it to one number: `reduction="mean"`')
    trained = [a.name for a in traced.arguments.values() if a.trainable]
    if not trained:
        raise FrontendError("no parameter of the model requires a gradient", hint="`parameter.requires_grad_()`")
    parameters = []
    for name in trained:
        tensor = next(a.tensor for a in traced.arguments.values() if a.name == name)
        group, optimizer = training.group_of(name)
        states = {key: f"{name}.{key}" for key in optimizer.state_names}
        for key, initial in optimizer.initial(tensor).items():
            traced.add(states[key], initial)
        pattern = ""
        if name in patterns:
            pattern = f"{name}.pattern"
            traced.add(pattern, patterns[name].mask.to(tensor.dtype))
            for companion in (pattern, *states.values()):
                patterns[companion] = patterns[name]
        prefix = f"group{group}." if group else ""
        scalars = {key: f"{prefix}{key}" for key in optimizer.scalars(1)}
        for key, number in optimizer.scalars(1).items():
            if scalars[key] not in traced.tensors:
                traced.add(scalars[key], torch.tensor(number, dtype=tensor.dtype))
        parameters.append(TrainedParameter(name, optimizer, states, scalars, pattern))
    buffers = frozenset(a.name for a in traced.arguments.values() if a.kind == "state" and not a.trainable)
    return StepContinuation(list(traced.tensors), parameters, buffers, training.gradients)
