"""Models whose real numbers all get another type, also those that are in attributes beside parameters and buffers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

_OWN = vars(nn.Module()).keys()
"""The attributes that a module has in any case."""


def convert_floats(model: nn.Module, dtype: torch.dtype) -> None:
    """Give all real numbers of a model the type `dtype`: parameters, buffers, and tensors in attributes. Tied tensors stay tied."""
    converted: dict[int, tuple[Tensor, Tensor]] = {}  # The old tensors are held, so that no new one gets the `id` of one of them.

    def new(old: Any) -> Any:
        if not isinstance(old, Tensor) or not old.is_floating_point():
            return old
        if id(old) not in converted:
            values = old.detach().to(dtype)
            converted[id(old)] = old, nn.Parameter(values, old.requires_grad) if isinstance(old, nn.Parameter) else values
        return converted[id(old)][1]

    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            tensors.update({name: new(tensor) for name, tensor in tensors.items()})
        attributes = {name: value for name, value in vars(module).items() if name not in _OWN}
        vars(module).update(pytree.tree_map(new, attributes))
