"""What a rule of `keep` leaves of a value: the gradient of what it drops is 0, and which entries it keeps has none."""

from __future__ import annotations

import torch
from torch import Tensor

from fuseflow.frontend.derivatives.rule import Gradients, Rule
from fuseflow.frontend.trace.kept_markers import keep


def _of_keep(gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, marker: Tensor, marks: bool = False) -> Gradients:
    (gradient,), (kept,) = gradients, results
    if gradient is None or marks:
        return None, None
    return torch.where(kept != 0, gradient, 0.0), None


KEEP_RULES: dict[object, Rule] = {keep: _of_keep}
