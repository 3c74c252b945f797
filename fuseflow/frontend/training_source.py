"""What the inputs and outputs of the program of a training step mean, and what PyTorch computes in the same step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fuseflow.einsum.nodes import Access, Apply, Einsum, Program, TensorType
from fuseflow.einsum.phases import NEXT
from fuseflow.errors import FrontendError, UsageError, did_you_mean
from fuseflow.frontend.decompositions.training_step import StepContinuation, TrainedParameter
from fuseflow.frontend.export import ExportedGraph
from fuseflow.frontend.foreign_errors import quiet
from fuseflow.frontend.imported_program import StepInterface, StepModel
from fuseflow.frontend.torch_tensors import dense_array, from_torch
from fuseflow.frontend.trace.array_arguments import with_tensors
from fuseflow.frontend.trace.model_call import ModelCall, named_leaves
from fuseflow.frontend.trace.training import Training
from fuseflow.training.reference import Reference


def step_interface(
    training: Training, call: ModelCall, exported: ExportedGraph, imported: Callable[[ModelCall], Mapping[str, Any]]
) -> StepInterface:
    """Return what the inputs and outputs of the program of a training step mean. `imported` returns the inputs for another call. Raise
    `TrainingError` for an optimizer that has taken different numbers of steps of its parameters, if numbers of a step depend on that."""
    step = exported.step
    assert step is not None
    names = {parameter.name: parameter.original for parameter in step.parameters}
    trained = {name: original for name, original in names.items() if original not in step.untouched}
    masks = {names[name]: mask.numpy() for name, mask in exported.weight_masks.items() if name in trained}
    first_step = 1 + training.start.steps_before(trained.values())
    model = StepModel(training.spec, call, imported)
    return StepInterface(trained, tuple(step.draws), masks, training.start.states, first_step, lambda: model)


def step_reference(interface: StepInterface, call: ModelCall, dtype: torch.dtype | None = None) -> Reference:
    """Return what takes steps in PyTorch of the model of a call, with real numbers of a type if one is given."""
    return Reference(call.module, interface.model().training, step_masks(interface), dtype)


def step_masks(interface: StepInterface) -> dict[str, Tensor]:
    """Return the patterns of pruned weights by their names in the model, as PyTorch has them."""
    return {name: torch.from_numpy(mask) for name, mask in interface.masks.items()}


def step_outputs(interface: StepInterface, outputs: Sequence[str]) -> list[npt.NDArray[np.generic]]:
    """Return the outputs of the first step as PyTorch computes them. Raise `FrontendError` for a gradient that PyTorch does not compute."""
    call = interface.model().call
    assert call.criterion is not None
    reference = step_reference(interface, call)
    values = {**reference.initial, **interface.states}
    with quiet(), call.repeatable():
        results = reference.step(values, interface.first_step, call.args, call.criterion.target, kwargs=call.kwargs).results
    names = {name: _original(interface, name) for name in outputs}
    missing = next((name for name, original in names.items() if original not in results), None)
    if missing is not None:
        raise FrontendError(f"the step computes `{missing}`, and PyTorch does not", hint="please report the model")
    return [dense_array(results[original], name) for name, original in names.items()]


def rebound(interface: StepInterface, program: Program, batch: Mapping[str, Any]) -> tuple[ModelCall, dict[str, Any]]:
    """Return the call of a model with other arguments, by name, and the inputs of the program that differ with them.

    Raise `UsageError` for a name that is no argument, and for an argument of another shape or type. Integers and targets decide what a
    program is made of, so with other ones the model is imported again; raise `UsageError` if that gives another program.
    """
    model, batch = interface.model(), with_tensors(dict(batch))
    leaves = dict(named_leaves(model.call))
    for name, value in batch.items():
        if name not in leaves:
            raise UsageError(f"the model has no argument `{name}`", hint=did_you_mean(name, leaves))
        old = leaves[name]
        if not isinstance(value, Tensor) or not isinstance(old, Tensor) or (value.shape, value.dtype) != (old.shape, old.dtype):
            raise UsageError(
                f"`{name}` of the batch is {_described(value)}, and the step was compiled for {_described(old)}",
                hint="compile another step for batches of another shape",
            )
    call = model.call.with_leaves([batch.get(name, leaf) for name, leaf in leaves.items()])
    inputs = {tensor.name: tensor for tensor in program.inputs}
    if all(name in inputs and value.is_floating_point() for name, value in batch.items()):
        return call, {name: from_torch(value.detach(), inputs[name]) for name, value in batch.items()}
    own = {*model.training.scalars(1), *(draw.name for draw in interface.draws)}
    carried = {name.removeprefix(f"{NEXT}.") for name in program.outputs}
    return call, {name: tensor for name, tensor in model.imported(call).items() if name in inputs.keys() - own - carried}


def _described(value: Any) -> str:
    return f"{list(value.shape)} of {value.dtype}" if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _original(interface: StepInterface, output: str) -> str:
    """Return the name that PyTorch's step gives an output of a program."""
    kind, dot, name = output.partition(".")
    return f"{kind}{dot}{interface.original(name)}"


def with_shared_places(program: Program, step: StepContinuation) -> Program:
    """Return the program of a step in which the gradient, the states and the new values of a pruned weight have their entries where the
    weight has them (`fuseflow.einsum.structures`), so that no tensor of ones has to say it. A weight that is stored dense has none."""
    for parameter in step.parameters:
        stored = program.declared.get(parameter.name)
        readers = [e for e in program.einsums if parameter.pattern in e.operands] if parameter.pattern else []
        if stored is None or stored.format is None or stored.format.all_dense or len(readers) != 1:
            continue
        (gradient,) = readers
        match gradient.body:
            case Apply(op="mul", args=(Access(tensor=parameter.pattern), body)):
                program = _sharing(program, stored, replace(gradient, body=body), parameter)
    return program


def _sharing(program: Program, weight: TensorType, gradient: Einsum, parameter: TrainedParameter) -> Program:
    """Return a program with another statement for the gradient of a weight, in which all that belongs to the weight is like it."""
    states = set(parameter.states.values())
    results = [gradient.name, *(name for name in program.outputs if name.removeprefix(f"{NEXT}.") in {parameter.name, *states})]
    kept = [t for t in program.tensors if t.name not in (parameter.pattern, *results)]
    tensors = [replace(t, format=None, block=(), like=weight.name) if t.name in states else t for t in kept]
    tensors += [TensorType(name, weight.shape, None, weight.dtype, like=weight.name) for name in results]
    einsums = tuple(gradient if e.name == gradient.name else e for e in program.einsums)
    return replace(program, tensors=tuple(tensors), einsums=einsums)
