"""The sparsifiers of this package. Some judge each entry by itself, some keep a number of entries of every fiber or group of coordinates,
and some leave out a fraction of a tensor: of its entries, its blocks or its filters.
"""

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
from fuseflow.sparsity.grouped.grouping import grouped_mask, require_sizes
from fuseflow.sparsity.layouts.layout import Dense, Layout
from fuseflow.sparsity.layouts.n_of_m import NMGLayout, NMLayout
from fuseflow.sparsity.layouts.sparse import BCSR
from fuseflow.sparsity.numpy_arrays import mask_of, values_of
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule, Sparsifier, kept_count, require_dimension, require_fraction

if TYPE_CHECKING:
    import torch
if TYPE_CHECKING:
    import torch

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class TopK(Sparsifier):
    """Keeps the `k` entries of largest magnitude of every fiber along a dimension."""

    name = "topk"
    kind: ClassVar[Kind] = "blocking"
    least_rank: ClassVar[int] = 1

    k: int
    dim: int = -1

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SparsityError(f"`{self}` keeps nothing", hint="keep at least 1 entry of a fiber")

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        rule = self.keep_rule(tuple(tensor.shape))
        return mask_of(keep_rules.kept(rule.rule, values_of(tensor), rule.dimensions), tensor)

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule:
        dim = require_dimension(self, self.dim, shape)
        rule = keep_rules.Largest(self.k)
        reason, hint = keep_rules.refusal(rule, shape[dim])
        if reason:
            raise SparsityError(f"`{self}`, dimension {dim} of a tensor of shape {list(shape)}: {reason}", hint=hint)
        return KeepRule(rule, (dim,))


@dataclass(frozen=True, slots=True)
class NM(Sparsifier):
    """Keeps the `n` entries of largest magnitude of every `m` coordinates of a dimension, counted from 0. The last group may be short."""

    name = "nm"
    kind: ClassVar[Kind] = "blocking"
    least_rank: ClassVar[int] = 1

    n: int
    m: int
    dim: int = -1

    def __post_init__(self) -> None:
        reason, hint = keep_rules.group_refusal(self.n, self.m)
        if reason:
            raise SparsityError(f"`{self}`: {reason}", hint=hint)

    @property
    def layout(self) -> Layout:
        return NMLayout(self.n, self.m, self.dim)

    @property
    def share(self) -> float:
        return 1 - self.n / self.m

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        rule = self.keep_rule(tuple(tensor.shape))
        return mask_of(keep_rules.kept(rule.rule, values_of(tensor), rule.dimensions), tensor)

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule:
        return KeepRule(keep_rules.Largest(self.n, every=self.m), (require_dimension(self, self.dim, shape),))


@dataclass(frozen=True, slots=True)
class NMG(Sparsifier):
    """Keeps `n` of every `m` coordinates of the dimension `sparse_dim`, in groups of patterns (STen, arXiv 2304.07613, section 5).

    There are C(m, n) patterns of n of m. Of every C(m, n) * g consecutive coordinates of `group_dim`, exactly `g` have each pattern. The
    method `exact` keeps the most magnitude that is possible, `greedy` is the published one.
    """

    name = "nmg"
    kind: ClassVar[Kind] = "materializing"
    least_rank: ClassVar[int] = 2

    n: int
    m: int
    g: int
    sparse_dim: int = -2
    group_dim: int = -1
    method: Literal["exact", "greedy"] = "exact"

    def __post_init__(self) -> None:
        require_sizes(self.n, self.m, self.g)

    @property
    def layout(self) -> Layout:
        return NMGLayout(self.n, self.m, self.g, self.sparse_dim, self.group_dim)

    @property
    def share(self) -> float:
        return 1 - self.n / self.m

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        mask = grouped_mask(values_of(tensor), self.n, self.m, self.g, self.sparse_dim, self.group_dim, self.method)
        return mask_of(mask, tensor)


@dataclass(frozen=True, slots=True)
class KeepAll(Sparsifier):
    """Keeps every entry that is stored. Of a dense tensor, that is all."""

    name = "keepall"
    kind: ClassVar[Kind] = "streaming"

    layout: ClassVar[Layout] = Dense()
    share: ClassVar[float] = 0.0

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        import torch

        return torch.ones(tensor.shape, dtype=torch.bool, device=tensor.device)


@dataclass(frozen=True, slots=True)
class Stored(Sparsifier):
    """Keeps every entry that is not 0, NaN too: what a weight that was pruned elsewhere stores."""

    name = "stored"
    kind: ClassVar[Kind] = "streaming"

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        return tensor != 0

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule:
        return KeepRule(keep_rules.NONZERO)


@dataclass(frozen=True, slots=True)
class Threshold(Sparsifier):
    """Keeps every entry of which the magnitude is at least `least`."""

    name = "threshold"
    kind: ClassVar[Kind] = "streaming"

    least: float

    def __post_init__(self) -> None:
        reason, hint = keep_rules.refusal(keep_rules.Threshold(self.least), 1)
        if reason:
            raise SparsityError(f"`{self}`: {reason}", hint=hint)

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        return mask_of(keep_rules.kept(keep_rules.Threshold(self.least), values_of(tensor)), tensor)

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule:
        return KeepRule(keep_rules.Threshold(self.least))


@dataclass(frozen=True, slots=True)
class RandomFraction(Sparsifier):
    """Keeps each entry with the probability 1 - `fraction`, whatever its number.

    With a `seed`, it keeps the same entries of every tensor of a shape. Without one it draws from PyTorch's generator, so that
    `torch.manual_seed` decides.
    """

    name = "random"
    kind: ClassVar[Kind] = "streaming"

    fraction: float
    seed: int | None = None

    def __post_init__(self) -> None:
        require_fraction(self.name, self.fraction)
        if self.seed is not None and not -(1 << 63) <= self.seed < 1 << 64:
            raise SparsityError(f"`{self}`: PyTorch has no such seed", hint="give a number of at most 64 bits")

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        import torch

        generator = None if self.seed is None else torch.Generator().manual_seed(self.seed)
        return (torch.rand(tensor.shape, generator=generator) >= self.fraction).to(tensor.device)


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
