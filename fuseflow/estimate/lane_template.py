"""The shape of a graph in lanes, whatever their number: which nodes there are once in every lane, and which stream of the graph on one lane
each of their streams is, dealt to the lanes of which indices.

It is read off the graph with two lanes of every index that is dealt. Indices over which something is reduced have no such shape: how the
results of their lanes are put together depends on their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuseflow.samml import nodes as n
from fuseflow.transform.parallelize import parallelize
from fuseflow.transform.stream_levels import Loops


@dataclass(frozen=True, slots=True)
class DealtStream:
    """A stream of the graph on one lane, dealt to the lanes of these indices."""

    port: n.Port
    indices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TemplateNode:
    """A node of the first lane. It is there once in each lane of `indices`. `serial` is its name on one lane, empty if lanes brought it."""

    node: n.Primitive
    indices: tuple[str, ...]
    serial: str
    inputs: tuple[DealtStream, ...]
    outputs: tuple[DealtStream, ...]
    lanes_of: str = ""
    """The index that a fork deals, or whose lanes a merge takes."""


@dataclass(frozen=True, slots=True, eq=False)
class LaneTemplate:
    """The nodes of a graph in lanes of these indices, outermost first, those of the first lane alone."""

    graph: n.Graph
    indices: tuple[str, ...]
    nodes: tuple[TemplateNode, ...]

    @classmethod
    def of(cls, serial: n.Graph, loops: Loops, indices: Sequence[str]) -> LaneTemplate | None:
        """Return the template, None if lanes of one of the indices are folded. Raises `ScheduleError` as `parallelize` does."""
        lowered = parallelize(serial, loops, dict.fromkeys(indices, 2))
        by_name, streams, kept = serial.by_name, dict[n.Port, DealtStream](), list[TemplateNode]()
        for node in lowered.graph.nodes:
            place = lowered.places.get(node.name, ())
            own = _serial_name(node.name, place)
            namesake = by_name.get(own)
            serial_name = own if namesake is not None and type(namesake) is type(node) else ""
            dealt_index = "" if serial_name else _dealt_index(node, indices)
            if not serial_name and not dealt_index:
                return None
            inside = tuple(index for index in indices if index in dict(place))
            inputs = tuple(streams[port] for port in node.inputs)
            outputs = _outputs(node, serial_name, dealt_index, inside, inputs, indices)
            streams |= {n.Port(node.name, k): stream for k, stream in enumerate(outputs)}
            if all(lane == 0 for _, lane in place):
                kept.append(TemplateNode(node, inside, serial_name, inputs, outputs, dealt_index))
        return cls(lowered.graph, tuple(indices), tuple(kept))

    def lanes(self, node: TemplateNode, counts: Mapping[str, int]) -> int:
        """Return how often a node is there, given the lanes of each index."""
        number = 1
        for index in node.indices:
            number *= counts[index]
        return number


def _serial_name(name: str, place: Sequence[tuple[str, int]]) -> str:
    for index, lane in place:
        name = name.replace(f"/{index}{lane}", "", 1)
    return name


def _dealt_index(node: n.Primitive, indices: Sequence[str]) -> str:
    """Return the index for which lanes brought a fork, a merge or an align, empty for a node that folds lanes."""
    purpose = {n.Fork: "fork", n.Merge: "merge", n.Align: "align"}.get(type(node))
    if purpose is None:
        return ""
    named = [index for index in indices if node.name.startswith(f"{purpose}_{index}_")]
    return max(named, key=len, default="")


def _outputs(
    node: n.Primitive,
    serial: str,
    dealt: str,
    inside: tuple[str, ...],
    inputs: Sequence[DealtStream],
    indices: Sequence[str],
) -> tuple[DealtStream, ...]:
    if serial:
        return tuple(DealtStream(n.Port(serial, k), inside) for k in range(len(node.port_names())))
    x = inputs[-1] if isinstance(node, n.Align) else inputs[0]
    having = {*x.indices, dealt} if not isinstance(node, n.Merge) else {*x.indices} - {dealt}
    stream = DealtStream(x.port, tuple(index for index in indices if index in having))
    return (stream,) * len(node.port_names())


__all__ = ["DealtStream", "LaneTemplate", "TemplateNode"]
