"""A tile of a region: the region at some consecutive coordinates of one of its indices, and where its tensors come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from fuseflow.fusion.region import FusedRegion
from fuseflow.samml.nodes import Graph
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints
from fuseflow.tensors.restriction import restrict


@dataclass(frozen=True, slots=True)
class RestrictedTensor:
    """A tensor of a restricted region: it is `source` with only some coordinates in those `modes` that have the restricted index."""

    source: str
    modes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RestrictedRegion:
    """A region with fewer coordinates of one index.

    `tensors` says, by name, how a tensor that it reads is made from a tensor in memory.
    """

    fused: FusedRegion
    tensors: Mapping[str, RestrictedTensor]

    def source(self, name: str) -> str:
        """Return the tensor of the whole region that a tensor is, or is a part of."""
        return self.tensors[name].source if name in self.tensors else name

    def read(self, names: Iterable[str], memory: Mapping[str, Tensor], coordinates: Ints) -> dict[str, Tensor]:
        """Return the tensors of these names that the region reads at some coordinates, made from the tensors in memory."""
        read: dict[str, Tensor] = {}
        for name in names:
            origin = self.tensors.get(name)
            if origin is None:
                read |= {name: memory[name]} if name in memory else {}
                continue
            read[name] = memory[origin.source]
            for mode in origin.modes:
                read[name] = restrict(read[name], mode, coordinates)
        return read


@dataclass(frozen=True, slots=True)
class RegionTile:
    """A tile of a region: its `size` coordinates of `index` from `first` on, and its graph. `ahead` and `behind` have the tensors of the
    graph that no node uses: parts of the next tile, which are loaded into the scratchpad while this one runs, and results of the last
    tile, which are stored from there. Each is given with its name in its own tile."""

    index: str
    first: int
    size: int
    region: RestrictedRegion
    graph: Graph
    ahead: Mapping[str, str]
    behind: Mapping[str, str]

    def read(self, memory: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the tensors that the nodes of the tile read, made from those in memory."""
        names = [name for name in self.graph.inputs if name not in self.ahead and name not in self.behind]
        return self.region.read(names, memory, np.arange(self.first, self.first + self.size))
