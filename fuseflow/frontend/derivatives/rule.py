"""What a derivative rule is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor

Gradients: TypeAlias = tuple[Tensor | None, ...]
"""The gradients of some tensors, in order. None stands for a gradient that is 0, or for a tensor that has none, as integers."""
Rule: TypeAlias = Callable[..., Gradients]
"""A function of the gradients of the results of a call, the results, and the operands of the call as the traced graph has them. It
returns the gradients of the tensors among the operands, in the order of `torch.utils._pytree.tree_leaves((args, kwargs))`."""


def given(gradient: Tensor | None) -> Tensor:
    """Return a gradient that the rule is called for, which is never None."""
    assert gradient is not None
    return gradient
