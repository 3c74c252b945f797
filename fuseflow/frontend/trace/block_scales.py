"""Weights whose blocks of elements share a scale, as torchao has them: `MXTensor` and `NVFP4Tensor`.

Such a weight is a tensor of PyTorch that holds others: `qdata` has the elements in 8 bits, or two of 4 bits in a byte; `scale` has a factor
for each `block_size` elements of the last dimension; and `per_tensor_scale`, if there is one, is a factor for all. Here the elements and
the scales are arguments of the graph, in their own types, and the weight is computed from them. The library itself is not needed: what
has these attributes is such a weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fuseflow.errors import FrontendError

_E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
"""The magnitudes of a float of 4 bits, by its lower three bits. The upper one is the sign."""
_FLOATS = (torch.float8_e4m3fn, torch.float8_e5m2)


@dataclass(frozen=True, slots=True, eq=False)
class BlockScaled:
    """A weight in parts: tensors by their names, the elements first. `element_types` has the types of parts that PyTorch has no dtype for,
    by their names. `size` elements share a scale, and the weight has the type `dtype`."""

    parts: dict[str, Tensor]
    element_types: dict[str, str]
    size: int
    dtype: torch.dtype

    def weight(self, elements: Tensor, scale: Tensor, whole: Tensor | None = None) -> Tensor:
        """Return the weight that follows from its parts, computed as torchao computes it."""
        factors = scale.float() if whole is None else whole * scale.float()
        blocks = elements.float().reshape(*scale.shape, self.size) * factors.unsqueeze(-1)
        return blocks.flatten(-2).to(self.dtype)


def block_scaled(name: str, weight: Tensor) -> BlockScaled | None:
    """Return a weight in parts, or None if its blocks share no scales. Raise `FrontendError` for elements and scales that are stored in
    another way, and for a weight that rounds what it is multiplied with."""
    elements, scale, size = (getattr(weight, part, None) for part in ("qdata", "scale", "block_size"))
    if not (isinstance(elements, Tensor) and isinstance(scale, Tensor) and isinstance(size, int)):
        return None
    if getattr(weight, "act_quant_kwargs", None) is not None:
        message = f"weight `{name}` rounds what it is multiplied with (`act_quant_kwargs`)"
        raise FrontendError(message, hint="take it without them, and round the input in `forward`, by `.to(torch.float8_e4m3fn)`")
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
    return BlockScaled(parts, {name: "e2m1"} if packed else {}, size, weight.dtype)


def _unpacked(pairs: Tensor) -> Tensor:
    """Return the floats of 4 bits in bytes, the one in the lower bits first."""
    codes = torch.stack([pairs & 0xF, pairs >> 4], dim=-1).flatten(-2).long()
    return torch.copysign(_E2M1[codes & 7], torch.where(codes > 7, -1.0, 1.0))
