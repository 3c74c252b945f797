"""FIFO depths of parallel lanes on a machine with `fifo_depth: auto`: the copies of one FIFO are equally deep, and a merge never lacks
slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fuseflow.samml.nodes import Edge, Fork, Graph, Merge
from fuseflow.sim.outcome.statistics import EdgeStatistics

UNBOUNDED = 1 << 40
"""A depth that no run fills, in slots."""


def lane_kinds(graph: Graph) -> dict[str, int]:
    """Return a number for each node, by its name. Nodes that differ only in the lane have the same number: they have the same
    primitive and attributes, and read streams of equal numbers."""
    numbers: dict[Any, int] = {}
    kinds: dict[str, int] = {}
    forks = {node.name for node in graph.nodes if isinstance(node, Fork)}
    for node in graph.nodes:
        reads = tuple((kinds[p.node], 0 if p.node in forks else p.output) for p in node.inputs)
        kinds[node.name] = numbers.setdefault((type(node), replace(node, name="", inputs=()), reads), len(numbers))
    return kinds


def lane_copies(graph: Graph) -> dict[Edge, tuple[Edge, ...]]:
    """Return for each FIFO a tuple of all FIFOs that differ from it only in the lane, including itself, in graph order. They are
    inputs of nodes of one kind (`lane_kinds`)."""
    kinds = lane_kinds(graph)
    groups: dict[tuple[int, int], list[Edge]] = {}
    for node in graph.nodes:
        for k in range(len(node.inputs)):
            groups.setdefault((kinds[node.name], 0 if isinstance(node, Merge) else k), []).append(Edge(node.name, k))
    return {edge: tuple(edges) for edges in groups.values() for edge in edges}


def collector_depths(graph: Graph) -> dict[Edge, int]:
    """Return unbounded depths for the FIFOs in front of each merge. A merge takes a whole element of one lane before it turns to
    the next, so the FIFOs of the other lanes must hold theirs."""
    return {Edge(node.name, k): UNBOUNDED for node in graph.nodes if isinstance(node, Merge) for k in range(len(node.inputs))}


def final_depths(depths: Mapping[Edge, int], edges: Iterable[EdgeStatistics], start_depth: int) -> dict[Edge, int]:
    """Return bounded depths with which the run is the same. A FIFO that was unbounded in `depths` gets the power of two that
    holds its peak, if that is more than `start_depth`, the depth of FIFOs on the machine; else it is left out."""
    peaks = {Edge(edge.node, edge.input): edge.peak for edge in edges}
    final = {edge: depth if depth != UNBOUNDED else 1 << max(0, peaks[edge] - 1).bit_length() for edge, depth in depths.items()}
    return {edge: depth for edge, depth in final.items() if depths[edge] != UNBOUNDED or depth > start_depth}
