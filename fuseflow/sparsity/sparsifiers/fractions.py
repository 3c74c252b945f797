"""Sparsifiers that leave out a fraction of a tensor: of its entries, its blocks or its filters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from fuseflow import keep_rules
from fuseflow.errors import SparsityError
from fuseflow.keep_rules import Kind
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.layouts.sparse import BCSR
from fuseflow.sparsity.numpy_arrays import mask_of, values_of
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule, Sparsifier, kept_count, require_fraction

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Magnitude(Sparsifier):
    """Keeps the entries of largest magnitude: all but the `fraction` of smallest magnitude, rounded down.

    With the `scope` model, the entries of all tensors that have this rule are compared with each other, so that a tensor of small numbers
    keeps fewer.
    """

    name = "magnitude"
    kind: ClassVar[Kind] = "materializing"

    fraction: float
    scope: Literal["tensor", "model"] = "tensor"

    def __post_init__(self) -> None:
        require_fraction(self.name, self.fraction)
        if self.scope not in ("tensor", "model"):
            raise SparsityError(f"`{self.name}` has no scope `{self.scope}`", hint="it is `tensor` or `model`")

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        values = values_of(tensor).reshape(-1)
        mask = keep_rules.largest(values, kept_count(self.fraction, values.size))
        return mask_of(mask.reshape(tensor.shape), tensor)

    @property
    def compares_tensors(self) -> bool:
        return self.scope == "model"

    def select_together(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        if not (self.compares_tensors and tensors):
            return Sparsifier.select_together(self, tensors)
        arrays = [values_of(tensor).reshape(-1) for tensor in tensors]
        mask = keep_rules.largest(np.concatenate(arrays), kept_count(self.fraction, sum(a.size for a in arrays)))
        parts = np.split(mask, np.cumsum([a.size for a in arrays])[:-1])
        return [mask_of(part.reshape(tensor.shape), tensor) for part, tensor in zip(parts, tensors, strict=True)]

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule | None:
        """Return the rule over all dimensions. There is none if nothing is kept, or if the rule compares several tensors."""
        count = kept_count(self.fraction, math.prod(shape))
        if self.scope == "model" or not count:
            return None
        return KeepRule(keep_rules.Largest(count), tuple(range(len(shape))))


@dataclass(frozen=True, slots=True)
class Movement(Sparsifier):
    """Keeps the entries that training moves away from 0: all but the `fraction` with the smallest scores, rounded down.

    The score of an entry is the sum of -weight * gradient over the steps so far (Sanh et al., "Movement Pruning", 2020), which the trainer
    gathers. The first of equal scores is kept, and NaN is largest.
    """

    name = "movement"
    kind: ClassVar[Kind] = "materializing"
    needs_scores: ClassVar[bool] = True

    fraction: float

    def __post_init__(self) -> None:
        require_fraction(self.name, self.fraction)

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        if scores is None:
            raise SparsityError(
                f"`{self}` ranks entries by what training did to them, and nothing was trained yet",
                hint="use it with `sp.attach(model, spec, optimizer, when='new')`, or prune by `magnitude`",
            )
        numbers = values_of(scores).astype(np.float64).reshape(-1)
        ranked = np.lexsort((-numbers, ~np.isnan(numbers)))
        mask = np.zeros(numbers.size, dtype=bool)
        mask[ranked[: kept_count(self.fraction, numbers.size)]] = True
        return mask_of(mask.reshape(tensor.shape), tensor)


@dataclass(frozen=True, slots=True)
class BlockMagnitude(Sparsifier):
    """Keeps the blocks of a matrix that have the largest sums of magnitudes: all but a `fraction` of the blocks, rounded down.

    `block` is the size of a block in rows and columns, which divides the matrix.
    """

    name = "block"
    kind: ClassVar[Kind] = "materializing"
    least_rank: ClassVar[int] = 2

    fraction: float
    block: tuple[int, int]

    def __post_init__(self) -> None:
        require_fraction(self.name, self.fraction)
        if min(self.block) < 1:
            raise SparsityError(f"`{self}`: a block has at least one row and one column", hint="as in `block:0.5:4x4`")

    @property
    def layout(self) -> Layout:
        return BCSR(self.block)

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        blocks = self._blocks(values_of(tensor))
        sums = np.abs(blocks.astype(np.float64)).sum(axis=(1, 3))
        kept = keep_rules.largest(sums.reshape(-1), kept_count(self.fraction, sums.size)).reshape(sums.shape)
        return mask_of(np.kron(kept, np.ones(self.block, dtype=bool)), tensor)

    def _blocks(self, matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the blocks of a matrix, [rows of blocks, rows, columns of blocks, columns]."""
        shape = matrix.shape
        if len(shape) != 2 or shape[0] % self.block[0] or shape[1] % self.block[1]:
            sizes = " x ".join(map(str, shape))
            raise SparsityError(
                f"`{self}`: a tensor of {sizes} does not divide into blocks of {self.block[0]} x {self.block[1]}",
                hint="choose a size that divides the rows and the columns of a matrix",
            )
        rows, columns = self.block
        return matrix.reshape(shape[0] // rows, rows, shape[1] // columns, columns)


@dataclass(frozen=True, slots=True)
class Filter(Sparsifier):
    """Keeps the filters that have the largest sums of magnitudes: all but a `fraction` of them, rounded down.

    A filter is all that has one coordinate of the first dimension: a row of a linear layer's weight, an output channel of a convolution's.
    """

    name = "filter"
    kind: ClassVar[Kind] = "materializing"
    least_rank: ClassVar[int] = 1

    fraction: float

    def __post_init__(self) -> None:
        require_fraction(self.name, self.fraction)

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        values = values_of(tensor)
        if not values.ndim:
            raise SparsityError(f"`{self}`: a number has no filters", hint="filters are the rows of a matrix or more")
        sums = np.abs(values.astype(np.float64)).sum(axis=tuple(range(1, values.ndim)))
        kept = keep_rules.largest(sums, kept_count(self.fraction, sums.size))
        whole = np.broadcast_to(kept.reshape(-1, *(1,) * (values.ndim - 1)), values.shape)
        return mask_of(whole.copy(), tensor)
