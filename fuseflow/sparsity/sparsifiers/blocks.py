"""The sparsifier that keeps whole blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fuseflow import selection
from fuseflow.errors import SparsityError
from fuseflow.selection import Kind
from fuseflow.sparsity.arrays import mask_of, values_of
from fuseflow.sparsity.layouts.blocked import BCSR
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier, kept_count, require_fraction

if TYPE_CHECKING:
    import torch


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
        kept = selection.largest(sums.reshape(-1), kept_count(self.fraction, sums.size)).reshape(sums.shape)
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
