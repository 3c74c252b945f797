"""Tables of embeddings: a row that stands for padding has no gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from fuseflow.errors import FrontendError
from fuseflow.frontend.derivatives.rule import Gradients, Rule
from fuseflow.frontend.positions.gathers import as_table


def _of_table(gradients: Gradients, _: tuple[Tensor, ...], weight: Tensor, padding: int | None, counts: bool) -> Gradients:
    (gradient,) = gradients
    if counts:
        hint = "without it, each row has the sum of the gradients of all places that take it"
        raise FrontendError("an embedding with scale_grad_by_freq has no gradient in the compiler", hint=hint)
    if gradient is None or padding is None:
        return (gradient,)
    before, behind = gradient.narrow(0, 0, padding), gradient.narrow(0, padding + 1, len(weight) - padding - 1)
    parts = (before, torch.zeros_like(gradient.narrow(0, 0, 1)), behind)
    return (torch.cat([part for part in parts if len(part)]),)


TABLE_RULES: dict[object, Rule] = {as_table: _of_table}
