"""The attention mask of BigBird (Zaheer et al., NeurIPS 2020): a window, global blocks and random blocks of a blocked matrix."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fuseflow.errors import DataError

RANDOM_BLOCKS = 2
"""The number of random blocks in each row of blocks. It is also the number of global rows and of global columns of blocks."""


def bigbird_blocks(length: int, block: int, seed: int = 0) -> npt.NDArray[np.bool_]:
    """Return which blocks of a `length` x `length` mask are set, as an array of truth values with one element for each block.

    By the published recipe these are two random blocks in each row of blocks, the blocks on the diagonal and beside it, and the first
    two rows and columns of blocks. NumPy's legacy generator draws the random blocks row by row, so that a seed gives the same mask as
    in other implementations. Raise `DataError` where whole blocks do not fill the mask.

    >>> [int(bigbird_blocks(1024, block).sum()) for block in (16, 32, 64)]
    [549, 268, 118]
    """
    if block < 1 or length < 1 or length % block:
        hint = "take a block size that divides the length"
        raise DataError(f"a mask of {length} positions has no blocks of {block}", hint=hint)
    count = length // block
    if count < RANDOM_BLOCKS:
        hint = f"take blocks of {length // RANDOM_BLOCKS}"
        raise DataError(f"a mask of {count} block needs {RANDOM_BLOCKS} random ones in a row", hint=hint)
    random = np.random.RandomState(seed)
    random_columns = np.stack([random.choice(count, RANDOM_BLOCKS, replace=False) for _ in range(count)])
    numbers = np.arange(count)
    blocks: npt.NDArray[np.bool_] = np.abs(numbers[:, None] - numbers) <= 1
    blocks[numbers[:, None], random_columns] = True
    blocks[:RANDOM_BLOCKS] = blocks[:, :RANDOM_BLOCKS] = True
    return blocks


def bigbird_mask(length: int, block: int, seed: int = 0) -> sparse.csr_array:
    """Return the attention mask as a 0/1 matrix [length, length] in f32.

    >>> [bigbird_mask(1024, block).nnz for block in (16, 32, 64)]
    [140544, 274432, 483328]
    """
    rows, columns = bigbird_blocks(length, block, seed).nonzero()
    within = np.arange(block)
    row = (rows[:, None, None] * block + within[:, None]).repeat(block, axis=2).ravel()
    column = (columns[:, None, None] * block + within).repeat(block, axis=1).ravel()
    mask = sparse.csr_array((np.ones(len(row), dtype=np.float32), (row, column)), shape=(length, length))
    mask.sort_indices()
    return mask
