"""Gradients of a model as a compiled training step has them, beside those of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from fuseflow import Schedule
from fuseflow.compiler import compile_source
from fuseflow.einsum.interpret import evaluate_operands, operands_of
from fuseflow.errors import FuseFlowError
from fuseflow.frontend.model_spec import ModelSpec, TrainingRequest
from fuseflow.frontend.sources import load
from fuseflow.sim import load_machine

LARGEST_ERROR = 1e-4
"""The largest error of an entry, for the largest entry of its gradient and for the largest of all gradients of a loss times 1e-2. Of a
type with fewer bits, it is twice what one of them makes."""
Verdict: TypeAlias = Literal["right", "wrong", "refused"]


def sum_of_squares(output: Any, target: Any = None) -> Tensor:
    """Return the sum of the squares of all floats among the results of a model, minus a target. Without one, it is a wave: the sum of
    squares of what comes out of a norm hardly depends on anything, so that its gradient would be rounding."""
    results = [leaf.to_dense() for leaf in pytree.tree_leaves(output) if isinstance(leaf, Tensor) and leaf.is_floating_point()]
    targets = [_wave(result) for result in results] if target is None else [target]
    terms = [((result - wanted) ** 2).sum() for result, wanted in zip(results, targets, strict=True)]
    return torch.stack(terms).sum() if len(terms) > 1 else terms[0]


def _wave(result: Tensor) -> Tensor:
    return torch.cos(torch.arange(result.numel(), dtype=torch.float32)).reshape(result.shape).to(result.dtype)


def gradients_of_pytorch(
    module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, target: Any = None
) -> dict[str, Tensor]:
    """Return the gradients of the sum of squares by the names of parameters. A parameter that it does not depend on has none."""
    module.zero_grad()
    with torch.enable_grad():
        sum_of_squares(module(*args, **(kwargs or {})), target).backward()
    return {name: p.grad.to_dense() for name, p in module.named_parameters() if p.requires_grad and p.grad is not None}


def compiled_gradients(
    module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, target: Any = None
) -> dict[str, Any]:
    """Return the same gradients as a training step computes them, without fusion, by the names of parameters. Raise `FuseFlowError` if
    the step is refused. Its tensors stay in the layouts in which they come: the search for better ones changes no gradient, and takes
    most of the time."""
    training = TrainingRequest(sum_of_squares, "sgd:lr=0.1", target, gradients=True)
    source = load(ModelSpec(module, tuple(args), kwargs=kwargs or None, training=training))
    step = compile_source(replace(source, arranged=True), Schedule.fuse("none"), load_machine("rda"))
    interface = step.source.step
    assert interface is not None
    program = step.source.program
    values = evaluate_operands(program, operands_of(program, step.inputs()), outputs_only=True, wide=step.machine.is_wide)
    gradients = {name.removeprefix("grad."): value for name, value in values.items() if name.startswith("grad.")}
    return {interface.original(name): value for name, value in gradients.items()}


def difference(computed: Mapping[str, Any], expected: Mapping[str, Tensor]) -> str:
    """Return how gradients differ from those of PyTorch, or ''. A dimension of extent 1 makes no difference."""
    if computed.keys() != expected.keys():
        return f"gradients of {sorted(computed)[:4]} instead of {sorted(expected)[:4]}"
    largest = max((float(value.abs().max()) for value in expected.values() if value.numel()), default=0.0)
    for name, value in expected.items():
        wanted = value.double().squeeze().numpy()
        found = computed[name]
        found = np.asarray(found if isinstance(found, np.ndarray) else found.toarray(), dtype=np.float64).squeeze()
        if found.shape != wanted.shape:
            return f"the gradient of {name} has shape {found.shape} instead of {wanted.shape}"
        scale = max(float(np.abs(wanted).max(initial=0)), 1e-2 * largest)
        tolerance = max(LARGEST_ERROR, torch.finfo(value.dtype).eps * 2)
        if not np.allclose(found, wanted, rtol=0, atol=tolerance * scale, equal_nan=True):
            error = float(np.abs(found - wanted).max())
            return f"the gradient of {name} is off by {error:.3g}, and its largest entry is {np.abs(wanted).max():.3g}"
    return ""


def verdict(
    module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, target: Any = None
) -> tuple[Verdict, str]:
    """Return whether the gradients of a model are those of PyTorch, and why not."""
    expected = gradients_of_pytorch(module, args, kwargs, target)
    try:
        computed = compiled_gradients(module, args, kwargs, target)
    except FuseFlowError as error:
        return "refused", error.message.partition("\n")[0]
    wrong = difference(computed, expected)
    return ("wrong", wrong) if wrong else ("right", "")
