"""Weights that PyTorch itself stores sparse. In a sparse model they are dense parameters, and all other entries are pruned."""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)


def replica(model: M) -> M:
    """Return a copy of a model. Unlike `copy.deepcopy`, it copies parameters in the layouts CSR, CSC, BSR and BSC, too."""
    sparse = {id(p): nn.Parameter(p.detach().clone(), p.requires_grad) for p in model.parameters() if p.layout != torch.strided}
    return copy.deepcopy(model, dict(sparse))


def dense_values(weight: Tensor) -> Tensor:
    """Return the numbers of a weight as a dense tensor, which is the weight itself unless it is stored sparse."""
    values = weight.detach()
    return values if values.layout == torch.strided else values.to_dense()


def stored_entries(weight: Tensor) -> Tensor:
    """Return the mask of the entries that a weight stores, also where they are 0."""
    values = weight.detach()
    if values.layout == torch.strided:
        return torch.ones(values.shape, dtype=torch.bool, device=values.device)
    if values.layout == torch.sparse_coo:
        values = values.coalesce()
        ones = torch.sparse_coo_tensor(values.indices(), torch.ones_like(values.values()), values.shape)
    elif values.layout in (torch.sparse_csr, torch.sparse_bsr):
        indices = values.crow_indices(), values.col_indices()
        ones = torch.sparse_compressed_tensor(
            *indices, torch.ones_like(values.values()), values.shape, layout=values.layout, check_invariants=False
        )
    else:
        indices = values.ccol_indices(), values.row_indices()
        ones = torch.sparse_compressed_tensor(
            *indices, torch.ones_like(values.values()), values.shape, layout=values.layout, check_invariants=False
        )
    return ones.to_dense() != 0


def make_dense(model: nn.Module, name: str) -> nn.Parameter:
    """Replace a weight of a model, under all of its names, by a dense parameter, and return that. A dense weight stays."""
    parameters = dict(model.named_parameters())
    parameter = parameters[name]
    if parameter.layout == torch.strided:
        return parameter
    dense = nn.Parameter(dense_values(parameter), parameter.requires_grad)
    for module in model.modules():
        for key, value in module._parameters.items():
            if value is parameter:
                module._parameters[key] = dense
    return dense
