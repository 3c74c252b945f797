"""Tensor statistics: the mean number of coordinates in a fiber, level by level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from math import prod
from operator import mul

import numpy as np

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import OverfullError
from fuseflow.samml.auxiliary_tensors import is_auxiliary
from fuseflow.samml.nodes import Graph
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.blocks import block_counts, stored_in
from fuseflow.tensors.distinct_keys import distinct_keys
from fuseflow.tensors.levels.base import Ints
from fuseflow.tensors.pack import entries_in

DEFAULT_DENSITY = 0.1
"""The share of its coordinates that a compressed level is assumed to store if nothing is known of it."""


@dataclass(frozen=True, slots=True)
class TensorStatistics:
    """The statistics of a tensor: `sizes[p]` is the size of level p, and `fanouts[p]` the mean number of coordinates in its fibers."""

    sizes: tuple[int, ...]
    fanouts: tuple[float, ...]

    @property
    def stored(self) -> float:
        """The expected number of stored values."""
        return prod(self.fanouts, start=1.0)

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
    counts = [level.elements for level in tensor.levels]
    if any(level.pads for level in tensor.format.levels):  # it may store entries outside the shape, and something below them
        refs, counts = np.zeros(1, dtype=np.int64), []
        for level in tensor.levels:
            _, _, refs = level.expand(refs)
            counts.append(len(refs))
    return _counted_statistics(tuple(tensor.shape[d] for d in tensor.format.order), counts)


def stored_statistics(tensor: Tensor, declared: TensorType) -> TensorStatistics:
    """Return the statistics that a tensor of single elements has in memory: in the format and the blocks of `declared`, whatever
    format it comes in. It is only packed for that if levels store entries beside those of the tensor."""
    format, block = declared.format or tensor.format, declared.block
    if tensor.format == format and not block:
        return measure_statistics(tensor)
    if format.complete or any(level.pads for level in format.levels):
        return measure_statistics(stored_in(tensor, format, block))
    shape = block_counts(tensor.shape, block)
    sizes = tuple(shape[d] for d in format.order)
    if format.all_dense:
        return _counted_statistics(sizes, tuple(accumulate(sizes, mul)))
    coordinates, _ = entries_in(tensor, format)
    columns = [coordinates[d] // block[d] if block else coordinates[d] for d in format.order]
    elements, counts = 1, list[int]()
    prefixes = _prefix_counts(columns, sizes) if block else chain(_prefix_counts(columns[:-1], sizes), (len(columns[-1]),))
    for level, size, count in zip(format.levels, sizes, prefixes, strict=True):
        elements = elements * size if level.full else count
        counts.append(elements)
    return _counted_statistics(sizes, counts)


def _counted_statistics(sizes: tuple[int, ...], counts: Sequence[int]) -> TensorStatistics:
    """Return the statistics of a tensor whose level p has size `sizes[p]` and stores `counts[p]` coordinates in all fibers."""
    fanouts = (count / parents if parents else 0.0 for parents, count in pairwise((1, *counts)))
    return TensorStatistics(sizes, tuple(fanouts))


def _prefix_counts(columns: Sequence[Ints], sizes: Sequence[int]) -> Iterator[int]:
    """Yield how many distinct coordinates entries have on the outermost level, on the two outermost ones, and so on."""
    prefixes, count = np.zeros(1, dtype=np.int64), 1
    for column, size in zip(columns, sizes, strict=False):
        keys, prefixes = distinct_keys(prefixes * size + column, count * size)
        count = len(keys)
        yield count


def assume_statistics(tensor: TensorType) -> TensorStatistics:
    """Return statistics for a tensor without data: dense levels are full, compressed ones have the default density."""
    if tensor.format is None:
        return TensorStatistics(tensor.stored_shape, tuple(map(float, tensor.stored_shape)))
    sizes = tuple(tensor.stored_shape[d] for d in tensor.format.order)
    fanouts = (level.expected(size, DEFAULT_DENSITY) for size, level in zip(sizes, tensor.format.levels, strict=True))
    return TensorStatistics(sizes, tuple(fanouts))


def auxiliary_statistics(graph: Graph) -> dict[str, TensorStatistics]:
    """Return the statistics of the auxiliary tensors that a graph declares, and of those that it reads as vectors: they store
    everything."""
    return {t.name: TensorStatistics(t.shape, tuple(map(float, t.shape))) for t in graph.tensors if is_auxiliary(t) or t.flat}


def collect_statistics(types: Mapping[str, TensorType], tensors: Mapping[str, Tensor]) -> dict[str, TensorStatistics]:
    """Return the statistics of tensors of these types, by name. They are measured if there is data, in any format, and else
    assumed. Raises `TensorError` for data that has no room in its format."""
    statistics = {}
    for name, declared in types.items():
        with OverfullError.naming(name):
            known = (declared.like or name) in tensors  # tensors of one structure have the same statistics
            statistics[name] = (
                stored_statistics(tensors[declared.like or name], declared) if known else assume_statistics(declared)
            )
    return statistics


def view_statistics(
    statistics: TensorStatistics, source_format: Format, format: Format, shape: tuple[int, ...]
) -> TensorStatistics:
    """Return the statistics of a view of a stored tensor. Its sparse levels have the same statistics, and its dense levels are full."""
    sparse = iter(f for f, level in zip(statistics.fanouts, source_format.levels, strict=True) if not level.full)
    sizes = tuple(shape[d] for d in format.order)
    fanouts = (float(n) if level.full else next(sparse) for n, level in zip(sizes, format.levels, strict=True))
    return TensorStatistics(sizes, tuple(fanouts))
