"""The bytes of intermediates that are alive at the same time, while the regions of a program run one after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fuseflow.samml.nodes import Graph


@dataclass(frozen=True, slots=True)
class Lifetime:
    """An intermediate in memory: the region that writes it, and the regions that read it, counted from 0 in the order in which they run."""

    name: str
    written: int
    read: tuple[int, ...]

    @property
    def last(self) -> int:
        """The last region that it lives in."""
        return max((self.written, *self.read))


def lifetimes(regions: Iterable[tuple[Graph, Mapping[str, str]]], outputs: Collection[str]) -> list[Lifetime]:
    """Return the intermediates of a program, in the order in which they are written.

    An intermediate is what a region writes and the program does not return. It lives from the region that writes it to the last region
    that reads it. `regions` are in the order in which they run, each as its graph and its views: names of tensors in other dimensions,
    with the tensor that each of them shows. `outputs` are the names of the results of the program.
    """
    shown: dict[str, str] = {}
    first, read = dict[str, int](), dict[str, list[int]]()
    for number, (graph, views) in enumerate(regions):
        shown |= {name: shown.get(source, source) for name, source in views.items()}
        for name in dict.fromkeys(shown.get(name, name) for name in graph.inputs):
            read.setdefault(name, []).append(number)
        first |= dict.fromkeys(graph.outputs, number)
    returned = {shown.get(name, name) for name in outputs}
    return [Lifetime(name, begin, tuple(read.get(name, ()))) for name, begin in first.items() if name not in returned]


def live_bytes_by_region(intermediates: Iterable[Lifetime], written: Mapping[str, float], regions: int) -> list[float]:
    """Return the bytes of intermediates that are alive while each of the `regions` runs. `written` are the bytes of each tensor."""
    alive = [0.0] * regions
    for tensor in intermediates:
        for number in range(tensor.written, tensor.last + 1):
            alive[number] += written.get(tensor.name, 0)
    return alive


def live_bytes(
    regions: Iterable[tuple[Graph, Mapping[str, str]]], outputs: Collection[str], written: Mapping[str, float]
) -> float:
    """Return the most bytes of intermediates that are alive at the same time. The arguments are as of `lifetimes` and
    `live_bytes_by_region`."""
    steps = tuple(regions)
    return max(live_bytes_by_region(lifetimes(steps, outputs), written, len(steps)), default=0.0)


def written_bytes(stats: Mapping[str, Any]) -> dict[str, float]:
    """Return the bytes that are written of each tensor, from the statistics of a run or an estimate."""
    by_tensor = stats["bytes"]["by_tensor"]
    return {name: sum(kind["write"] for kind in kinds.values()) for name, kinds in by_tensor.items()}
