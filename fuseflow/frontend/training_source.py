"""What the inputs and outputs of the program of a training step mean, and what PyTorch computes in the same step."""

from __future__ import annotations

from collections.abc import Sequence
import numpy as np
import numpy.typing as npt
from fuseflow.frontend.export import ExportedGraph
from fuseflow.frontend.foreign_errors import quiet
from fuseflow.frontend.imported_program import StepInterface
from fuseflow.frontend.torch_tensors import dense_array
from fuseflow.frontend.trace.training import Training
from fuseflow.frontend.trace.model_call import ModelCall
from fuseflow.training.reference import Reference


def step_interface(training: Training, call: ModelCall, exported: ExportedGraph) -> StepInterface:
    """Return what the inputs and outputs of the program of a training step mean."""
    step = exported.step
    assert step is not None
    names = {parameter.name: parameter.original for parameter in step.parameters}
    trained = {name: original for name, original in names.items() if original not in step.untouched}
    masks = {names[name]: mask for name, mask in exported.weight_masks.items() if name in trained}
    return StepInterface(training.spec, trained, tuple(step.draws), masks, training.states, training.steps, call)


def step_outputs(interface: StepInterface, outputs: Sequence[str]) -> list[npt.NDArray[np.generic]]:
    """Return the outputs of the first step as PyTorch computes them."""
    call = interface.call
    assert call.criterion is not None
    reference = Reference(call.module, interface.training, interface.masks)
    values = {**reference.initial, **interface.states}
    with quiet(), call.repeatable():
        results = reference.step(values, interface.first_step, call.args, call.criterion.target, kwargs=call.kwargs).results
    return [dense_array(results[_original(interface, name)], name) for name in outputs]


def _original(interface: StepInterface, output: str) -> str:
    """Return the name that PyTorch's step gives an output of a program."""
    kind, dot, name = output.partition(".")
    return f"{kind}{dot}{interface.original(name)}"
