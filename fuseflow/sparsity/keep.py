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
    """Return the output format that a text of `format_text` says."""
    parts = text.split("|")
    if len(parts) != 4:
        raise SparsityError(f"`{text}` is no output format", hint="it is INLINE|TMP|EXTERNAL|LAYOUT")
    inline, tmp, external, layout = parts
    return OutputFormat(parse_sparsifier(inline), parse_layout(tmp), parse_sparsifier(external), parse_layout(layout))


@custom_op("fuseflow::keep", mutates_args=())
def keep(x: Tensor, rule: str, grad_rule: str) -> Tensor:
    """Return a tensor of which the entries that the rule does not keep are 0. The gradient has the same mask, or that of `grad_rule`
    unless it is empty."""
    return _kept(x, rule)


@keep.register_fake
def _(x: Tensor, rule: str, grad_rule: str) -> Tensor:
    return torch.empty_like(x)


def _kept(x: Tensor, rule: str) -> Tensor:
    return x.masked_fill(~output_mask(x, parse_format(rule), _NAME), 0)


def _save(ctx: Any, inputs: tuple[Tensor, str, str], output: Tensor) -> None:
    x, rule, grad_rule = inputs
    ctx.rules = rule, grad_rule
    if not grad_rule:
        ctx.save_for_backward(x)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
    rule, grad_rule = ctx.rules
    if grad_rule:
        return _kept(gradient, grad_rule), None, None
    (x,) = ctx.saved_tensors
    return gradient.masked_fill(~output_mask(x, parse_format(rule), _NAME), 0), None, None


keep.register_autograd(_backward, setup_context=_save)


@custom_op("fuseflow::masked", mutates_args=())
def masked(x: Tensor, mask: Tensor) -> Tensor:
    """Return the product of a tensor with a mask of zeros and ones that does not depend on it."""
    return x * mask


@masked.register_fake
def _(x: Tensor, mask: Tensor) -> Tensor:
    return torch.empty_like(x)


def _save_mask(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(inputs[1])


def _masked_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
    (mask,) = ctx.saved_tensors
    return gradient * mask, None


masked.register_autograd(_masked_backward, setup_context=_save_mask)
