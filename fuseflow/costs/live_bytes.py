"""The bytes of intermediates that are alive at the same time, while the regions of a program run one after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from fuseflow.samml.nodes import Graph


def live_bytes(
    regions: Iterable[tuple[Graph, Mapping[str, str]]], outputs: Collection[str], written: Mapping[str, float]
) -> float:
    """Return the most bytes of intermediates that are alive at the same time.

    An intermediate is what a region writes and the program does not return. It lives from the region that writes it to the last region
    that reads it. `regions` are in the order in which they run, each as its graph and its views: names of tensors in other dimensions,
    with the tensor that each of them shows. `outputs` are the names of the results of the program, and `written` the bytes of each
    tensor.
    """
    shown: dict[str, str] = {}
    first, last = dict[str, int](), dict[str, int]()
    for number, (graph, views) in enumerate(regions):
        shown |= {name: shown.get(source, source) for name, source in views.items()}
        last |= dict.fromkeys((shown.get(name, name) for name in graph.inputs), number)
        first |= dict.fromkeys(graph.outputs, number)
        last |= dict.fromkeys(graph.outputs, number)
    returned = {shown.get(name, name) for name in outputs}
    change: dict[int, float] = {}
    for name, begin in first.items():
        if name not in returned:
            change[begin] = change.get(begin, 0) + written.get(name, 0)
            change[last[name] + 1] = change.get(last[name] + 1, 0) - written.get(name, 0)
    most = alive = 0.0
    for number in sorted(change):
        alive += change[number]
        most = max(most, alive)
    return most


def written_bytes(stats: Mapping[str, Any]) -> dict[str, float]:
    """Return the bytes that are written of each tensor, from the statistics of a run or an estimate."""
    by_tensor = stats["bytes"]["by_tensor"]
    return {name: sum(kind["write"] for kind in kinds.values()) for name, kinds in by_tensor.items()}
