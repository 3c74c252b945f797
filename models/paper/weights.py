"""The weights of the published runs: integers 0..254 of which 60 % are zero. Random, from a generator."""

import numpy as np
from scipy import sparse

ZEROS = 0.6
PIECE = 1 << 22
"""How many numbers are drawn at a time."""


def sparse_weights(rng: np.random.Generator, rows: int, columns: int, density: float = 1 - ZEROS) -> sparse.csr_array:
    """Integers 1..254 at random places, drawn some rows at a time: neither the dense form of a large matrix nor its coordinates in
    64 bits are ever held."""
    step = max(1, PIECE // columns)
    expected = rows * columns * density
    places, counts = np.empty(int(expected + 8 * expected**0.5) + 64, dtype=np.int32), [np.zeros(1, dtype=np.int64)]
    count = 0
    for at in range(0, rows, step):
        stored = rng.random((min(step, rows - at), columns)) < density
        columns_stored = np.nonzero(stored)[1]
        if count + len(columns_stored) > len(places):  # hardly ever
            places = np.resize(places, 2 * (count + len(columns_stored)))
        places[count : count + len(columns_stored)] = columns_stored
        counts.append(np.count_nonzero(stored, axis=1))
        count += len(columns_stored)
    places = places[:count]
    values = np.empty(len(places), dtype=np.float32)
    for at in range(0, len(values), PIECE):
        values[at : at + PIECE] = rng.integers(1, 255, len(values[at : at + PIECE]))
    positions = np.cumsum(np.concatenate(counts))
    if len(places) < 1 << 31:
        positions = positions.astype(np.int32)  # scipy widens both if one is wide
    return sparse.csr_array((values, places, positions), shape=(rows, columns))


def dense_weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Integers with their zeros stored."""
    values = rng.integers(1, 255, shape)
    return np.where(rng.random(shape) < ZEROS, 0, values).astype(np.float32)


def normal_weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Dense, scaled so that a product keeps the size of what it multiplies."""
    return rng.standard_normal(shape, dtype=np.float32) / np.float32(shape[0]) ** 0.5
