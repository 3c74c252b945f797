"""Layouts of matrices with masks that fit them, for tests of packed tensors."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

import fuseflow.sparsity as sp
from fuseflow.sparsity.layouts.layout import Layout

LAYOUTS: tuple[Layout, ...] = (
    *(sp.CSR(), sp.CSC(), sp.COO(), sp.ELL(), sp.BCSR((2, 3)), sp.BCSR((2, 2))),
    *(sp.NMLayout(2, 4), sp.NMLayout(1, 5), sp.NMLayout(2, 5, dim=0), sp.NMLayout(2, 4, dim=0)),
    *(sp.NMGLayout(2, 4, 1), sp.NMGLayout(1, 3, 2), sp.NMGLayout(2, 4, 2, sparse_dim=-1, group_dim=-2)),
)
IDS = [str(layout) for layout in LAYOUTS]


def mask_for(layout: Layout, shape: tuple[int, int], share: float = 0.4, seed: int = 0) -> torch.Tensor:
    """Return a random mask that fits a layout. The shape must divide into blocks of 2 x 3 if these are stored."""
    values = torch.rand(shape, generator=torch.Generator().manual_seed(seed))
    if isinstance(layout, sp.NMLayout):
        kept = sp.NM(layout.n, layout.m, layout.dim).select(values)
        return kept & (values < share * 2)
    if isinstance(layout, sp.NMGLayout):
        rule = sp.NMG(layout.n, layout.m, layout.g, layout.sparse_dim, layout.group_dim)
        return rule.select(values) & (values < share * 2)
    if isinstance(layout, sp.BCSR):
        rows, columns = layout.block
        return (values[::rows, ::columns] < share).repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    return values < share


def packed(layout: Layout, dense: torch.Tensor, mask: torch.Tensor, requires_grad: bool = False) -> sp.PackedTensor:
    """Return what a mask keeps of a dense matrix in a layout."""
    from fuseflow.sparsity.entry_positions import compact

    storage = compact(layout.pack(dense, mask))
    return sp.PackedTensor.wrapped_from_dense(storage, dense.detach()).requires_grad_(requires_grad)


def places(tensor: sp.PackedTensor) -> torch.Tensor:
    """Return the mask of the places that a packed tensor stores, padding of n:m groups included."""
    from fuseflow.sparsity.entry_positions import places_of

    known = places_of(type(tensor.wrapped_tensor))
    ones = known.with_values(tensor.wrapped_tensor, torch.ones_like(known.values(tensor.wrapped_tensor)))
    return ones.to_dense() != 0


shapes = st.tuples(st.integers(1, 4).map(lambda n: 2 * n), st.integers(1, 4).map(lambda n: 6 * n))
"""Shapes of matrices that divide into blocks of 2 x 3."""
