"""The weights of the published runs: integers 0..254 of which 60 % are zero. Random, from a generator."""

import numpy as np
from scipy import sparse

ZEROS = 0.6


def sparse_weights(rng: np.random.Generator, rows: int, columns: int, density: float = 1 - ZEROS) -> sparse.csr_array:
    """Integers 1..254 at random places, drawn some rows at a time: the dense form of a large matrix is never held."""
    step = max(1, (1 << 22) // columns)
    places = [np.flatnonzero(rng.random(min(step, rows - at) * columns) < density) + at * columns for at in range(0, rows, step)]
    flat = np.concatenate(places)
    values = rng.integers(1, 255, len(flat)).astype(np.float32)
    return sparse.csr_array((values, (flat // columns, flat % columns)), shape=(rows, columns))


def dense_weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Integers with their zeros stored."""
    values = rng.integers(1, 255, shape)
    return np.where(rng.random(shape) < ZEROS, 0, values).astype(np.float32)


def normal_weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Dense, scaled so that a product keeps the size of what it multiplies."""
    return rng.standard_normal(shape, dtype=np.float32) / np.float32(shape[0]) ** 0.5
