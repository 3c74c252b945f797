"""Weights whose blocks of elements share a scale, as torchao has them: `MXTensor` and `NVFP4Tensor`.

Such a weight is a tensor of PyTorch that holds others: `qdata` has the elements in 8 bits, or two of 4 bits in a byte; `scale` has a factor
for each `block_size` elements of the last dimension; and `per_tensor_scale`, if there is one, is a factor for all. Here the elements and
the scales are arguments of the graph, in their own types, and the weight is computed from them. The library itself is not needed: what
has these attributes is such a weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from fuseflow.errors import FrontendError

_E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
"""The magnitudes of a float of 4 bits, by its lower three bits. The upper one is the sign."""
_FLOATS = (torch.float8_e4m3fn, torch.float8_e5m2)
_LEAST = 2.0**-126
"""The least scale of a block."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockScaledWeight:
    """A weight in parts: tensors by their names, the elements first. `element_types` has the types of parts that PyTorch has no dtype for,
    by their names. `size` elements share a scale, and the weight has the type `dtype`. A linear layer rounds what it multiplies with the
    weight to blocks of the type `rounds_to`, if that is not None."""

    parts: dict[str, Tensor]
    element_types: dict[str, str]
    size: int
    dtype: torch.dtype
    rounds_to: torch.dtype | None

    def weight(self, elements: Tensor, scale: Tensor, whole: Tensor | None = None) -> Tensor:
        """Return the weight that follows from its parts, computed as torchao computes it."""
        factors = scale.float() if whole is None else whole * scale.float()
        blocks = elements.float().reshape(*scale.shape, self.size) * factors.unsqueeze(-1)
        return blocks.flatten(-2).to(self.dtype)

    def rounded(self, x: Tensor) -> Tensor:
        """Return the input of a linear layer in blocks of small floats that share a power of 2, as torchao rounds it down (`FLOOR`)."""
        assert self.rounds_to is not None
        end = torch.finfo(self.rounds_to).max
        blocks = x.float().reshape(*x.shape[:-1], -1, self.size)
        largest = blocks.abs().amax(-1, keepdim=True).clamp(min=_LEAST)
        scale = torch.exp2(torch.floor(torch.log2(largest)) - math.floor(math.log2(end))).clamp(min=_LEAST)
        elements = (blocks / scale).clamp(-end, end).to(self.rounds_to)
        return (elements.float() * scale).flatten(-2).to(x.dtype)


class RoundedInputs(TorchFunctionMode):
    """While it is active, linear layers round what they multiply with some weights, given by their ids. Raise `FrontendError` for another
    operator on such a weight."""

    def __init__(self, weights: Mapping[int, BlockScaledWeight]) -> None:
        super().__init__()
        self.weights = weights

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is F.linear and id(args[1]) in self.weights:
            return func(self.weights[id(args[1])].rounded(args[0]), *args[1:], **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and any(id(arg) in self.weights for arg in args):
            name = next(iter(next(self.weights[id(arg)] for arg in args if id(arg) in self.weights).parts))
            message = f"`{func.__name__}` of weight `{name}`, which rounds what it is multiplied with"
            raise FrontendError(message, hint="multiply by it in `torch.nn.functional.linear`")
        return result


def block_scaled(name: str, weight: Tensor) -> BlockScaledWeight | None:
    """Return a weight in parts, or None if its blocks share no scales. Raise `FrontendError` for elements and scales that are stored in
    another way, and for a weight that rounds what it is multiplied with otherwise than to blocks of 8 bits whose scales round down."""
    elements, scale, size = (getattr(weight, part, None) for part in ("qdata", "scale", "block_size"))
    if not (isinstance(elements, Tensor) and isinstance(scale, Tensor) and isinstance(size, int)):
        return None
    rounding = getattr(weight, "act_quant_kwargs", None)
    rounds_to, own_size, mode = (getattr(rounding, part, None) for part in ("elem_dtype", "block_size", "scaling_mode"))
    if rounding is not None and (rounds_to not in _FLOATS or own_size != size or getattr(mode, "value", mode) != "floor"):
        message = f"weight `{name}` rounds what it is multiplied with (`act_quant_kwargs`), and not to blocks of {size} floats of 8 bits"
        raise FrontendError(message, hint="take e4m3 or e5m2 with the scaling mode FLOOR, or `act_quant_kwargs=None`")
    if getattr(weight, "is_swizzled_scales", False):
        raise FrontendError(f"the scales of weight `{name}` are swizzled", hint="make it with `is_swizzled_scales=False`")
    packed = elements.dtype == torch.uint8 and elements.numel() * 2 == weight.numel()
    if not (packed or elements.dtype in _FLOATS) or not elements.is_contiguous():
        problem = f"weight `{name}` has elements of {getattr(weight, 'elem_dtype', elements.dtype)} in an order that is not known"
        raise FrontendError(problem, hint="have e4m3, e5m2 or pairs of e2m1 by rows")
    if weight.shape[-1] % size or scale.shape != (*weight.shape[:-1], weight.shape[-1] // size):
        shapes = f"{list(weight.shape)}, with scales {list(scale.shape)} of {size} elements each"
        raise FrontendError(f"weight `{name}` has the shape {shapes}", hint="a block divides the last dimension")
    parts = {name: _unpacked(elements) if packed else elements.detach(), f"{name}.scale": scale.detach()}
    whole = getattr(weight, "per_tensor_scale", None)
    if whole is not None:
        parts[f"{name}.per_tensor_scale"] = whole.detach()
    return BlockScaledWeight(parts, {name: "e2m1"} if packed else {}, size, weight.dtype, rounds_to)


def _unpacked(pairs: Tensor) -> Tensor:
    """Return the floats of 4 bits in bytes, the one in the lower bits first."""
    codes = torch.stack([pairs & 0xF, pairs >> 4], dim=-1).flatten(-2).long()
    return torch.copysign(_E2M1[codes & 7], torch.where(codes > 7, -1.0, 1.0))
