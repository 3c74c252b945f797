"""Patterns of weights that were made sparse: which entries are stored, and how, beside a tensor that PyTorch holds dense.

A kept entry that is 0 is not stored: its number is known here, and an element that is not stored is 0. When PyTorch evaluates a
part of such a weight before import, the part has the pattern of its entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.fx import Node

from fuseflow.errors import FrontendError
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.aten_operators import MOVEMENTS
from fuseflow.sparsity.layouts.layout import Layout, has_compiler_format
from fuseflow.sparsity.layouts.listing import LAYOUTS
from fuseflow.sparsity.layouts.sparse import COO, CSR
from fuseflow.sparsity.state import require_zeros, sparse_weights


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """The mask of a tensor, which is true where an entry is stored, and the layout that it is stored in."""

    mask: Tensor
    layout: Layout


def weight_patterns(module: nn.Module) -> dict[str, Pattern]:
    """Return the patterns of the sparse weights of a model by their qualified names.

    Raise `FrontendError` for a layout that has no format in the compiler, and `SparsityError` for a weight trained without its mask.
    """
    for name, parameter, weight in sparse_weights(module):
        require_zeros(name, parameter, weight.mask)
    patterns = {
        name: Pattern(_stored(weight.mask, parameter), weight.entry.layout) for name, parameter, weight in sparse_weights(module)
    }
    for name, pattern in patterns.items():
        if pattern.layout.compiler_format(tuple(pattern.mask.shape)) is None:
            known = ", ".join(f"`{layout}`" for layout, cls in LAYOUTS.items() if has_compiler_format(cls))
            raise FrontendError(
                f"the weight `{name}` has the layout `{pattern.layout}`, which runs in PyTorch only",
                hint=f"these are compiled: {known}",
            )
    return patterns


def _stored(mask: Tensor, parameter: Tensor) -> Tensor:
    """Return the mask of the stored entries: entries that are kept and are not 0."""
    return mask & (parameter.detach() != 0).to(mask.device)


def stored_tensors(
    tensors: Mapping[str, Tensor], patterns: Mapping[str, Pattern], formats: Mapping[str, str]
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a model, the ones with a pattern in a sparse layout of PyTorch, and the formats of all tensors that
    have one. A format of the user wins over the format of a layout."""
    stored, chosen = dict(tensors), dict[str, str]()
    for name, pattern in patterns.items():
        if name not in tensors:
            continue
        format = pattern.layout.compiler_format(tuple(tensors[name].shape))
        if format is None or (format.text == "dense" and name not in formats):
            continue
        stored[name] = _sparse(tensors[name], pattern.mask, format.block)
        if not format.block:
            chosen[name] = format.text
    return stored, {**chosen, **formats}


def unstored_masks(patterns: Mapping[str, Pattern], stored: Mapping[str, Tensor]) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the masks of tensors whose storage does not show the pruned entries: they are stored dense or in blocks."""
    layouts = (torch.strided, torch.sparse_bsr)
    return {name: p.mask.cpu().numpy() for name, p in patterns.items() if name in stored and stored[name].layout in layouts}


def _sparse(tensor: Tensor, mask: Tensor, block: tuple[int, ...]) -> Tensor:
    """Return the entries of a dense tensor that a mask keeps, in coordinates or in blocks."""
    if block:  # pruned entries are 0
        return tensor.to_sparse_bsr(block)
    mask = mask.to(tensor.device)
    return torch.sparse_coo_tensor(mask.nonzero().T, tensor[mask], tensor.shape, is_coalesced=True)


def pattern_of_part(
    operands: Mapping[str, Tensor], patterns: Mapping[str, Pattern], calls: list[Node], mask: Any
) -> Pattern | None:
    """Return the pattern of a tensor that PyTorch evaluated, or None if it has none.

    It was computed from `operands` by the operators in `calls`, and `mask` is their result on the masks of the operands. This is
    the mask of the result only if every operator leaves numbers as they are.
    """
    sparse = [patterns[name] for name in operands if name in patterns]
    if not sparse or not isinstance(mask, Tensor) or any(fx_origin.short_name(call.target) not in MOVEMENTS for call in calls):
        return None
    kept = mask != 0
    fitting: Iterator[Layout] = (layout for layout in (sparse[0].layout, CSR(), COO()) if not layout.refusal(kept))
    return Pattern(kept, next(fitting))
