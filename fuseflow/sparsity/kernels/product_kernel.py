"""The kernels that a storage class needs for products: three functions of a stored matrix and a dense one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class ProductKernel:
    """The products of a stored matrix P, which is [m, k], with dense matrices.

    `multiply` returns P @ X for X [k, b], `multiply_transposed` returns P.T @ X for X [m, b], and `sample` the entries of A @ B.T at the
    places of P, in the shape of its values, for A [m, b] and B [k, b].
    """

    multiply: Callable[[Any, torch.Tensor], torch.Tensor]
    multiply_transposed: Callable[[Any, torch.Tensor], torch.Tensor]
    sample: Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]


def working_type(dtype: torch.dtype) -> torch.dtype:
    """Return the type that products of a type are computed in: numbers of 16 bits are added up as float32."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
