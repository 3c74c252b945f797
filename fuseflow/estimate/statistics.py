"""Tensor statistics: the mean number of coordinates in a fiber, level by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fuseflow.einsum.nodes import TensorType
from fuseflow.samml.auxiliary import is_auxiliary
from fuseflow.samml.nodes import Graph
from fuseflow.tensors import Format, Tensor

DEFAULT_DENSITY = 0.1
"""The share of stored coordinates that is assumed of a compressed level of which nothing is known."""


@dataclass(frozen=True, slots=True)
class TensorStatistics:
    """The statistics of a tensor: `sizes[p]` is the size of level p, and `fanouts[p]` the mean number of coordinates in its fibers."""

    sizes: tuple[int, ...]
    fanouts: tuple[float, ...]

    @property
    def stored(self) -> float:
        """The expected number of stored values."""
        count = 1.0
        for fanout in self.fanouts:
            count *= fanout
        return count

    def permuted(self, levels: Sequence[int]) -> TensorStatistics:
        """Return the statistics of a copy that stores these levels, in this order, all compressed. Entries are taken as scattered evenly.

        >>> TensorStatistics((4, 8), (4.0, 2.0)).permuted((1, 0)).stored
        8.0
        """
        sizes = tuple(self.sizes[p] for p in levels)
        parents, places, fanouts = 1.0, 1.0, []
        for p, size in enumerate(sizes):
            places *= size
            missed = (1 - 1 / places) ** self.stored if places > 1 else 0.0
            elements = self.stored if p == len(sizes) - 1 else min(self.stored, places * (1 - missed))
            fanouts.append(elements / parents if parents else 0.0)
            parents = elements
        return TensorStatistics(sizes, tuple(fanouts))


def measure_statistics(tensor: Tensor) -> TensorStatistics:
    """Measure the statistics of a packed tensor."""
    if any(level.pads for level in tensor.format.levels):  # it may store entries outside the shape, and something below them
        return _reached_statistics(tensor)
    parents, fanouts = 1, []
    for level in tensor.levels:
        fanouts.append(level.elements / parents if parents else 0.0)
        parents = level.elements
    return TensorStatistics(tuple(tensor.shape[d] for d in tensor.format.order), tuple(fanouts))


def _reached_statistics(tensor: Tensor) -> TensorStatistics:
    refs, fanouts = np.zeros(1, dtype=np.int64), []
    for level in tensor.levels:
        parents = len(refs)
        _, _, refs = level.expand(refs)
        fanouts.append(len(refs) / parents if parents else 0.0)
    return TensorStatistics(tuple(tensor.shape[d] for d in tensor.format.order), tuple(fanouts))


def assume_statistics(tensor: TensorType) -> TensorStatistics:
    """Return statistics for a tensor without data: dense levels are full, compressed ones have the default density."""
    if tensor.format is None:
        return TensorStatistics(tensor.stored_shape, tuple(map(float, tensor.stored_shape)))
    sizes = tuple(tensor.stored_shape[d] for d in tensor.format.order)
    fanouts = (level.expected(size, DEFAULT_DENSITY) for size, level in zip(sizes, tensor.format.levels, strict=True))
    return TensorStatistics(sizes, tuple(fanouts))


def auxiliary_statistics(graph: Graph) -> dict[str, TensorStatistics]:
    """Return the statistics of the tensors that a graph declares for itself."""
    return {t.name: TensorStatistics(t.shape, tuple(map(float, t.shape))) for t in graph.tensors if is_auxiliary(t)}


def collect_statistics(types: Mapping[str, TensorType], tensors: Mapping[str, Tensor]) -> dict[str, TensorStatistics]:
    """Return the statistics of tensors by name, measured where there is data and assumed elsewhere."""
    return {name: measure_statistics(tensors[name]) if name in tensors else assume_statistics(t) for name, t in types.items()}


def view_statistics(
    statistics: TensorStatistics, source_format: Format, format: Format, shape: tuple[int, ...]
) -> TensorStatistics:
    """Return the statistics of a view of a stored tensor. Its sparse levels have the same statistics, and its dense levels are full."""
    sparse = iter(f for f, level in zip(statistics.fanouts, source_format.levels, strict=True) if not level.full)
    sizes = tuple(shape[d] for d in format.order)
    fanouts = (float(n) if level.full else next(sparse) for n, level in zip(sizes, format.levels, strict=True))
    return TensorStatistics(sizes, tuple(fanouts))
