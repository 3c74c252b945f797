"""The arguments of a training step that the model does not have: the states of the optimizers, their numbers, and patterns of weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fuseflow.errors import FrontendError
from fuseflow.frontend.decompositions.training_step import StepContinuation, TrainedParameter
from fuseflow.frontend.draws import Draw
from fuseflow.frontend.trace.sparsified_tensors import Pattern, stored_pattern
from fuseflow.frontend.trace.tracing import Trace
from fuseflow.frontend.trace.training import Training


def training_step(
    traced: Trace, training: Training, original_names: Sequence[str], patterns: dict[str, Pattern], draws: tuple[Draw, ...]
) -> StepContinuation:
    """Add the arguments of a training step to a traced loss, and return what the step computes behind the loss. `original_names` are the
    names of the trainable parameters in the model. The pattern of a pruned or sparse weight becomes a tensor of ones in `patterns`, and its
    gradient is multiplied by it.

    Raise `FrontendError` for a model without a parameter that requires a gradient.
    """
    trainable = [argument for argument in traced.arguments.values() if argument.trainable]
    if not trainable:
        raise FrontendError("no parameter of the model requires a gradient", hint="`parameter.requires_grad_()`")
    arguments = dict(zip(original_names, trainable, strict=True))
    parameters = []
    for original in training.spec.trained(original_names):
        name, tensor = arguments[original].name, arguments[original].tensor
        initial = training.spec.initial({original: tensor.to_dense()})
        states = {key.removeprefix(f"{original}."): f"{name}{key.removeprefix(original)}" for key in initial}
        for state, value in zip(states.values(), initial.values(), strict=True):
            traced.add(state, training.start.states.get(f"{original}{state.removeprefix(name)}", value))
        pattern = ""
        known = patterns.get(name) or stored_pattern(tensor)
        if known is not None:
            pattern = f"{name}.pattern"
            traced.add(pattern, known.mask.to(tensor.dtype))
            patterns |= dict.fromkeys((pattern, *states.values()), known)
        parameters.append(TrainedParameter(original, name, states, pattern))
    for scalar, number in training.spec.scalars(1 + max(training.start.steps.values(), default=0)).items():
        traced.add(scalar, torch.tensor(number))
    buffers = frozenset(a.name for a in traced.arguments.values() if a.kind == "state" and not a.trainable)
    return StepContinuation(training.spec, list(traced.tensors), parameters, buffers, draws)
