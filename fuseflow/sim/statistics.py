"""What a simulation says about itself: values without behaviour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fuseflow.samml import nodes as n
from fuseflow.sim.reference.process import Process
from fuseflow.tensors import DTYPES, Tensor
from fuseflow.tensors.levels.base import CRD_BYTES, POS_BYTES

Array: TypeAlias = Literal["pos", "crd", "val"]
Direction: TypeAlias = Literal["read", "write"]
ARRAYS: tuple[Array, ...] = ("pos", "crd", "val")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of elements requested from one array of a tensor, equal on every machine."""

    tensor: str
    kind: Array
    direction: Direction
    bytes: int


@dataclass(frozen=True, slots=True)
class NodeStatistics:
    """How often a node fired, and in which cycles first and last. Both processes of an accumulator count."""

    name: str
    op: str
    firings: int
    first: int
    last: int


def node_statistics(graph: n.Graph, processes: Iterable[Process]) -> tuple[NodeStatistics, ...]:
    """Of every node, in graph order."""
    found: dict[str, list[Process]] = {node.name: [] for node in graph.nodes}
    for process in processes:
        found[process.node.name].append(process)
    return tuple(
        NodeStatistics(
            node.name, node.op, sum(p.firings for p in of), min(p.first for p in of), max(p.last for p in of)
        )
        for node, of in zip(graph.nodes, found.values(), strict=True)
    )  # fmt: skip


def traffic(
    graph: n.Graph, processes: Iterable[Process], outputs: Mapping[str, Tensor], written: Mapping[str, int]
) -> tuple[Traffic, ...]:
    """Bytes read and written of every array, in tensor order. `written`: values written of each output."""
    declared = graph.declared
    sizes = {name: {"pos": POS_BYTES, "crd": CRD_BYTES, "val": DTYPES[t.dtype].itemsize} for name, t in declared.items()}
    read: Counter[tuple[str, str]] = Counter()
    for process in processes:
        if isinstance(process.node, n.Scan | n.Load):
            read.update({(process.node.tensor, kind): count for kind, count in process.elements.items()})
    wrote = Counter({(name, "val"): count for name, count in written.items()})
    for name, tensor in outputs.items():
        wrote.update({(name, "pos"): sum(level.pos_count for level in tensor.levels)})
        wrote.update({(name, "crd"): sum(level.crd_count for level in tensor.levels)})
    directions: tuple[tuple[Direction, Counter[tuple[str, str]]], ...] = ("read", read), ("write", wrote)
    return tuple(
        Traffic(tensor, kind, direction, counts[tensor, kind] * sizes[tensor][kind])
        for tensor in declared
        for kind in ARRAYS
        for direction, counts in directions
        if counts[tensor, kind]
    )
