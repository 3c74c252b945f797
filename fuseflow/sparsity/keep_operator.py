"""The operator `fuseflow::keep`, which marks in a model where a computed tensor becomes sparse.

It is one node of an exported graph. In PyTorch it sets what its rule does not keep to 0; the compiler makes it a `keep` of the program.
Its rule is a text, since operators take no objects: the four parts of an output format, such as `keepall|dense|threshold:0.05|dense`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from fuseflow.errors import SparsityError
from fuseflow.sparsity.layouts.listing import parse_layout
from fuseflow.sparsity.sparsifiers.listing import parse_sparsifier
from fuseflow.sparsity.spec import OutputFormat
from fuseflow.sparsity.weights import output_mask

_NAME = "the tensor"


def format_text(format: OutputFormat) -> str:
    """Return an output format as the text that `fuseflow::keep` takes."""
    return "|".join(map(str, (format.inline, format.tmp, format.external, format.layout)))


def parse_format(text: str) -> OutputFormat:
    """Return the output format that a text describes, as `format_text` writes it."""
    parts = text.split("|")
    if len(parts) != 4:
        raise SparsityError(f"`{text}` is no output format", hint="it is INLINE|TMP|EXTERNAL|LAYOUT")
    inline, tmp, external, layout = parts
    return OutputFormat(parse_sparsifier(inline), parse_layout(tmp), parse_sparsifier(external), parse_layout(layout))


@custom_op("fuseflow::keep", mutates_args=())
def keep(x: Tensor, rule: str, grad_rule: str) -> Tensor:
    """Return a tensor with 0 for the entries that the rule does not keep. The gradient has the same mask, or the mask of
    `grad_rule` unless that is empty."""
    return _zeroed(x, output_mask(x, parse_format(rule), _NAME))


@keep.register_fake
def _(x: Tensor, rule: str, grad_rule: str) -> Tensor:
    return torch.empty_like(x)


def _zeroed(x: Tensor, mask: Tensor) -> Tensor:
    """Return a copy of a tensor that is 0 where a mask is false. Its strides are as of `empty_like`, as compilers expect."""
    return x.clone().masked_fill_(~mask, 0)


@custom_op("fuseflow::keep_gradient", mutates_args=())
def keep_gradient(gradient: Tensor, x: Tensor, rule: str) -> Tensor:
    """Return a gradient with 0 where the rule does not keep the entries of the tensor. It is an operator of its own: a compiler
    need not trace how the mask is computed."""
    return _zeroed(gradient, output_mask(x, parse_format(rule), _NAME))


@keep_gradient.register_fake
def _(gradient: Tensor, x: Tensor, rule: str) -> Tensor:
    return torch.empty_like(gradient)


def _save(ctx: Any, inputs: tuple[Tensor, str, str], output: Tensor) -> None:
    x, rule, grad_rule = inputs
    ctx.rules = rule, grad_rule
    if not grad_rule:
        ctx.save_for_backward(x)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
    rule, grad_rule = ctx.rules
    if grad_rule:
        return keep(gradient, grad_rule, ""), None, None
    (x,) = ctx.saved_tensors
    return keep_gradient(gradient, x, rule), None, None


def _save_tensor(ctx: Any, inputs: tuple[Tensor, Tensor, str], output: Tensor) -> None:
    _, x, ctx.rule = inputs
    ctx.save_for_backward(x)


def _backward_of_gradient(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
    (x,) = ctx.saved_tensors
    return keep_gradient(gradient, x, ctx.rule), None, None


keep.register_autograd(_backward, setup_context=_save)
keep_gradient.register_autograd(_backward_of_gradient, setup_context=_save_tensor)


@custom_op("fuseflow::masked", mutates_args=())
def masked(x: Tensor, mask: Tensor) -> Tensor:
    """Return a tensor that is 0 where a mask of zeros and ones is 0. The mask does not depend on the tensor."""
    return _zeroed(x, mask != 0)


@masked.register_fake
def _(x: Tensor, mask: Tensor) -> Tensor:
    return torch.empty_like(x)


def _save_mask(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(inputs[1])


def _masked_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
    (mask,) = ctx.saved_tensors
    return _zeroed(gradient, mask != 0), None


masked.register_autograd(_masked_backward, setup_context=_save_mask)
