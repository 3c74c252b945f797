"""Random rounding: PyTorch computes in f64, and every result is rounded to a neighbour in f32, up or down at random.

Runs that round differently show how far rounding alone can move a value, whatever the order of operations: this is Monte Carlo
arithmetic. One run of f32 shows less, since a kernel may round once where another one rounds often. The norms of PyTorch compute in f64
inside, so that a gradient which is 0 but for rounding is closer to 0 than the rounding of its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import torch
from torch import Tensor
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

HALF_UNIT: Final = 2.0**-24
"""The largest relative error of rounding to f32."""
SUMS: Final = frozenset(
    {
        "mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot", "_sparse_mm", "_sparse_addmm", "convolution", "convolution_backward",
        "sum", "mean", "cumsum", "linalg_vector_norm", "var", "var_mean",
        "index_add", "scatter_add", "index_put", "embedding_dense_backward",
    }
)  # fmt: skip
"""Operators of ATen that add terms, which f32 rounds one by one. An operator that is missing here counts as rounded once."""
_SPREAD, _MIX = -7046029254386353131, -4658895280553007687  # odd numbers that spread bits over a word


class RandomRounding(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode in which PyTorch rounds results of f64 to f32 at random. What f32 can hold is not changed.

    Fused operators, such as norms and their derivatives, are computed as the operators of which they are made. The terms of sums are moved
    by up to half a unit of f32 each. A value is rounded in one way wherever it occurs, so that equal values stay equal; `seed` decides
    which way.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._seed = seed << 32

    def __torch_dispatch__(
        self, operator: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        parts = _decompositions().get(operator)
        dense = all(value.layout == torch.strided for value in pytree.tree_leaves((args, named)) if isinstance(value, Tensor))
        if parts is not None and dense and torch.Tag.nondeterministic_seeded not in operator.tags:
            with self:
                result = parts(*args, **named)
            if result is not NotImplemented:
                return result
        if operator.overloadpacket.__name__ in SUMS and not operator._schema.is_mutable:
            args = pytree.tree_map(self._moved, tuple(args))
        result = operator(*args, **named)
        infos = [returned.alias_info for returned in operator._schema.returns]
        if all(info is None for info in infos):
            return pytree.tree_map(self._rounded, result)
        if any(info is not None and info.is_write for info in infos):
            pytree.tree_map(self._round, result)
        return result

    def _moved(self, value: Any) -> Any:
        """Return a tensor with each entry moved by up to half a unit of f32."""
        if not _is_double(value):
            return value
        return value * (1 + HALF_UNIT * (self._bits(value.float()) / 2.0**31))

    def _rounded(self, value: Any) -> Any:
        """Return a tensor with each entry rounded up or down to f32."""
        if not _is_double(value):
            return value
        near = value.float()
        away = torch.where(near.double() < value, torch.inf, -torch.inf).float()
        stays = (near.double() == value) | ~value.isfinite() | (self._bits(near) < 0)
        return torch.where(stays, near, torch.nextafter(near, away)).double()

    def _round(self, value: Any) -> None:
        """Round a tensor where it is."""
        if _is_double(value):
            value.copy_(self._rounded(value))

    def _bits(self, value: Tensor) -> Tensor:
        """Return a random number from -2**31 to 2**31 for each entry, which is equal for equal entries."""
        word = (value.view(torch.int32).long() + self._seed) * _SPREAD
        word = (word ^ (word >> 29)) * _MIX
        return word >> 32


def _is_double(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.float64 and value.layout == torch.strided


@cache
def _decompositions() -> Mapping[Any, Callable[..., Any]]:
    """Return how PyTorch computes fused operators from others."""
    aten = torch.ops.aten
    norms = [aten.native_batch_norm, aten._native_batch_norm_legit, aten.native_layer_norm, aten.native_group_norm]
    return {**core_aten_decompositions(), **get_decompositions([*norms, aten._softmax, aten._log_softmax])}
