"""The shape of a graph in lanes, whatever their number: the nodes of one lane, and for each of their streams the stream of the
graph on one lane that is dealt, and the indices to whose lanes it is dealt.

It is read off the graph with two lanes of every index that is dealt, or that one stage deals, as in `T.i`. Nodes that add to a
lane the coordinates that it lacks of a result that lanes write were not counted on one lane. So the shape leaves them out, and is
only approximate. Where something is reduced over an index, a tree combines the results of its lanes. How many nodes the tree has
depends on the number of lanes, and the work of each was not counted on one lane. So the shape has one node of each kind for the
whole tree, with whole results, and is only approximate, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from fuseflow.estimate.counted.stream_trie import Ints
from fuseflow.samml import nodes as n
from fuseflow.samml.writers import LaneWriter
from fuseflow.transform.lane_request import Writers
from fuseflow.transform.parallelize import NO_STAGES, parallelize
from fuseflow.transform.stream_levels import Levels, Loops, common_levels

Lanes = TypeVar("Lanes", int, Ints)


@dataclass(frozen=True, slots=True)
class DealtStream:
    """A stream of the graph on one lane, dealt to the lanes of these indices."""

    port: n.Port
    indices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TemplateNode:
    """A node of the first lane. It occurs once in each lane of `indices`. `serial` is its name on one lane, empty if it occurs in
    lanes only.

    `folded` is the index whose lanes have results that the node combines, or in whose lanes its own result is not whole.
    """

    node: n.Primitive
    indices: tuple[str, ...]
    serial: str
    inputs: tuple[DealtStream, ...]
    outputs: tuple[DealtStream, ...]
    lanes_of: str = ""
    """The index that a fork deals, or whose lanes a merge takes; else empty."""
    folded: str = ""

    @property
    def combines(self) -> bool:
        """Whether the node combines the results of lanes into one."""
        return bool(self.folded) and not self.serial


@dataclass(frozen=True, slots=True, eq=False)
class LaneTemplate:
    """The nodes of the first lane of a graph whose `indices`, outermost first, are dealt to lanes. `first` maps the name of each
    node to its name in the first lane."""

    graph: n.Graph
    indices: tuple[str, ...]
    nodes: tuple[TemplateNode, ...]
    first: Mapping[str, str]
    places: Mapping[str, int]
    """The position of each node in `nodes`, by name."""
    left_out: tuple[TemplateNode, ...]
    """The nodes that add the coordinates that a lane lacks, without their streams."""

    @classmethod
    def of(
        cls,
        serial: n.Graph,
        levels: Mapping[n.Port, Levels],
        loops: Loops,
        indices: Sequence[str],
        writers: Writers = "once",
        stages: Mapping[str, str] = NO_STAGES,
    ) -> LaneTemplate:
        """Return the template, given the indices at each level of the streams on one lane, and the stages of its nodes if one
        deals an index. Raises `ScheduleError` as `parallelize` does."""
        of_stages = {(stage, index): 2 for stage, _, index in (name.rpartition(".") for name in indices) if stage}
        lanes = {_index(name): 1 if "." in name else 2 for name in indices}
        lowered = parallelize(serial, loops, lanes, stages, of_stages, writers)
        by_name, types = serial.by_name, serial.types()
        streams, kept, left_out = dict[n.Port, DealtStream](), list[TemplateNode](), list[TemplateNode]()
        around, folds, first = dict[str, tuple[str, ...]](), dict[str, str](), dict[str, str]()
        carried = dict[n.Port, n.Port]()
        for made in lowered.graph.nodes:
            node = replace(made, inputs=tuple(carried.get(port, port) for port in made.inputs))
            place = lowered.places.get(node.name, ())
            own, first[node.name] = _names(node.name, place)
            namesake = by_name.get(own)
            serial_name = own if type(namesake) is type(node) or isinstance(node, LaneWriter) else ""
            is_first = all(lane == 0 for _, lane in place)
            around[node.name] = inside = tuple(index for index in indices if index in dict(place))
            if not serial_name and (filled := _filled(made, node)) is not None:
                carried |= filled
                left_out += [TemplateNode(made, inside, "", (), ())] if is_first else []
                continue
            dealt_index = "" if serial_name else _dealt_index(node, indices)
            inputs = tuple(streams[port] for port in node.inputs)
            if serial_name:
                lost = [index for index in inside if _is_folded(by_name[own], index, levels, types)]
                whole = tuple(index for index in inside if index not in lost)
                outputs = tuple(DealtStream(n.Port(own, k), whole) for k in range(len(node.port_names())))
                folds[node.name] = lost[-1] if lost else ""
            elif dealt_index:
                outputs = _dealt_outputs(node, dealt_index, inputs, indices)
                folds[node.name] = folds[node.inputs[-1].node]
            else:
                outputs = _combined_outputs(node, inputs)
                left = [index for port in node.inputs for index in around[port.node] if index not in inside]
                folds[node.name] = left[0] if left else next(folds[port.node] for port in node.inputs if folds[port.node])
            streams |= {n.Port(node.name, k): stream for k, stream in enumerate(outputs)}
            if is_first:
                folded = "" if dealt_index else folds[node.name]
                kept.append(TemplateNode(node, inside, serial_name, inputs, outputs, dealt_index, folded))
        places = {each.node.name: at for at, each in enumerate(kept)}
        return cls(lowered.graph, tuple(indices), tuple(kept), first, places, tuple(left_out))

    @property
    def is_exact(self) -> bool:
        """Whether the template has all nodes of the graph with whole results, whatever the number of lanes: none is left out or
        folded."""
        return not self.left_out and not any(node.folded for node in self.nodes)

    def lanes(self, node: TemplateNode, counts: Mapping[str, Lanes]) -> Lanes | int:
        """Return how often a node occurs. `counts` has the lanes of each index, for one candidate or as an array over many."""
        number: Lanes | int = counts[node.folded] - 1 if node.combines else 1
        for index in node.indices:
            number = number * counts[index]
        return number


def _names(name: str, place: Sequence[tuple[str, int]]) -> tuple[str, str]:
    """Return the name that a node at a place has on one lane, and the one that it has in the first lane."""
    serial = first = name
    for index, lane in place:
        own = f"/{_index(index)}{lane}"
        serial, first = serial.replace(own, "", 1), first.replace(own, f"/{_index(index)}0", 1)
    return serial, first


def _index(name: str) -> str:
    """Return the index in the name of what is dealt: `i` for `i` and for `T.i`."""
    return name.rpartition(".")[2]


def _dealt_index(node: n.Primitive, indices: Sequence[str]) -> str:
    """Return the index to whose lanes a fork, merge or align belongs; empty for any other node, and for one that folds lanes."""
    purpose = {n.Fork: "fork", n.Merge: "merge", n.Align: "align"}.get(type(node))
    if purpose is None:
        return ""
    named = [index for index in indices if node.name.startswith(f"{purpose}_{_index(index)}_")]
    return max(named, key=len, default="")


def _filled(made: n.Primitive, node: n.Primitive) -> Mapping[n.Port, n.Port] | None:
    """Return the streams to read instead of those of a node that adds the coordinates that a lane lacks: the ones before it.
    `node` is `made` with such streams as inputs. None for any other node."""
    if not node.name.startswith("fill_"):
        return None
    match node:
        case n.Align():
            return {made.inputs[1]: node.inputs[0], n.Port(node.name): node.inputs[2]}
        case n.Join():
            return {made.inputs[0]: node.inputs[1], n.Port(node.name, 1): node.inputs[2]}
        case n.Alu():
            return {n.Port(node.name): node.inputs[0]}
        case _:
            return {}


def _is_folded(node: n.Primitive, index: str, levels: Mapping[n.Port, Levels], types: Mapping[n.Port, n.StreamType]) -> bool:
    """Return whether the result of a node in a lane of `index` is only a part, to be combined with those of other lanes."""
    if node.grain != "fold":
        return False
    shared = common_levels(levels[port] for port in node.inputs)
    return any(_index(index) in names for names in shared[types[node.inputs[0]].depth - 1 :])


def _dealt_outputs(
    node: n.Primitive, dealt: str, inputs: Sequence[DealtStream], indices: Sequence[str]
) -> tuple[DealtStream, ...]:
    """Return the output streams of a node that deals a stream to the lanes of the index `dealt`, or merges it from them."""
    x = inputs[-1] if isinstance(node, n.Align) else inputs[0]
    having = {*x.indices, dealt} if not isinstance(node, n.Merge) else {*x.indices} - {dealt}
    stream = DealtStream(x.port, tuple(index for index in indices if index in having))
    return (stream,) * len(node.port_names())


def _combined_outputs(node: n.Primitive, inputs: Sequence[DealtStream]) -> tuple[DealtStream, ...]:
    """Return the output streams of a node that combines the results of two lanes. Each is taken as the whole result."""
    match node:
        case n.Alu():
            return (inputs[0],)
        case n.Align():
            return (inputs[-1],)
        case n.Join():
            at = len(inputs) // 2
            return inputs[0], *inputs[1:at], *inputs[at + 1 :]
        case _:
            raise AssertionError(f"lanes brought {node.op} `{node.name}`")
