"""Tensor statistics: how many coordinates a fiber has on average, level by level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fuseflow.einsum.nodes import TensorType
from fuseflow.tensors import Tensor

DEFAULT_DENSITY = 0.1
"""Assumed share of stored coordinates in a compressed level of which nothing is known."""


@dataclass(frozen=True, slots=True)
class TensorStatistics:
    """`sizes[p]` is the extent of storage level p, `fanouts[p]` the mean number of coordinates in one of its fibers."""

    sizes: tuple[int, ...]
    fanouts: tuple[float, ...]

    @property
    def stored(self) -> float:
        """Expected number of stored values."""
        count = 1.0
        for fanout in self.fanouts:
            count *= fanout
        return count


def measure(tensor: Tensor) -> TensorStatistics:
    """The statistics of a packed tensor."""
    parents, fanouts = 1, []
    for level in tensor.levels:
        fanouts.append(level.elements / parents if parents else 0.0)
        parents = level.elements
    return TensorStatistics(tuple(tensor.shape[d] for d in tensor.format.order), tuple(fanouts))


def assume(tensor: TensorType) -> TensorStatistics:
    """Statistics for a tensor without data: full dense levels, compressed ones at the default density."""
    if tensor.format is None:
        return TensorStatistics(tensor.shape, tuple(map(float, tensor.shape)))
    sizes = tuple(tensor.shape[d] for d in tensor.format.order)
    fanouts = (n if level.full else n * DEFAULT_DENSITY for n, level in zip(sizes, tensor.format.levels, strict=True))
    return TensorStatistics(sizes, tuple(map(float, fanouts)))


def statistics(types: Mapping[str, TensorType], tensors: Mapping[str, Tensor]) -> dict[str, TensorStatistics]:
    """Measured where there is data, assumed elsewhere."""
    return {name: measure(tensors[name]) if name in tensors else assume(t) for name, t in types.items()}
