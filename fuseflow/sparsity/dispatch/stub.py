"""Registrations to fill in, which messages about missing ones hold."""

from __future__ import annotations

import re
from collections.abc import Iterable

import torch

from fuseflow.sparsity.dispatch.registry import Classes, Outputs
from fuseflow.sparsity.dispatch.signature import Operator, operator_name
from fuseflow.sparsity.sparsifiers.keep_all import KeepAll


def forward_stub(operator: Operator, inputs: Classes, outputs: Outputs) -> str:
    """Return the text of a registration of an operator for formats."""
    name = operator_name(operator)
    return f"""@sp.register_fwd_op_impl(
    operator={name},
    inp={_tuple(map(class_name, inputs))},
    out={_pairs(outputs or ((KeepAll, torch.Tensor),))},
)
def {_function(name)}_forward(ctx, inputs, output_sparsifiers):
    {_unpacked("inp", len(inputs))} = inputs
    ctx.save_for_backward({_unpacked("inp", len(inputs), "")})
    raise NotImplementedError  # return the results"""


def backward_stub(operator: Operator, grad_outputs: Classes, grad_inputs: Outputs, inputs: Classes) -> str:
    """Return the text of a registration of the gradient of an operator for formats."""
    name = operator_name(operator)
    return f"""@sp.register_bwd_op_impl(
    operator={name},
    grad_out={_tuple(map(class_name, grad_outputs))},
    grad_inp={_pairs(grad_inputs or ((KeepAll, torch.Tensor),) * len(inputs))},
    inp={_tuple(map(class_name, inputs))},
)
def {_function(name)}_backward(ctx, grad_outputs, input_sparsifiers):
    {_unpacked("grad", len(grad_outputs))} = grad_outputs
    raise NotImplementedError  # return a gradient for each of {len(inputs)} tensors"""


def sparsifier_stub(sparsifier: type, inp: type, out: type) -> str:
    """Return the text of a registration of a sparsifier for formats."""
    return f"""@sp.register_sparsifier_implementation(
    sparsifier={class_name(sparsifier)},
    inp={class_name(inp)},
    out={class_name(out)},
)
def {_function(f"{sparsifier.__name__}_to_{out.__name__}")}(sparsifier, tensor, grad_fmt=None):
    raise NotImplementedError  # return sp.PackedTensor.wrapped_from_dense({out.__name__}(...), tensor, grad_fmt)"""


def class_name(cls: type) -> str:
    """Return how a program writes a class, if it has `import fuseflow.sparsity as sp`."""
    if cls is torch.Tensor:
        return "torch.Tensor"
    return f"sp.{cls.__name__}" if cls.__module__.startswith("fuseflow.sparsity.") else cls.__qualname__.split("<locals>.")[-1]


def _pairs(outputs: Outputs) -> str:
    return _tuple(f"({class_name(sparsifier)}, {class_name(cls)})" for sparsifier, cls in outputs)


def _tuple(texts: Iterable[str]) -> str:
    items = list(texts)
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _unpacked(name: str, count: int, end: str = ",") -> str:
    return ", ".join(f"{name}{place}" for place in range(count)) + (end if count == 1 else "") if count else "()" if end else ""


def _function(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")
